// SPDX-License-Identifier: Apache-2.0
// Operations of control flow on the results of bodies: counting, slicing and stacking them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "runtime/plan/control_flow.h"

namespace parallax::runtime {

Status run_scan(ControlCall& call);
Status run_scan_8(ControlCall& call);
Status run_flex_attention(ControlCall& call);

const Graph* body_of(const OpCall& op, std::string_view attribute);  // null where there is none

Status expect_count(size_t count, size_t expected, std::string_view what);

// The results of a body's iterations for one scan output, copied next to each other as they arrive, so that their
// buffers are free for the next iteration. Strings, and elements of less than a byte, are kept as they arrive and
// copied one by one at the end.
class Stack {
 public:
  // `most`: items that may come; INT64_MAX where nobody knows.
  explicit Stack(int64_t most) : most_(most) {}

  // Errors: execution, when it is no tensor, or its type or shape is not that of those before.
  Status add(ControlCall& call, const Value& item);
  // All of them along a new axis, the last one first where `reversed`; of none an empty tensor of the type of output
  // `body_output` of the body. The stack is empty afterwards.
  Result<Tensor> take(ControlCall& call, const Graph& body, size_t body_output, int64_t axis, bool reversed = false);

 private:
  Status make_room(ControlCall& call, const Tensor& item);
  Status append(ControlCall& call, const Tensor& item);
  Result<Tensor> take_singles(ControlCall& call, int64_t axis, bool reversed);

  int64_t most_;
  Tensor rows_;                  // [room, the item's dimensions]
  std::vector<Tensor> singles_;  // in place of rows_, on the host: items whose elements cannot be copied as bytes
  DType dtype_ = DType::undefined;
  Shape item_shape_;
  int64_t count_ = 0;
  int64_t room_ = 0;
};

// The elements of a tensor along an axis, each without that axis: a part of the tensor's own memory where it is
// contiguous.
class Slices {
 public:
  // Errors: those of moving the tensor to the device; strings, and elements of less than a byte, stay on the host.
  static Result<Slices> of(ControlCall& call, const Tensor& tensor, int64_t axis);
  Result<Tensor> at(ControlCall& call, int64_t position) const;

 private:
  Tensor tensor_;       // where bodies read it
  Shape shape_;         // of a slice
  Ints strides_;        // of the tensor, without the axis
  int64_t stride_ = 0;  // of the axis
  bool is_in_one_piece_ = false;
};

}  // namespace parallax::runtime
