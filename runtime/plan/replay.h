// SPDX-License-Identifier: Apache-2.0
// Replay: a run on a GPU kept as one thing to launch, which is what a CUDA graph is. Replays: those of a session, one
// for each form of its inputs: their types and shapes, and the content of those that the host reads.
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

// Inputs of a run; `on_host`, by input, 1: it stays on the host (host_reads.h), so that a recording holds for its
// content.
struct ReplayInputs {
  std::span<const Value> values;
  std::span<const uint8_t> on_host;
  std::span<const uint8_t> kept_outputs = {};  // by output, 1: it stays on the device
  bool stays_on_host(size_t index) const { return index < on_host.size() && on_host[index] != 0; }
};

class Replay {
 public:
  virtual ~Replay() = default;
  // Outputs, as a plain run gives them, for inputs of the form that it was recorded with. None: this time it may not be
  // used (its memory is in use, or a check of it does not hold), and the run is to be made plainly. Errors: those of
  // the device.
  virtual Result<std::optional<std::vector<Value>>> run(std::span<const Value> inputs) = 0;
};

// A whole run on inputs that are on the device, which it may overwrite, its outputs left there.
using DeviceRun = std::function<Result<std::vector<Value>>(std::vector<Value> inputs)>;

// A form is recorded when it has been seen before and runs plainly in planned memory, so that one that never comes
// again costs nothing; and its replay is used only after it has given, bit for bit, what the plain run gave. The least
// recently used ones give way.
class Replays {
 public:
  // None: there is no replay for these inputs, or it may not be used.
  Result<std::optional<std::vector<Value>>> run(const ReplayInputs& inputs);
  // After a plain run of `inputs`, which gave `outputs`. `is_planned`: all memory that it asked for was planned.
  void learn(Platform& platform, const ReplayInputs& inputs, std::span<const Value> outputs, bool is_planned,
             const DeviceRun& run);

 private:
  static constexpr size_t kMostForms = 64;
  static constexpr size_t kMostReplays = 8;
  static constexpr size_t kMostInputBytes = size_t{256} << 20;  // of all replays, which keep their inputs on the device

  struct Form {
    std::vector<int64_t> numbers;
    size_t bytes = 0;  // of the inputs on the device
  };
  struct Entry {
    Form form;
    std::unique_ptr<Replay> replay;
    bool is_refused = false;  // it cannot be replayed
    int64_t last_use = 0;     // as the number of a run
    int64_t use_before = 0;   // 0: it was seen once
  };
  static std::optional<Form> form_of(const ReplayInputs& inputs);
  Entry* find(const Form& form);
  Entry& used(Form form);
  // False where all replays have been used since `entry` was last seen: of forms that alternate, those that have a
  // recording keep it.
  bool make_room(const Entry& entry);

  std::vector<Entry> entries_;
  int64_t uses_ = 0;
};

}  // namespace parallax::runtime
