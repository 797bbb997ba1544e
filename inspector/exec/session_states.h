// SPDX-License-Identifier: Apache-2.0
// SessionStates: values that a session keeps from one run to the next, as a decoder keeps its caches.
#pragma once

#include <cstdint>
#include <span>

#include "inspector/base/result.h"
#include "inspector/tensor/value.h"

namespace parallax {

// A session that was prepared with RunOptions::states is one, too. run() then takes an absent Value for each bound
// input and returns an absent Value for each bound output; observers see both as plain values. States have the order of
// RunOptions::states. No function here is called during a run.
class SessionStates {
 public:
  virtual ~SessionStates() = default;

  // Empties every state: its first dimension becomes `batch`, its growing axis 0, the others are those of the graph's
  // input. Memory for `capacity` positions is set aside; it doubles whenever a run needs more. Errors: usage, where a
  // dimension other than the first and the growing one is not fixed by the model.
  virtual Status reset_states(int64_t batch, int64_t capacity) = 0;
  // Row i of every state becomes its old row rows[i] (beam search). Rows may repeat, be fewer or more than before.
  // Errors: usage, for a row that is not there.
  virtual Status reorder_states(std::span<const int32_t> rows) = 0;
  // Replaces a state, as by what another model computed. Errors: usage, where type or shape is not the input's.
  virtual Status set_state(size_t index, const Value& value) = 0;
  // The filled part, contiguous: a copy that later runs do not change. Errors: usage, for an index that is not there.
  virtual Result<Value> state(size_t index) const = 0;
};

}  // namespace parallax
