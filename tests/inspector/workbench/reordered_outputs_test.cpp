// SPDX-License-Identifier: Apache-2.0
// Outputs that hold what a data set expects in another order are accepted where their scores are next to each other,
// and only there.
#include "inspector/workbench/reordered_outputs.h"

#include <span>

#include <gtest/gtest.h>

#include "inspector/diff/compare/compare.h"
#include "inspector/executors/make_executor.h"
#include "inspector/workbench/expected_outputs.h"

namespace parallax {
namespace reordered_outputs_test {

const ExecutorFactory kExecutors = [](const std::string& name) { return make_executor(name); };

Tensor floats(const Shape& shape, const std::vector<float>& numbers) {
  Tensor tensor = Tensor::allocate(DType::float32, shape).take();
  std::ranges::copy(numbers, tensor.mutable_as<float>().begin());
  return tensor;
}

struct Detections {
  std::vector<float> scores = {0.9F, 0.5F, 0.5000001F, 0.2F};
  std::vector<float> boxes = {0, 0, 1, 1, 2, 2, 3, 3};  // two numbers a row
  std::vector<int64_t> labels = {7, 8, 9, 6};

  std::vector<NamedValue> outputs() const {
    return {
        {"scores", floats({4}, scores)}, {"boxes", floats({4, 2}, boxes)}, {"labels", Tensor::vector<int64_t>(labels)}};
  }
};

std::optional<Reordered> reordered(const Detections& expected, const Detections& actual) {
  const std::vector<NamedValue> wanted = expected.outputs(), made = actual.outputs();
  const std::vector<ValueComparison> compared = compare_expected(wanted, made, "", {}, {});
  return find_reordered(pair_expected(wanted, made, compared));
}

TEST(ReorderedOutputs, RowsOfNearScoresMayBeExchanged) {
  const auto found = reordered({}, {.boxes = {0, 0, 2, 2, 1, 1, 3, 3}, .labels = {7, 9, 8, 6}});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->paths, (std::vector<std::string>{"boxes", "labels"}));
  EXPECT_TRUE(found->evidence.starts_with("2 of 4 rows are the expected ones in another order; their scores 'scores'"))
      << found->evidence;
}

TEST(ReorderedOutputs, OthersMayNot) {
  // Rows whose scores differ by more; a row that is not among the expected; boxes and labels in two orders.
  EXPECT_FALSE(reordered({}, {.boxes = {1, 1, 0, 0, 2, 2, 3, 3}, .labels = {8, 7, 9, 6}}).has_value());
  EXPECT_FALSE(reordered({}, {.boxes = {0, 0, 2, 2, 5, 5, 3, 3}, .labels = {7, 9, 8, 6}}).has_value());
  EXPECT_FALSE(reordered({}, {.boxes = {0, 0, 2, 2, 1, 1, 3, 3}, .labels = {7, 8, 8, 6}}).has_value());
  EXPECT_FALSE(reordered({}, {}).has_value());
}

// x [4] -> its scaled scores -> ArgMax.
constexpr const char* kChooser = R"(
ir_version: 8
opset_import { version: 17 }
graph {
  name: "g"
  node { name: "scale" input: "x" input: "factor" output: "scores" op_type: "Mul" }
  node { name: "choose" input: "scores" output: "y" op_type: "ArgMax" attribute { name: "axis" i: 0 type: INT }
         attribute { name: "keepdims" i: 0 type: INT } }
  initializer { name: "factor" data_type: 1 float_data: 0.3 }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } } } } }
  output { name: "y" type { tensor_type { elem_type: 7 shape { } } } }
}
)";

Verdict verdict_of_choice(std::vector<float> x, int64_t expected) {
  const std::string text = kChooser;
  RunRequest request;
  request.model_in_memory = import_model(std::as_bytes(std::span(text)), "", "chooser").take();
  request.executors = {"cpu"};
  RunSide side = prepare_side(request, "cpu", request.model_in_memory, {Value(floats({4}, x))}, kExecutors).take();
  EXPECT_TRUE(side.run(nullptr).ok());
  const std::vector<NamedValue> wanted = {{"y", Tensor::scalar(expected)}};
  Comparison comparison;
  add_expected({}, wanted, {&side}, {}, comparison);
  look_into_expected(request, wanted, {&side}, {}, kExecutors, comparison);
  return comparison.expected.at(0).verdict;
}

TEST(ReorderedOutputs, AChoiceBetweenNearScoresIsANearTie) {
  EXPECT_EQ(verdict_of_choice({1, 2, 2.0000002F, 0}, 1), Verdict::pass);
  EXPECT_EQ(verdict_of_choice({1, 2, 2.0000002F, 0}, 2), Verdict::pass);
  EXPECT_EQ(verdict_of_choice({1, 2, 2.1F, 0}, 1), Verdict::diverged);
  EXPECT_EQ(verdict_of_choice({1, 2, 2.0000002F, 0}, 0), Verdict::diverged);
}

}  // namespace reordered_outputs_test
}  // namespace parallax
