// SPDX-License-Identifier: Apache-2.0
// Outputs that another program rounded otherwise are as expected: in half precision that was cast to float32, and where
// near ties of quantized values went to the other step. Larger differences are not.
#include "inspector/workbench/expected_outputs.h"

#include <cmath>
#include <functional>
#include <random>
#include <span>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "inspector/executors/make_executor.h"
#include "inspector/model/io/import.h"

namespace parallax {
namespace expected_outputs_test {

constexpr int64_t kWidth = 64, kColumns = 8;
constexpr float kScale = 0.3F;

// x [1, 64] through `nodes` and a product with the weights, float32 or float16, to y [1, 8].
struct Network {
  std::string nodes;
  int weight_type = 1;
  std::vector<float> weights = drawn();

  static std::vector<float> drawn() {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<float> numbers(static_cast<size_t>(kWidth * kColumns));
    for (float& number : numbers) number = normal(random);
    return numbers;
  }

  std::shared_ptr<const Model> model() const {
    const std::string text = fmt::format(
        R"(ir_version: 8 opset_import {{ version: 17 }} graph {{ name: "g" {}
           initializer {{ name: "scale" data_type: 1 float_data: {} }}
           initializer {{ name: "zero" data_type: 2 int32_data: 0 }}
           initializer {{ name: "stored" dims: {} dims: {} data_type: 1 float_data: [{:.9g}] }}
           node {{ name: "store" input: "stored" output: "w" op_type: "Cast" attribute {{ name: "to" i: {} type: INT }} }}
           input {{ name: "x" type {{ tensor_type {{ elem_type: 1 shape {{ dim {{ dim_value: 1 }} dim {{ dim_value: {} }} }} }} }} }}
           output {{ name: "y" type {{ tensor_type {{ elem_type: 1 }} }} }} }})",
        nodes, kScale, kWidth, kColumns, fmt::join(weights, ", "), weight_type, kWidth);
    return import_model(std::as_bytes(std::span(text)), "", "network").take();
  }
};

// The comparison with an expected output that `change` makes of the one that was computed.
ValueComparison judged(const Network& network, const std::vector<float>& x,
                       const std::function<void(std::span<float>)>& change) {
  const ExecutorFactory executors = [](const std::string& name) { return make_executor(name); };
  RunRequest request;
  request.model_in_memory = network.model();
  request.executors = {"cpu"};
  Tensor input = Tensor::allocate(DType::float32, Shape{1, kWidth}).take();
  std::ranges::copy(x, input.mutable_as<float>().begin());
  RunSide side = prepare_side(request, "cpu", request.model_in_memory, {Value(std::move(input))}, executors).take();
  EXPECT_TRUE(side.run(nullptr).ok());
  Tensor expected = Tensor::allocate(DType::float32, Shape{1, kColumns}).take();
  std::ranges::copy(side.outputs.at(0).tensor().as<float>(), expected.mutable_as<float>().begin());
  change(expected.mutable_as<float>());
  const std::vector<NamedValue> wanted = {{"y", expected}};
  Comparison comparison;
  add_expected({}, wanted, {&side}, {}, comparison);
  look_into_expected(request, wanted, {&side}, {}, executors, comparison);
  return comparison.expected.at(0);
}

const Network kQuantized{R"(
  node { name: "quantize" input: "x" input: "scale" input: "zero" output: "q" op_type: "QuantizeLinear" }
  node { name: "dequantize" input: "q" input: "scale" input: "zero" output: "d" op_type: "DequantizeLinear" }
  node { name: "product" input: "d" input: "w" output: "y" op_type: "MatMul" })"};

// Elements that are `part` of a step above a whole number of steps; every other goes to the step above in place of the
// one below, or the other way round.
ValueComparison judged_with_other_steps(float part) {
  std::vector<float> x(static_cast<size_t>(kWidth));
  for (size_t index = 0; index < x.size(); ++index) x[index] = (static_cast<float>(index % 9) + part) * kScale;
  return judged(kQuantized, x, [&](std::span<float> y) {
    for (size_t row = 0; row < x.size(); row += 2) {
      const float low = std::floor(x[row] / kScale), is = std::nearbyint(x[row] / kScale);
      for (size_t column = 0; column < y.size(); ++column)
        y[column] += (2 * low + 1 - 2 * is) * kScale * kQuantized.weights[row * y.size() + column];
    }
  });
}

TEST(ExpectedOutputs, NearTiesOfQuantizedValuesMayGoToTheOtherStep) {
  const ValueComparison found = judged_with_other_steps(0.5F);
  EXPECT_EQ(found.verdict, Verdict::pass) << found.reason;
  ASSERT_TRUE(found.accepted.has_value());
  EXPECT_EQ(found.accepted->reason, "quantization steps");
  EXPECT_TRUE(found.accepted->evidence.starts_with("inputs and stored floats moved by 4 ULP move this output by as "))
      << found.accepted->evidence;
}

TEST(ExpectedOutputs, OtherQuantizedValuesMayNot) {
  EXPECT_EQ(judged_with_other_steps(0.3F).verdict, Verdict::diverged);
  EXPECT_EQ(judged_with_other_steps(0.49F).verdict, Verdict::diverged);
}

TEST(ExpectedOutputs, HalfPrecisionThatWasCastRoundsAsHalfPrecision) {
  const Network half{R"(
    node { name: "narrow" input: "x" output: "h" op_type: "Cast" attribute { name: "to" i: 10 type: INT } }
    node { name: "product" input: "h" input: "w" output: "p" op_type: "MatMul" }
    node { name: "widen" input: "p" output: "c" op_type: "Cast" attribute { name: "to" i: 1 type: INT } }
    node { name: "move" input: "c" output: "y" op_type: "Identity" })",
                     10};
  const std::vector<float> x(static_cast<size_t>(kWidth), 0.7F);
  const auto off_by = [&](float share) {
    return judged(half, x,
                  [=](std::span<float> y) {
                    for (float& element : y) element += share * 5;  // about the size of y
                  })
        .verdict;
  };
  EXPECT_EQ(off_by(2e-3F), Verdict::pass);  // two units in the last place of float16
  EXPECT_EQ(off_by(0.2F), Verdict::diverged);
}

}  // namespace expected_outputs_test
}  // namespace parallax
