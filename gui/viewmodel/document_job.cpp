// SPDX-License-Identifier: Apache-2.0
// The background thread and what it does for each kind of job.
#include "gui/viewmodel/document_job.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "inspector/diff/compare/compare.h"
#include "inspector/model/io/import.h"
#include "inspector/workbench/blame.h"
#include "inspector/workbench/open.h"

namespace parallax {

std::unique_ptr<DocumentJob> DocumentJob::open(std::vector<std::string> files, Policy policy,
                                               ExecutorFactory make_executor, std::function<void()> wake) {
  std::unique_ptr<DocumentJob> job(new DocumentJob());
  const std::string title = files.size() > 1 ? "comparing" : "opening";
  job->start(title, std::move(wake),
             [self = job.get(), files = std::move(files), policy = std::move(policy),
              factory = std::move(make_executor)] { self->open_files(files, policy, factory); });
  return job;
}

std::unique_ptr<DocumentJob> DocumentJob::run(RunRequest request, std::string more_options,
                                              ExecutorFactory make_executor, std::function<void()> wake) {
  std::unique_ptr<DocumentJob> job(new DocumentJob());
  job->start(std::string(kRunning), std::move(wake),
             [self = job.get(), request = std::move(request), options = std::move(more_options),
              factory = std::move(make_executor)] { self->run_request(request, options, factory); });
  return job;
}

std::unique_ptr<DocumentJob> DocumentJob::time(std::shared_ptr<const Document> document, RunRequest request,
                                               ExecutorFactory make_executor, std::function<void()> wake) {
  std::unique_ptr<DocumentJob> job(new DocumentJob());
  request.options.cancel = job->cancel_;
  job->start(std::string(kTiming), std::move(wake),
             [self = job.get(), document = std::move(document), request = std::move(request),
              factory = std::move(make_executor)] {
               constexpr int64_t kRuns = 3;
               const auto profile = profile_model(request, kRuns, factory);
               if (!profile.ok()) return self->enqueue(Error(profile.error()).with_context("measuring times"));
               self->enqueue(with_times(*document, *profile));
             });
  return job;
}

DocumentJob::~DocumentJob() {
  cancel();
  wait();
}

void DocumentJob::wait() {
  if (thread_.joinable()) thread_.join();
}

void DocumentJob::start(std::string title, std::function<void()> wake, std::function<void()> work) {
  title_ = std::move(title);
  wake_ = std::move(wake);
  is_running_ = true;
  thread_ = std::thread([this, work = std::move(work)] {
    work();
    is_running_ = false;
    if (wake_) wake_();
  });
}

void DocumentJob::enqueue(Result<std::shared_ptr<const Document>> document) {
  {
    const std::lock_guard lock(mutex_);
    if (!news_.empty() && news_.back().ok() && document.ok()) news_.pop_back();
    news_.push_back(std::move(document));
  }
  if (wake_) wake_();
}

std::vector<Result<std::shared_ptr<const Document>>> DocumentJob::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

StructureOptions DocumentJob::structure_options() {
  StructureOptions options;
  options.cancel = cancel_;
  options.progress = [this](int64_t done, int64_t total) {
    done_ = done;
    total_ = total;
  };
  return options;
}

void DocumentJob::open_files(const std::vector<std::string>& files, const Policy& policy,
                             const ExecutorFactory& make_executor) {
  auto document = open_document(files, structure_options());
  if (!document.ok()) return enqueue(std::move(document));
  const std::shared_ptr<const Document> opened = *document;
  enqueue(opened);
  done_ = total_ = 0;
  if (opened->b == nullptr) return;
  CompareOptions options;
  options.cancel = cancel_;
  auto comparison = compare_dumps(*opened->a, *opened->b, policy, options);
  if (!comparison.ok()) return enqueue(std::move(comparison).error());
  enqueue(with_comparison(*opened, *comparison));
  if (!make_executor || comparison->verdict != OverallVerdict::diverged || cancel_.is_cancelled()) return;
  const Status blamed = blame_files(opened->a->path(), opened->b->path(), policy, make_executor, *comparison, cancel_);
  if (!blamed.ok()) return enqueue(Error(blamed.error()).with_context("looking for causes"));
  enqueue(with_comparison(*opened, std::move(comparison).take()));
}

Result<RunRequest> request_to_time(const Document& document, const std::string& otherwise) {
  RunRequest request;
  const bool is_b = document.b != nullptr && document.models == nullptr;  // else the times are of A's items
  const DumpReader* dump = is_b ? document.b.get() : document.a.get();
  if (dump != nullptr && !dump->executions().empty()) {
    request.model = dump->executions().front().model_path;
    request.executors = {dump->executions().front().executor};
  } else if (document.model != nullptr) {
    request.model = document.model->path;
    request.executors = {otherwise};
  }
  if (request.model.empty())
    return usage_error("times cannot be measured: no model's file is known here; open the model");
  return request;
}

namespace {

RunOrigin origin_of(const RunRequest& request, const std::string& more_options) {
  return {request.model,         request.against,  {request.executors.front(), request.executors.back()},
          request.inputs.source, request.fallback, request.options.observe_all,
          more_options};
}

Status check_models(const RunRequest& request) {
  for (const std::string& model : {request.model, request.against}) {
    if (model.empty() || !PX_TRY(is_dump_file(model))) continue;
    return usage_error(
        fmt::format("'{}' is a dump of a run, not a model: open it (Ctrl+O) instead of running it", model));
  }
  return {};
}

// Replaces the command line's options in an error by the fields of the dialog that asks for a run.
Error worded_for_dialog(Error error) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kWords = {
      {{"--fallback=reference runs", "the option 'fall back to the reference for unsupported operators' (Ctrl+R) runs"},
       {"--inputs: there is no", "inputs: there is no"}}};
  for (const auto& [option, words] : kWords) {
    if (const size_t at = error.message.find(option); at != std::string::npos)
      error.message.replace(at, option.size(), words);
  }
  return error;
}

// The dumps that a run which did not end has left: A's and B's, where both have been begun.
std::optional<std::pair<std::string, std::string>> dumps_in(const std::string& folder) {
  std::error_code error;
  std::string a, b;
  for (const auto& file : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = file.path().filename().string();
    if (name.ends_with(".plx")) (name.starts_with("A-") ? a : b) = file.path().string();
  }
  if (a.empty() || b.empty()) return std::nullopt;
  return std::pair(a, b);
}

}  // namespace

void DocumentJob::enqueue_partial_comparison(const Document& start, const std::string& dump_directory,
                                             const RunOrigin& origin, Comparison so_far) {
  if (so_far.values.empty() || dump_directory.empty()) return;
  const auto dumps = dumps_in(dump_directory);
  if (!dumps.has_value()) return;
  conclude(so_far);
  auto document = document_of_dumps(start, dumps->first, dumps->second, std::move(so_far), origin);
  if (!document.ok()) return;  // why the run ended is reported
  Document kept = **document;
  kept.remarks.clear();  // likewise
  enqueue(std::make_shared<const Document>(std::move(kept)));
}

void DocumentJob::run_request(RunRequest request, const std::string& more_options,
                              const ExecutorFactory& make_executor) {
  // The graph is there at once, values fill it in.
  if (const Status checked = check_models(request); !checked.ok()) return enqueue(checked.error());
  std::vector<std::string> models{request.model};
  if (!request.against.empty()) models.push_back(request.against);
  auto opened = open_document(models, structure_options());
  if (!opened.ok()) return enqueue(std::move(opened));
  const std::shared_ptr<const Document> start = *opened;
  enqueue(start);
  done_ = total_ = 0;
  const RunOrigin origin = origin_of(request, more_options);
  request.options.cancel = cancel_;
  request.progress = [this](int64_t done, int64_t total) {
    done_ = done;
    total_ = total;
  };
  std::mutex mutex;
  Comparison so_far;
  auto last_shown = std::chrono::steady_clock::now();
  request.on_value = [&](const ValueComparison& value) {
    const std::lock_guard lock(mutex);
    so_far.values.push_back(value);
    const auto now = std::chrono::steady_clock::now();
    if (now - last_shown < std::chrono::milliseconds(200)) return;
    Comparison shown = so_far;
    conclude(shown);
    enqueue(document_of_run(*start, std::move(shown), origin));
    last_shown = std::chrono::steady_clock::now();
  };
  auto ran = run_models(request, make_executor);
  if (!ran.ok()) {
    enqueue_partial_comparison(*start, request.dump_directory, origin, std::move(so_far));
    return enqueue(worded_for_dialog(std::move(ran).error()));
  }
  if (!ran->comparison.has_value()) {
    return enqueue(ran->written.empty() ? Result<std::shared_ptr<const Document>>(start)
                                        : open_document({ran->written.front()}));
  }
  if (ran->written.size() < 2) {
    return enqueue(document_of_run(*start, *std::move(ran->comparison), origin));
  }
  enqueue(document_of_dumps(*start, ran->written[0], ran->written[1], *std::move(ran->comparison), origin));
}

}  // namespace parallax
