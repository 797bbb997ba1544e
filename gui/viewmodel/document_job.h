// SPDX-License-Identifier: Apache-2.0
// DocumentJob: opens, compares or runs in the background and hands documents over as they become better.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gui/viewmodel/view_document.h"
#include "inspector/base/cancel.h"
#include "inspector/workbench/run.h"

namespace parallax {

class DocumentJob {
 public:
  // Files as of open_document; two dumps are compared after they have been shown, and what diverged is blamed on its
  // causes after that, where there are executors to judge by.
  static std::unique_ptr<DocumentJob> open(std::vector<std::string> files, Policy policy,
                                           ExecutorFactory make_executor = {}, std::function<void()> wake = {});
  // Runs `request` on its executors. Every value is kept in `request.dump_directory`, when there is one, for the tensor
  // viewer. `more_options` is RunOrigin's.
  static std::unique_ptr<DocumentJob> run(RunRequest request, std::string more_options, ExecutorFactory make_executor,
                                          std::function<void()> wake = {});
  // Times every node of `document`'s model; the document that comes has times and is else the same.
  static constexpr std::string_view kTiming = "timing", kRunning = "running";
  static std::unique_ptr<DocumentJob> time(std::shared_ptr<const Document> document, RunRequest request,
                                           ExecutorFactory make_executor, std::function<void()> wake);
  ~DocumentJob();  // cancels and waits

  // Returns the results that were not taken yet, oldest first: documents (only the newest of several in a row), or
  // errors instead.
  std::vector<Result<std::shared_ptr<const Document>>> take();
  bool is_running() const { return is_running_.load(); }
  void cancel() { cancel_.cancel(); }
  std::string title() const { return title_; }
  int64_t done() const { return done_.load(); }
  int64_t total() const { return total_.load(); }  // 0 while it is not known
  void wait();

 private:
  DocumentJob() = default;
  void start(std::string title, std::function<void()> wake, std::function<void()> work);
  void enqueue(Result<std::shared_ptr<const Document>> document);
  StructureOptions structure_options();
  void open_files(const std::vector<std::string>& files, const Policy& policy, const ExecutorFactory& make_executor);
  void run_request(RunRequest request, const std::string& more_options, const ExecutorFactory& make_executor);
  // Posts the comparison so far of a run that was cancelled or failed, with the elements that its dumps hold.
  void enqueue_partial_comparison(const Document& start, const std::string& dump_directory, const RunOrigin& origin,
                                  Comparison so_far);

  std::string title_;
  std::function<void()> wake_;
  CancelToken cancel_;
  std::atomic<bool> is_running_{false};
  std::atomic<int64_t> done_{0}, total_{0};
  std::mutex mutex_;
  std::vector<Result<std::shared_ptr<const Document>>> news_;
  std::thread thread_;
};

// The request that measures the times of a document's nodes: its model, on the executor of side B, else of its only
// side, else on `otherwise`. Of two models it is A's, on A's executor. Errors: usage, where the model's file is not
// known.
Result<RunRequest> request_to_time(const Document& document, const std::string& otherwise);

}  // namespace parallax
