// SPDX-License-Identifier: Apache-2.0
// An operand of attention on its way up: what scales it, turns its axes or repeats its heads is taken in, as far as
// nobody else reads it.
#pragma once

#include <vector>

#include "runtime/rewrite/fuser.h"

namespace parallax::runtime {

struct AttentionOperand {
  ValueId value = kNoValue;
  std::vector<int64_t> order;  // axis i of the operand is axis order[i] of the value; empty: as it is
  int64_t groups = 1;          // each of its heads stands so many times
  double scale = 1;
  std::vector<size_t> members;  // the nodes taken in
};

// `swapped`: the operand is the value with its last two axes swapped. Nothing where the rank would have to be known
// and is not.
std::optional<AttentionOperand> attention_operand(const Fuser& fuser, ValueId value, bool swapped, bool may_scale);

}  // namespace parallax::runtime
