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
  // `advice` is for a program that a Python cannot find.
  ProgramPool(std::string executor, std::string command, std::string advice)
      : executor_(std::move(executor)), command_(std::move(command)), advice_(std::move(advice)) {}

  // One that waits, or a new one. Errors: as of Conversation::start.
  Result<std::unique_ptr<Conversation>> take(const CancelToken& cancel = {});
  void give_back(std::unique_ptr<Conversation> conversation);
  // The description of the last one that was started; starts one where none was. Errors: as of Conversation::start.
  Result<Description> description(const CancelToken& cancel = {});
  const std::string& executor() const { return executor_; }
  // Says each sentence to the user once.
  void tell(const std::vector<std::string>& notes);

 private:
  const std::string executor_, command_, advice_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Conversation>> waiting_;
  std::optional<Description> description_;
  std::set<std::string> shown_;
};

}  // namespace parallax::foreign
