// SPDX-License-Identifier: Apache-2.0
// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: one logarithm picked for each position, weighted, reduced.
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/find.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/rows/rows.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/device/gpu/element_of.h"
#include "runtime/ops/families.h"
#include "runtime/ops/row_folds.h"

namespace parallax::runtime {
namespace {

// Scores are [batch, classes, positions...], targets [batch, positions...].
struct LossShape {
  int64_t batch = 0;
  int64_t classes = 0;
  int64_t locations = 0;
};

Result<LossShape> loss_shape(const Shape& scores, const Shape& targets) {
  Ints expected(scores);
  if (expected.size() < 2) return wrong_shape("the input of scores", scores, "have rank 2 or more");
  expected.erase(1);
  if (!(Ints(targets) == expected))
    return wrong_shape("the input of targets", targets, "have shape {}: that of the scores without axis 1",
                       dims_text(expected));
  return LossShape{scores[0], scores[1], product(expected, 1, expected.size())};
}

struct ExponentialSum : FoldBase {
  template <class C>
  PX_HD C step(C a, C x) const {
    return a + math::exp(x);
  }
};

// x - log(sum of exp(x)) along the classes.
template <class C>
struct LessShift {
  C shift;
  PX_HD C operator()(C x) const { return x - shift; }
  PX_HD C operator()(C x, int64_t) const { return x - shift; }
};
struct LogProbabilitiesRow {
  template <class Team>
  PX_HD void operator()(Team& team, int64_t) const {
    using C = typename Team::Value;
    const C highest = team.fold(FoldMax{});
    team.emit(LessShift<C>{highest});
    const C sum = team.fold_emitted(ExponentialSum{});
    team.change_emitted(LessShift<C>{std::log(sum)});
  }
};

struct OutsideClasses {
  int64_t classes, ignored;
  bool ignores;
  PX_HD bool operator()(int64_t target, int64_t) const {
    return !(ignores && target == ignored) && (target < 0 || target >= classes);
  }
};

// The weight that each position counts with: 0 for the ignored class; and its loss, so weighted.
template <class Device, class C>
struct PositionWeight {
  Source targets;
  Elements<Device, const C> class_weights;  // none without weights
  OutsideClasses known;
  PX_HD C operator()(int64_t location) const {
    const int64_t target = element_of<Device, int64_t>(targets, location);
    if (known.ignores && target == known.ignored) return C(0);
    return class_weights ? class_weights[target] : C(1);
  }
};
template <class Device, class C>
struct PositionLoss {
  PositionWeight<Device, C> weight;
  Source log_probabilities;
  int64_t classes, locations;
  PX_HD C operator()(int64_t location) const {
    const int64_t target = element_of<Device, int64_t>(weight.targets, location);
    if (weight.known.ignores && target == weight.known.ignored) return C(0);
    const int64_t at = (location / locations * classes + target) * locations + location % locations;
    return -element_of<Device, C>(log_probabilities, at) * weight(location);
  }
};

template <class Device, class C>
struct Quotient {
  Elements<Device, const C> sum, weight;
  PX_HD C operator()(int64_t) const { return sum[0] / weight[0]; }
};

template <class C, class Device>
Status reduce_losses(OpContext<Device>& op, const PositionLoss<Device, C>& loss) {
  const std::string reduction = op.text("reduction");
  const DType dtype = op.input(0).dtype();
  const Shape& shape = op.input(1).shape();
  if (reduction == "none") {
    tabulate<C>(op.queue(), loss, PX_TRY(op.make_output(0, dtype, shape)));
    return {};
  }
  if (reduction != "sum" && reduction != "mean") return wrong_attribute("reduction", reduction, "be none, sum or mean");
  const MutableView y = PX_TRY(op.make_output(0, dtype, Shape{}));
  const MutableView each = PX_TRY(op.scratch(storage_of<C>(), shape));
  const RowLayout all{1, shape.element_count(), 1};
  tabulate<C>(op.queue(), loss, each);
  if (reduction == "sum") return fold_rows<C>(op.queue(), DifferenceSum<C>{C(0)}, all, y, TensorView(each)), Status{};
  const MutableView sum = PX_TRY(op.scratch(storage_of<C>(), Shape{}));
  const MutableView weight = PX_TRY(op.scratch(storage_of<C>(), Shape{}));
  fold_rows<C>(op.queue(), DifferenceSum<C>{C(0)}, all, sum, TensorView(each));
  tabulate<C>(op.queue(), loss.weight, each);
  fold_rows<C>(op.queue(), DifferenceSum<C>{C(0)}, all, weight, TensorView(each));
  tabulate<C>(op.queue(),
              Quotient<Device, C>{{reinterpret_cast<const C*>(sum.data)}, {reinterpret_cast<const C*>(weight.data)}},
              y);
  return {};
}

template <class C, class Device>
Status loss_as(OpContext<Device>& op, const LossShape& shape, bool from_scores) {
  const Tensor& scores = op.input(0);
  const Tensor& targets = op.input(1);
  Source log_probabilities = source_of(scores.view());
  if (from_scores) {
    const MutableView made = PX_TRY(op.scratch(storage_of<C>(), scores.shape()));
    const RowLayout rows{shape.batch, shape.classes, shape.locations};
    scan_rows<C, C>(op.queue(), LogProbabilitiesRow{}, rows, made, scores.view(), 20);
    log_probabilities = source_of(TensorView(made));
    if (op.wants_output(1)) {
      const MutableView given = PX_TRY(op.make_output(1, scores.dtype(), scores.shape()));
      map_as<C, C>(op.queue(), Same{}, given, std::array<TensorView, 1>{TensorView(made)});
    }
  }
  const auto ignored = op.find_integer("ignore_index");
  const OutsideClasses outside{shape.classes, ignored.value_or(0), ignored.has_value()};
  const int64_t bad = PX_TRY(find_first<int64_t>(op.queue(), outside, targets.view()));
  if (bad >= 0) return wrong_entry(op, 1, bad, "be a class in [0, {})", shape.classes);
  std::shared_ptr<const C> weights;
  if (op.has_input(2)) {
    if (op.input(2).element_count() != shape.classes)
      return wrong_input(op, 2, "have {} elements, one for each class", shape.classes);
    weights = PX_TRY(converted<C>(op.queue(), op.input(2).view(), op.is_constant(2)));
  }
  const PositionWeight<Device, C> weight{source_of(targets.view()), {weights.get()}, outside};
  return reduce_losses(op, PositionLoss<Device, C>{weight, log_probabilities, shape.classes, shape.locations});
}

template <class Device, bool kFromScores>
Status loss(OpContext<Device>& op) {
  const LossShape shape = PX_TRY(loss_shape(op.input(0).shape(), op.input(1).shape()));
  if (op.input(0).dtype() == DType::float64) return loss_as<double>(op, shape, kFromScores);
  return loss_as<float>(op, shape, kFromScores);
}

template <class Device>
constexpr KernelRow<Device> kLossRows[] = {
    {"NegativeLogLikelihoodLoss", kFloats, loss<Device, false>},
    {"SoftmaxCrossEntropyLoss", kFloats, loss<Device, true>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> loss_rows() {
  return kLossRows<CompiledDevice>;
}

}  // namespace parallax::runtime
