// SPDX-License-Identifier: Apache-2.0
// A model of floats compared with its quantized form: every float has its counterpart, quantization steps raise no
// alarm, and quantizations that do more than round are named.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "inspector/diff/compare/compare.h"
#include "inspector/diff/localize/blame.h"
#include "inspector/diff/matching/matching.h"
#include "inspector/executors/make_executor.h"
#include "inspector/tensor/elements.h"
#include "tests/inspector/diff/dump_fixture.h"

namespace parallax {
namespace quantization_test {

using testing::finished_model;
using testing::GraphBuilder;
using testing::sines;

constexpr int64_t kRows = 6, kWidth = 16;

const Tensor& input() {
  static const Tensor x = sines({kRows, kWidth}, 1.0, 1.3);
  return x;
}
const Tensor& weight(int number) {
  static const Tensor first = sines({kWidth, kWidth}, 0.3, 0.7), second = sines({kWidth, kWidth}, 0.4, 0.9);
  return number == 1 ? first : second;
}
const Tensor& bias() {
  static const Tensor b = sines({kWidth}, 0.2, 0.5);
  return b;
}

// The largest element after the Relu, which the hidden layer's scale is made for.
double largest_hidden() {
  double largest = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t column = 0; column < kWidth; ++column) {
      double sum = element_as_double(bias(), column);
      for (int64_t k = 0; k < kWidth; ++k)
        sum += element_as_double(input(), row * kWidth + k) * element_as_double(weight(1), k * kWidth + column);
      largest = std::max(largest, sum);
    }
  }
  return largest;
}

std::shared_ptr<const Model> of_floats() {
  GraphBuilder builder(17);
  builder.input("x", "float32[6,16]")
      .initializer("w1", weight(1))
      .initializer("w2", weight(2))
      .initializer("b", bias());
  builder.node("MatMul", {"x", "w1"}, {"product"}).node("Add", {"product", "b"}, {"sum"});
  builder.node("Relu", {"sum"}, {"hidden"}).node("MatMul", {"hidden", "w2"}, {"y"});
  return builder.output("y"), finished_model(builder);
}

// As tools write it that quantize: each float is quantized and dequantized before it is read, weights are stored
// quantized, and the Relu is left to quantized values that begin at zero, under whose name its input is stored.
struct Quantized {
  double input_scale = 1, hidden_scale = 1, weight_scale = 1;  // times what they should be
  uint8_t hidden_zero = 0;                                     // of the DequantizeLinear alone
  int8_t weight_zero = 0;
  bool has_bias = true;

  std::shared_ptr<const Model> build() const {
    GraphBuilder builder(17);
    builder.input("x", "float32[6,16]").initializer("b", has_bias ? bias() : sines({kWidth}, 0, 1));
    add_weight(builder, "w1", weight(1), 1, 0);
    add_weight(builder, "w2", weight(2), weight_scale, weight_zero);
    add_quantized(builder, "x", 2.0 / 255 * input_scale, 128, 128);
    builder.node("MatMul", {"x_floats", "w1_floats"}, {"product"}).node("Add", {"product", "b"}, {"hidden"});
    add_quantized(builder, "hidden", largest_hidden() / 255 * hidden_scale, 0, hidden_zero);
    builder.node("MatMul", {"hidden_floats", "w2_floats"}, {"y"});
    return builder.output("y"), finished_model(builder);
  }

 private:
  static void add_weight(GraphBuilder& builder, const std::string& name, const Tensor& floats, double scale_factor,
                         int8_t zero) {
    double largest = 0;
    for (int64_t index = 0; index < floats.element_count(); ++index)
      largest = std::max(largest, std::abs(element_as_double(floats, index)));
    const double scale = largest / 127;
    Tensor quantized = Tensor::allocate(DType::int8, floats.shape()).take();
    for (int64_t index = 0; index < floats.element_count(); ++index)
      quantized.mutable_as<int8_t>()[static_cast<size_t>(index)] =
          static_cast<int8_t>(std::lround(element_as_double(floats, index) / scale));
    builder.initializer(name + "_quantized", quantized);
    builder.initializer(name + "_scale", Tensor::scalar(static_cast<float>(scale * scale_factor)));
    builder.initializer(name + "_zero", Tensor::scalar(zero));
    builder.node("DequantizeLinear", {name + "_quantized", name + "_scale", name + "_zero"}, {name + "_floats"});
  }
  static void add_quantized(GraphBuilder& builder, const std::string& name, double scale, uint8_t zero,
                            uint8_t zero_back) {
    builder.initializer(name + "_scale", Tensor::scalar(static_cast<float>(scale)));
    builder.initializer(name + "_zero", Tensor::scalar(zero)).initializer(name + "_back", Tensor::scalar(zero_back));
    builder.node("QuantizeLinear", {name, name + "_scale", name + "_zero"}, {name + "_quantized"});
    builder.node("DequantizeLinear", {name + "_quantized", name + "_scale", name + "_back"}, {name + "_floats"});
  }
};

TEST(QuantizedMatching, EveryFloatHasItsCounterpart) {
  const ValueTable a = ValueTable::build(of_floats()).take(), b = ValueTable::build(Quantized().build()).take();
  std::map<std::string, std::string> pairs;
  for (const ValueMatch& match : match_models(a, b).values) {
    if (!match.is_extra)
      pairs[std::string(a.value_infos()[static_cast<size_t>(match.a)].name)] =
          b.value_infos()[static_cast<size_t>(match.b)].name;
  }
  const std::map<std::string, std::string> expected = {
      {"x", "x"},        {"w1", "w1_floats"},         {"b", "b"},          {"product", "product"},
      {"sum", "hidden"}, {"hidden", "hidden_floats"}, {"w2", "w2_floats"}, {"y", "y"}};
  EXPECT_EQ(pairs, expected);
}

class QuantizedModels : public testing::DumpTest {
 protected:
  Comparison compare(const std::shared_ptr<const Model>& a, const std::shared_ptr<const Model>& b,
                     const std::string& with = "reference") {
    return blame_on(input(), a, b, {}, with);
  }
  // The one cause.
  Cause blame(const Quantized& b) {
    const Comparison comparison = compare(of_floats(), b.build());
    EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
    EXPECT_EQ(comparison.causes.size(), 1U);
    return comparison.causes.empty() ? Cause{} : comparison.causes.front();
  }
};

TEST_F(QuantizedModels, StepsAreNoDivergence) {
  for (const bool is_a_quantized : {false, true}) {
    const auto floats = of_floats(), quantized = Quantized().build();
    const Comparison comparison = is_a_quantized ? compare(quantized, floats) : compare(floats, quantized);
    EXPECT_EQ(comparison.verdict, OverallVerdict::pass);
    EXPECT_EQ(comparison.summary.passed, 8);
    EXPECT_EQ(comparison.summary.compared, 8);
    EXPECT_TRUE(comparison.causes.empty());
  }
}

// Values between nodes that an executor fuses into one are estimated.
TEST_F(QuantizedModels, AnExecutorThatFusesSeesTheSame) {
  const Comparison sound = compare(of_floats(), Quantized().build(), "cpu");
  EXPECT_EQ(sound.verdict, OverallVerdict::pass);
  const Comparison faulty = compare(of_floats(), Quantized{.hidden_scale = 0.1}.build(), "cpu");
  EXPECT_EQ(faulty.verdict, OverallVerdict::diverged);
  ASSERT_FALSE(faulty.causes.empty());
  EXPECT_EQ(faulty.causes.front().node, "QuantizeLinear_6");
}

// Scales are made for other inputs: the largest numbers of these may be a little beyond.
TEST_F(QuantizedModels, ALittleSaturationIsNoDivergence) {
  EXPECT_EQ(compare(of_floats(), Quantized{.hidden_scale = 0.92}.build()).verdict, OverallVerdict::pass);
}

TEST_F(QuantizedModels, AScaleThatIsTooSmallSaturates) {
  const Cause hidden = blame({.hidden_scale = 0.1});
  EXPECT_EQ(hidden.node, "QuantizeLinear_6");
  EXPECT_EQ(hidden.path, "hidden");
  EXPECT_TRUE(hidden.why.starts_with("it saturates in B: ")) << hidden.why;
  const Cause first = blame({.input_scale = 0.1});  // no counterpart of its own: what is made of it differs
  EXPECT_EQ(first.node, "QuantizeLinear_2");
  EXPECT_EQ(first.path, "product");
  EXPECT_TRUE(first.why.starts_with("it saturates in B: ")) << first.why;
}

TEST_F(QuantizedModels, AScaleThatIsFarTooLargeLeavesNothing) {
  const Cause cause = blame({.hidden_scale = 400});
  EXPECT_EQ(cause.node, "QuantizeLinear_6");
  EXPECT_TRUE(cause.why.starts_with("its steps are too coarse for what it quantizes")) << cause.why;
}

TEST_F(QuantizedModels, AWeightThatItsQuantizedValuesDoNotRepresent) {
  const Cause cause = blame({.weight_scale = 1.3});
  EXPECT_EQ(cause.node, "DequantizeLinear_1");
  EXPECT_NE(cause.why.find("that its quantized values represent, constant 'w2'"), std::string::npos) << cause.why;
}

TEST_F(QuantizedModels, QuantizationWithOtherParametersOnTheWayBack) {
  const Cause cause = blame({.hidden_zero = 20});
  EXPECT_EQ(cause.node, "DequantizeLinear_7");
  EXPECT_NE(cause.why.find("zero point 20, but 'QuantizeLinear_6' has quantized by"), std::string::npos) << cause.why;
}

TEST_F(QuantizedModels, OtherDifferencesAreNamedWithQuantizedOnes) {
  const Cause cause = blame({.has_bias = false});
  EXPECT_EQ(cause.op, "Add");
  EXPECT_EQ(cause.why, "it reads another constant 'b': it is all zeros in B");
}

// Half a step is lost by rounding, up to a whole one by rounding that was learned; a zero point next to the right one
// moves all by a step more.
TEST_F(QuantizedModels, AStoredConstantIsWithinAStep) {
  EXPECT_EQ(compare(of_floats(), Quantized{.weight_scale = 1.003}.build()).verdict, OverallVerdict::pass);
  EXPECT_EQ(blame({.weight_zero = 1}).node, "DequantizeLinear_1");
  EXPECT_EQ(blame({.weight_scale = 1.03}).node, "DequantizeLinear_1");
}

// Layers of a product and a normalization, then a Relu and a product.
class DeepModel {
 public:
  static std::shared_ptr<const Model> of_floats() {
    GraphBuilder builder = begin();
    std::string read = "x";
    for (int layer = 0; layer < kLayers; ++layer) {
      const std::string suffix = std::to_string(layer);
      builder.initializer("w" + suffix, weight(layer));
      builder.node("MatMul", {read, "w" + suffix}, {"p" + suffix});
      builder.node("LayerNormalization", {"p" + suffix, "gain"}, {"n" + suffix});
      read = "n" + suffix;
    }
    builder.initializer("w", weight(kLayers));
    return builder.node("Relu", {read}, {"r"}).node("MatMul", {"r", "w"}, {"y"}).output("y"), finished_model(builder);
  }

  // The Relu is left to a range that begins at zero; without it, the range begins below.
  static std::shared_ptr<const Model> quantized(bool has_relu) {
    GraphBuilder builder = begin();
    std::string read = add_quantized(builder, "x", 1.0, 128);
    for (int layer = 0; layer < kLayers; ++layer) {
      const std::string suffix = std::to_string(layer);
      builder.node("MatMul", {read, add_weight(builder, "w" + suffix, layer)}, {"p" + suffix});
      builder.node("LayerNormalization", {add_quantized(builder, "p" + suffix, 4.5, 128), "gain"}, {"n" + suffix});
      const bool clamps = layer + 1 == kLayers && has_relu;
      read = add_quantized(builder, "n" + suffix, clamps ? 2.25 : 4.5, clamps ? 0 : 128);
    }
    builder.node("MatMul", {read, add_weight(builder, "w", kLayers)}, {"y"}).output("y");
    return finished_model(builder);
  }

 private:
  static constexpr int kLayers = 24;

  static GraphBuilder begin() {
    GraphBuilder builder(17);
    builder.input("x", "float32[6,16]")
        .initializer("gain", Tensor::from<float>(Shape{kWidth}, std::vector<float>(kWidth, 1)));
    return builder;
  }
  // No structure: errors grow as those of independent numbers.
  static Tensor weight(int number) {
    Tensor tensor = Tensor::allocate(DType::float32, Shape{kWidth, kWidth}).take();
    double index = 1000.0 * number;
    for (float& element : tensor.mutable_as<float>())
      ++index, element = static_cast<float>(0.4 * std::sin(index * index));
    return tensor;
  }
  static std::string add_weight(GraphBuilder& builder, const std::string& name, int number) {
    constexpr double kScale = 0.4 / 127;
    const Tensor floats = weight(number);
    Tensor quantized = Tensor::allocate(DType::int8, floats.shape()).take();
    for (int64_t index = 0; index < floats.element_count(); ++index)
      quantized.mutable_as<int8_t>()[static_cast<size_t>(index)] =
          static_cast<int8_t>(std::lround(element_as_double(floats, index) / kScale));
    builder.initializer(name + "_quantized", quantized)
        .initializer(name + "_scale", Tensor::scalar(static_cast<float>(kScale)));
    return builder.node("DequantizeLinear", {name + "_quantized", name + "_scale"}, {name}), name;
  }
  static std::string add_quantized(GraphBuilder& builder, const std::string& name, double largest, uint8_t zero) {
    builder.initializer(name + "_scale", Tensor::scalar(static_cast<float>(largest / 127)));
    builder.initializer(name + "_zero", Tensor::scalar(zero));
    builder.node("QuantizeLinear", {name, name + "_scale", name + "_zero"}, {name + "_quantized"});
    builder.node("DequantizeLinear", {name + "_quantized", name + "_scale", name + "_zero"}, {name + "_floats"});
    return name + "_floats";
  }
};

TEST_F(QuantizedModels, DepthLiftsNoLimit) {
  EXPECT_EQ(compare(DeepModel::of_floats(), DeepModel::quantized(true)).verdict, OverallVerdict::pass);
  const Comparison comparison = compare(DeepModel::of_floats(), DeepModel::quantized(false));
  EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
  ASSERT_FALSE(comparison.causes.empty());
  EXPECT_EQ(comparison.causes.front().op, "Relu");
}

// Quantized values are not comparable with the numbers that they represent.
TEST_F(QuantizedModels, QuantizedValuesAreNotComparedWithFloats) {
  const auto floats = [] {
    GraphBuilder builder(17);
    builder.input("x", "float32[6,16]").initializer("table", weight(1)).numbers("ids", {3, 1, 4, 1, 5, 9});
    builder.node("Gather", {"table", "ids"}, {"rows"}).node("Add", {"x", "rows"}, {"y"});
    return builder.output("y"), finished_model(builder);
  }();
  const auto quantized = [] {
    Tensor table = Tensor::allocate(DType::int8, weight(1).shape()).take();
    for (int64_t index = 0; index < table.element_count(); ++index)
      table.mutable_as<int8_t>()[static_cast<size_t>(index)] =
          static_cast<int8_t>(std::lround(element_as_double(weight(1), index) / 0.004));
    GraphBuilder builder(17);
    builder.input("x", "float32[6,16]").initializer("table", table).numbers("ids", {3, 1, 4, 1, 5, 9});
    builder.initializer("scale", Tensor::scalar(0.004F));
    builder.node("Gather", {"table", "ids"}, {"quantized"})
        .node("Cast", {"quantized"}, {"floats"}, {{"to", int64_t{1}}});
    builder.node("Mul", {"floats", "scale"}, {"rows"}).node("Add", {"x", "rows"}, {"y"});
    return builder.output("y"), finished_model(builder);
  }();
  const Comparison comparison = compare(floats, quantized);
  ASSERT_FALSE(comparison.causes.empty());
  for (const Cause& cause : comparison.causes) EXPECT_EQ(cause.why.find("element ["), std::string::npos) << cause.why;
}

}  // namespace quantization_test
}  // namespace parallax
