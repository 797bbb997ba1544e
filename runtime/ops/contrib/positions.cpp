// SPDX-License-Identifier: Apache-2.0
// com.microsoft's biases by position as chains of the operators of ai.onnx: RelativePositionBias,
// GatedRelativePositionBias. Definitions: ContribOperators.md.
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "runtime/ops/contrib/heads.h"
#include "runtime/ops/contrib_families.h"
#include "runtime/ops/contributed.h"

namespace parallax::runtime {
namespace {

using Context = ChainContext;

// ---- RelativePositionBias ----

// T5's buckets (Raffel et al., "Exploring the Limits of Transfer Learning", section 2.1): one for each small distance,
// then logarithmically wider ones up to `farthest`; a half of them for keys after the query where `both` ways count.
struct Buckets {
  int64_t count, farthest;
  bool both;
  int64_t operator()(int64_t distance) const {
    const int64_t own = both ? count / 2 : count;
    const int64_t first = both && distance > 0 ? own : 0;
    const int64_t steps = both ? std::abs(distance) : std::max<int64_t>(0, -distance);
    const int64_t exact = own / 2;
    if (steps < exact || exact == 0) return first + std::min(steps, std::max<int64_t>(0, own - 1));
    const double share = std::log(static_cast<double>(steps) / static_cast<double>(exact)) /
                         std::log(static_cast<double>(farthest) / static_cast<double>(exact));
    const auto wide = static_cast<int64_t>(share * static_cast<double>(own - exact));
    return first + std::min(exact + wide, own - 1);
  }
};

// [1, heads, queries, keys] from the table, whose page says column-major: the buckets of a head are adjacent.
Status relative_position_bias(Context& op) {
  const Ints table(op.input(0).shape());
  const int64_t queries = PX_TRY(op.integer_of_input(1)), keys = PX_TRY(op.integer_of_input(2));
  const Buckets bucket_of{table.empty() ? 0 : table[0], op.integer("max_distance"),
                          op.integer("is_bidirectional") != 0};
  if (table.size() != 2 || table[0] < 1 || queries < 0 || keys < 0 || bucket_of.farthest < 1)
    return wrong_input(op, 0,
                       "have rank 2 and rows, for lengths of 0 or more ({}, {}) and a 'max_distance' of 1 or more ({})",
                       queries, keys, bucket_of.farthest);
  const Shape out = PX_TRY(shape_of({1, table[1], queries, keys}));
  if (out.element_count() == 0) {
    PX_TRY(op.make_output(0, op.input(0).dtype(), out));
    return {};
  }
  Tensor buckets = PX_TRY(Tensor::zeros(DType::int64, Shape{queries, keys}));
  Ints by_distance;  // from that of the first key to the last query on
  for (int64_t distance = 1 - queries; distance < keys; ++distance) by_distance.push_back(bucket_of(distance));
  const std::span<int64_t> numbers = buckets.mutable_as<int64_t>();
  for (int64_t query = 0; query < queries; ++query) {
    for (int64_t key = 0; key < keys; ++key)
      numbers[static_cast<size_t>(query * keys + key)] = by_distance[key - query + queries - 1];
  }
  const Tensor by_head = PX_TRY(reshaped(op.input(0), {table[1], table[0]}));
  const Tensor biases = PX_TRY(run_inner(op, {"Gather", 13, {int_attribute("axis", 1)}}, {by_head, buckets}));
  op.set_output(0, biases.reshaped(out));
  return {};
}

// ---- GatedRelativePositionBias ----

// The sum of each half of the columns of (heads * weight + bias), through a sigmoid: [batch, heads, length, 2].
Result<Tensor> position_gates(Context& op, const Tensor& heads) {
  const Tensor weight = PX_TRY(inner_cast(op, op.input(3), DType::float32));
  const Tensor bias = PX_TRY(inner_cast(op, op.input(4), DType::float32));
  Tensor sums = PX_TRY(run_inner(op, {"MatMul", 13}, {heads, weight}));
  sums = PX_TRY(inner_binary(op, "Add", sums, bias));
  const Ints dims(sums.shape());
  const Tensor float16s = PX_TRY(reshaped(sums, {dims[0], dims[1], dims[2], 2, dims[3] / 2}));
  const std::vector<Attribute> last{ints_attribute("axes", {4}), int_attribute("keepdims", 0)};
  const Tensor gates = PX_TRY(run_inner(op, {"ReduceSum", 11, last}, {float16s}));
  return run_inner(op, {"Sigmoid", 13}, {gates});
}

// As the page's lines of PyTorch have it: two gates for each query and head scale a row of the bias.
Status gated_relative_position_bias(Context& op) {
  if (op.has_input(6)) return unsupported("packed tokens: the operator's page does not define them");
  const Ints q(op.input(0).shape()), w(op.input(3).shape());
  const int64_t count = op.integer("num_heads");
  if (q.size() != 3 || count < 1 || q[2] % count != 0 || w.size() != 2 || w[0] != q[2] / count || w[1] % 2 != 0 ||
      op.input(1).element_count() != q[2] || op.input(4).element_count() != w[1] ||
      op.input(5).element_count() != count)
    return wrong_input(op, 0,
                       "be [batch,length,hidden] and fit num_heads {}, query_bias {}, weight {}, bias {}, eco_a {}",
                       count, op.input(1).shape().to_string(), op.input(3).shape().to_string(),
                       op.input(4).shape().to_string(), op.input(5).shape().to_string());
  const Shape scores = PX_TRY(shape_of({q[0], count, q[1], q[1]}));
  const Shape shapes[] = {op.input(2).shape(), scores};
  if (!(PX_TRY(broadcast_shapes(shapes)) == scores))
    return wrong_input(op, 2, "broadcast to the scores, {}", scores.to_string());
  const auto wide = [&](int64_t input) { return inner_cast(op, op.input(input), DType::float32); };
  const Tensor query = PX_TRY(wide(0)), bias = PX_TRY(wide(1)), positions = PX_TRY(wide(2)), eco = PX_TRY(wide(5));
  const Tensor biased = PX_TRY(inner_binary(op, "Add", query, bias));
  const Tensor heads = PX_TRY(split_heads(op, biased, count));
  const Tensor gates = PX_TRY(position_gates(op, heads));
  const Tensor first = PX_TRY(columns(op, gates, 0, 1)), second = PX_TRY(columns(op, gates, 1, 2));
  Tensor gate = PX_TRY(inner_binary(op, "Mul", second, eco.reshaped(Shape{1, count, 1, 1})));
  gate = PX_TRY(inner_binary(op, "Sub", gate, Tensor::scalar<float>(1)));
  gate = PX_TRY(inner_binary(op, "Mul", gate, first));
  gate = PX_TRY(inner_binary(op, "Add", gate, Tensor::scalar<float>(2)));
  const Tensor y = PX_TRY(inner_binary(op, "Mul", gate, positions));
  op.set_output(0, PX_TRY(inner_cast(op, y, op.input(0).dtype())));
  return {};
}

constexpr KernelRow<CompiledDevice> kContribPositionRows[] = {
    contributed_row("GatedRelativePositionBias", kNarrowFloats, gated_relative_position_bias),
    reads_on_host({1, 2}, contributed_row("RelativePositionBias", kNarrowFloats, relative_position_bias)),
};

}  // namespace

template <>
Rows<CompiledDevice> contrib_position_rows() {
  return kContribPositionRows;
}

}  // namespace parallax::runtime
