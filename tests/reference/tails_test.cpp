// SPDX-License-Identifier: Apache-2.0
// Gates far below zero: what is left there is tiny, and keeps its digits down to subnormal numbers.
#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "inspector/tensor/elements.h"
#include "tests/reference/test_models.h"

namespace parallax::tests {
namespace {

double sigmoid(double x) { return std::exp(x) / (1 + std::exp(x)); }

struct Gate {
  const char* op;
  const char* attribute;
  double (*exact)(double);
  std::vector<float> at;
};

const Gate kGates[] = {
    {"Sigmoid", "", [](double x) { return sigmoid(x); }, {-20, -87, -95, -103}},
    {"Swish", "", [](double x) { return x * sigmoid(x); }, {-20, -87, -95, -107}},
    {"Mish", "", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, {-20, -87, -95, -107}},
    {"Gelu", "", [](double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }, {-3, -6, -9, -12, -13.5}},
    {"Gelu",
     "attribute { name: 'approximate' type: STRING s: 'tanh' } ",
     [](double x) { return x * sigmoid(std::sqrt(8 / std::numbers::pi) * (x + 0.044715 * x * x * x)); },
     {-3, -6, -9, -10}},
};

TEST(Tails, KeepTheirDigits) {
  for (const Gate& gate : kGates) {
    const auto count = static_cast<int64_t>(gate.at.size());
    const auto model = parse(node(gate.op, {"x"}, {"y"}, gate.attribute) + value("input", "x", 1, {count}) +
                                 value("output", "y", 1, {count}),
                             24);
    NullObserver nobody;
    const auto outputs = run(model, {Tensor::vector<float>(gate.at)}, nobody);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    for (size_t index = 0; index < gate.at.size(); ++index) {
      const auto expected = static_cast<float>(gate.exact(static_cast<double>(gate.at[index])));
      const float found = (*outputs)[0].tensor().as<float>()[index];
      const float unit = std::nextafter(std::fabs(expected), INFINITY) - std::fabs(expected);
      EXPECT_NEAR(found, expected, unit) << gate.op << gate.attribute << " of " << gate.at[index];
      EXPECT_NE(found, 0) << gate.op << gate.attribute << " of " << gate.at[index];
    }
  }
}

}  // namespace
}  // namespace parallax::tests
