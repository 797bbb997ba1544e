// SPDX-License-Identifier: Apache-2.0
// com.microsoft.RotaryEmbedding, and the turning that GroupQueryAttention shares.
#include "reference/ops/contrib/rotary.h"

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

// The number of heads of input [batch, sequence, hidden]. Without num_heads the caches' width gives the head size.
Result<int64_t> heads_of(const OpContext& op, int64_t hidden, int64_t pairs) {
  int64_t heads = op.find_int("num_heads").value_or(0);
  if (heads == 0 && pairs > 0) heads = hidden / (2 * pairs);
  if (heads > 0 && hidden % heads == 0) return heads;
  return wrong_attribute("num_heads", heads, "be 1 or more and divide the {} elements of a token", hidden);
}

// One number is the first token's position, else there is one for each token.
Result<std::vector<int64_t>> rows_of(const OpContext& op, int64_t batch, int64_t sequence) {
  std::vector<int64_t> ids = to_int64s(op.input(1));
  if (op.input(1).shape().rank() == 1 && ids.size() == 1) {
    const int64_t first = ids[0];
    ids.clear();
    for (int64_t token = 0; token < batch * sequence; ++token) {
      ids.push_back(wrapping_add(first, token % sequence));
    }
    return ids;
  }
  if (op.input(1).shape() == Shape{batch, sequence}) return ids;
  return wrong_input(op, 1, "be [1] or [{},{}]", batch, sequence);
}

// ContribOperators.md, com.microsoft.RotaryEmbedding. The page has an attribute `scale` that no kernel of onnxruntime
// reads; another value than 1 is refused. is_packed_batching changes only which shapes onnxruntime lets through.
Status op_contrib_rotary_embedding(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  if (op.find_float("scale").value_or(1.0) != 1.0)
    return unsupported(fmt::format(
        "attribute 'scale' is {}; only 1 has a function here, as the operator's page does not define another",
        *op.find_float("scale")));
  const Rotation rotation = PX_TRY(Rotation::create(op, 2, 3, op.find_int("interleaved").value_or(0) != 0));
  const int64_t asked = op.find_int("rotary_embedding_dim").value_or(0);
  if (asked != 0 && asked != 2 * rotation.pairs)
    return wrong_attribute("rotary_embedding_dim", asked, "be 0 or {}, twice the columns of the caches",
                           2 * rotation.pairs);
  const Numbers<double> numbers(op.input(0));
  HeadBlock block;
  if (shape.rank() == 4) {
    block = PX_TRY(read_head_block(op, 0));
  } else if (shape.rank() == 3) {
    const int64_t heads = PX_TRY(heads_of(op, shape[2], rotation.pairs));
    block = PX_TRY(split_heads(numbers.span(), shape[0], shape[1], shape[2], 0, heads, shape[2] / heads));
  } else {
    return wrong_input(op, 0, "have rank 3 or 4");
  }
  const std::vector<int64_t> rows = PX_TRY(rows_of(op, block.batch, block.sequence));
  PX_TRY(rotation.apply(block, rows));
  return op.set_output(0, op.input(0).dtype(), shape,
                       std::span<const double>(shape.rank() == 4 ? block.numbers : join_heads(block)));
}

constexpr OpRow kContribRotaryRows[] = {
    {"RotaryEmbedding", kMicrosoft, 1, 1, op_contrib_rotary_embedding},
};

}  // namespace

Result<Rotation> Rotation::create(const OpContext& op, size_t cos_cache, size_t sin_cache, bool interleaved) {
  const Shape& shape = op.input(cos_cache).shape();
  if (shape.rank() != 2 || !(shape == op.input(sin_cache).shape()))
    return wrong_input(op, cos_cache, "have rank 2 and the shape of {}, {}", input_name(op, sin_cache),
                       op.input(sin_cache).shape().to_string());
  const Numbers<double> cosines(op.input(cos_cache)), sines(op.input(sin_cache));
  return Rotation{{cosines.span().begin(), cosines.span().end()},
                  {sines.span().begin(), sines.span().end()},
                  shape[0],
                  shape[1],
                  interleaved};
}

Status Rotation::apply(HeadBlock& block, const std::vector<int64_t>& rows) const {
  if (2 * pairs > block.size)
    return wrong_value("the number of pairs to be rotated", pairs, "be at most half of the {} elements of a head",
                       block.size);
  for (int64_t b = 0; b < block.batch; ++b) {
    for (int64_t s = 0; s < block.sequence; ++s) {
      const int64_t row = rows[static_cast<size_t>(b * block.sequence + s)];
      if (row < 0 || row >= positions)
        return wrong_value("a position", row, "be in [0, {}), the rows of the caches", positions);
      for (int64_t h = 0; h < block.heads; ++h) {
        for (int64_t pair = 0; pair < pairs; ++pair) {
          const auto cached = static_cast<size_t>(row * pairs + pair);
          double& a = block.at(b, h, s, interleaved ? 2 * pair : pair);
          double& c = block.at(b, h, s, interleaved ? 2 * pair + 1 : pair + pairs);
          const double permuted = a * cosines[cached] - c * sines[cached];
          c = c * cosines[cached] + a * sines[cached];
          a = permuted;
        }
      }
    }
  }
  return {};
}

OpRows contrib_rotary_rows() { return kContribRotaryRows; }

}  // namespace parallax::reference
