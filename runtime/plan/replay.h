// SPDX-License-Identifier: Apache-2.0
// Replay: a run on a GPU kept as one thing to launch, which is what a CUDA graph is. Replays: those of a session, one
// for each set of input shapes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/tensor/value.h"

namespace parallax::runtime {

class Platform;

class Replay {
 public:
  virtual ~Replay() = default;
  // Outputs on the host, for inputs of the shapes that it was recorded with. None: this time it may not be used (its
  // memory is in use, or a check of it does not hold), and the run is to be made plainly. Errors: those of the device.
  virtual Result<std::optional<std::vector<Value>>> run(std::span<const Value> inputs) = 0;
};

// A whole run on inputs that are on the device, its outputs left there.
using DeviceRun = std::function<Result<std::vector<Value>>(std::span<const Value> inputs)>;

// A form is recorded once it has run plainly in planned memory, and its replay is used only after it has given, bit for
// bit, what the plain run gave.
class Replays {
 public:
  // None: there is no replay for these inputs, or it may not be used.
  Result<std::optional<std::vector<Value>>> run(std::span<const Value> inputs);
  // After a plain run of `inputs` in planned memory, which gave `outputs`.
  void learn(Platform& platform, std::span<const Value> inputs, std::span<const Value> outputs, const DeviceRun& run);

 private:
  static constexpr size_t kMostForms = 8;
  static constexpr size_t kMostInputBytes = size_t{256} << 20;  // a replay keeps a copy of its inputs on the device

  struct Entry {
    std::vector<int64_t> form;
    std::unique_ptr<Replay> replay;  // null: these cannot be replayed
  };
  Entry* find(const std::vector<int64_t>& form);

  std::vector<Entry> entries_;
};

}  // namespace parallax::runtime
