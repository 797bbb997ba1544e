// SPDX-License-Identifier: Apache-2.0
// Our own attention kernel against a softmax in double: types, sizes, layouts, and all that changes the scores. A queue
// is made by a function of the device's test, for products of float32 as they are or as TF32.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/tensor/elements.h"
#include "runtime/device/gpu/attention/flash_attention.h"

namespace parallax::runtime::flash_cases {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct Case {
  const char* name;
  int64_t samples, heads, group, queries, keys, size, value_size;
  void (*change)(FlashAttention& attention) = [](FlashAttention&) {};
  bool has_added = false, has_added_again = false, has_hiding = false, has_sinks = false;
  bool is_flat = false;  // heads side by side, as [samples, length, heads * size]
};

// Matrices [samples, heads, rows, columns] of a tensor that is packed, or has its heads side by side.
inline MatrixOffsets matrices(const Case& given, int64_t heads, int64_t rows, int64_t columns, bool is_flat) {
  MatrixOffsets made{Ints(given.samples * given.heads), is_flat ? heads * columns : columns, 1};
  for (int64_t i = 0; i < made.offsets.size(); ++i) {
    const int64_t sample = i / given.heads, head = i % given.heads / (given.heads / heads);
    made.offsets[i] = sample * heads * rows * columns + head * columns * (is_flat ? 1 : rows);
  }
  return made;
}

// An operand on the device, and the numbers that its type has made of it.
struct Operand {
  Tensor tensor;
  std::vector<double> numbers;
  const std::byte* data() const { return tensor.view().data; }
};
template <class Device>
Operand operand(Queue<Device>& queue, DType dtype, const std::vector<double>& numbers) {
  Tensor host = Tensor::allocate(dtype, Shape{static_cast<int64_t>(numbers.size())}).take();
  store_doubles(host, 0, numbers);
  Operand made{queue.to_device(host).take(), numbers};
  load_doubles(host, 0, made.numbers);
  return made;
}
inline std::vector<double> numbers(int64_t count, int64_t seed) {
  std::vector<double> made(static_cast<size_t>(count));
  for (size_t i = 0; i < made.size(); ++i)
    made[i] = static_cast<double>((static_cast<int64_t>(i) * 7919 + seed * 104729) % 997 - 498) / 300;
  return made;
}

struct Operands {
  Operand q, k, v, added, added_again, hiding, sinks;
};

inline double at(const Operand& operand, const MatrixOffsets& locations, int64_t matrix, int64_t row, int64_t column) {
  return operand
      .numbers[static_cast<size_t>(locations.offsets[matrix] + row * locations.row + column * locations.column)];
}

// The scores of one query, as the definition says.
inline std::vector<double> scores_of(const FlashAttention& given, const Operands& on, int64_t matrix, int64_t query) {
  const AttentionProblem& problem = given.problem;
  const int64_t sample = matrix / given.heads;
  const int64_t position = query + (given.positions.empty() ? given.rule.past : given.positions[sample]);
  std::vector<double> scores;
  for (int64_t key = 0; key < problem.keys; ++key) {
    double score = 0;
    for (int64_t i = 0; i < problem.size; ++i)
      score += at(on.q, problem.q, matrix, query, i) * at(on.k, problem.k, matrix, i, key);
    score *= problem.scale;
    if (given.softcap > 0) score = given.softcap * std::tanh(score / given.softcap);
    if (given.added != nullptr) score += at(on.added, given.added_locations, matrix, query, key);
    if (given.added_again != nullptr) score += at(on.added_again, given.added_again_locations, matrix, query, key);
    const bool is_flagged = given.hiding != nullptr && at(on.hiding, given.hiding_locations, matrix, query, key) != 0;
    if (given.hiding != nullptr && is_flagged == given.hides_where) score = static_cast<double>(given.hidden_value);
    const bool is_left = given.rule.left_window >= 0 && key < position - given.rule.left_window;
    const bool is_right = given.rule.right_window >= 0 && key > position + given.rule.right_window;
    const bool is_past_end = key >= given.rule.keys || (!given.ends.empty() && key >= given.ends[sample]);
    if (is_left || is_right || is_past_end || (given.rule.is_causal && key > position)) score = -kInfinite;
    scores.push_back(score);
  }
  return scores;
}

inline std::vector<double> expected_row(const FlashAttention& given, const Operands& on, int64_t matrix,
                                        int64_t query) {
  std::vector<double> weights = scores_of(given, on, matrix, query);
  const bool has_sink = given.sinks != nullptr;
  const double sink = has_sink ? on.sinks.numbers[static_cast<size_t>(matrix % given.heads)] : -kInfinite;
  double highest = sink, total = 0;
  for (const double score : weights) highest = std::max(highest, score);
  const bool is_hidden = highest == -kInfinite;
  if (has_sink) total = std::exp(sink - highest);
  for (double& weight : weights) total += weight = is_hidden ? 0 : std::exp(weight - highest);
  std::vector<double> row;
  for (int64_t i = 0; i < given.problem.value_size; ++i) {
    double sum = 0;
    for (int64_t key = 0; key < given.problem.keys; ++key)
      sum += weights[static_cast<size_t>(key)] * at(on.v, given.problem.v, matrix, key, i);
    row.push_back(is_hidden && given.hidden_is_zero ? 0 : sum / total);
  }
  return row;
}

inline FlashAttention described(const Case& given, DType dtype) {
  FlashAttention attention;
  attention.samples = given.samples;
  attention.heads = given.heads;
  attention.dtype = dtype;
  attention.hidden_is_zero = true;
  AttentionProblem& problem = attention.problem;
  problem.queries = given.queries;
  problem.keys = attention.rule.keys = given.keys;
  problem.size = given.size;
  problem.value_size = given.value_size;
  problem.scale = 1 / std::sqrt(static_cast<double>(given.size));
  const int64_t shared = given.heads / given.group;
  problem.q = matrices(given, given.heads, given.queries, given.size, given.is_flat);
  problem.k = matrices(given, shared, given.keys, given.size, given.is_flat);
  std::swap(problem.k.row, problem.k.column);
  problem.v = matrices(given, shared, given.keys, given.value_size, given.is_flat);
  problem.y = matrices(given, given.heads, given.queries, given.value_size, given.is_flat);
  attention.added_locations = matrices(given, given.heads, given.queries, given.keys, false);
  attention.added_again_locations = {Ints(given.samples * given.heads), 0, 1};  // one row for all
  attention.hiding_locations = {Ints(given.samples * given.heads), given.keys, 1};
  return attention;
}

template <class Device>
Operands operands_of(Queue<Device>& queue, const Case& given, FlashAttention& attention) {
  const int64_t all = given.samples * given.heads, shared = all / given.group;
  const DType dtype = attention.dtype;
  Operands on;
  on.q = operand(queue, dtype, numbers(all * given.queries * given.size, 1));
  on.k = operand(queue, dtype, numbers(shared * given.keys * given.size, 2));
  on.v = operand(queue, dtype, numbers(shared * given.keys * given.value_size, 3));
  on.added = operand(queue, dtype, numbers(all * given.queries * given.keys, 4));
  on.added_again = operand(queue, DType::float32, numbers(given.keys, 5));
  std::vector<double> flags = numbers(given.queries * given.keys, 6);
  for (size_t i = 0; i < flags.size(); ++i) {
    const bool is_of_hidden_query = static_cast<int64_t>(i) / given.keys == 1;
    flags[i] = is_of_hidden_query || flags[i] > 0.8 ? 1 : 0;
  }
  on.hiding = operand(queue, DType::bool_, flags);
  on.sinks = operand(queue, DType::float32, numbers(given.heads, 7));
  attention.q = on.q.data();
  attention.k = on.k.data();
  attention.v = on.v.data();
  if (given.has_added) attention.added = on.added.data();
  attention.added_dtype = dtype;
  if (given.has_added_again) attention.added_again = on.added_again.data();
  attention.added_again_dtype = DType::float32;
  if (given.has_hiding) attention.hiding = on.hiding.data();
  attention.hidden_value = -std::numeric_limits<float>::infinity();
  if (given.has_sinks) attention.sinks = reinterpret_cast<const float*>(on.sinks.data());
  return on;
}

template <class Device>
std::vector<double> run(Queue<Device>& queue, const Case& given, FlashAttention& attention) {
  const int64_t count = given.samples * given.heads * given.queries * given.value_size;
  const Tensor y = queue.allocate(attention.dtype, Shape{count}).take();
  attention.y = writable(y).data;
  const Result<bool> is_done = flash_attention(queue, attention);
  EXPECT_TRUE(is_done.ok() && *is_done) << given.name;
  const Status failure = queue.take_failure();
  EXPECT_TRUE(failure.ok()) << given.name << ": " << (failure.ok() ? "" : failure.error().message);
  std::vector<double> found(static_cast<size_t>(count));
  load_doubles(queue.to_host(y).take(), 0, found);
  return found;
}

template <class MakeQueue>
void expect_softmax(const MakeQueue& make_queue, const Case& given, DType dtype, bool tf32, double limit) {
  const auto owner = make_queue(tf32);
  auto& queue = *owner;
  FlashAttention attention = described(given, dtype);
  given.change(attention);
  const Operands on = operands_of(queue, given, attention);
  const std::vector<double> found = run(queue, given, attention);
  EXPECT_EQ(run(queue, given, attention), found) << given.name << " was not repeated to the bit";
  const Operand result{{}, found};
  for (int64_t matrix = 0; matrix < given.samples * given.heads; ++matrix) {
    for (int64_t query = 0; query < given.queries; ++query) {
      const std::vector<double> row = expected_row(attention, on, matrix, query);
      for (int64_t i = 0; i < given.value_size; ++i) {
        ASSERT_NEAR(at(result, attention.problem.y, matrix, query, i), row[static_cast<size_t>(i)], limit)
            << given.name << " in " << name_of(dtype) << (tf32 ? " by TF32" : "") << ": matrix " << matrix << ", query "
            << query << ", element " << i;
      }
    }
  }
}

inline void make_causal(FlashAttention& attention) { attention.rule.is_causal = true; }

inline const Case kCases[] = {
    {"one number", 1, 1, 1, 1, 1, 1, 1},
    {"odd sizes", 2, 2, 1, 5, 7, 3, 5},
    {"size 8", 1, 3, 1, 33, 70, 8, 16},
    {"size 64, side by side", 2, 2, 1, 3, 66, 64, 64, [](FlashAttention&) {}, false, false, false, false, true},
    {"size 80", 1, 2, 2, 4, 65, 80, 80},
    {"size 128, one query of a group", 1, 8, 4, 1, 300, 128, 128},
    {"size 256 and values of 200", 1, 1, 1, 2, 20, 256, 200},
    {"causal", 1, 2, 1, 70, 140, 8, 8,
     [](FlashAttention& attention) {
       make_causal(attention);
       attention.rule.past = 70;
     }},
    {"causal, grouped, side by side", 2, 4, 4, 40, 130, 8, 8, make_causal, false, false, false, false, true},
    {"windows", 1, 1, 1, 90, 200, 8, 8,
     [](FlashAttention& attention) {
       attention.rule.left_window = 20;
       attention.rule.right_window = 3;
       attention.rule.past = 60;
     }},
    {"lengths, one of them 0", 3, 2, 2, 3, 150, 8, 8,
     [](FlashAttention& attention) {
       attention.ends = {5, 0, 150};
       attention.positions = {2, -3, 147};
       make_causal(attention);
     }},
    {"softcap", 1, 1, 1, 9, 70, 8, 8, [](FlashAttention& attention) { attention.softcap = 0.7; }},
    {"added", 2, 2, 2, 9, 70, 8, 8, [](FlashAttention&) {}, true},
    {"a short mask", 1, 2, 1, 9, 70, 8, 8, [](FlashAttention& attention) { attention.rule.keys = 50; }, true},
    {"added twice, and hidden", 2, 2, 1, 9, 70, 8, 8, [](FlashAttention&) {}, true, true, true},
    {"hidden where not", 1, 2, 1, 9, 70, 8, 8, [](FlashAttention& attention) { attention.hides_where = false; }, false,
     false, true},
    {"sinks", 1, 4, 2, 2, 200, 8, 8, [](FlashAttention&) {}, false, false, false, true},
};

template <class MakeQueue>
void expect_softmax_of_the_definition(const MakeQueue& make_queue) {
  for (const Case& given : kCases) {
    expect_softmax(make_queue, given, DType::float32, false, 1e-5);
    expect_softmax(make_queue, given, DType::float32, true, 2e-3);
    expect_softmax(make_queue, given, DType::float16, false, 2e-3);
    expect_softmax(make_queue, given, DType::bfloat16, false, 1.6e-2);
  }
}

template <class MakeQueue>
void expect_lengths_on_the_device(const MakeQueue& make_queue) {
  const Case given{"lengths", 3, 2, 2, 3, 150, 8, 8, make_causal};
  const auto owner = make_queue(false);
  auto& queue = *owner;
  FlashAttention attention = described(given, DType::float32);
  make_causal(attention);
  attention.ends = {5, 0, 150};
  attention.positions = {2, -3, 147};
  const Operands on = operands_of(queue, given, attention);
  const std::vector<double> expected = run(queue, given, attention);
  const Operand lengths = operand(queue, DType::int64, {5, 0, 150});
  attention.ends = attention.positions = {};
  attention.lengths = reinterpret_cast<const int64_t*>(lengths.data());
  EXPECT_EQ(run(queue, given, attention), expected);
}

// A value that is no number reaches every query, those that do not see it, too: 0 times NaN is NaN.
template <class MakeQueue>
void expect_unbounded_values(const MakeQueue& make_queue) {
  const Case given{"causal", 1, 1, 1, 70, 140, 8, 8, make_causal};
  for (const bool has_infinity : {false, true}) {
    const auto owner = make_queue(false);
    auto& queue = *owner;
    FlashAttention attention = described(given, DType::float32);
    make_causal(attention);
    const Operands on = operands_of(queue, given, attention);
    std::vector<double> values = on.v.numbers;
    if (has_infinity) values[135 * 8 + 3] = kInfinite;
    const Operand v = operand(queue, DType::float32, values);
    attention.v = v.data();
    const std::vector<double> found = run(queue, given, attention);
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(std::isnan(found[i]), has_infinity && i % 8 == 3) << i;
  }
}

template <class MakeQueue>
void expect_hidden_queries(const MakeQueue& make_queue) {
  const Case given{"hidden", 1, 1, 1, 3, 5, 8, 8, [](FlashAttention&) {}, false, false, true};
  const auto owner = make_queue(false);
  auto& queue = *owner;
  FlashAttention attention = described(given, DType::float32);
  attention.hidden_is_zero = false;
  const Operands on = operands_of(queue, given, attention);
  std::vector<double> found = run(queue, given, attention);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(std::isnan(found[i]), i / 8 == 1) << i;
  attention.problem.no_number_is_zero = true;
  found = run(queue, given, attention);
  for (size_t i = 8; i < 16; ++i) EXPECT_EQ(found[i], 0) << i;
}

}  // namespace parallax::runtime::flash_cases
