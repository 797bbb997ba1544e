// SPDX-License-Identifier: Apache-2.0
// The jobs: one function a verb, from keyword arguments to the program's documents.
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nanobind/stl/vector.h>

#include "inspector/base/signal_cleanup.h"
#include "inspector/exec/owned_outputs.h"
#include "inspector/executors/default_executors.h"
#include "inspector/executors/make_executor.h"
#include "inspector/python/binding/comparison.h"
#include "inspector/python/binding/interruptible.h"
#include "inspector/python/binding/job_request.h"
#include "inspector/python/binding/model.h"
#include "inspector/python/binding/model_jobs.h"
#include "inspector/python/binding/outputs.h"
#include "inspector/python/binding/text_caster.h"
#include "inspector/python/binding/values.h"
#include "inspector/workbench/backend_test.h"
#include "inspector/workbench/blame.h"
#include "inspector/workbench/doctor/doctor.h"
#include "inspector/workbench/profile.h"
#include "inspector/workbench/reduce/reduce.h"
#include "inspector/workbench/reports.h"

namespace parallax::python {
namespace {

// Checks what a run writes. A dump that is asked for as a file is written in a folder next to it, which is returned.
std::unique_ptr<TemporaryPath> admit_dump(JobRequest& job, const std::string& file) {
  for (const std::string& path : {job.run.save_baseline, job.run.dump_directory, file}) unwrap(admit_output(path));
  if (file.empty()) return nullptr;
  const std::string folder = std::filesystem::absolute(file).parent_path().string();
  auto scratch = unwrap(TemporaryPath::make_folder(folder + "/.parallax"));
  job.run.dump_directory = scratch->path();
  return scratch;
}

nb::object run_one(Fields& fields) {
  JobRequest job;
  take_models(fields, job, false);
  job.run.executors = {take_executor(fields, "cpu")};
  take_inputs_and_mode(fields, job);
  if (const std::string level = fields.text("capture"); !level.empty()) job.run.capture = unwrap(parse_capture(level));
  if (const std::string bytes = fields.text("capture_limit"); !bytes.empty())
    job.run.capture_limit_bytes = unwrap(parse_bytes("--capture-limit", bytes));
  job.run.only = fields.texts("only");
  job.run.dump_directory = fields.text("dump");
  const std::string file = fields.text("dump_file");
  job.run.save_baseline = fields.text("save_baseline");
  job.run.error_pictures = true;
  take_policy(fields, job);
  fields.finish();
  const auto scratch = admit_dump(job, file);
  unwrap(check_effects(job.run));
  Caller caller(job.run.options.cancel);
  RunResult result = caller.run([&]() -> Result<RunResult> {
    RunResult ran = PX_TRY(run_models(job.run, executor_factory()));
    if (scratch != nullptr) PX_TRY(move_output(std::exchange(ran.written.at(0), file), file));
    for (NamedValue& output : ran.output_values) PX_TRY(separate_outputs({&output.value, 1}));
    return ran;
  });
  result.load_ms += job.load_ms;
  nb::dict answer, outputs;
  for (const NamedValue& output : result.output_values)
    outputs[nb::cast(output.name)] = value_to_python(output.value, job.kind, true);
  answer["json"] = single_run_to_json(result);
  answer["text"] = single_run_to_text(result);
  answer["outputs"] = outputs;
  for (const std::string& note : result.notes) job.notes->push_back(note);
  answer["notes"] = *job.notes;
  answer["written"] = result.written;
  answer["comparison"] = nb::none();
  if (result.comparison.has_value()) {
    answer["comparison"] = ComparisonHandle{
        std::make_shared<const Comparison>(std::move(*result.comparison)), result.model_a, job.read, {}, {}};
  }
  return answer;
}

// `on_value` is called with each value's document, as soon as it has been compared.
void watch(RunRequest& run, const nb::object& on_value, Caller& caller) {
  if (on_value.is_none()) return;
  run.on_value = [&caller, function = on_value.ptr()](const ValueComparison& value) {
    // An exception of the function ends the run.
    static_cast<void>(caller.call([&] { nb::borrow(function)(value_to_json(value)); }));
  };
}

nb::object compare(Fields& fields) {
  JobRequest job;
  RunRequest& run = job.run;
  take_models(fields, job, true);
  run.baseline = fields.text("baseline");
  run.repeat = static_cast<int>(fields.number("repeat", 0));
  run.executors = take_executors(fields, run.has_against() || run.repeat > 0 || !run.baseline.empty());
  if (!has_two_sides(run))
    raise(
        usage_error(fmt::format("{} needs two sides: give two executors, against, baseline or repeat", fields.verb())));
  take_inputs_and_mode(fields, job);
  if (const std::string level = fields.text("capture"); !level.empty()) run.capture = unwrap(parse_capture(level));
  if (const std::string bytes = fields.text("capture_limit"); !bytes.empty())
    run.capture_limit_bytes = unwrap(parse_bytes("--capture-limit", bytes));
  run.only = fields.texts("only");
  run.dump_directory = fields.text("dump");
  input_files::note(run.baseline);
  unwrap(admit_output(run.dump_directory));
  take_policy(fields, job);
  const nb::object on_value = fields.take("on_value");
  fields.finish();
  unwrap(check_effects(run));
  run.error_pictures = true;
  Caller caller(run.options.cancel);
  watch(run, on_value, caller);
  RunResult result = caller.run([&] { return run_models(run, executor_factory()); });
  for (const std::string& note : result.notes) job.notes->push_back(note);
  std::vector<std::string> warnings;
  for (const std::string& glob : idle_globs(run.only, run.policy, *result.comparison))
    warnings.push_back(fmt::format("'{}' matches no value", glob));
  return nb::cast(ComparisonHandle{std::make_shared<const Comparison>(std::move(*result.comparison)), result.model_a,
                                   job.read, *job.notes, warnings});
}

nb::object compare_dumps_at(Fields& fields) {
  JobRequest job;
  const std::string a = fields.text("a"), b = fields.text("b");
  note_inputs({a, b});
  take_policy(fields, job);
  fields.finish();
  CompareOptions options;
  options.error_pictures = true;
  Caller caller(options.cancel);
  OpenedComparison opened =
      caller.run([&] { return compare_and_blame_files(a, b, job.run.policy, options, executor_factory()); });
  std::vector<std::string> warnings = opened.remarks;
  for (const std::string& glob : idle_globs({}, job.run.policy, opened.comparison))
    warnings.push_back(fmt::format("'{}' matches no value", glob));
  return nb::cast(ComparisonHandle{
      std::make_shared<const Comparison>(std::move(opened.comparison)), opened.model, {a, b}, {}, warnings});
}

nb::object bench(Fields& fields) {
  JobRequest job;
  take_models(fields, job, false);
  job.run.executors = {take_executor(fields, default_executors(false).back())};
  take_inputs_and_mode(fields, job);
  const int64_t iterations = fields.number("iterations", 10);
  fields.finish();
  if (iterations < 1) raise(usage_error(fmt::format("iterations is {}; it must be 1 or more", iterations)));
  Caller caller(job.run.options.cancel);
  BenchResult result = caller.run([&] { return bench_model(job.run, iterations, executor_factory()); });
  result.load_ms += job.load_ms;
  nb::dict answer;
  answer["json"] = bench_to_json(result);
  answer["text"] = bench_to_text(result);
  answer["notes"] = *job.notes;
  return answer;
}

nb::object profile(Fields& fields) {
  JobRequest job;
  take_models(fields, job, false);
  job.run.executors = {take_executor(fields, default_executors(false).back())};
  take_inputs_and_mode(fields, job);
  const int64_t iterations = fields.number("iterations", 5);
  fields.finish();
  if (iterations < 1) raise(usage_error(fmt::format("iterations is {}; it must be 1 or more", iterations)));
  Caller caller(job.run.options.cancel);
  const ProfileResult result = caller.run([&] { return profile_model(job.run, iterations, executor_factory()); });
  nb::dict answer;
  for (const std::string& note : result.notes) job.notes->push_back(note);
  answer["json"] = profile_to_json(result);
  answer["text"] = profile_to_text(result, 20);
  answer["trace"] = result.trace;
  answer["read"] = job.read;
  answer["notes"] = *job.notes;
  return answer;
}

std::string folder_for(Fields& fields, const JobRequest& job, std::string_view kind) {
  std::string folder = fields.text("directory");
  if (!folder.empty()) return folder;
  return default_folder(job.run.model_in_memory == nullptr ? job.run.model : "model", kind);
}

nb::object extract(Fields& fields) {
  JobRequest job;
  ExtractRequest request;
  take_models(fields, job, false);
  job.run.executors = {take_executor(fields, "reference")};
  request.directory = folder_for(fields, job, "part");
  request.from = fields.texts("from");
  request.to = fields.texts("to");
  take_inputs_and_mode(fields, job);
  fields.finish();
  unwrap(admit_output_folder(request.directory));
  request.run = job.run;
  Caller caller(job.run.options.cancel);
  const ExtractResult result = caller.run([&] { return extract_part(request, executor_factory()); });
  for (const std::string& note : result.notes) job.notes->push_back(note);
  nb::dict answer;
  answer["json"] = extract_to_json(result);
  answer["text"] = extract_to_text(result);
  answer["directory"] = request.directory;
  answer["notes"] = *job.notes;
  return answer;
}

// A Python function that is given a Model and its inputs by name, and says whether the candidate fails.
CandidateCheck candidate_check_of(const nb::object& function, Caller& caller) {
  if (function.is_none()) return {};
  return [&caller, check = function.ptr()](const std::shared_ptr<const Model>& model,
                                           const std::vector<NamedValue>& inputs) -> Result<bool> {
    bool fails = false;
    PX_TRY(caller.call([&] {
      nb::dict arrays;
      for (const NamedValue& input : inputs)
        arrays[nb::cast(input.name)] = value_to_python(input.value, ArrayKind::numpy, false);
      const nb::object answer = nb::borrow(check)(ModelHandle{model}, arrays);
      const int truth = PyObject_IsTrue(answer.ptr());
      if (truth < 0) throw nb::python_error();
      fails = truth == 1;
    }));
    return fails;
  };
}

nb::object reduce(Fields& fields) {
  JobRequest job;
  ReduceRequest request;
  take_models(fields, job, true);
  request.check.text = fields.text("check");
  const nb::object function = fields.take("check_function");
  for (const std::string& code : fields.texts("fail_codes"))
    request.check.fail_codes.push_back(static_cast<int>(unwrap(parse_integer("--fail-code", code))));
  request.check.fail_regex = fields.text("fail_regex");
  request.check.timeout_s = fields.real("timeout", 0);
  const std::vector<std::string> names = fields.texts("executors");
  const bool has_check = !request.check.text.empty() || !function.is_none();
  if (!names.empty()) {
    job.run.executors = unwrap(parse_executors(fmt::format("{}", fmt::join(names, ","))));
  } else if (has_check || job.run.has_against()) {
    job.run.executors = default_executors(true);
  }
  request.directory = folder_for(fields, job, "reduced");
  request.max_checks = fields.number("max_checks", request.max_checks);
  take_inputs_and_mode(fields, job);
  take_policy(fields, job);
  fields.finish();
  unwrap(admit_output_folder(request.directory));
  request.script_options = script_options(job.inputs.seed, job.mode, job.policy);
  request.run = job.run;
  Caller caller(job.run.options.cancel);
  request.candidate_check = candidate_check_of(function, caller);
  const ReduceResult result = caller.run([&] { return reduce_model(request, executor_factory()); });
  for (const std::string& note : result.notes) job.notes->push_back(note);
  nb::dict answer;
  answer["fails"] = result.fails;
  answer["explanation"] = result.explanation;
  answer["json"] = reduce_to_json(result);
  answer["text"] = result.fails ? reduce_to_text(result) : result.explanation;
  answer["directory"] = request.directory;
  answer["notes"] = *job.notes;
  return answer;
}

nb::object run_tests(Fields& fields) {
  BackendTestRequest request;
  request.folders = fields.texts("folders");
  request.executor = take_executor(fields, default_executors(false).back());
  request.glob = fields.text("glob");
  request.strict = fields.flag("strict");
  request.rewrite = unwrap(parse_rewrite(fields.text("rewrite", "default")));
  request.fallback = fields.text("fallback");
  fields.finish();
  unwrap(check_fallback(request.fallback));
  Caller caller(request.cancel);
  const BackendTestResult result = caller.run([&] { return run_backend_tests(request, executor_factory()); });
  nb::dict answer;
  answer["json"] = backend_tests_to_json(result);
  answer["text"] = backend_tests_to_text(result);
  return answer;
}

nb::object doctor(Fields& fields) {
  fields.finish();
  std::vector<DoctorItem> items;
  std::vector<LateLibrary> libraries;
  {
    const nb::gil_scoped_release nogil;
    items = examine_machine();
    libraries = examine_late_libraries();
    for (const ExecutorAvailability& executor : examine_executors())
      items.push_back({"executor " + executor.name, executor.available, executor.detail, executor.advice});
  }
  nb::dict answer;
  answer["json"] = doctor_to_json(items, libraries);
  answer["text"] = doctor_to_text(items, libraries);
  return answer;
}

nb::object run_job(const std::string& verb, const nb::dict& request) {
  static const std::map<std::string, nb::object (*)(Fields&)> kJobs = {{"run", run_one},
                                                                       {"compare", compare},
                                                                       {"blame", compare},
                                                                       {"diff", compare_dumps_at},
                                                                       {"bench", bench},
                                                                       {"profile", profile},
                                                                       {"extract", extract},
                                                                       {"reduce", reduce},
                                                                       {"test", run_tests},
                                                                       {"doctor", doctor},
                                                                       {"merge-decoders", merge_decoders},
                                                                       {"convert", convert},
                                                                       {"audit-fp16", audit_fp16}};
  const auto job = kJobs.find(verb);
  if (job == kJobs.end()) raise(usage_error(fmt::format("there is no job '{}'", verb)));
  Fields fields(verb, request);
  const OutputScope scope(fields.flag("force"));
  return job->second(fields);
}

}  // namespace

void bind_jobs(nb::module_& module) {
  bind_comparison(module);
  bind_comparer(module);
  module.def("run_job", run_job, nb::arg("verb"), nb::arg("request"),
             nb::sig("def run_job(verb: str, request: dict[str, typing.Any]) -> typing.Any"),
             "Runs a job of the program with keyword arguments: compare, blame and diff answer a Comparison, others a "
             "dict\n"
             "with their document as \"json\". Ctrl-C ends it.");
}

}  // namespace parallax::python
