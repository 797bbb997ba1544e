// SPDX-License-Identifier: Apache-2.0
// The table of operators with the formulas of their definitions; what is not in it counts one operation an element.
#include "inspector/workbench/node_cost.h"

#include <algorithm>

#include "inspector/base/checked_math.h"
#include "inspector/model/stored_int.h"
#include "inspector/tensor/shape.h"

namespace parallax {
namespace {

using Types = std::span<const TypeInfo>;

bool has_shape(const TypeInfo& type) {
  return type.kind == TypeInfo::Kind::tensor && type.dims.has_value() &&
         std::ranges::all_of(*type.dims, [](const Dim& dim) { return dim.is_known(); });
}

// Dimension `axis` of argument `index`, counted from the back when negative; 0 where there is none.
int64_t dim(Types types, size_t index, int64_t axis) {
  if (index >= types.size() || !has_shape(types[index])) return 0;
  const auto rank = static_cast<int64_t>(types[index].dims->size());
  const int64_t location = axis < 0 ? axis + rank : axis;
  return location >= 0 && location < rank ? (*types[index].dims)[static_cast<size_t>(location)].value : 0;
}

// Elements of argument `index` from axis `first` on.
int64_t elements(Types types, size_t index, size_t first = 0) {
  if (index >= types.size() || !has_shape(types[index])) return 0;
  std::vector<int64_t> dims;
  for (size_t axis = first; axis < types[index].dims->size(); ++axis) dims.push_back((*types[index].dims)[axis].value);
  return checked_product(dims).value_or(0);
}

int64_t product_of(std::initializer_list<int64_t> factors) {
  return checked_product(std::span(factors.begin(), factors.size())).value_or(0);
}

// ---- Formulas ------------------------------------------------------------------------------------------------------

int64_t of_matmul(const Node& node, Types inputs, Types outputs) {
  const int64_t inner = dim(inputs, 0, stored_int(node, "transA", 0) != 0 ? -2 : -1);
  return product_of({2, elements(outputs, 0), inner});
}

int64_t of_packed_matmul(const Node& node, Types, Types outputs) {
  return product_of({2, elements(outputs, 0), stored_int(node, "K", 0)});
}

int64_t of_conv(const Node&, Types inputs, Types outputs) {
  return product_of({2, elements(outputs, 0), elements(inputs, 1, 1)});
}

int64_t of_quantized_conv(const Node&, Types inputs, Types outputs) {
  return product_of({2, elements(outputs, 0), elements(inputs, 3, 1)});
}

int64_t of_transposed_conv(const Node&, Types inputs, Types) {
  return product_of({2, elements(inputs, 0), elements(inputs, 1, 1)});
}

// X is [sequence, batch, input] whatever the layout: both lead the last axis. W and R hold the gates of all directions.
int64_t of_recurrent(const Node&, Types inputs, Types) {
  const int64_t steps = product_of({dim(inputs, 0, 0), dim(inputs, 0, 1)});
  return product_of({2, steps, elements(inputs, 1) + elements(inputs, 2)});
}

// Scores and their product with V: two products over all keys, those of the past included.
int64_t of_attention(const Node&, Types inputs, Types) {
  const int64_t keys = dim(inputs, 1, -2) + dim(inputs, 4, -2);
  return product_of({4, elements(inputs, 0), keys});
}

int64_t of_inputs(const Node&, Types inputs, Types) { return elements(inputs, 0); }
int64_t of_normalization(const Node&, Types inputs, Types) { return product_of({8, elements(inputs, 0)}); }
int64_t of_softmax(const Node&, Types inputs, Types) { return product_of({5, elements(inputs, 0)}); }
int64_t of_moving(const Node&, Types, Types) { return 0; }

struct Row {
  std::string_view op;
  int64_t (*flops)(const Node& node, Types inputs, Types outputs);
};

constexpr Row kRows[] = {
    {"MatMul", of_matmul},
    {"MatMulInteger", of_matmul},
    {"FusedMatMul", of_matmul},
    {"Gemm", of_matmul},
    {"FusedGemm", of_matmul},
    {"MatMulNBits", of_packed_matmul},
    {"Conv", of_conv},
    {"ConvInteger", of_conv},
    {"FusedConv", of_conv},
    {"NhwcConv", of_conv},
    {"QLinearConv", of_quantized_conv},
    {"ConvTranspose", of_transposed_conv},
    {"LSTM", of_recurrent},
    {"GRU", of_recurrent},
    {"RNN", of_recurrent},
    {"Attention", of_attention},
    {"MultiHeadAttention", of_attention},
    {"LayerNormalization", of_normalization},
    {"RMSNormalization", of_normalization},
    {"SimplifiedLayerNormalization", of_normalization},
    {"GroupNormalization", of_normalization},
    {"InstanceNormalization", of_normalization},
    {"Softmax", of_softmax},
    {"LogSoftmax", of_softmax},
    {"ReduceSum", of_inputs},
    {"ReduceMean", of_inputs},
    {"ReduceMax", of_inputs},
    {"ReduceMin", of_inputs},
    {"ReduceProd", of_inputs},
    {"ReduceL1", of_inputs},
    {"ReduceL2", of_inputs},
    {"ReduceSumSquare", of_inputs},
    {"ReduceLogSum", of_inputs},
    {"ReduceLogSumExp", of_inputs},
    {"GlobalAveragePool", of_inputs},
    {"GlobalMaxPool", of_inputs},
    {"ArgMax", of_inputs},
    {"ArgMin", of_inputs},
    {"Identity", of_moving},
    {"Constant", of_moving},
    {"ConstantOfShape", of_moving},
    {"Reshape", of_moving},
    {"Flatten", of_moving},
    {"Squeeze", of_moving},
    {"Unsqueeze", of_moving},
    {"Transpose", of_moving},
    {"Concat", of_moving},
    {"Split", of_moving},
    {"Slice", of_moving},
    {"Gather", of_moving},
    {"GatherElements", of_moving},
    {"GatherND", of_moving},
    {"ScatterElements", of_moving},
    {"ScatterND", of_moving},
    {"Expand", of_moving},
    {"Tile", of_moving},
    {"Pad", of_moving},
    {"Shape", of_moving},
    {"Size", of_moving},
    {"DepthToSpace", of_moving},
    {"SpaceToDepth", of_moving},
    {"If", of_moving},
    {"Loop", of_moving},
    {"Scan", of_moving},
};

int64_t bytes_of_one(const TypeInfo& type) {
  if (!has_shape(type) || type.dtype == DType::undefined || type.dtype == DType::string) return 0;
  const int64_t count = std::min(elements(std::span(&type, 1), 0), Shape::kMaxElements);
  return static_cast<int64_t>(byte_size(type.dtype, count));
}

}  // namespace

int64_t bytes_of(Types types) {
  int64_t bytes = 0;
  for (const TypeInfo& type : types) bytes = checked_add(bytes, bytes_of_one(type)).value_or(INT64_MAX);
  return bytes;
}

NodeCost cost_of_node(const Node& node, Types inputs, Types outputs) {
  NodeCost cost{bytes_of(inputs) + bytes_of(outputs), 0};
  if (node.function != nullptr) return cost;
  const auto row = std::ranges::find(kRows, node.op_type, &Row::op);
  cost.flops = row == std::end(kRows) ? elements(outputs, 0) : row->flops(node, inputs, outputs);
  return cost;
}

}  // namespace parallax
