// SPDX-License-Identifier: Apache-2.0
// Shapes of com.microsoft's operators, as onnxruntime's documentation of contributed operators states them.
#include <array>
#include <utility>

#include "inspector/model/shape_inference/matrix.h"
#include "inspector/model/shape_inference/rows.h"
#include "inspector/model/shape_inference/window.h"

namespace parallax {
namespace {

void broadcast_pair(NodeContext& context) { context.set_shape(0, broadcast(context.shape(0), context.shape(1))); }

// QLinearAdd and QLinearMul: A, its scale and zero point, B, its scale and zero point, ...
void broadcast_quantized(NodeContext& context) { context.set_shape(0, broadcast(context.shape(0), context.shape(3))); }

void contributed_matmul(NodeContext& context) {
  context.set_shape(0, matmul_shape(context.shape(0), context.shape(1)));
}

std::optional<DimExpressions> with_last_two_swapped(std::optional<DimExpressions> shape, bool swapped) {
  if (swapped && shape && shape->size() >= 2) std::swap((*shape)[shape->size() - 1], (*shape)[shape->size() - 2]);
  return shape;
}

void fused_matmul(NodeContext& context) {
  if (context.integer_or("transBatchA", 0) != 0 || context.integer_or("transBatchB", 0) != 0) return;
  context.set_shape(0, matmul_shape(with_last_two_swapped(context.shape(0), context.integer_or("transA", 0) != 0),
                                    with_last_two_swapped(context.shape(1), context.integer_or("transB", 0) != 0)));
}

// The weights are packed; their logical width is the attribute N.
void matmul_n_bits(NodeContext& context) {
  const auto& shape = context.shape(0);
  const auto width = context.integer("N");
  if (!shape || shape->empty() || !width) return;
  DimExpressions result = *shape;
  result.back() = *width;
  context.set_shape(0, result);
}

void contributed_gemm(NodeContext& context) {
  const size_t row_axis = context.integer_or("transA", 0) != 0 ? 1 : 0;
  const size_t column_axis = context.integer_or("transB", 0) != 0 ? 0 : 1;
  context.set_shape(0, DimExpressions{context.dim(0, row_axis), context.dim(1, column_axis)});
}

// The sum before the normalization is the last of four outputs; the two between are one number for each row.
void skip_layer_normalization(NodeContext& context) {
  like_first(context);
  context.set_shape(3, context.shape(0));
  if (!context.shape(0) || context.shape(0)->empty()) return;
  DimExpressions statistics = *context.shape(0);
  statistics.back() = 1;
  context.set_shape(1, statistics);
  context.set_shape(2, statistics);
}

// input_ids [batch, sequence], ..., word_embedding [vocabulary, hidden] at input 2.
void embed_layer_normalization(NodeContext& context) {
  const DimExpressions embedded{context.dim(0, 0), context.dim(0, 1), context.dim(2, 1)};
  context.set_shape(0, embedded);
  context.set_shape(1, DimExpressions{context.dim(0, 0)});
  context.set_shape(2, embedded);
}

// Query [batch, sequence, hidden]; a value of rank 3 gives the width of the output.
void multi_head_attention(NodeContext& context) {
  if (context.rank(0) != 3U) return;
  DimExpressions result = *context.shape(0);
  if (context.rank(2) == 3U) result.back() = context.dim(2, 2);
  if (context.has_input(2) && context.rank(2) != 3U) result.back() = {};
  context.set_shape(0, result);
}

// With the key left out, query, key and value are packed in one: hidden = (heads + 2 * kv_heads) * head.
void group_query_attention(NodeContext& context) {
  if (context.rank(0) != 3U) return;
  DimExpressions result = *context.shape(0);
  const auto heads = context.integer("num_heads"), kv_heads = context.integer("kv_num_heads");
  if (!context.has_input(1)) {
    const DimExpression packed =
        heads && kv_heads ? DimExpression(*heads) + DimExpression(*kv_heads) * 2 : DimExpression{};
    const auto head = divide_exactly(result.back(), packed);
    result.back() = head ? *head * *heads : DimExpression{};
  }
  context.set_shape(0, result);
}

// Input [batch, sequence, hidden], weights [hidden, 3 * width] unless qkv_hidden_sizes says otherwise.
void contributed_attention(NodeContext& context) {
  const auto sizes = context.integers("qkv_hidden_sizes");
  const DimExpression width = sizes && sizes->size() == 3
                                  ? DimExpression((*sizes)[2])
                                  : divide_exactly(context.dim(1, 1), 3).value_or(DimExpression{});
  if (context.rank(0) == 3U) context.set_shape(0, DimExpressions{context.dim(0, 0), context.dim(0, 1), width});
}

void fused_convolution(NodeContext& context) { convolution_shape(context, 1); }

void halved_last(NodeContext& context) {
  if (!context.shape(0) || context.shape(0)->empty()) return;
  DimExpressions result = *context.shape(0);
  result.back() = divide_exactly(result.back(), 2).value_or(DimExpression{});
  context.set_shape(0, result);
}

constexpr std::array kContributedRows = {
    ShapeRow{"Attention", contributed_attention},
    ShapeRow{"BiasAdd", like_first},
    ShapeRow{"BiasGelu", like_first},
    ShapeRow{"BiasSoftmax", like_first},
    ShapeRow{"BiasSplitGelu", halved_last},
    ShapeRow{"ComplexMul", broadcast_pair},
    ShapeRow{"ComplexMulConj", broadcast_pair},
    ShapeRow{"DequantizeLinear", like_first},
    ShapeRow{"DynamicQuantizeMatMul", contributed_matmul},
    ShapeRow{"EmbedLayerNormalization", embed_layer_normalization},
    ShapeRow{"FastGelu", like_first},
    ShapeRow{"FusedConv", fused_convolution},
    ShapeRow{"FusedGemm", contributed_gemm},
    ShapeRow{"FusedMatMul", fused_matmul},
    ShapeRow{"FusedMatMulActivation", fused_matmul},
    ShapeRow{"Gelu", like_first},
    ShapeRow{"GemmFastGelu", contributed_matmul},
    ShapeRow{"GroupNorm", like_first},
    ShapeRow{"GroupQueryAttention", group_query_attention},
    ShapeRow{"Inverse", like_first},
    ShapeRow{"MatMulBnb4", matmul_n_bits},
    ShapeRow{"MatMulInteger16", contributed_matmul},
    ShapeRow{"MatMulIntegerToFloat", contributed_matmul},
    ShapeRow{"MatMulNBits", matmul_n_bits},
    ShapeRow{"MulInteger", broadcast_pair},
    ShapeRow{"MultiHeadAttention", multi_head_attention},
    ShapeRow{"QLinearAdd", broadcast_quantized},
    ShapeRow{"QLinearLeakyRelu", like_first},
    ShapeRow{"QLinearMul", broadcast_quantized},
    ShapeRow{"QLinearSigmoid", like_first},
    ShapeRow{"QLinearSoftmax", like_first},
    ShapeRow{"QuantizeLinear", like_first},
    ShapeRow{"QuickGelu", like_first},
    ShapeRow{"RotaryEmbedding", like_first},
    ShapeRow{"SkipLayerNormalization", skip_layer_normalization},
    ShapeRow{"SkipSimplifiedLayerNormalization", skip_layer_normalization},
    ShapeRow{"TransposeMatMul", fused_matmul},
    ShapeRow{"Trilu", like_first},
};

}  // namespace

std::span<const ShapeRow> contributed_rows() { return kContributedRows; }

}  // namespace parallax
