// SPDX-License-Identifier: Apache-2.0
// Jobs that write models: decoders merged, models in half precision.
#include "inspector/python/binding/model_jobs.h"

#include <fmt/format.h>
#include <nanobind/stl/vector.h>

#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"
#include "inspector/python/binding/interruptible.h"
#include "inspector/python/binding/job_request.h"
#include "inspector/python/binding/model.h"
#include "inspector/python/binding/outputs.h"
#include "inspector/python/binding/text_caster.h"
#include "inspector/workbench/half_precision/audit.h"
#include "inspector/workbench/half_precision/convert.h"
#include "inspector/workbench/transforms/merge_decoders.h"

namespace parallax::python {
namespace {

MessageCallback into(const std::shared_ptr<std::vector<std::string>>& notes) {
  return [notes](const std::string& sentence) { notes->push_back(sentence); };
}

// A Python function from the index of an input set to a mapping of arrays, the path of a data set, or None.
NextInputs next_inputs_of(const nb::object& function, const Model& model, Caller& caller) {
  return [&caller, &model, next = function.ptr()](int64_t index) -> Result<std::optional<InputRequest>> {
    std::optional<InputRequest> request;
    PX_TRY(caller.call([&] {
      const nb::object given = nb::borrow(next)(index);
      if (given.is_none()) return;
      request.emplace();
      request->seed = static_cast<uint64_t>(index);
      std::string source;
      if (nb::try_cast(given, source))
        request->source = source;
      else
        request->values = values_by_name(model, given);
    }));
    return request;
  };
}

}  // namespace

nb::object merge_decoders(Fields& fields) {
  MergeRequest request;
  read_model(fields.take("first"), request.first, request.first_in_memory);
  read_model(fields.take("later"), request.later, request.later_in_memory);
  request.output = fields.text("output");
  request.condition = fields.text("condition", request.condition);
  request.verify = fields.flag("verify");
  request.data = fields.text("data");
  fields.finish();
  input_files::note(request.data);
  unwrap(admit_model(request.output));
  Caller caller{CancelToken()};
  const MergeResult result = caller.run([&] { return merge_decoder_files(request, executor_factory()); });
  nb::dict answer;
  answer["json"] = merge_to_json(result);
  answer["text"] = merge_to_text(result);
  answer["notes"] = std::vector<std::string>();
  answer["passed"] = result.passed();
  return answer;
}

nb::object convert(Fields& fields) {
  ConvertRequest request;
  const auto notes = std::make_shared<std::vector<std::string>>();
  read_model(fields.take("model"), request.model, request.model_in_memory);
  request.output = fields.text("output");
  request.half.to = unwrap(parse_half_type(fields.text("to", "float16")));
  request.half.keep = fields.texts("keep");
  request.half.keep_io = fields.flag("keep_io");
  request.keep_file = fields.text("keep_file");
  request.verify = fields.text("verify");
  request.tolerance = fields.real("tolerance", request.tolerance);
  request.message = into(notes);
  fields.finish();
  note_inputs({request.keep_file, request.verify});
  unwrap(admit_model(request.output));
  Caller caller{CancelToken()};
  const ConvertResult result = caller.run([&] { return convert_model(request, executor_factory()); });
  nb::dict answer;
  answer["json"] = convert_to_json(result);
  answer["text"] = convert_to_text(result);
  answer["notes"] = *notes;
  answer["passed"] = !result.verification.has_value() || result.verification->passed;
  return answer;
}

nb::object audit_fp16(Fields& fields) {
  AuditRequest request;
  const auto notes = std::make_shared<std::vector<std::string>>();
  read_model(fields.take("model"), request.model, request.model_in_memory);
  if (request.model_in_memory == nullptr) {  // arrays need the types that the model declares
    const nb::gil_scoped_release nogil;
    request.model_in_memory = unwrap(import_model(request.model));
  }
  request.to = unwrap(parse_half_type(fields.text("to", "float16")));
  request.executor = take_executor(fields, request.executor);
  request.until_stable = fields.number("until_stable", 0);
  for (const std::string& feed : fields.texts("feeds")) request.feeds.push_back(unwrap(parse_feed(feed)));
  request.tolerance = fields.real("tolerance", request.tolerance);
  request.minimize = fields.flag("minimise");
  request.half_sums = fields.flag("half_sums");
  request.message = into(notes);
  const nb::object next = fields.take("next_inputs");
  fields.finish();
  Caller caller{CancelToken()};
  request.next_inputs = next_inputs_of(next, *request.model_in_memory, caller);
  const HalfAudit audit = caller.run([&] { return audit_half(request, executor_factory()); });
  nb::dict answer;
  answer["json"] = audit_to_json(audit);
  answer["text"] = audit_to_text(audit);
  answer["html"] = audit_to_html(audit, request.model);
  answer["csv"] = audit_to_csv(audit);
  answer["read"] = std::vector<std::string>{request.model};
  notes->insert(notes->end(), audit.notes.begin(), audit.notes.end());
  answer["notes"] = *notes;
  answer["passed"] = audit.kept.passed;
  return answer;
}

}  // namespace parallax::python
