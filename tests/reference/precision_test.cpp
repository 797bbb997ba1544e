// The two precisions, and that bits do not depend on threads.
#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "inspector/base/thread_pool.h"
#include "inspector/tensor/elements.h"
#include "tests/ops/op_case.h"
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
  const Value x = f16({1}, {40000});
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
TEST(Precision, SumsRunInDouble) {
  std::vector<float> numbers(101, 1.0F);
  numbers[0] = 1e8F;
  const auto model =
      parse(node("ReduceSum", {"x"}, {"y"}) + value("input", "x", 1, {-1}) + value("output", "y", 1, {1}));
  Recorder seen;
  EXPECT_EQ(only(run(model, {floats(numbers)}, seen)), static_cast<double>(static_cast<float>(1e8 + 100)));
}

Value random_floats(const Dims& dims, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<double> numbers(static_cast<size_t>(Shape(dims).element_count()));
  for (double& number : numbers) number = normal(engine);
  return f32(dims, numbers);
}

// Loops large enough to be spread over threads.
std::vector<OpCase> large_cases() {
  const Value none = f32({1}, {0});
  return {
      {"matmul", "MatMul", 13, {}, {random_floats({70, 300}, 1), random_floats({300, 130}, 2)}, {none}},
      {"conv",
       "Conv",
       11,
       {{"pads", std::vector<int64_t>{1, 1, 1, 1}}},
       {random_floats({1, 8, 40, 40}, 3), random_floats({16, 8, 3, 3}, 4)},
       {none}},
      {"softmax", "Softmax", 13, {}, {random_floats({64, 1000}, 5)}, {none}},
      {"reduce", "ReduceMean", 13, {{"axes", std::vector<int64_t>{0}}}, {random_floats({500, 300}, 6)}, {none}},
      {"layernorm", "LayerNormalization", 17, {}, {random_floats({100, 500}, 7), random_floats({500}, 8)}, {none}},
      {"add", "Add", 14, {}, {random_floats({300, 500}, 9), random_floats({500}, 10)}, {none}},
      {"gru",
       "GRU",
       14,
       {{"hidden_size", int64_t{32}}},
       {random_floats({20, 8, 16}, 11), random_floats({1, 96, 16}, 12), random_floats({1, 96, 32}, 13)},
       {none}},
  };
}

TEST(Precision, BitsDoNotDependOnThreads) {
  for (const OpCase& op_case : large_cases()) {
    std::vector<Value> results;
    for (int threads : {1, 2, 7}) {
      set_thread_count(threads);
      auto session = make_reference_executor(ReferencePrecision::declared)->prepare(model_of(op_case), {}).take();
      NullObserver observer;
      auto outputs = session->run(op_case.inputs, observer);
      ASSERT_TRUE(outputs.ok()) << outputs.error().message;
      results.push_back((*outputs)[0]);
    }
    set_thread_count(0);
    for (const Value& result : results) {
      const Tensor& first = results[0].tensor();
      ASSERT_EQ(result.tensor().size_bytes(), first.size_bytes());
      EXPECT_EQ(std::memcmp(result.tensor().view().data, first.view().data, first.size_bytes()), 0) << op_case.name;
    }
  }
}

}  // namespace
}  // namespace parallax::tests
