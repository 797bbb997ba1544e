// SPDX-License-Identifier: Apache-2.0
// The list of families, and the look-up of a node's row.
#include "reference/ops/table.h"

#include <vector>

#include "inspector/model/opset/op_schema.h"
#include "reference/ops/families.h"

namespace parallax::reference {
namespace {

constexpr OpRows (*kFamilies[])() = {
    activations_rows,
    binary_rows,
    einsum_rows,
    matmul_rows,
    quantize_rows,
    reduce_rows,
    along_axis_rows,
    signal_rows,
    softmax_rows,
    unary_rows,
    variadic_rows,
    cast_rows,
    gather_rows,
    movement_rows,
    random_rows,
    scatter_rows,
    select_rows,
    shape_ops_rows,
    text_rows,
    attention_rows,
    conv_rows,
    deform_conv_rows,
    flex_attention_rows,
    linear_attention_rows,
    loss_rows,
    normalization_rows,
    pool_rows,
    recurrent_rows,
    training_rows,
    blocks_rows,
    image_decoder_rows,
    regions_rows,
    resize_rows,
    sampling_rows,
    control_flow_rows,
    sequence_rows,
    ml_encoders_rows,
    ml_features_rows,
    ml_linear_rows,
    ml_maps_rows,
    ml_svm_rows,
    ml_tree_rows,
    contrib_activations_rows,
    contrib_attention_rows,
    contrib_borrowed_rows,
    contrib_dynamic_lstm_rows,
    contrib_experts_rows,
    contrib_fused_rows,
    contrib_gated_rows,
    contrib_gather_quantized_rows,
    contrib_group_query_attention_rows,
    contrib_normalization_rows,
    contrib_packed_rows,
    contrib_positions_rows,
    contrib_quantized_rows,
    contrib_quantized_matmul_rows,
    contrib_rotary_rows,
    contrib_state_rows,
    contrib_tensors_rows,
    contrib_tokenizer_rows,
};

}  // namespace

OpRows op_rows() {
  static const std::vector<OpRow> rows = [] {
    std::vector<OpRow> joined;
    for (const auto family : kFamilies) joined.insert(joined.end(), family().begin(), family().end());
    return joined;
  }();
  return rows;
}

const OpRow* find_row(const Node& node) {
  for (const OpRow& row : op_rows()) {
    if (row.op != node.schema->name || row.domain != node.schema->domain) continue;
    if (node.schema->since_version >= row.first_version && node.schema->since_version <= row.last_version) return &row;
  }
  return nullptr;
}

}  // namespace parallax::reference
