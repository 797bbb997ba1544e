// SPDX-License-Identifier: Apache-2.0
// Causes between a model of float32 and one in float16: missing or changed nodes are named, not the rounding of storing
// everything in float16.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "inspector/diff/compare/compare.h"
#include "inspector/diff/localize/blame.h"
#include "inspector/executors/make_executor.h"
#include "inspector/tensor/elements.h"
#include "tests/inspector/diff/dump_fixture.h"

namespace parallax {
namespace blame_precision_test {

using testing::finished_model;
using testing::GraphBuilder;
using testing::sines;

Tensor as_float16(const Tensor& floats) {
  Tensor float16s = Tensor::allocate(DType::float16, floats.shape()).take();
  std::vector<double> elements(static_cast<size_t>(floats.element_count()));
  load_doubles(floats, 0, elements);
  store_doubles(float16s, 0, elements);
  return float16s;
}

Tensor transposed(const Tensor& matrix) {
  const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  Tensor result = Tensor::allocate(DType::float32, Shape{columns, rows}).take();
  for (int64_t index = 0; index < matrix.element_count(); ++index)
    result.mutable_as<float>()[static_cast<size_t>(index % columns * rows + index / columns)] =
        matrix.as<float>()[static_cast<size_t>(index)];
  return result;
}

Tensor changed(Tensor tensor) { return tensor.mutable_as<float>()[5] += 2, tensor; }

// A layer, in float32, or in float16 between casts.
struct Layer {
  bool is_in_half = false;
  bool has_bias = true;
  Tensor weight = sines({8, 8}, 0.4, 0.7);
  Tensor bias = sines({8}, 0.3, 0.5);
  std::string form = "MatMul";  // with an Add; Gemm; Conv; BiasGelu, or Gelu after an Add

  std::shared_ptr<const Model> build() const {
    GraphBuilder builder(20);
    const bool is_convolution = form == "Conv";
    const std::string shape = is_convolution ? "[4,8,1]" : "[4,8]", type = (is_in_half ? "float16" : "float32") + shape;
    const auto held = [&](const Tensor& tensor) { return is_in_half ? as_float16(tensor) : tensor; };
    builder.input("x", "float32" + shape);
    builder.initializer("w", is_convolution ? held(weight).reshaped({8, 8, 1}) : held(weight));
    builder.initializer("b", held(bias));
    if (is_in_half) builder.node("Cast", {"x"}, {"x_half"}, {{"to", int64_t{10}}}).declare("x_half", type);
    std::vector<std::string> inputs = {is_in_half ? "x_half" : "x", "w"};
    const std::string made = is_in_half ? "y_half" : "y";
    const bool is_one_node = form == "Gemm" || is_convolution;
    if (is_one_node && has_bias) inputs.emplace_back("b");
    if (is_one_node) {
      builder.node(form, inputs, {made});
    } else {
      const std::string product = has_bias ? "product" : made;
      builder.node("MatMul", inputs, {product}).declare(product, type);
      if (form == "BiasGelu") builder.node("com.microsoft.BiasGelu", {product, "b"}, {made});
      const std::string sum = form == "Gelu" ? "sum" : made;
      if (form != "BiasGelu" && has_bias) builder.node("Add", {product, "b"}, {sum}).declare(sum, type);
      if (form == "Gelu") builder.node("Gelu", {sum}, {made});
    }
    builder.declare(made, type);
    if (is_in_half) builder.node("Cast", {made}, {"y"}, {{"to", int64_t{1}}});
    builder.declare("y", "float32" + shape);
    return builder.output("y"), finished_model(builder);
  }
};

class BlamePrecision : public testing::DumpTest {
 protected:
  std::vector<Cause> blame(const Layer& a, const Layer& b) {
    const Tensor x = sines(a.form == "Conv" ? Shape{4, 8, 1} : Shape{4, 8}, 1, 1.3);
    return blame_on(x, a.build(), b.build()).causes;
  }
  // The one cause.
  Cause blame_one(const Layer& a, const Layer& b) {
    const std::vector<Cause> causes = blame(a, b);
    EXPECT_EQ(causes.size(), 1U);
    return causes.empty() ? Cause{} : causes.front();
  }
};

TEST_F(BlamePrecision, ABiasThatIsLeftOutOfANode) {
  for (const bool is_in_half : {false, true}) {
    const Cause of_gemm = blame_one({.form = "Gemm"}, {.is_in_half = is_in_half, .has_bias = false, .form = "Gemm"});
    EXPECT_EQ(of_gemm.op, "Gemm");
    EXPECT_EQ(of_gemm.why, "it has no input 2 (C) in B, and reads 'b' there in A");
    const Cause of_conv = blame_one({.form = "Conv"}, {.is_in_half = is_in_half, .has_bias = false, .form = "Conv"});
    EXPECT_EQ(of_conv.op, "Conv");
    EXPECT_EQ(of_conv.why, "it has no input 2 (B) in B, and reads 'b' there in A");
    const Cause of_added = blame_one({.has_bias = false, .form = "Gemm"}, {.is_in_half = is_in_half, .form = "Gemm"});
    EXPECT_EQ(of_added.why, "it has an input 2 (C) in B, 'b', and none in A");
  }
}

TEST_F(BlamePrecision, ABiasOfZerosMayBeLeftOut) {
  const Tensor zeros = sines({8}, 0, 1), other = changed(sines({8, 8}, 0.4, 0.7));
  const Cause cause = blame_one({.bias = zeros, .form = "Gemm"}, {.has_bias = false, .weight = other, .form = "Gemm"});
  EXPECT_TRUE(cause.why.starts_with("it reads another constant 'w': element [0,5] is ")) << cause.why;
  EXPECT_TRUE(blame({.bias = zeros, .form = "Gemm"}, {.is_in_half = true, .has_bias = false, .form = "Gemm"}).empty());
}

TEST_F(BlamePrecision, ABiasWhoseAddIsLeftOut) {
  for (const bool is_in_half : {false, true}) {
    const Cause cause = blame_one({}, {.is_in_half = is_in_half, .has_bias = false});
    EXPECT_EQ(cause.op, "Add");
    EXPECT_TRUE(cause.why.starts_with("B has no Add node here")) << cause.why;
  }
}

TEST_F(BlamePrecision, ReportsATransposedFloat16Weight) {
  const Cause cause = blame_one({}, {.is_in_half = true, .weight = transposed(Layer().weight)});
  EXPECT_EQ(cause.why, "it reads another constant 'w': it is transposed in B");
}

TEST_F(BlamePrecision, ReportsOneElementOfFloat16Alone) {
  const Cause cause = blame_one({}, {.is_in_half = true, .weight = changed(Layer().weight)});
  EXPECT_TRUE(cause.why.starts_with("it reads another constant 'w': element [0,5] is ")) << cause.why;
}

TEST_F(BlamePrecision, ReportsAConstantOfAFusedNode) {
  for (const bool is_in_half : {false, true}) {
    const Cause cause =
        blame_one({.form = "Gelu"}, {.is_in_half = is_in_half, .bias = changed(Layer().bias), .form = "BiasGelu"});
    EXPECT_EQ(cause.op, "Add");
    EXPECT_TRUE(cause.why.starts_with("it reads another constant 'b': element [5] is ")) << cause.why;
  }
}

}  // namespace blame_precision_test
}  // namespace parallax
