// SPDX-License-Identifier: Apache-2.0
// The bounds of `auto`: rounding passes, a changed weight, epsilon or function does not, over a small network with both
// sides computed here.
#include <cmath>
#include <random>
#include <span>

#include <gtest/gtest.h>

#include "inspector/diff/tolerance/judge.h"
#include "inspector/diff/tolerance/value_compare.h"
#include "inspector/model/io/import.h"
#include "inspector/model/link.h"
#include "inspector/tensor/elements.h"
#include "tests/inspector/model/graph_builder.h"

namespace parallax {
namespace {

constexpr int64_t kRows = 48, kWidth = 64;

// Four times: normalize rows, multiply, add a bias, gelu, add what went in.
struct Faults {
  bool changed_weight = false;
  bool other_epsilon = false;
  bool tanh_gelu = false;
};

using Matrix = std::vector<double>;

// One execution: sums in double and one rounding (the reference), or float sums in another order (a fast executor).
class Execution {
 public:
  Execution(DType dtype, bool in_float, Faults faults) : dtype_(dtype), in_float_(in_float), faults_(faults) {}

  std::vector<std::pair<std::string, Matrix>> run() {
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    Matrix x = drawn(random, normal, kRows * kWidth, 1);
    std::vector<std::pair<std::string, Matrix>> values = {{"x0", x}};
    for (int layer = 0; layer < 4; ++layer) {
      Matrix w = drawn(random, normal, kWidth * kWidth, 0.1);
      const std::string suffix = std::to_string(layer);
      if (layer == 1 && faults_.changed_weight) w[100] = round(w[100] + (dtype_ == DType::bfloat16 ? 0.4 : 0.05));
      values.emplace_back("w" + suffix, w);
      const Matrix n = normalized(x, layer == 1 && faults_.other_epsilon ? 1e-3 : 1e-5);
      values.emplace_back("n" + suffix, n);
      const Matrix h = product(n, w);
      values.emplace_back("h" + suffix, h);
      Matrix g = h;
      for (double& value : g) value = round(gelu(value, layer == 1 && faults_.tanh_gelu));
      values.emplace_back("g" + suffix, g);
      for (size_t index = 0; index < x.size(); ++index) x[index] = round(x[index] + g[index]);
      values.emplace_back("x" + std::to_string(layer + 1), x);
    }
    return values;
  }

 private:
  double round(double value) const { return round_to_dtype(dtype_, value); }
  // Intermediate results of the fast side are float at best.
  double sum(double value) const {
    return in_float_ && dtype_ != DType::float64 ? static_cast<double>(static_cast<float>(value)) : value;
  }

  Matrix drawn(std::mt19937& random, std::normal_distribution<double>& normal, int64_t count, double scale) const {
    Matrix matrix(static_cast<size_t>(count));
    for (double& value : matrix) value = round(scale * normal(random));
    return matrix;
  }

  Matrix normalized(const Matrix& x, double epsilon) const {
    Matrix out(x.size());
    for (int64_t row = 0; row < kRows; ++row) {
      double mean = 0, square = 0;
      for (int64_t k = 0; k < kWidth; ++k) {
        const double value = x[static_cast<size_t>(row * kWidth + k)];
        mean = sum(mean + value);
        square = sum(square + sum(value * value));
      }
      mean = sum(mean / kWidth);
      double variance = sum(sum(square / kWidth) - sum(mean * mean));  // one pass on the fast side
      if (!in_float_) {
        variance = 0;
        for (int64_t k = 0; k < kWidth; ++k)
          variance += std::pow(x[static_cast<size_t>(row * kWidth + k)] - mean, 2) / kWidth;
      }
      for (int64_t k = 0; k < kWidth; ++k) {
        const auto index = static_cast<size_t>(row * kWidth + k);
        out[index] = round((x[index] - mean) / std::sqrt(variance + epsilon));
      }
    }
    return out;
  }

  Matrix product(const Matrix& a, const Matrix& b) const {
    Matrix out(static_cast<size_t>(kRows * kWidth));
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t column = 0; column < kWidth; ++column) {
        double total = 0;
        for (int64_t step = 0; step < kWidth; ++step) {
          const int64_t k = in_float_ ? kWidth - 1 - step : step;
          total = sum(total + a[static_cast<size_t>(row * kWidth + k)] * b[static_cast<size_t>(k * kWidth + column)]);
        }
        out[static_cast<size_t>(row * kWidth + column)] = round(total);
      }
    }
    return out;
  }

  static double gelu(double x, bool by_tanh) {
    if (by_tanh) return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  }

  DType dtype_;
  bool in_float_;
  Faults faults_;
};

std::string model_text(int onnx_dtype) {
  std::string text = "ir_version: 10 opset_import { version: 20 } graph { name: \"net\" ";
  const auto value = [&](const std::string& field, const std::string& name, int64_t rows) {
    return field + " { name: \"" + name + "\" type { tensor_type { elem_type: " + std::to_string(onnx_dtype) +
           " shape { dim { dim_value: " + std::to_string(rows) + " } dim { dim_value: 64 } } } } } ";
  };
  text += value("input", "x0", kRows);
  for (int layer = 0; layer < 4; ++layer) {
    const std::string k = std::to_string(layer);
    text += value("input", "w" + k, kWidth);
    text += "node { op_type: \"RMSNormalization\" input: \"x" + k + "\" input: \"s\" output: \"n" + k + "\" } ";
    text += "node { op_type: \"MatMul\" input: \"n" + k + "\" input: \"w" + k + "\" output: \"h" + k + "\" } ";
    text += "node { op_type: \"Gelu\" input: \"h" + k + "\" output: \"g" + k + "\" } ";
    text += "node { op_type: \"Add\" input: \"x" + k + "\" input: \"g" + k + "\" output: \"x" +
            std::to_string(layer + 1) + "\" } ";
  }
  return text + value("input", "s", 1) + value("output", "x4", kRows) + "}";
}

std::shared_ptr<const Model> model_of(DType dtype) {
  const std::string text = model_text(static_cast<int>(dtype));
  ImportOptions options;
  options.checks = ModelChecks::none;  // the structure is what counts here
  return import_model(std::as_bytes(std::span<const char>(text.data(), text.size())), "", "net.textproto", options)
      .take();
}

Tensor stored_as(DType dtype, const Matrix& matrix) {
  Tensor tensor = Tensor::allocate(dtype, Shape{static_cast<int64_t>(matrix.size()) / kWidth, kWidth}).take();
  store_doubles(tensor, 0, matrix);
  return tensor;
}

// Severity by value name of a healthy reference against a fast executor with faults.
std::map<std::string, double> severities(DType dtype, Faults faults) {
  const diff::ValueInfoIndex value_infos(model_of(dtype));
  diff::Judge judge({});
  const auto a = Execution(dtype, false, {}).run(), b = Execution(dtype, true, faults).run();
  std::map<std::string, double> severities;
  for (size_t index = 0; index < a.size(); ++index) {
    const ValueInfo* value_info = value_infos.find(a[index].first);
    EXPECT_NE(value_info, nullptr) << a[index].first;
    const Value left = stored_as(dtype, a[index].second), right = stored_as(dtype, b[index].second);
    ValueComparison comparison;
    diff::judge_values(
        left, right, {judge.limit_of(judge.add(a[index].first, value_info, left, dtype), a[index].first), false, false},
        comparison);
    judge.found_difference(a[index].first, comparison.metrics->rmse);
    EXPECT_TRUE(comparison.limit.from == LimitSource::table);
    severities[a[index].first] = comparison.severity;
  }
  return severities;
}

TEST(NoiseModel, HealthyExecutionsPassInEveryType) {
  for (const DType dtype : {DType::float64, DType::float32, DType::float16, DType::bfloat16}) {
    for (const auto& [name, severity] : severities(dtype, {})) {
      EXPECT_LE(severity, 0.7) << name_of(dtype) << " " << name << ": too near the limit";
    }
  }
}

TEST(NoiseModel, AChainMayBeLongerThanAStackOfCalls) {
  constexpr int kNodes = 50'000;
  std::string text = "ir_version: 8 opset_import { version: 17 } graph { name: 'chain'\n";
  for (int node = 0; node < kNodes; ++node)
    text += "node { op_type: 'Identity' input: 'v" + std::to_string(node) + "' output: 'v" + std::to_string(node + 1) +
            "' }\n";
  const std::string type = "' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }\n";
  text += "input { name: 'v0" + type + "output { name: 'v" + std::to_string(kNodes) + type + "}";
  const diff::ValueInfoIndex value_infos(
      import_model(std::as_bytes(std::span<const char>(text.data(), text.size())), "", "chain.textproto").take());
  diff::Judge judge({});
  const Value value = Tensor::from<float>(Shape{2}, std::vector<float>{1, 2});
  int64_t last = 0;
  for (int node = 0; node <= kNodes; ++node) {
    const std::string name = "v" + std::to_string(node);
    last = judge.add(name, value_infos.find(name), value, DType::float32);
  }
  EXPECT_GE(judge.limit_of(last, "v" + std::to_string(kNodes)).rtol, 0);
}

TEST(NoiseModel, AChangedWeightDivergesWhereItIsRead) {
  for (const DType dtype : {DType::float64, DType::float32, DType::float16, DType::bfloat16}) {
    const auto severity = severities(dtype, {true, false, false});
    EXPECT_LE(severity.at("n1"), 1) << name_of(dtype);
    EXPECT_GT(severity.at("w1"), 1) << name_of(dtype);
    EXPECT_GT(severity.at("h1"), 1) << name_of(dtype);
  }
}

TEST(NoiseModel, AnotherEpsilonDivergesAtTheNorm) {
  const auto severity = severities(DType::float32, {false, true, false});
  EXPECT_LE(severity.at("x1"), 1);
  EXPECT_GT(severity.at("n1"), 1);
}

TEST(NoiseModel, AnApproximateGeluDiverges) {
  const auto severity = severities(DType::float32, {false, false, true});
  EXPECT_LE(severity.at("h1"), 1);
  EXPECT_GT(severity.at("g1"), 1);
}

TEST(NoiseModel, DataIsExact) {
  const diff::ValueInfoIndex value_infos(model_of(DType::float32));
  diff::Judge judge({});
  const Value input = stored_as(DType::float32, Matrix(kRows * kWidth, 0.5));
  const Limit limit = judge.limit_of(judge.add("x0", value_infos.find("x0"), input, DType::float32), "x0");
  EXPECT_EQ(limit.atol, 0);
  EXPECT_EQ(limit.rtol, 0);
}

TEST(NoiseModel, MasksAreNoMagnitude) {
  Matrix scores(kRows * kWidth, 1.0), masked = scores;
  for (size_t index = 0; index < masked.size(); index += 2) masked[index] = -3.4e38;
  EXPECT_NEAR(diff::magnitude_of(stored_as(DType::float32, masked)).rms,
              diff::magnitude_of(stored_as(DType::float32, scores)).rms, 1e-6);
}

// Two branches: p = x * x, q = p + p; and s = x + m.
std::shared_ptr<const Model> branches() {
  testing::GraphBuilder builder(17);
  builder.input("x", "float32[1,64]").input("m", "float32[1,64]");
  builder.node("Mul", {"x", "x"}, {"p"}).node("Add", {"p", "p"}, {"q"}).node("Add", {"x", "m"}, {"s"});
  builder.output("q").output("s");
  auto model = std::make_shared<Model>(builder.model());
  link_graph(model->graph);
  return model;
}

TEST(NoiseModel, ABranchThatIsAheadChangesNoLimit) {
  const diff::ValueInfoIndex value_infos(branches());
  const Value ones = stored_as(DType::float32, Matrix(kWidth, 1.0));
  const auto limit_of_q = [&](bool is_ahead) {
    diff::Judge judge({});
    std::map<std::string, int64_t> numbers;
    for (const char* name : {"x", "m", "p", "q", "s"})
      numbers[name] = judge.add(name, value_infos.find(name), ones, DType::float32);
    const auto found_equal = [&](const char* name) {
      judge.limit_of(numbers[name], name);
      judge.found_difference(name, 0);
    };
    found_equal("x");
    found_equal("m");
    if (is_ahead) found_equal("s");
    found_equal("p");
    return judge.limit_of(numbers["q"], "q").atol;
  };
  EXPECT_GT(limit_of_q(false), 0);
  EXPECT_EQ(limit_of_q(true), limit_of_q(false));
}

TEST(NoiseModel, AMaskThatIsAddedWidensNoLimit) {
  const diff::ValueInfoIndex value_infos(branches());
  Matrix mask(kWidth, 0.0), masked(kWidth, 1.0);
  for (size_t index = 0; index < mask.size(); index += 2) mask[index] = masked[index] = -1e9;
  diff::Judge judge({});
  judge.add("x", value_infos.find("x"), stored_as(DType::float32, Matrix(kWidth, 1.0)), DType::float32);
  judge.add("m", value_infos.find("m"), stored_as(DType::float32, mask), DType::float32);
  const int64_t sum = judge.add("s", value_infos.find("s"), stored_as(DType::float32, masked), DType::float32);
  EXPECT_LT(judge.limit_of(sum, "s").atol, 1e-4);
}

// y = x * w + s, where a kernel that fuses the two shows no product.
TEST(NoiseModel, WhatWasFusedAwayHasRoundedToo) {
  const std::string rows =
      " type { tensor_type { elem_type: 1 shape { dim { dim_value: 48 } dim { dim_value: 64 } } } } }";
  const std::string text = "ir_version: 10 opset_import { version: 20 } graph { name: \"g\" input { name: \"x\"" +
                           rows +
                           "input { name: \"w\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 64 } dim { "
                           "dim_value: 64 } } } } } "
                           "input { name: \"s\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 64 } } } } "
                           "} output { name: \"y\"" +
                           rows +
                           "node { op_type: \"MatMul\" input: \"x\" input: \"w\" output: \"m\" } "
                           "node { op_type: \"Add\" input: \"m\" input: \"s\" output: \"y\" } }";
  const diff::ValueInfoIndex value_infos(
      import_model(std::as_bytes(std::span<const char>(text.data(), text.size())), "", "net.textproto").take());
  const auto limit_of_y = [&](const std::vector<std::pair<const char*, double>>& shown, bool is_m_equal = false) {
    diff::Judge judge({});
    for (const auto& [name, magnitude] : shown) {
      const int64_t number = judge.add(name, value_infos.find(name),
                                       stored_as(DType::float32, Matrix(kRows * kWidth, magnitude)), DType::float32);
      if (std::string_view(name) == "y") return judge.limit_of(number, "y").atol;
      (void)judge.limit_of(number, name);
      if (std::string_view(name) == "m" && is_m_equal) judge.found_difference("m", 0);
    }
    return 0.0;
  };
  const double parts = limit_of_y({{"x", 1.0}, {"w", 1.0}, {"s", 0.01}, {"m", 8.0}, {"y", 8.0}});
  const double fused = limit_of_y({{"x", 1.0}, {"w", 1.0}, {"s", 0.01}, {"y", 8.0}});
  const double without_sources = limit_of_y({{"s", 0.01}, {"y", 8.0}});
  EXPECT_NEAR(fused, parts, 0.1 * parts);
  const double equal = limit_of_y({{"x", 1.0}, {"w", 1.0}, {"s", 0.01}, {"m", 8.0}, {"y", 8.0}}, true);
  EXPECT_GT(parts, 1.2 * equal);            // so that the product's rounding is what counts above
  EXPECT_GT(without_sources, 1.2 * parts);  // it has rounded, whoever saw it
}

// Scores of which some are hidden by -1e4, as an executor fuses them: the mask is exact, and no size of what rounds.
TEST(NoiseModel, AMaskThatWasFusedAwayRoundsNothing) {
  const auto typed = [](const std::string& name, int elem_type) {
    return "{ name: \"" + name + "\" type { tensor_type { elem_type: " + std::to_string(elem_type) +
           " shape { dim { dim_value: 48 } dim { dim_value: 64 } } } } } ";
  };
  const std::string text = "ir_version: 10 opset_import { version: 20 } graph { name: \"g\" input " + typed("x", 1) +
                           "input " + typed("low", 1) + "input " + typed("hidden", 9) + "output " + typed("y", 1) +
                           "node { op_type: \"Tanh\" input: \"x\" output: \"scores\" } "
                           "node { op_type: \"Where\" input: \"hidden\" input: \"low\" input: \"scores\" "
                           "output: \"masked\" } "
                           "node { op_type: \"Softmax\" input: \"masked\" output: \"y\" } }";
  const diff::ValueInfoIndex value_infos(
      import_model(std::as_bytes(std::span<const char>(text.data(), text.size())), "", "net.textproto").take());
  const auto limit_of_y = [&](const std::vector<std::pair<const char*, double>>& shown) {
    diff::Judge judge({});
    int64_t number = -1;
    for (const auto& [name, magnitude] : shown)
      number = judge.add(name, value_infos.find(name), stored_as(DType::float32, Matrix(kRows * kWidth, magnitude)),
                         DType::float32);
    return judge.limit_of(number, "y").rtol;
  };
  const double parts = limit_of_y({{"x", 1}, {"low", -1e4}, {"scores", 0.7}, {"masked", 0.7}, {"y", 0.02}});
  EXPECT_LT(limit_of_y({{"x", 1}, {"low", -1e4}, {"y", 0.02}}), 4 * parts);
}

TEST(NoiseModel, StaticPathsFindValueInfos) {
  EXPECT_EQ(diff::static_path("graph(decoder)//step[7]//loop.body[3]//if.then//x"), "loop.body[*]//if.then//x");
  EXPECT_EQ(diff::prefix_of("loop.body[3]//x"), "loop.body[3]//");
  EXPECT_EQ(diff::prefix_of("x"), "");
}

}  // namespace
}  // namespace parallax
