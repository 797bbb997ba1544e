// SPDX-License-Identifier: Apache-2.0
// Random operators: the stated generator, the same in every run, another in every iteration.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "inspector/tensor/elements.h"
#include "tests/reference/test_models.h"

namespace parallax::tests {
namespace {

std::string float_attribute(const std::string& name, double number) {
  return "attribute { name: '" + name + "' type: FLOAT f: " + std::to_string(number) + " } ";
}

std::string shape_attribute(int64_t count) {
  return "attribute { name: 'shape' type: INTS ints: " + std::to_string(count) + " } ";
}

std::vector<double> numbers_of(const Value& value) {
  std::vector<double> numbers(static_cast<size_t>(value.tensor().element_count()));
  load_doubles(value.tensor(), 0, numbers);
  return numbers;
}

std::vector<double> drawn(const std::string& op, const std::string& attributes) {
  NullObserver nobody;
  const auto model = parse(node(op, {}, {"y"}, attributes) + value("output", "y", 1));
  const auto outputs = run(model, {}, nobody, {}, ReferencePrecision::double_);
  EXPECT_TRUE(outputs.ok()) << outputs.error().message;
  return outputs.ok() ? numbers_of((*outputs)[0]) : std::vector<double>{};
}

// numpy.random.RandomState(42).rand(4) and .randn(5): the generator is the one both claim.
TEST(Random, SeededNumbersAreThoseOfMt19937) {
  const auto uniform = drawn("RandomUniform", shape_attribute(4) + float_attribute("seed", 42));
  const std::vector<double> expected{0.37454012, 0.95071431, 0.73199394, 0.59865848};
  ASSERT_EQ(uniform.size(), expected.size());
  for (size_t index = 0; index < expected.size(); ++index) EXPECT_NEAR(uniform[index], expected[index], 1e-8);
  const auto normal = drawn("RandomNormal", shape_attribute(5) + float_attribute("seed", 42));
  const std::vector<double> expected_normal{0.49671415, -0.1382643, 0.64768854, 1.52302986, -0.23415337};
  ASSERT_EQ(normal.size(), expected_normal.size());
  for (size_t index = 0; index < normal.size(); ++index) EXPECT_NEAR(normal[index], expected_normal[index], 1e-8);
}

TEST(Random, RangeMeanAndScaleAreThoseAsked) {
  for (double number :
       drawn("RandomUniform", shape_attribute(1000) + float_attribute("low", -3) + float_attribute("high", -2))) {
    EXPECT_GE(number, -3);
    EXPECT_LT(number, -2);
  }
  double sum = 0;
  double squares = 0;
  const auto normal =
      drawn("RandomNormal", shape_attribute(20000) + float_attribute("mean", 5) + float_attribute("scale", 2));
  for (double number : normal) {
    sum += number;
    squares += (number - 5) * (number - 5);
  }
  EXPECT_NEAR(sum / 20000, 5, 0.1);
  EXPECT_NEAR(squares / 20000, 4, 0.2);
}

TEST(Random, WithoutSeedEveryRunDrawsTheSameAndEveryNodeItsOwn) {
  NullObserver nobody;
  const auto model =
      parse(node("RandomUniform", {}, {"a"}, shape_attribute(3)) +
            node("RandomUniform", {}, {"b"}, shape_attribute(3)) + value("output", "a", 1) + value("output", "b", 1));
  const auto first = run(model, {}, nobody);
  const auto second = run(model, {}, nobody);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(numbers_of((*first)[0]), numbers_of((*second)[0]));
  EXPECT_NE(numbers_of((*first)[0]), numbers_of((*first)[1]));
}

TEST(Random, EveryIterationDrawsAnew) {
  NullObserver nobody;
  const std::string body = "attribute { name: 'body' type: GRAPH g { name: 'b' " +
                           node("RandomUniform", {}, {"r"}, shape_attribute(2) + float_attribute("seed", 1)) +
                           node("Identity", {"c"}, {"c_out"}) + value("input", "i", 7) + value("input", "c", 9) +
                           value("output", "c_out", 9) + value("output", "r", 1, {2}) + "} } ";
  const auto model = parse(node("Loop", {"n", ""}, {"y"}, body) + value("input", "n", 7) + value("output", "y", 1));
  const auto outputs = run(model, {whole(2)}, nobody);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  const auto numbers = numbers_of((*outputs)[0]);
  ASSERT_EQ(numbers.size(), 4U);
  EXPECT_NE(numbers[0], numbers[2]);
}

TEST(Random, BernoulliFollowsItsProbabilities) {
  NullObserver nobody;
  const auto model = parse(node("Bernoulli", {"p"}, {"y"}) + value("input", "p", 1, {-1}) + value("output", "y", 1));
  std::vector<float> probabilities(3000, 0.25F);
  probabilities[0] = 0;
  probabilities[1] = 1;
  const auto outputs = run(model, {floats(probabilities)}, nobody);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  const auto numbers = numbers_of((*outputs)[0]);
  EXPECT_EQ(numbers[0], 0);
  EXPECT_EQ(numbers[1], 1);
  double ones = 0;
  for (double number : numbers) ones += number;
  EXPECT_NEAR(ones / 3000, 0.25, 0.03);
  EXPECT_FALSE(run(model, {floats({1.5F})}, nobody).ok());
}

TEST(Random, MultinomialNeverDrawsWhatCannotBe) {
  NullObserver nobody;
  const auto model = parse(node("Multinomial", {"x"}, {"y"}, "attribute { name: 'sample_size' type: INT i: 2000 } ") +
                           value("input", "x", 1, {-1, -1}) + value("output", "y", 6));
  const float impossible = -std::numeric_limits<float>::infinity();
  const Tensor logarithms = Tensor::from<float>(Shape{1, 3}, std::vector<float>{std::log(3.0F), impossible, 0.0F});
  const auto outputs = run(model, {logarithms}, nobody);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  double firsts = 0;
  for (double number : numbers_of((*outputs)[0])) {
    EXPECT_NE(number, 1);
    firsts += number == 0 ? 1 : 0;
  }
  EXPECT_NEAR(firsts / 2000, 0.75, 0.04);
}

}  // namespace
}  // namespace parallax::tests
