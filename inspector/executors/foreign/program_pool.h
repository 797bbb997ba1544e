// SPDX-License-Identifier: Apache-2.0
// ProgramPool: the programs of one executor. One that a session has done with serves the next session, which saves its
// start.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "inspector/executors/foreign/conversation.h"

namespace parallax::foreign {

class ProgramPool {
 public:
  // `advice` ends the error where the Python lacks the package.
  ProgramPool(std::string executor, std::string command, std::string advice)
      : executor_(std::move(executor)), command_(std::move(command)), advice_(std::move(advice)) {}

  // One that waits, or a new one. Errors: as of Conversation::start; usage, where this machine lacks what it needs.
  Result<std::unique_ptr<Conversation>> take(const CancelToken& cancel = {});
  void give_back(std::unique_ptr<Conversation> conversation);
  // The description of the last one that was started; starts one where none was. Errors: as of take.
  Result<Description> description(const CancelToken& cancel = {});
  const std::string& executor() const { return executor_; }
  // Shows each sentence once.
  void show_notes(const std::vector<std::string>& notes);

 private:
  const std::string executor_, command_, advice_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Conversation>> waiting_;
  std::optional<Description> description_;
  std::set<std::string> shown_;
};

}  // namespace parallax::foreign
