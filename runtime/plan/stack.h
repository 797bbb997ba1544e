// What control flow does with the results of bodies: counting, slicing and stacking them.
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

// The tensors side by side along a new axis; where there is none, an empty tensor of the type of output `body_output`
// of the body. Errors: execution, when they differ in type or shape.
Result<Tensor> stack_or_empty(ControlCall& call, std::span<const Value> items, const Graph& body, size_t body_output,
                              int64_t axis);

// Element `position` along `axis`, without that axis.
Result<Tensor> slice_at(ControlCall& call, const Tensor& tensor, int64_t axis, int64_t position);

}  // namespace parallax::runtime
