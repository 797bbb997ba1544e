// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: one logarithm picked for each place, weighted, reduced.
#include <cmath>

#include <fmt/format.h>

#include "runtime/device/map.h"
#include "runtime/device/rows.h"
#include "runtime/ops/families.h"

namespace parallax::runtime {
namespace {

// Scores are [batch, classes, places...], targets [batch, places...].
struct LossShape {
  int64_t batch = 0;
  int64_t classes = 0;
  int64_t places = 0;
};

Result<LossShape> loss_shape(const Shape& scores, const Shape& targets) {
  Ints expected(scores);
  if (expected.size() < 2) return execution_error("scores must have rank 2 or more");
  expected.erase(1);
  if (!(Ints(targets) == expected)) {
    return execution_error(fmt::format("targets {} do not fit scores {}", targets.to_string(), scores.to_string()));
  }
  return LossShape{scores[0], scores[1], product(expected, 1, expected.size())};
}

// The loss of each place and the weight it counts with: 0 for the ignored class.
template <class C>
struct PlaceLosses {
  std::vector<C> losses;
  std::vector<C> weights;
};

template <class C>
Result<PlaceLosses<C>> place_losses(const OpCall& op, const LossShape& shape, const C* log_probabilities) {
  const Tensor& targets = op.input(1);
  const auto ignored = op.find_integer("ignore_index");
  std::vector<C> class_weights(static_cast<size_t>(shape.classes), C(1));
  if (op.has_input(2)) {
    if (op.input(2).element_count() != shape.classes) return execution_error("one weight for each class is needed");
    load_block<C>(op.input(2).dtype(), op.input(2).view().data, 0, 1, shape.classes, class_weights.data());
  }
  const int64_t count = shape.batch * shape.places;
  PlaceLosses<C> result{std::vector<C>(static_cast<size_t>(count)), std::vector<C>(static_cast<size_t>(count))};
  for (int64_t i = 0; i < count; ++i) {
    const int64_t target = load_element<int64_t>(targets.dtype(), targets.view().data, i);
    if (ignored.has_value() && target == *ignored) continue;
    if (target < 0 || target >= shape.classes) {
      return execution_error(fmt::format("target {} is outside [0, {})", target, shape.classes));
    }
    const C weight = class_weights.data()[target];
    const C value = log_probabilities[(i / shape.places * shape.classes + target) * shape.places + i % shape.places];
    result.losses.data()[i] = -value * weight;
    result.weights.data()[i] = weight;
  }
  return result;
}

template <class C, class Device>
Status reduce_losses(OpContext<Device>& op, const PlaceLosses<C>& places) {
  const std::string reduction = op.text("reduction");
  const DType dtype = op.input(0).dtype();
  const auto count = static_cast<int64_t>(places.losses.size());
  if (reduction == "none") {
    const MutableView y = PX_TRY(op.make_output(0, dtype, op.input(1).shape()));
    store_block<C>(dtype, y.data, 0, count, places.losses.data());
    return {};
  }
  if (reduction != "sum" && reduction != "mean") return execution_error("attribute 'reduction' is '" + reduction + "'");
  C sum = 0;
  C weight = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += places.losses.data()[i];
    weight += places.weights.data()[i];
  }
  if (reduction == "mean") sum /= weight;
  const MutableView y = PX_TRY(op.make_output(0, dtype, Shape{}));
  store_block<C>(dtype, y.data, 0, 1, &sum);
  return {};
}

template <class C, class Device>
Status loss_as(OpContext<Device>& op, const LossShape& shape, bool from_scores) {
  const Tensor& scores = op.input(0);
  const RowLayout rows{shape.batch, shape.classes, shape.places};
  std::vector<C> values(static_cast<size_t>(scores.element_count()));
  load_block<C>(scores.dtype(), scores.view().data, 0, 1, scores.element_count(), values.data());
  for (int64_t row = 0; from_scores && row < rows.row_count(); ++row) {
    C* first = values.data() + rows.start(row);
    C highest = -std::numeric_limits<C>::infinity();
    for (int64_t i = 0; i < rows.length; ++i) highest = std::max(highest, first[i * rows.inner]);
    C sum = 0;
    for (int64_t i = 0; i < rows.length; ++i) sum += std::exp(first[i * rows.inner] - highest);
    const C log_sum = highest + std::log(sum);
    for (int64_t i = 0; i < rows.length; ++i) first[i * rows.inner] -= log_sum;
  }
  if (from_scores && op.wants_output(1)) {
    const MutableView log_probabilities = PX_TRY(op.make_output(1, scores.dtype(), scores.shape()));
    store_block<C>(scores.dtype(), log_probabilities.data, 0, scores.element_count(), values.data());
  }
  const PlaceLosses<C> places = PX_TRY(place_losses<C>(op, shape, values.data()));
  return reduce_losses(op, places);
}

template <class Device, bool kFromScores>
Status loss(OpContext<Device>& op) {
  const LossShape shape = PX_TRY(loss_shape(op.input(0).shape(), op.input(1).shape()));
  if (op.input(0).dtype() == DType::float64) return loss_as<double>(op, shape, kFromScores);
  return loss_as<float>(op, shape, kFromScores);
}

template <class Device>
constexpr KernelRow<Device> kRows[] = {
    {"NegativeLogLikelihoodLoss", kFloats, loss<Device, false>},
    {"SoftmaxCrossEntropyLoss", kFloats, loss<Device, true>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> loss_rows() {
  return kRows<CompiledDevice>;
}

}  // namespace parallax::runtime
