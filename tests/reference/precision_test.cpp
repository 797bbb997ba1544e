// SPDX-License-Identifier: Apache-2.0
// The two precisions, and that bits do not depend on threads.
#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "inspector/base/thread_pool.h"
#include "inspector/tensor/elements.h"
#include "tests/reference/test_models.h"

namespace parallax::tests {
namespace {

std::shared_ptr<const Model> through_half() {
  return parse(node("Cast", {"x"}, {"h"}, "attribute { name: 'to' type: INT i: 10 } ") +
               node("Cast", {"h"}, {"y"}, "attribute { name: 'to' type: INT i: 1 } ") + value("input", "x", 1, {1}) +
               value("output", "y", 1, {1}));
}

double only(const Result<std::vector<Value>>& outputs) {
  EXPECT_TRUE(outputs.ok()) << (outputs.ok() ? "" : outputs.error().message);
  return outputs.ok() ? element_as_double((*outputs)[0].tensor(), 0) : std::nan("");
}

TEST(Precision, DeclaredRoundsAfterEveryOperator) {
  const auto model = parse(node("Add", {"x", "x"}, {"s"}) + node("Sub", {"s", "x"}, {"y"}) +
                           value("input", "x", 10, {1}) + value("output", "y", 10, {1}));
  const Value x = Tensor::scalar(Float16{float16_from_double(40000)}).reshaped({1});
  Recorder seen;
  EXPECT_TRUE(std::isinf(only(run(model, {x}, seen))));  // the sum overflows half precision
  EXPECT_EQ(only(run(model, {x}, seen, {}, ReferencePrecision::double_)), 40000);
}

TEST(Precision, DoubleCarriesFloat64Everywhere) {
  const auto model =
      parse("initializer { name: 'w' data_type: 1 dims: 1 float_data: [3] }\n" +
            node("Constant", {}, {"c"}, "attribute { name: 'value_float' type: FLOAT f: 1 } ") +
            node("Div", {"c", "w"}, {"d"}) + node("Shape", {"d"}, {"n"}) + node("Mul", {"d", "x"}, {"y"}) +
            value("input", "x", 1, {1}) + value("output", "y", 1, {1}) + value("output", "n", 7, {1}));
  Recorder seen;
  const auto outputs = run(model, {floats({1})}, seen, {}, ReferencePrecision::double_);
  EXPECT_EQ(only(outputs), 1.0 / 3.0);
  for (const char* name : {"x", "w", "c", "d", "y"})
    EXPECT_EQ(seen.values[name].tensor().dtype(), DType::float64) << name;
  EXPECT_EQ(seen.values["n"].tensor().dtype(), DType::int64);
}

TEST(Precision, DoubleTakesItsOutputsAsInputs) {
  auto session = make_reference_executor(ReferencePrecision::double_)->prepare(through_half(), {}).take();
  NullObserver observer;
  const auto first = session->run(std::vector<Value>{floats({0.1F})}, observer);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(only(session->run(*first, observer)), only(first));
}

TEST(Precision, CastsRoundOnlyWhenKept) {
  Recorder seen;
  const double x = 0.1F;
  const double half = float16_to_double(float16_from_double(x));
  ASSERT_NE(x, half);
  RunOptions keep;
  keep.keep_casts = true;
  EXPECT_EQ(only(run(through_half(), {floats({0.1F})}, seen)), half);
  EXPECT_EQ(only(run(through_half(), {floats({0.1F})}, seen, {}, ReferencePrecision::double_)), x);
  EXPECT_EQ(only(run(through_half(), {floats({0.1F})}, seen, keep, ReferencePrecision::double_)), half);
}

// A sum in float would lose every 1: the accumulator is wider.
// 32767 times the float next to 1 / 32767 is 1 in float32 and less in double: sizes and quantized values are the
// model's.
TEST(Precision, SizesDoNotDependOnIt) {
  const auto model = parse(
      "initializer { name: 'w' data_type: 1 dims: 1 float_data: [3.051851e-05] }\n"
      "initializer { name: 'zero' data_type: 1 float_data: [0] }\n"
      "initializer { name: 'one' data_type: 1 float_data: [1] }\n" +
      node("Mul", {"x", "w"}, {"s"}) + node("Resize", {"x", "", "s"}, {"r"}) + node("Squeeze", {"s"}, {"q"}) +
      node("Neg", {"q"}, {"n"}) + node("Range", {"n", "zero", "one"}, {"range"}) +
      node("Cast", {"s"}, {"c"}, "attribute { name: 'to' type: INT i: 7 } ") + value("input", "x", 1, {1}) +
      value("output", "r", 1, {1}) + value("output", "range", 1, {1}) + value("output", "c", 7, {1}));
  for (const auto precision : {ReferencePrecision::declared, ReferencePrecision::double_}) {
    Recorder seen;
    const auto outputs = run(model, {floats({32767})}, seen, {}, precision);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    EXPECT_EQ((*outputs)[0].tensor().shape().to_string(), "[1]");
    EXPECT_EQ((*outputs)[1].tensor().shape().to_string(), "[1]");
    EXPECT_EQ((*outputs)[2].tensor().as<int64_t>()[0], 1);
  }
}

TEST(Precision, SumsRunInDouble) {
  std::vector<float> numbers(101, 1.0F);
  numbers[0] = 1e8F;
  const auto model =
      parse(node("ReduceSum", {"x"}, {"y"}) + value("input", "x", 1, {-1}) + value("output", "y", 1, {1}));
  Recorder seen;
  EXPECT_EQ(only(run(model, {floats(numbers)}, seen)), static_cast<double>(static_cast<float>(1e8 + 100)));
}

Value random_floats(const std::vector<int64_t>& dims, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<double> numbers(static_cast<size_t>(Shape(dims).element_count()));
  for (double& number : numbers) number = normal(engine);
  Tensor tensor = Tensor::allocate(DType::float32, Shape(dims)).take();
  store_doubles(tensor, 0, numbers);
  return tensor;
}

struct LargeCase {
  std::string op;
  std::string attributes;
  std::vector<std::vector<int64_t>> inputs;
  size_t output = 0;
};

// Loops large enough to be spread over threads.
const LargeCase kLargeCases[] = {
    {"MatMul", "", {{70, 300}, {300, 130}}},
    {"Conv", "attribute { name: 'pads' type: INTS ints: 1 ints: 1 ints: 1 ints: 1 }", {{1, 8, 40, 40}, {16, 8, 3, 3}}},
    {"Softmax", "", {{64, 1000}}},
    {"ReduceMean", "attribute { name: 'axes' type: INTS ints: 0 }", {{500, 300}}},
    {"LayerNormalization", "", {{100, 500}, {500}}},
    {"Add", "", {{300, 500}, {500}}},
    {"GRU", "attribute { name: 'hidden_size' type: INT i: 32 }", {{20, 8, 16}, {1, 96, 16}, {1, 96, 32}}},
    // Threads share the hidden units; the last panel of 32 is not full.
    {"GRU", "attribute { name: 'hidden_size' type: INT i: 260 }", {{25, 3, 4}, {1, 780, 4}, {1, 780, 260}}, 1},
    {"LSTM", "attribute { name: 'hidden_size' type: INT i: 260 }", {{20, 1, 4}, {1, 1040, 4}, {1, 1040, 260}}},
};

std::shared_ptr<const Model> model_of(const LargeCase& large) {
  std::vector<std::string> names;
  std::string listing = "output { name: 'out' } ";
  for (const auto& dims : large.inputs) {
    names.push_back("in" + std::to_string(names.size()));
    listing += value("input", names.back(), 1, dims);
  }
  std::vector<std::string> outputs(large.output + 1);
  outputs.back() = "out";
  return parse(node(large.op, names, outputs, large.attributes) + listing);
}

TEST(Precision, BitsDoNotDependOnThreads) {
  for (const LargeCase& large : kLargeCases) {
    std::vector<Value> inputs;
    for (const auto& dims : large.inputs)
      inputs.push_back(random_floats(dims, 1 + static_cast<uint32_t>(inputs.size())));
    std::vector<Value> results;
    for (int threads : {1, 2, 7}) {
      set_thread_count(threads);
      auto session = make_reference_executor(ReferencePrecision::declared)->prepare(model_of(large), {}).take();
      NullObserver observer;
      auto outputs = session->run(inputs, observer);
      ASSERT_TRUE(outputs.ok()) << outputs.error().message;
      results.push_back((*outputs)[0]);
    }
    set_thread_count(0);
    for (const Value& result : results) {
      const Tensor& first = results[0].tensor();
      ASSERT_EQ(result.tensor().size_bytes(), first.size_bytes());
      EXPECT_EQ(std::memcmp(result.tensor().view().data, first.view().data, first.size_bytes()), 0) << large.op;
    }
  }
}

}  // namespace
}  // namespace parallax::tests
