// SPDX-License-Identifier: Apache-2.0
// GatherBlockQuantized's table, whose numbers are quantized in blocks: its shape, checked.
#pragma once

#include "runtime/ops/op_call.h"

namespace parallax::runtime {

// A table of quantized numbers. A byte of uint8 holds 8 / bits numbers, low bits first, along the last axis.
struct QuantizedTable {
  Ints dims, scale_dims;  // in numbers; an axis of the scales that is 1 is repeated
  int64_t axis = 0, block = 1;
  int bits = 8;
  bool is_packed = false;
  int64_t gather_axis = 0;
  Ints out;  // of the result
};

// Errors: execution, naming what does not fit.
Result<QuantizedTable> quantized_table(const OpCall& op);

}  // namespace parallax::runtime
