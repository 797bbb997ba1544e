// SPDX-License-Identifier: Apache-2.0
// The class Generator of Python: a language model opened once, which generates many times.
#include "inspector/python/binding/generator.h"

#include <map>
#include <mutex>
#include <optional>

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

#include "inspector/python/binding/comparison.h"
#include "inspector/python/binding/interruptible.h"
#include "inspector/python/binding/job_request.h"
#include "inspector/python/binding/model.h"
#include "inspector/python/binding/outputs.h"
#include "inspector/python/binding/text_caster.h"
#include "inspector/workbench/generate/generator.h"

namespace parallax::python {
namespace {

using TokenRows = std::vector<std::vector<int64_t>>;

template <class T>
std::optional<T> take_optional(Fields& fields, const char* name) {
  const nb::object given = fields.take(name);
  if (given.is_none()) return std::nullopt;
  T value{};
  if (nb::try_cast(given, value)) return value;
  raise(usage_error(
      fmt::format("{}: {} is {}; that is of the wrong type", fields.verb(), name, nb::repr(given).c_str())));
}

// A path, a Model, or Models by their roles.
void take_language_model(Fields& fields, const char* name, std::string& path, ModelsByRole& models) {
  const nb::object given = fields.take(name);
  if (given.is_none()) return;
  if (nb::isinstance<ModelHandle>(given)) {
    models["model"] = nb::inst_ptr<ModelHandle>(given)->model;
    path = models["model"]->path;
  } else if (nb::isinstance<nb::dict>(given)) {
    for (auto [role, model] : nb::borrow<nb::dict>(given))
      models[nb::cast<std::string>(role)] = nb::cast<ModelHandle>(model).model;
    path = "models in memory";
  } else {
    path = nb::cast<std::string>(given);
  }
}

CacheMode cache_mode_of(const std::string& text) {
  static const std::map<std::string, CacheMode> kModes = {{"auto", CacheMode::automatic},
                                                          {"in-place", CacheMode::in_place},
                                                          {"copy", CacheMode::copy},
                                                          {"none", CacheMode::none}};
  const auto mode = kModes.find(text);
  if (mode == kModes.end())
    raise(usage_error(fmt::format("cache is '{}'; it must be auto, in-place, copy or none", text)));
  return mode->second;
}

std::optional<EarlyStopping> take_early_stopping(Fields& fields) {
  const std::string text = fields.text("early_stopping");
  if (text.empty()) return std::nullopt;
  if (text == "true") return EarlyStopping::yes;
  if (text == "false") return EarlyStopping::no;
  if (text == "never") return EarlyStopping::never;
  raise(usage_error(fmt::format("early_stopping is '{}'; it must be True, False or 'never'", text)));
}

GenerationSettings take_settings(Fields& fields) {
  GenerationSettings settings;
  settings.max_new_tokens = take_optional<int64_t>(fields, "max_new_tokens");
  settings.min_new_tokens = take_optional<int64_t>(fields, "min_new_tokens");
  settings.eos = take_optional<std::vector<int64_t>>(fields, "eos");
  settings.pad = take_optional<int64_t>(fields, "pad");
  settings.start_ids = take_optional<std::vector<int64_t>>(fields, "start_ids");
  settings.beams = take_optional<int64_t>(fields, "beams");
  settings.length_penalty = take_optional<double>(fields, "length_penalty");
  settings.early_stopping = take_early_stopping(fields);
  settings.returned = take_optional<int64_t>(fields, "returned").value_or(settings.returned);
  settings.no_repeat_ngram = take_optional<int64_t>(fields, "no_repeat_ngram");
  settings.repetition_penalty = take_optional<double>(fields, "repetition_penalty");
  settings.sample = fields.flag("sample");
  settings.temperature = take_optional<double>(fields, "temperature");
  settings.top_k = take_optional<int64_t>(fields, "top_k");
  settings.top_p = take_optional<double>(fields, "top_p");
  settings.min_p = take_optional<double>(fields, "min_p");
  settings.seed = take_optional<uint64_t>(fields, "seed").value_or(settings.seed);
  return settings;
}

nb::dict dict_of(const GenerationStep& step) {
  nb::dict answer;
  answer["step"] = step.step;
  answer["tokens"] = step.tokens;
  answer["ms"] = step.ms;
  answer["logprob"] = step.logprob;
  answer["margin"] = step.margin;
  return answer;
}

class PythonGenerator {
 public:
  explicit PythonGenerator(const nb::dict& given) {
    Fields fields("Generator", given);
    GeneratorRequest request;
    take_language_model(fields, "model", request.model, request.models);
    take_language_model(fields, "against", request.against, request.against_models);
    request.executors = fields.texts("executors");
    request.cache = cache_mode_of(fields.text("cache", "auto"));
    request.map_file = fields.text("map");
    request.roles = take_optional<std::map<std::string, std::string>>(fields, "roles").value_or(request.roles);
    request.all_logits = fields.flag("all_logits");
    ModeArguments mode;
    mode.rewrite = fields.text("rewrite", mode.rewrite);
    mode.memory_limit = fields.text("memory_limit");
    mode.time_limit = fields.text("time_limit");
    mode.observe_all = fields.flag("observe_all");
    mode.fallback = fields.text("fallback");
    RunRequest run;
    unwrap(mode.apply(run));
    request.options = run.options;
    request.fallback = mode.fallback;
    request.message = [notes = notes_](const std::string& sentence) { notes->push_back(sentence); };
    fields.finish();
    read_ = {request.model, request.against, request.map_file};
    for (const ModelsByRole* models : {&request.models, &request.against_models}) {
      for (const auto& each : *models) read_.push_back(each.second->path);
    }
    Caller caller(request.options.cancel);
    caller.run([&]() -> Status {
      generator_ = PX_TRY(Generator::open(std::move(request), executor_factory()));
      return {};
    });
  }

  nb::dict generate(const nb::dict& given) {
    Fields fields("generate", given);
    const OutputScope scope(fields.flag("force"), read_);
    JobRequest job;
    GenerationRequest request;
    request.prompts = take_optional<TokenRows>(fields, "prompts").value_or(TokenRows());
    request.masks = take_optional<TokenRows>(fields, "masks").value_or(TokenRows());
    request.settings = take_settings(fields);
    request.expected = take_optional<TokenRows>(fields, "expected").value_or(TokenRows());
    request.expected_file = fields.text("expected_file");
    if (const std::string level = fields.text("capture"); !level.empty())
      request.capture = unwrap(parse_capture(level));
    request.only = fields.texts("only");
    request.dump_directory = fields.text("dump");
    input_files::note(request.expected_file);
    unwrap(admit_output(request.dump_directory));
    take_policy(fields, job);
    request.policy = job.run.policy;
    request.error_pictures = true;
    const nb::object on_step = fields.take("on_step");
    fields.finish();
    const std::unique_lock lock = locked();
    notes_->clear();
    Caller caller(generator_->cancel_token());
    if (!on_step.is_none()) {
      request.on_step = [&caller, function = on_step.ptr()](const GenerationStep& step) {
        static_cast<void>(caller.call([&] { nb::borrow(function)(dict_of(step)); }));
      };
    }
    return answer_of(caller.run([&] { return generator_->generate(request); }));
  }

  std::vector<std::string> roles_text() const { return generator_->roles_text(); }
  std::string kind() const { return generator_->model().kind; }

 private:
  std::unique_lock<std::mutex> locked() {
    const nb::gil_scoped_release nogil;
    return std::unique_lock(mutex_);
  }

  nb::dict answer_of(Generation generation) const {
    nb::dict answer;
    answer["json"] = generation_to_json(generation);
    answer["text"] = generation_to_text(generation);
    answer["sequences"] = generation.sequences;
    answer["scores"] = generation.scores;
    answer["start_ids"] = generation.settings.start_ids;
    answer["pad"] = generation.settings.pad;
    answer["is_encoder_decoder"] = generation.model.kind == "encoder-decoder";
    answer["passed"] = generation.passed();
    std::vector<double> seconds;
    for (const GenerationStep& step : generation.steps) seconds.push_back(step.ms / 1e3);
    answer["step_seconds"] = seconds;
    std::vector<std::string> notes = *notes_;
    notes.insert(notes.end(), generation.notes.begin(), generation.notes.end());
    answer["notes"] = notes;
    answer["written"] = generation.written;
    answer["comparison"] = nb::none();
    if (generation.comparison.has_value()) {
      answer["comparison"] = ComparisonHandle{
          std::make_shared<const Comparison>(std::move(*generation.comparison)), generation.model_a, read_, {}, {}};
    }
    return answer;
  }

  std::shared_ptr<std::vector<std::string>> notes_ = std::make_shared<std::vector<std::string>>();
  std::unique_ptr<Generator> generator_;
  std::vector<std::string> read_;  // files that no dump is written over
  std::mutex mutex_;
};

}  // namespace

void bind_generator(nb::module_& module) {
  nb::class_<PythonGenerator>(module, "Generator", "A language model with its sessions.")
      .def(nb::init<const nb::dict&>(), nb::arg("request"),
           nb::sig("def __init__(self, request: dict[str, typing.Any]) -> None"))
      .def("generate", &PythonGenerator::generate, nb::arg("request"),
           nb::sig("def generate(self, request: dict[str, typing.Any]) -> dict[str, typing.Any]"),
           "Returns the document as \"json\", its text, and the tokens. Ctrl-C ends it.")
      .def_prop_ro("roles_text", &PythonGenerator::roles_text, nb::sig("def roles_text(self) -> list[str]"))
      .def_prop_ro("kind", &PythonGenerator::kind);
}

}  // namespace parallax::python
