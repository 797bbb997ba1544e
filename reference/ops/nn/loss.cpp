// SPDX-License-Identifier: Apache-2.0
// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#include <cmath>
#include <limits>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

// The weighted loss of each position [N, d1, ...] from log probabilities [N, C, d1, ...], then reduced. Positions whose
// target is ignore_index count nothing, neither as loss nor as weight.
Status reduce_losses(OpContext& op, const std::vector<double>& log_probabilities, const Shape& shape,
                     size_t weight_input) {
  const Tensor& target = op.input(1);
  const int64_t classes = shape[1];
  const int64_t inner = count_of(shape, 2, shape.rank());
  const auto ignored = op.find_int("ignore_index");
  const std::string reduction = op.string_attribute("reduction");
  if (target.element_count() != shape[0] * inner)
    return wrong_input(op, 1, "have {} elements, the shape of the scores {} without axis 1", shape[0] * inner,
                       shape.to_string());
  std::vector<double> weights(static_cast<size_t>(classes), 1.0);
  if (op.has_input(weight_input)) {
    if (op.input(weight_input).element_count() != classes)
      return wrong_input(op, weight_input, "have {} elements, one for each class", classes);
    load<double>(op.input(weight_input), 0, weights);
  }
  const std::vector<int64_t> targets = to_int64s(target);
  std::vector<double> losses(targets.size(), 0.0);
  double weight_sum = 0;
  for (size_t location = 0; location < targets.size(); ++location) {
    if (ignored.has_value() && targets[location] == *ignored) continue;
    if (targets[location] < 0 || targets[location] >= classes)
      return wrong_value(fmt::format("element {} of target", location), targets[location], "be a class in [0, {})",
                         classes);
    const auto at = static_cast<int64_t>(location);
    const int64_t source = (at / inner * classes + targets[location]) * inner + at % inner;
    const double weight = weights[static_cast<size_t>(targets[location])];
    losses[location] = -log_probabilities[static_cast<size_t>(source)] * weight;
    weight_sum += weight;
  }
  const DType dtype = op.input(0).dtype();
  if (reduction == "none") return op.set_output(0, dtype, target.shape(), std::span<const double>(losses));
  if (reduction != "sum" && reduction != "mean") return wrong_attribute("reduction", reduction, "be none, sum or mean");
  double sum = 0;
  for (double loss : losses) sum += loss;
  if (reduction == "mean") sum /= weight_sum;
  return op.set_output(0, dtype, Shape{}, std::span<const double>(&sum, 1));
}

Status expect_classes(const Shape& shape) {
  if (shape.rank() >= 2) return {};
  return wrong_shape("the input of scores", shape, "have rank 2 or more: [N,C,...]");
}

Status op_negative_log_likelihood_loss(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  PX_TRY(expect_classes(shape));
  const Numbers<double> numbers(op.input(0));
  return reduce_losses(op, {numbers.span().begin(), numbers.span().end()}, shape, 2);
}

// The negative log likelihood loss on the logarithm of the softmax over the classes, which is also the second output.
Status op_softmax_cross_entropy_loss(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  PX_TRY(expect_classes(shape));
  const Numbers<double> scores(op.input(0));
  const int64_t inner = count_of(shape, 2, shape.rank());
  std::vector<double> logs(static_cast<size_t>(scores.size()));
  for (int64_t row = 0; row < shape[0] * inner; ++row) {
    const int64_t base = row / inner * shape[1] * inner + row % inner;
    double highest = -std::numeric_limits<double>::infinity();
    for (int64_t k = 0; k < shape[1]; ++k) highest = std::max(highest, scores[base + k * inner]);
    double sum = 0;
    for (int64_t k = 0; k < shape[1]; ++k) sum += std::exp(scores[base + k * inner] - highest);
    for (int64_t k = 0; k < shape[1]; ++k) {
      logs[static_cast<size_t>(base + k * inner)] = scores[base + k * inner] - highest - std::log(sum);
    }
  }
  PX_TRY(op.set_output(1, op.input(0).dtype(), shape, std::span<const double>(logs)));
  return reduce_losses(op, logs, shape, 2);
}

constexpr OpRow kLossRows[] = {
    {"NegativeLogLikelihoodLoss", kOnnx, 12, 22, op_negative_log_likelihood_loss},
    {"SoftmaxCrossEntropyLoss", kOnnx, 12, 13, op_softmax_cross_entropy_loss},
};

}  // namespace

OpRows loss_rows() { return kLossRows; }

}  // namespace parallax::reference
