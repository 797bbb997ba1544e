// SPDX-License-Identifier: Apache-2.0
// Player: shows an observer an execution that a test makes up, as an executor would.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/exec/observer.h"
#include "inspector/exec/value_path.h"

namespace parallax {

inline Value tensor_of(float first, int64_t count = 8) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t index = 0; index < values.size(); ++index) values[index] = first + static_cast<float>(index);
  return Tensor::vector<float>(values);
}

// Plays one execution to an observer from a list of what happens.
class Player {
 public:
  Player(Observer& observer, std::string executor) : observer_(observer), executor_(std::move(executor)) {}

  ValueInfo& value_info(const std::string& name, const std::string& scope = "") {
    const auto node_index = static_cast<int32_t>(value_infos_.size());
    ValueInfo& value_info = value_infos_.emplace_back();
    value_info.node_index = node_index;
    names_.push_back(name);
    value_info.name = names_.back();
    value_info.escaped_name = escape_name(name);
    value_info.scope = scope;
    value_info.node = names_.back();
    value_info.op = "Add";
    return value_info;
  }
  Player& output(const std::string& name) {
    value_info(name).is_graph_output = true;
    return *this;
  }
  Player& sees(const std::string& name, Value value, const std::string& scope = "", std::vector<Frame> frames = {}) {
    const ValueInfo* location = nullptr;
    for (const ValueInfo& known : value_infos_) {
      if (known.name == name && known.scope == scope) location = &known;
    }
    if (location == nullptr) location = &value_info(name, scope);
    events_.push_back([this, location, value, frames] {
      FrameStack stack;
      for (const Frame& frame : frames) stack.push(frame);
      return observer_.observe({*location, stack, value, nullptr, nullptr});
    });
    return *this;
  }
  Player& lacks(const std::string& name, Absence absence) {
    absences_.emplace_back(&value_info(name), absence);
    return *this;
  }

  void play(bool completed = true) {
    ASSERT_TRUE(observer_.begin_run({executor_, "test", {}, nullptr, ""}).ok());
    for (const ValueInfo& value_info : value_infos_) (void)observer_.wants(value_info);
    ASSERT_TRUE(observer_.begin_call({}, {}).ok());
    for (const auto& [value_info, absence] : absences_) ASSERT_TRUE(observer_.absent(*value_info, absence).ok());
    for (const auto& event : events_) ASSERT_TRUE(event().ok());
    ASSERT_TRUE(observer_.end_call({}).ok());
    ASSERT_TRUE(observer_.end_run(completed).ok());
  }

 private:
  Observer& observer_;
  std::string executor_;
  std::deque<ValueInfo> value_infos_;
  std::deque<std::string> names_;
  std::vector<std::pair<const ValueInfo*, Absence>> absences_;
  std::vector<std::function<Status()>> events_;
};

}  // namespace parallax
