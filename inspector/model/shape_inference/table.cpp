// SPDX-License-Identifier: Apache-2.0
// The one list of all families of shape functions, and look-up in it.
#include <algorithm>
#include <array>
#include <vector>

#include "inspector/model/opset/opset_registry.h"
#include "inspector/model/shape_inference/rows.h"

namespace parallax {
namespace {

constexpr std::array kFamilies = {elementwise_rows, arithmetic_rows, layout_rows,      index_rows,
                                  creation_rows,    reduction_rows,  matrix_rows,      window_rows,
                                  recurrent_rows,   sequence_rows,   control_flow_rows};

// Sorted by name. The domains of ONNX share no operator name, so one table serves them all.
const std::vector<ShapeRow>& standard_rows() {
  static const std::vector<ShapeRow> rows = [] {
    std::vector<ShapeRow> all;
    for (const auto family : kFamilies) all.insert(all.end(), family().begin(), family().end());
    std::ranges::sort(all, {}, &ShapeRow::op);
    return all;
  }();
  return rows;
}

ShapeFunction function_in(std::span<const ShapeRow> sorted, std::string_view op) {
  const auto found = std::ranges::lower_bound(sorted, op, {}, &ShapeRow::op);
  return found == sorted.end() || found->op != op ? nullptr : found->function;
}

}  // namespace

ShapeFunction shape_function(std::string_view domain, std::string_view op) {
  const std::string_view canonical = canonical_domain(domain);
  if (canonical == "com.microsoft") return function_in(contributed_rows(), op);
  return canonical.starts_with("ai.onnx") ? function_in(standard_rows(), op) : nullptr;
}

}  // namespace parallax
