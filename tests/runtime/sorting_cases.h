// SPDX-License-Identifier: Apache-2.0
// Operators that sort, select and sum along rows, on an executor of a GPU device against the host's: the same indices,
// and the same bits of every element.
#pragma once

#include <cmath>
#include <limits>

#include "inspector/tensor/elements.h"
#include "runtime/plan/runtime.h"
#include "tests/runtime/model_text.h"
#include "tests/runtime/session_values.h"

namespace parallax::sorting_cases {

using model_text::integer_attribute;
using model_text::node;
using model_text::value;

struct SortingCase {
  std::string name;
  std::string graph;
  int opset;
  std::vector<Value> inputs;
};

// About as many different ones as `kinds`, with NaN, infinities and zeros of both signs among them where the type has
// them.
inline Tensor numbers(DType dtype, const Shape& shape, int64_t kinds = 1009) {
  const bool is_signed = info_of(dtype).kind != DTypeKind::unsigned_integer;
  const int64_t modulus = bits_of(dtype) == 8 ? 127 : kinds;
  std::vector<double> values(static_cast<size_t>(shape.element_count()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(static_cast<int64_t>(i) * 7919 % modulus - (is_signed ? modulus / 2 : 0));
    if (!is_floating(dtype)) continue;
    values[i] /= 8;
    if (i % 61 == 7) values[i] = -0.0;
    if (i % 997 == 11) values[i] = std::numeric_limits<double>::quiet_NaN();
    if (i % 1499 == 13) values[i] = (i & 1) != 0 ? INFINITY : -INFINITY;
  }
  Tensor tensor = Tensor::allocate(dtype, shape).take();
  store_doubles(tensor, 0, values);
  return tensor;
}

inline Tensor indices(int64_t count, int64_t below) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i) * 7919 % below;
  return Tensor::from<int64_t>(Shape{count}, values);
}

inline SortingCase top_k(DType dtype, int64_t rows, int64_t length, int64_t k, bool largest) {
  const int type = static_cast<int>(dtype);
  return {"TopK " + std::string(name_of(dtype)) + " " + std::to_string(rows) + " x " + std::to_string(length),
          node("TopK", {"x", "k"}, {"y", "i"}, integer_attribute("largest", largest ? 1 : 0)) +
              value("input", "x", type) + value("input", "k", 7) + value("output", "y", type) + value("output", "i", 7),
          17,
          {numbers(dtype, Shape{rows, length}), Tensor::vector<int64_t>(std::vector<int64_t>{k})}};
}

inline SortingCase unique(DType dtype, int64_t count) {
  const int type = static_cast<int>(dtype);
  std::string outputs = value("output", "y", type);
  for (const char* name : {"first", "inverse", "counts"}) outputs += value("output", name, 7);
  return {"Unique " + std::string(name_of(dtype)) + " " + std::to_string(count),
          node("Unique", {"x"}, {"y", "first", "inverse", "counts"}) + value("input", "x", type) + outputs,
          17,
          {numbers(dtype, Shape{count})}};
}

// Every target gets many updates, whose order the sum of floats shows.
inline SortingCase scatter(const std::string& reduction, int64_t count, int64_t targets) {
  const std::string reduce = "attribute { name: \"reduction\" type: STRING s: \"" + reduction + "\" } ";
  return {"ScatterElements " + reduction + " " + std::to_string(count),
          node("ScatterElements", {"x", "i", "u"}, {"y"}, reduce) + value("input", "x") + value("input", "i", 7) +
              value("input", "u") + value("output", "y"),
          18,
          {session_values::filled(Shape{count}, 3), indices(count, targets), session_values::filled(Shape{count}, 5)}};
}

inline SortingCase non_zero(int64_t count) {
  return {"NonZero " + std::to_string(count),
          node("NonZero", {"x"}, {"y"}) + value("input", "x", 6) + value("output", "y", 7),
          17,
          {numbers(DType::int32, Shape{count / 4, 4}, 3)}};
}

inline SortingCase cum_sum(DType dtype, int64_t rows, int64_t length, bool exclusive, bool reverse) {
  const int type = static_cast<int>(dtype);
  return {"CumSum " + std::string(name_of(dtype)) + " " + std::to_string(rows) + " x " + std::to_string(length),
          node("CumSum", {"x", "axis"}, {"y"},
               integer_attribute("exclusive", exclusive ? 1 : 0) + integer_attribute("reverse", reverse ? 1 : 0)) +
              value("input", "x", type) + value("input", "axis", 7) + value("output", "y", type),
          17,
          {numbers(dtype, Shape{rows, length}, int64_t{1} << 22), Tensor::vector<int64_t>(std::vector<int64_t>{1})}};
}

// `length` of the rows that are for a whole device; `rows` short ones.
inline std::vector<SortingCase> sorting_cases(int64_t length, int64_t rows) {
  std::vector<SortingCase> cases;
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::int8, DType::int32, DType::int64}) {
    cases.push_back(top_k(dtype, 1, length, length / 3, true));
    cases.push_back(top_k(dtype, rows, 60, 9, false));
  }
  cases.push_back(top_k(DType::float16, 3, 2500, 2500, true));  // by segments
  cases.push_back(top_k(DType::uint64, 2, 1200, 1000, true));   // in a large block
  cases.push_back(unique(DType::float32, length));
  cases.push_back(unique(DType::int64, length / 3));
  for (const char* reduction : {"none", "add", "mul", "max"}) cases.push_back(scatter(reduction, length, 37));
  cases.push_back(non_zero(length));
  cases.push_back(cum_sum(DType::int32, 1, length, false, false));
  cases.push_back(cum_sum(DType::int64, 2, 2 * length, true, true));
  cases.push_back(cum_sum(DType::uint64, rows, 70, true, false));
  return cases;
}

// True for the same bits, but for those of NaN.
inline bool is_same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (session_values::same(a, b)) return true;
  if (!is_floating(a.dtype())) return false;
  std::vector<double> x(static_cast<size_t>(a.element_count())), y(x.size());
  load_doubles(a, 0, x);
  load_doubles(b, 0, y);
  for (size_t i = 0; i < x.size(); ++i) {
    if (!(x[i] == y[i] && std::signbit(x[i]) == std::signbit(y[i])) && !(std::isnan(x[i]) && std::isnan(y[i])))
      return false;
  }
  return true;
}

// Three runs each: as it comes, in planned memory, and repeated from a recording where there can be one.
inline void expect_same_as_host(Executor& device, const SortingCase& each) {
  const std::shared_ptr<const Model> model = model_text::model_of(each.graph, each.opset);
  ASSERT_NE(model, nullptr) << each.name;
  const auto host = make_cpu_executor();
  auto wanted_session = host->prepare(model, {}), session = device.prepare(model, {});
  ASSERT_TRUE(wanted_session.ok()) << each.name << ": " << wanted_session.error().message;
  ASSERT_TRUE(session.ok()) << each.name << ": " << session.error().message;
  NullObserver nobody;
  const auto wanted = (*wanted_session)->run(each.inputs, nobody);
  ASSERT_TRUE(wanted.ok()) << each.name << ": " << wanted.error().message;
  for (int turn = 0; turn < 3; ++turn) {
    const auto outputs = (*session)->run(each.inputs, nobody);
    ASSERT_TRUE(outputs.ok()) << each.name << ": " << outputs.error().message;
    ASSERT_EQ(outputs->size(), wanted->size());
    for (size_t i = 0; i < outputs->size(); ++i)
      EXPECT_TRUE(is_same((*outputs)[i].tensor(), (*wanted)[i].tensor()))
          << each.name << ", output " << i << " of run " << turn;
  }
}

}  // namespace parallax::sorting_cases
