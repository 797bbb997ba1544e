// SPDX-License-Identifier: Apache-2.0
// com.microsoft's embeddings and normalizations that are chains of the operators of ai.onnx: EmbedLayerNormalization,
// QEmbedLayerNormalization, GroupNorm, SkipGroupNorm. Definitions: ContribOperators.md.
#include "inspector/model/rule_errors.h"
#include "runtime/ops/contrib_families.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/inner_op.h"
#include "runtime/ops/pointwise/quantized_values.h"

namespace parallax::runtime {
namespace {

using Context = ChainContext;

// ---- Embeddings ----

// The rows of a table (an input) that integers name, as float32.
Result<Tensor> embeddings(Context& op, int64_t table, int64_t hidden, const Tensor& rows) {
  const Shape& shape = op.input(table).shape();
  if (shape.rank() != 2 || shape[1] != hidden)
    return wrong_input(op, table, "have rank 2 and {} columns, the hidden size", hidden);
  for (int64_t row : all_integers(rows)) {
    if (row < 0 || row >= shape[0])
      return wrong_value("the row of an embedding", row, "be in [0, {}), the rows of {}", shape[0],
                         input_name(op, table));
  }
  const Tensor found = PX_TRY(run_inner(op, {"Gather", 13, {int_attribute("axis", 0)}}, {op.input(table), rows}));
  return inner_cast(op, found, DType::float32);
}

// position_ids, of all samples or of each; without them a token's index.
Result<Tensor> positions_of(Context& op, const Shape& ids) {
  if (op.has_input(8)) {
    const int64_t count = op.input(8).element_count();
    if (count != ids.element_count() && count != ids[1])
      return wrong_input(op, 8, "have the shape of input_ids, {}, or of one row of it", ids.to_string());
    return op.input(8).reshaped(Shape{count == ids.element_count() ? ids[0] : 1, ids[1]});
  }
  std::vector<int64_t> locations;
  for (int64_t location = 0; location < ids[1]; ++location) locations.push_back(location);
  return Tensor::from<int64_t>(Shape{1, ids[1]}, locations);
}

Status set_mask_index(Context& op, const Shape& ids) {
  if (!op.wants_output(1)) return {};
  std::vector<int32_t> lengths(static_cast<size_t>(ids[0]), 0);
  if (op.has_input(7)) {
    const Ints mask = all_integers(op.input(7));
    if (mask.size() != ids.element_count())
      return wrong_input(op, 7, "have the shape of input_ids, {}", ids.to_string());
    for (int64_t i = 0; i < mask.size(); ++i) lengths.data()[i / ids[1]] += mask[i] == 1 ? 1 : 0;
  }
  op.set_output(1, Tensor::vector<int32_t>(lengths));
  return {};
}

Status embed_layer_norm(Context& op) {
  const Shape& ids = op.input(0).shape();
  const Shape& table = op.input(2).shape();
  if (ids.rank() != 2 || table.rank() != 2) return wrong_input(op, ids.rank() != 2 ? 0 : 2, "have rank 2");
  const int64_t hidden = table[1];
  const DType dtype = op.input(2).dtype();
  Tensor sum = PX_TRY(embeddings(op, 2, hidden, op.input(0)));
  const Tensor positions = PX_TRY(positions_of(op, ids));
  const Tensor placed = PX_TRY(embeddings(op, 3, hidden, positions));
  sum = PX_TRY(inner_binary(op, "Add", sum, placed));
  if (op.has_input(1) && op.has_input(4)) {
    if (!(op.input(1).shape() == ids)) return wrong_input(op, 1, "have the shape of input_ids, {}", ids.to_string());
    const Tensor segments = PX_TRY(embeddings(op, 4, hidden, op.input(1)));
    sum = PX_TRY(inner_binary(op, "Add", sum, segments));
  }
  const InnerOp norm{"LayerNormalization", 17, {float_attribute("epsilon", op.real("epsilon"))}};
  const Tensor gamma = PX_TRY(inner_cast(op, op.input(5), DType::float32));
  const Tensor beta = PX_TRY(inner_cast(op, op.input(6), DType::float32));
  const Tensor y = PX_TRY(run_inner(op, norm, {sum, gamma, beta}));
  op.set_output(0, PX_TRY(inner_cast(op, y, dtype)));
  if (op.wants_output(2)) op.set_output(2, PX_TRY(inner_cast(op, sum, dtype)));
  return set_mask_index(op, ids);
}

// EmbedLayerNormalization of the dequantized tables and factors.
Status quantized_embedding(Context& op) {
  std::vector<Value> inputs{op.value(0), value_or_none(op, 1)};
  for (int64_t part = 0; part < 5; ++part) {
    if (!op.has_input(2 + part)) {
      inputs.emplace_back();
      continue;
    }
    if (!op.has_input(8 + part))
      return wrong_input(op, 8 + part, "be given as the scale of {}", input_name(op, 2 + part));
    const Tensor real = PX_TRY(real_values(op, {2 + part, 8 + part, 13 + part}));
    inputs.emplace_back(PX_TRY(inner_cast(op, real, DType::float32)));
  }
  if (op.has_input(7)) inputs.push_back(op.value(7));
  InnerOp embed{"EmbedLayerNormalization", 1, passed_on(op, {"epsilon"}), "com.microsoft"};
  embed.output_count = 2;
  std::vector<Value> made = PX_TRY(run_inner_all(op, embed, inputs));
  op.set_output(0, std::move(made[0]));
  if (op.wants_output(1)) op.set_output(1, std::move(made[1]));
  return {};
}

// ---- GroupNorm ----

Status group_norm_of(Context& op, const Tensor& sums) {
  const bool last = op.integer("channels_last") != 0;
  const int64_t groups = op.integer("groups");
  const int64_t activation = op.integer("activation");
  Tensor x = PX_TRY(inner_cast(op, sums, DType::float32));
  if (last) x = PX_TRY(inner_transpose(op, x, {0, 3, 1, 2}));
  const int64_t channels = x.shape()[1];
  if (groups <= 0 || channels % groups != 0)
    return wrong_attribute("groups", groups, "be 1 or more and divide the {} channels", channels);
  if (activation != 0 && activation != 1) return wrong_attribute("activation", activation, "be 0 or 1");
  const auto by_channel = [&](int64_t input) -> Result<Tensor> {
    if (op.input(input).element_count() != channels)
      return wrong_input(op, input, "have {} elements, one for each channel", channels);
    return inner_cast(op, op.input(input).reshaped(Shape{channels}), DType::float32);
  };
  const Tensor gamma = PX_TRY(by_channel(1)), beta = PX_TRY(by_channel(2));
  const InnerOp norm{
      "GroupNormalization", 21, {int_attribute("num_groups", groups), float_attribute("epsilon", op.real("epsilon"))}};
  Tensor y = PX_TRY(run_inner(op, norm, {x, gamma, beta}));
  if (activation == 1) {
    const Tensor share = PX_TRY(run_inner(op, {"Sigmoid", 13}, {y}));
    y = PX_TRY(inner_binary(op, "Mul", y, share));
  }
  if (last) y = PX_TRY(inner_transpose(op, y, {0, 2, 3, 1}));
  y = PX_TRY(inner_cast(op, y, op.input(0).dtype()));
  op.set_output(0, std::move(y));
  return {};
}

Status group_norm(Context& op) {
  if (op.input(0).shape().rank() != 4) return wrong_input(op, 0, "have rank 4");
  return group_norm_of(op, op.input(0));
}

// GroupNorm of X + skip + bias; a skip of [N, C] is repeated over the feature map.
Status skip_group_norm(Context& op) {
  const Tensor& x = op.input(0);
  const Tensor& skip = op.input(3);
  if (x.shape().rank() != 4) return wrong_input(op, 0, "have rank 4");
  const bool last = op.integer("channels_last") != 0;
  const int64_t channels = x.shape()[last ? 3 : 1];
  const auto by_channel = [&](int64_t batch) {
    return last ? Shape{batch, 1, 1, channels} : Shape{batch, channels, 1, 1};
  };
  Tensor added = skip;
  if (skip.shape().rank() == 2) {
    if (skip.shape()[1] != channels)
      return wrong_input(op, 3, "be [batch,{}], the channels of X, or have the shape of X", channels);
    added = skip.reshaped(by_channel(skip.shape()[0]));
  }
  added = PX_TRY(inner_cast(op, added, DType::float32));
  Tensor wide = PX_TRY(inner_cast(op, x, DType::float32));
  wide = PX_TRY(inner_binary(op, "Add", wide, added));
  if (op.has_input(4)) {
    if (op.input(4).element_count() != channels)
      return wrong_input(op, 4, "have {} elements, one for each channel", channels);
    const Tensor bias = PX_TRY(inner_cast(op, op.input(4).reshaped(by_channel(1)), DType::float32));
    wide = PX_TRY(inner_binary(op, "Add", wide, bias));
  }
  if (!(wide.shape() == x.shape())) return wrong_input(op, 3, "broadcast to the shape of X, {}", x.shape().to_string());
  if (op.wants_output(1)) op.set_output(1, PX_TRY(inner_cast(op, wide, x.dtype())));
  return group_norm_of(op, wide);
}

constexpr KernelRow<CompiledDevice> kContribEmbeddingRows[] = {
    reads_on_host({0, 1, 7, 8}, contributed_row("EmbedLayerNormalization", kNarrowFloats, embed_layer_norm, 2)),
    contributed_row("GroupNorm", kNarrowFloats, group_norm),
    reads_on_host({0, 1, 7}, contributed_row("QEmbedLayerNormalization", dtype_bit(DType::int32), quantized_embedding)),
    contributed_row("SkipGroupNorm", kNarrowFloats, skip_group_norm),
};

}  // namespace

template <>
Rows<CompiledDevice> contrib_embedding_rows() {
  return kContribEmbeddingRows;
}

}  // namespace parallax::runtime
