// SPDX-License-Identifier: Apache-2.0
// Operators on rows that GPUs cut in pieces, or hold in registers, against the host: lengths around the borders of
// both, ties across pieces, numbers that are none, narrow types.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/runtime/against_host.h"
#include "tests/runtime/model_text.h"

namespace parallax::long_rows {

struct Case {
  std::string op;
  Shape shape;
  std::string attributes = "";
  DType dtype = DType::float32;
  int opset = 17;
  std::vector<Shape> more = {};                      // further inputs of the same type
  std::optional<int64_t> axis_input = std::nullopt;  // the last input, an initializer
  double special = 0;                                // instead of some values, unless it is zero
  double step = 1e-5;
};

inline std::string integer(const std::string& name, int64_t value) {
  return "attribute { name: \"" + name + "\" i: " + std::to_string(value) + " type: INT } ";
}
inline std::string axes(int64_t value) {
  return "attribute { name: \"axes\" ints: " + std::to_string(value) + " type: INTS } ";
}

inline std::shared_ptr<const Model> model_of(const Case& test) {
  using model_text::value;
  const int type = static_cast<int>(test.dtype);
  const bool is_index = test.op.starts_with("Arg");
  std::vector<std::string> names{"x"};
  std::string text = value("input", "x", type);
  for (size_t i = 0; i < test.more.size(); ++i) {
    names.push_back("p" + std::to_string(i));
    text += value("input", names.back(), type);
  }
  if (test.axis_input.has_value()) {
    names.emplace_back("axis");
    text += "initializer { name: \"axis\" data_type: 7 int64_data: " + std::to_string(*test.axis_input) + " } ";
  }
  return model_text::model_of(model_text::node(test.op, names, {"y"}, test.attributes) + text +
                                  value("output", "y", is_index ? static_cast<int>(DType::int64) : type),
                              test.opset);
}

inline std::vector<Value> inputs_of(const Case& test) {
  const bool is_integer = test.dtype == DType::int32 || test.dtype == DType::int64;
  Tensor x = against_host::sixteenths(is_integer ? DType::float64 : test.dtype, test.shape, 3);
  const int64_t count = x.element_count();
  if (is_integer) {
    std::vector<double> values(static_cast<size_t>(count));
    load_doubles(x, 0, values);
    for (double& value : values) value *= 16;
    x = Tensor::allocate(test.dtype, test.shape).take();
    store_doubles(x, 0, values);
  }
  if (test.special != 0) {
    for (int64_t i = 5; i < count / 2; i += 1000) store_doubles(x, i, std::vector<double>{test.special});
  }
  std::vector<Value> inputs{x};
  for (const Shape& shape : test.more) inputs.emplace_back(against_host::sixteenths(test.dtype, shape, 11));
  return inputs;
}

inline std::vector<Case> cases() {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
  std::vector<Case> all;
  const std::string whole = integer("keepdims", 0);
  for (const int64_t length : {8191, 8192, 8193, 12288, 16387}) {
    all.push_back({"ReduceSum", Shape{length}, whole});
    all.push_back({"ReduceMax", Shape{length}, whole});
    all.push_back({"ArgMax", Shape{length}, integer("axis", 0)});
    all.push_back({"ArgMax", Shape{length}, integer("axis", 0) + integer("select_last_index", 1)});
    all.push_back({"Softmax", Shape{1, length}, integer("axis", 1)});
    all.push_back({"CumSum", Shape{length}, "", DType::float32, 17, {}, 0});
  }
  for (const std::string& op : std::vector<std::string>{"ReduceMean", "ReduceMin", "ReduceL2", "ReduceLogSumExp"}) {
    all.push_back({op, Shape{3, 8195}, axes(1)});
    all.push_back({op, Shape{300, 5}, axes(0)});  // columns
    all.push_back({op, Shape{2, 257, 3}, axes(1)});
    all.push_back({op, Shape{8200}, whole, DType::bfloat16, 17, {}, std::nullopt, 0, 1e-2});
  }
  all.push_back({"ReduceSum", Shape{9000}, whole, DType::int64});
  all.push_back({"ReduceSum", Shape{9000}, whole, DType::int32});
  all.push_back({"ReduceMax", Shape{9000}, whole, DType::float32, 17, {}, std::nullopt, kNaN});
  all.push_back({"ReduceMin", Shape{257, 2}, axes(0), DType::float32, 17, {}, std::nullopt, kNaN});
  all.push_back({"ArgMin", Shape{9000}, integer("axis", 0), DType::float32, 17, {}, std::nullopt, kNaN});
  all.push_back({"ArgMax", Shape{600, 3}, integer("axis", 0)});
  all.push_back({"ArgMax", Shape{600, 3}, integer("axis", 0) + integer("select_last_index", 1)});
  all.push_back({"ReduceSum", Shape{0, 5}, integer("keepdims", 1)});
  all.push_back({"ReduceMax", Shape{3, 0}, axes(1)});
  for (const std::string& op : std::vector<std::string>{"Softmax", "LogSoftmax", "Hardmax"}) {
    all.push_back({op, Shape{3, 8193}, integer("axis", 1)});
    all.push_back({op, Shape{2, 8200}, integer("axis", 1), DType::float64});
    all.push_back({op, Shape{2, 8200}, integer("axis", 1), DType::float16, 17, {}, std::nullopt, 0, 4e-3});
    all.push_back({op, Shape{2, 8193}, integer("axis", 1), DType::bfloat16, 17, {}, std::nullopt, 0, 1e-2});
    all.push_back({op, Shape{2, 8196}, integer("axis", 1), DType::float32, 17, {}, std::nullopt, -kInfinity});
  }
  all.push_back({"Softmax", Shape{2, 8196}, integer("axis", 1), DType::float32, 17, {}, std::nullopt, kNaN});
  all.push_back({"Softmax", Shape{2, 8196}, integer("axis", 1), DType::float32, 17, {}, std::nullopt, kInfinity});
  for (const int64_t length : {1, 40, 77, 1000, 1025, 4096, 4097}) {
    const Shape shape{3, length};
    all.push_back({"Softmax", shape, integer("axis", 1), DType::bfloat16, 17, {}, std::nullopt, 0, 1e-2});
    all.push_back({"LogSoftmax", shape, integer("axis", 1), DType::float16, 17, {}, std::nullopt, 0, 4e-3});
    all.push_back({"Hardmax", shape, integer("axis", 1)});
    all.push_back({"Softmax", shape, integer("axis", 1), DType::float32, 17, {}, std::nullopt, kNaN});
  }
  all.push_back({"Softmax", Shape{70, 40}, integer("axis", 1), DType::bfloat16, 17, {}, std::nullopt, 0, 1e-2});
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const double step = dtype == DType::float32 ? 1e-5 : 1e-2;
    for (const int64_t length : {40, 77, 1000, 4100, 8200}) {
      const Shape shape{2, length}, row{length};
      all.push_back({"LayerNormalization", shape, "", dtype, 17, {row, row}, std::nullopt, 0, step});
      all.push_back({"LayerNormalization", shape, "", dtype, 17, {row}, std::nullopt, 0, step});
      all.push_back({"RMSNormalization", shape, "", dtype, 23, {row}, std::nullopt, 0, step});
      all.push_back({"LpNormalization", shape, "", dtype, 22, {}, std::nullopt, 0, step});
    }
  }
  for (const int64_t kind : {0, 1, 2, 3}) {
    const std::string how = integer("exclusive", kind & 1) + integer("reverse", kind / 2);
    all.push_back({"CumSum", Shape{2, 12289}, how, DType::float32, 17, {}, 1});
    all.push_back({"CumSum", Shape{9000, 2}, how, DType::float64, 17, {}, 0});
    all.push_back({"CumSum", Shape{5, 300}, how, DType::float32, 17, {}, 1});
  }
  return all;
}

inline void expect_same(double found, double expected, double step, const std::string& what) {
  const bool are_no_numbers = found != found && expected != expected;
  EXPECT_TRUE(are_no_numbers || found == expected || std::abs(found - expected) <= step * (1 + std::abs(expected)))
      << what << ": " << found << " instead of " << expected;
}

inline void expect_what_the_host_gives(Executor& executor) {
  const auto host = make_cpu_executor();
  for (const Case& test : cases()) {
    const std::string name =
        test.op + " of " + std::string(name_of(test.dtype)) + test.shape.to_string() + " " + test.attributes;
    const auto model = model_of(test);
    ASSERT_NE(model, nullptr) << name;
    const auto on_gpu = executor.prepare(model, {}), on_host = host->prepare(model, {});
    ASSERT_TRUE(on_gpu.ok()) << name << ": " << on_gpu.error().message;
    ASSERT_TRUE(on_host.ok()) << name << ": " << on_host.error().message;
    const std::vector<Value> inputs = inputs_of(test);
    const auto found = against_host::numbers_of_run(**on_gpu, inputs);
    const auto expected = against_host::numbers_of_run(**on_host, inputs);
    ASSERT_EQ(found.size(), expected.size()) << name;
    for (size_t i = 0; i < found.size() && !testing::Test::HasFailure(); ++i)
      expect_same(found[i], expected[i], test.step, name + ", element " + std::to_string(i));
    const auto again = against_host::numbers_of_run(**on_gpu, inputs);
    for (size_t i = 0; i < found.size() && !testing::Test::HasFailure(); ++i)
      expect_same(again[i], found[i], 0, name + ", repeated, element " + std::to_string(i));
  }
}

}  // namespace parallax::long_rows
