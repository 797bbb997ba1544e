// SPDX-License-Identifier: Apache-2.0
// Starts programs and keeps those that wait.
#include "inspector/executors/foreign/program_pool.h"

#include "inspector/base/log.h"

namespace parallax::foreign {

Result<std::unique_ptr<Conversation>> ProgramPool::take(const CancelToken& cancel) {
  {
    const std::lock_guard lock(mutex_);
    while (!waiting_.empty()) {
      std::unique_ptr<Conversation> conversation = std::move(waiting_.back());
      waiting_.pop_back();
      if (conversation->is_running()) return conversation;
    }
  }
  auto started = Conversation::start(executor_, command_, cancel);
  if (!started.ok()) {
    Error error = std::move(started).error();
    const bool lacks_package = error.message.find("No module named parallax") != std::string::npos ||
                               error.message.find("No module named 'parallax") != std::string::npos;
    if (lacks_package || error.code == ErrorCode::unsupported) error.code = ErrorCode::usage;  // it is not available
    if (!advice_.empty() && lacks_package) error.message += "; " + advice_;
    return error;
  }
  auto conversation = started.take();
  const std::lock_guard lock(mutex_);
  description_ = conversation->description();
  return conversation;
}

void ProgramPool::give_back(std::unique_ptr<Conversation> conversation) {
  if (conversation == nullptr || !conversation->is_running()) return;
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(conversation));
}

Result<Description> ProgramPool::description(const CancelToken& cancel) {
  {
    const std::lock_guard lock(mutex_);
    if (description_.has_value()) return *description_;
  }
  auto conversation = PX_TRY(take(cancel));
  Description description = conversation->description();
  give_back(std::move(conversation));
  return description;
}

void ProgramPool::show_notes(const std::vector<std::string>& notes) {
  const std::lock_guard lock(mutex_);
  for (const std::string& note : notes) {
    if (shown_.insert(note).second) log_info(executor_ + ": " + note);
  }
}

}  // namespace parallax::foreign
