// SPDX-License-Identifier: Apache-2.0
// Keyword arguments into requests.
#include "inspector/python/binding/job_request.h"

#include <chrono>

#include <fmt/format.h>

#include "inspector/executors/default_executors.h"
#include "inspector/executors/make_executor.h"
#include "inspector/model/io/import.h"
#include "inspector/python/binding/errors.h"
#include "inspector/python/binding/model.h"
#include "inspector/python/binding/outputs.h"
#include "inspector/python/binding/text_caster.h"
#include "inspector/python/binding/values.h"

namespace parallax::python {

void read_model(const nb::object& given, std::string& path, std::shared_ptr<const Model>& in_memory) {
  if (nb::isinstance<ModelHandle>(given)) {
    in_memory = nb::inst_ptr<ModelHandle>(given)->model;
    path = in_memory->path;
  } else {
    path = nb::cast<std::string>(given);
    unwrap(refuse_dump(path));
  }
  input_files::note(path);
}

namespace {

void take_model(Fields& fields, const char* name, JobRequest& job, std::string& path,
                std::shared_ptr<const Model>& in_memory) {
  const nb::object given = fields.take(name);
  if (given.is_none()) return;
  read_model(given, path, in_memory);
  job.read.push_back(path);
}

// Values need the types that the model declares, so that it is read before the job.
void take_values(nb::handle mapping, JobRequest& job) {
  if (mapping.is_none()) return;
  if (job.run.model_in_memory == nullptr) {
    const nb::gil_scoped_release nogil;
    ImportOptions options;
    options.hash = true;
    const auto start = std::chrono::steady_clock::now();
    job.run.model_in_memory = unwrap(import_model(job.run.model, options));
    job.load_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  job.run.inputs.values = values_by_name(*job.run.model_in_memory, mapping);
  job.kind = kind_of_arrays(nb::borrow<nb::dict>(mapping).values());
}

uint64_t take_seed(Fields& fields) {
  const nb::object given = fields.take("seed");
  uint64_t seed = 0;
  if (given.is_none() || nb::try_cast(given, seed)) return seed;
  raise(usage_error(fmt::format("{}: seed is {}; it must be a whole number from 0 to {}", fields.verb(),
                                nb::repr(given).c_str(), UINT64_MAX)));
}

}  // namespace

void take_models(Fields& fields, JobRequest& job, bool has_against) {
  take_model(fields, "model", job, job.run.model, job.run.model_in_memory);
  if (has_against) take_model(fields, "against", job, job.run.against, job.run.against_in_memory);
  job.run.message = [notes = job.notes](const std::string& sentence) { notes->push_back(sentence); };
}

void take_inputs_and_mode(Fields& fields, JobRequest& job) {
  InputArguments& inputs = job.inputs;
  if (const std::string source = fields.text("inputs_source"); !source.empty()) inputs.sources = {source};
  inputs.files = fields.texts("input_files");
  inputs.shapes = fields.texts("shapes");
  inputs.dims = fields.texts("dims");
  inputs.ranges = fields.texts("ranges");
  inputs.seed = take_seed(fields);
  ModeArguments& mode = job.mode;
  mode.tf32 = fields.text("tf32", mode.tf32);
  mode.accumulate = fields.text("accumulate", mode.accumulate);
  mode.rewrite = fields.text("rewrite", mode.rewrite);
  mode.fallback = fields.text("fallback");
  mode.memory_limit = fields.text("memory_limit");
  mode.time_limit = fields.text("time_limit");
  mode.observe_all = fields.flag("observe_all");
  mode.keep_casts = fields.flag("keep_casts");
  job.run.inputs = unwrap(inputs.request());
  job.run.options.seed = inputs.seed;
  unwrap(mode.apply(job.run));
  std::vector<std::string> given = inputs.sources;
  for (const std::string& file : inputs.files) given.push_back(file.substr(file.find('=') + 1));
  note_inputs(given);
  job.read.insert(job.read.end(), given.begin(), given.end());
  take_values(fields.take("inputs"), job);
}

void take_policy(Fields& fields, JobRequest& job) {
  job.policy.policy = fields.text("policy");
  job.policy.file = fields.text("policy_file");
  input_files::note(job.policy.file);
  job.policy.rtol = fields.text("rtol");
  job.policy.atol = fields.text("atol");
  job.policy.per = fields.texts("per");
  job.run.policy = unwrap(job.policy.make());
}

std::vector<std::string> take_executors(Fields& fields, bool against) {
  const std::vector<std::string> names = fields.texts("executors");
  if (names.empty()) return default_executors(against);
  if (names.size() == 1) return unwrap(parse_executors(names.front()));
  if (names.size() > 2)
    raise(usage_error(fmt::format("executors '{}': one or two executors", fmt::join(names, "', '"))));
  return names;
}

std::string take_executor(Fields& fields, const std::string& otherwise) {
  return unwrap(parse_executor(fields.verb(), fields.text("executor", otherwise)));
}

std::map<std::string, Value> values_by_name(const Model& model, nb::handle mapping) {
  std::map<std::string, Value> values;
  for (auto [key, given] : nb::borrow<nb::dict>(mapping)) {
    std::string name;
    if (!nb::try_cast(nb::object(nb::borrow(key)), name))
      raise(usage_error(fmt::format("the mapping of inputs has the key {}; it must be a str, the name of an input",
                                    nb::repr(key).c_str())));
    const ValueId id = model.graph.find_value(name);
    const TypeInfo declared = id == kNoValue ? TypeInfo() : value_at(model.graph, id).type;
    values[name] = value_from(given, declared, fmt::format("input '{}'", name));
  }
  return values;
}

ArrayKind kind_of_arrays(nb::handle arrays) {
  ArrayKind kind = ArrayKind::numpy;
  for (nb::handle array : arrays) {
    if (is_torch_tensor(array)) return ArrayKind::torch;
    if (nb::isinstance<TensorHandle>(array)) kind = ArrayKind::tensor;
  }
  return kind;
}

ExecutorFactory executor_factory() { return executor_source(); }

}  // namespace parallax::python
