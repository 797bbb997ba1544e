// SPDX-License-Identifier: Apache-2.0
// The shape functions of operators, by family. shape_function() in table.cpp looks one up.
#pragma once

#include <span>
#include <string_view>

#include "inspector/model/shape_inference/node_context.h"

namespace parallax {

// Sets what it can of the outputs' shapes and contents; element types are set before it is called.
using ShapeFunction = void (*)(NodeContext& context);

struct ShapeRow {
  std::string_view op;
  ShapeFunction function;
};

// The first output has the first input's shape.
inline void like_first(NodeContext& context) { context.set_shape(0, context.shape(0)); }

std::span<const ShapeRow> elementwise_rows();
std::span<const ShapeRow> arithmetic_rows();
std::span<const ShapeRow> layout_rows();
std::span<const ShapeRow> index_rows();
std::span<const ShapeRow> creation_rows();
std::span<const ShapeRow> reduction_rows();
std::span<const ShapeRow> matrix_rows();
std::span<const ShapeRow> window_rows();
std::span<const ShapeRow> recurrent_rows();
std::span<const ShapeRow> sequence_rows();
std::span<const ShapeRow> control_flow_rows();
std::span<const ShapeRow> contributed_rows();  // com.microsoft

// Null where there is none for the operator.
ShapeFunction shape_function(std::string_view domain, std::string_view op);

}  // namespace parallax
