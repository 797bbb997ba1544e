// SPDX-License-Identifier: Apache-2.0
// The optimizers of ai.onnx.preview.training: Adagrad, Adam, Momentum. Tensors to optimize come in groups: all X, all
// gradients, then each kind of state; the outputs are the new X and the new states in the same order.
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

// Calls update(numbers) for each element of each tensor, with the element's value in every kind of input; it writes the
// new X and states into numbers[0] and numbers[2...].
template <class Update>
Status update_elements(OpContext& op, size_t kinds, const Update& update) {
  constexpr size_t kLeading = 2;  // the learning rate R and the update count T
  if ((op.input_count() - kLeading) % kinds != 0)
    return wrong_value("the number of inputs", op.input_count(), "be R, T and {} for each tensor", kinds);
  const size_t count = (op.input_count() - kLeading) / kinds;
  for (size_t index = 0; index < count; ++index) {
    const Shape& shape = op.input(kLeading + index).shape();
    std::vector<std::vector<double>> columns;
    for (size_t kind = 0; kind < kinds; ++kind) {
      const Tensor& tensor = op.input(kLeading + kind * count + index);
      if (!(tensor.shape() == shape))
        return wrong_input(op, kLeading + kind * count + index, "have the shape of the tensor it goes with, {}",
                           shape.to_string());
      columns.emplace_back(static_cast<size_t>(shape.element_count()));
      load<double>(tensor, 0, columns.back());
    }
    std::vector<double> numbers(kinds);
    for (size_t element = 0; element < columns[0].size(); ++element) {
      for (size_t kind = 0; kind < kinds; ++kind) numbers[kind] = columns[kind][element];
      update(numbers);
      for (size_t kind = 0; kind < kinds; ++kind) columns[kind][element] = numbers[kind];
    }
    for (size_t kind = 0; kind < kinds; ++kind) {
      if (kind == 1) continue;  // the gradient is dropped
      const size_t output = (kind == 0 ? 0 : kind - 1) * count + index;
      PX_TRY(op.set_output(output, op.input(kLeading + kind * count + index).dtype(), shape,
                           std::span<const double>(columns[kind])));
    }
  }
  return {};
}

Status op_adagrad(OpContext& op) {
  const double rate = PX_TRY(op.double_of_input(0));
  const auto steps = static_cast<double>(PX_TRY(op.int64_of_input(1)));
  const double decay = op.float_attribute("decay_factor");
  const double epsilon = op.float_attribute("epsilon");
  const double norm = op.float_attribute("norm_coefficient");
  const double current_rate = rate / (1 + steps * decay);
  return update_elements(op, 3, [=](std::vector<double>& v) {
    const double gradient = norm * v[0] + v[1];
    v[2] += gradient * gradient;
    v[0] -= current_rate * gradient / (std::sqrt(v[2]) + epsilon);
  });
}

Status op_adam(OpContext& op) {
  const double rate = PX_TRY(op.double_of_input(0));
  const auto steps = static_cast<double>(PX_TRY(op.int64_of_input(1)));
  const double alpha = op.float_attribute("alpha");
  const double beta = op.float_attribute("beta");
  const double epsilon = op.float_attribute("epsilon");
  const double norm = op.float_attribute("norm_coefficient");
  const double norm_post = op.float_attribute("norm_coefficient_post");
  const double adjusted = steps > 0 ? rate * std::sqrt(1 - std::pow(beta, steps)) / (1 - std::pow(alpha, steps)) : rate;
  return update_elements(op, 4, [=](std::vector<double>& v) {
    const double gradient = norm * v[0] + v[1];
    v[2] = alpha * v[2] + (1 - alpha) * gradient;
    v[3] = beta * v[3] + (1 - beta) * gradient * gradient;
    v[0] = (1 - norm_post) * (v[0] - adjusted * v[2] / (std::sqrt(v[3]) + epsilon));
  });
}

// In the first update (T = 0) beta stands for 1, so that the momentum starts as the gradient.
Status op_momentum(OpContext& op) {
  const double rate = PX_TRY(op.double_of_input(0));
  const int64_t steps = PX_TRY(op.int64_of_input(1));
  const double alpha = op.float_attribute("alpha");
  const double beta = steps > 0 ? op.float_attribute("beta") : 1.0;
  const double norm = op.float_attribute("norm_coefficient");
  const std::string mode = op.string_attribute("mode");
  if (mode != "standard" && mode != "nesterov") return wrong_attribute("mode", mode, "be standard or nesterov");
  return update_elements(op, 3, [=, nesterov = mode == "nesterov"](std::vector<double>& v) {
    const double gradient = norm * v[0] + v[1];
    v[2] = alpha * v[2] + beta * gradient;
    v[0] -= rate * (nesterov ? gradient + alpha * v[2] : v[2]);
  });
}

constexpr OpRow kTrainingRows[] = {
    {"Adagrad", kTraining, 1, 1, op_adagrad},
    {"Adam", kTraining, 1, 1, op_adam},
    {"Momentum", kTraining, 1, 1, op_momentum},
};

}  // namespace

OpRows training_rows() { return kTrainingRows; }

}  // namespace parallax::reference
