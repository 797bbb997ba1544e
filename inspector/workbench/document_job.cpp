// The background thread and what it does for each kind of job.
#include "inspector/workbench/document_job.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "inspector/diff/compare.h"
#include "inspector/model/import.h"
#include "inspector/workbench/blame.h"

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

std::unique_ptr<DocumentJob> DocumentJob::run(RunRequest request, ExecutorFactory make_executor,
                                              std::function<void()> wake) {
  std::unique_ptr<DocumentJob> job(new DocumentJob());
  job->start(std::string(kRunning), std::move(wake),
             [self = job.get(), request = std::move(request), factory = std::move(make_executor)] {
               self->run_request(request, factory);
             });
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
               if (!profile.ok()) return self->post(Error(profile.error()).with_context("measuring times"));
               self->post(with_times(*document, *profile));
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

void DocumentJob::post(Result<std::shared_ptr<const Document>> document) {
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

void DocumentJob::open_files(const std::vector<std::string>& files, const Policy& policy,
                             const ExecutorFactory& make_executor) {
  auto document = open_document(files);
  if (!document.ok()) return post(std::move(document));
  const std::shared_ptr<const Document> opened = *document;
  post(opened);
  if (opened->b == nullptr) return;
  CompareOptions options;
  options.cancel = cancel_;
  auto comparison = compare_dumps(*opened->a, *opened->b, policy, options);
  if (!comparison.ok()) return post(std::move(comparison).error());
  post(with_comparison(*opened, *comparison));
  if (!make_executor || comparison->verdict != OverallVerdict::diverged || cancel_.is_cancelled()) return;
  const Status blamed = blame_files(files.front(), files.back(), policy, make_executor, *comparison);
  if (!blamed.ok()) return post(Error(blamed.error()).with_context("looking for causes"));
  post(with_comparison(*opened, std::move(comparison).take()));
}

Result<RunRequest> request_to_time(const Document& document, const std::string& otherwise) {
  RunRequest request;
  const DumpReader* dump = document.b != nullptr ? document.b.get() : document.a.get();
  if (dump != nullptr && !dump->executions().empty()) {
    request.model = dump->executions().front().model_path;
    request.executors = {dump->executions().front().executor};
  } else if (document.model != nullptr) {
    request.model = document.model->path;
    request.executors = {otherwise};
  }
  if (request.model.empty()) return usage_error("times cannot be measured: no model's file is known here");
  return request;
}

void DocumentJob::run_request(RunRequest request, const ExecutorFactory& make_executor) {
  // The graph is there at once, values fill it in.
  auto opened = open_document({request.model});
  if (!opened.ok()) return post(std::move(opened));
  const std::shared_ptr<const Document> start = *opened;
  post(start);
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
    post(document_of_run(start->model, start->items, std::move(shown)));
    last_shown = std::chrono::steady_clock::now();
  };
  auto ran = run_models(request, make_executor);
  if (!ran.ok()) return post(std::move(ran).error());
  if (!ran->comparison.has_value()) {
    return post(ran->written.empty() ? Result<std::shared_ptr<const Document>>(start)
                                     : open_document({ran->written.front()}));
  }
  if (ran->written.size() < 2) {
    return post(document_of_run(start->model, start->items, *std::move(ran->comparison)));
  }
  auto dumps = open_document({ran->written[0], ran->written[1]});
  if (!dumps.ok()) return post(std::move(dumps));
  Document document = **dumps;
  document.model = start->model;  // with its weights, and the items that are on the screen already
  document.items = start->items;
  post(with_comparison(document, *std::move(ran->comparison)));
}

}  // namespace parallax
