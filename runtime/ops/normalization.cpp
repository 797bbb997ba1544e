// SPDX-License-Identifier: Apache-2.0
// Normalizations over the trailing axes of a row: LayerNormalization, RMSNormalization, LpNormalization and, for GPUs,
// SimplifiedLayerNormalization (the host's is in contrib/normalization.cpp).
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/rows/rows.h"
#include "runtime/ops/families.h"
#include "runtime/ops/norm_row.h"
#include "runtime/ops/on_gpu.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kBfloat16 = 16;  // as TensorProto numbers element types

template <class C>
struct AbsoluteSum {
  template <class T>
  PX_HD C init() const {
    return C(0);
  }
  PX_HD C step(C a, C x) const { return a + std::fabs(x); }
  PX_HD C merge(C a, C b) const { return a + b; }
};

// Scale and bias as the whole row's values of C, whatever they broadcast from. Constants are converted once.
template <class C, class Device>
Result<std::shared_ptr<const C>> row_parameter(OpContext<Device>& op, int64_t index, const Shape& row_shape) {
  if (!op.has_input(index)) return std::shared_ptr<const C>();
  const Tensor& parameter = op.input(index);
  const Shape shapes[] = {parameter.shape(), row_shape};
  if (!(PX_TRY(broadcast_shapes(shapes)) == row_shape))
    return wrong_input(op, index, "broadcast to the normalized axes, {}", row_shape.to_string());
  if (parameter.element_count() == row_shape.element_count())
    return converted<C>(op.queue(), parameter.view(), op.is_constant(index));
  const MutableView expanded = PX_TRY(op.scratch(storage_of<C>(), row_shape));
  map_as<C, C>(op.queue(), Same{}, expanded, std::array<TensorView, 1>{parameter.view()});
  return std::shared_ptr<const C>(std::shared_ptr<const C>(), reinterpret_cast<const C*>(expanded.data));
}

template <class Device>
Status layer_norm(OpContext<Device>& op, bool centered, int64_t mean_output, int64_t inverse_output, DType dtype) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape());
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("axis"), dims.size()));
  const RowLayout rows{product(dims, 0, axis), product(dims, axis, dims.size()), 1};
  Ints row_dims, statistic_dims;
  for (int64_t i = 0; i < dims.size(); ++i) {
    if (i >= axis) row_dims.push_back(dims[i]);
    statistic_dims.push_back(i >= axis ? 1 : dims[i]);
  }
  const Shape row_shape = PX_TRY(shape_of(row_dims));
  const Shape statistic_shape = PX_TRY(shape_of(statistic_dims));
  const DType stash = x.dtype() == DType::float64 ? DType::float64 : DType::float32;
  MutableView mean, inverse;
  if (op.wants_output(mean_output)) mean = PX_TRY(op.make_output(mean_output, stash, statistic_shape));
  if (op.wants_output(inverse_output)) inverse = PX_TRY(op.make_output(inverse_output, stash, statistic_shape));
  const MutableView y = PX_TRY(op.make_output_over(0, dtype, x.shape(), {0}));
  return visit_arithmetic<Floats>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    const auto scale = PX_TRY(row_parameter<C>(op, 1, row_shape));
    std::shared_ptr<const C> bias;
    if (centered) bias = PX_TRY(row_parameter<C>(op, 2, row_shape));
    const NormRow<Device, C> row{
        static_cast<C>(op.real("epsilon")), centered, {scale.get()}, {bias.get()}, target_of(mean), target_of(inverse)};
    scan_rows<C, C>(op.queue(), row, rows, y, x.view(), 2);
    return {};
  });
}

template <class Device>
Status layer_normalization(OpContext<Device>& op) {
  if (op.integer("stash_type") == kBfloat16)
    return unsupported("attribute 'stash_type' is 16, bfloat16; only float32, 1, has a kernel here");
  return layer_norm(op, true, 1, 2, op.input(0).dtype());
}

template <class Device>
Status rms_normalization(OpContext<Device>& op) {
  return layer_norm(op, false, -1, -1, op.input(0).dtype());
}

// As onnxruntime writes it into ai.onnx: the result has the scale's type.
template <class Device>
Status simplified_layer_normalization(OpContext<Device>& op) {
  return layer_norm(op, false, -1, 1, op.input(1).dtype());
}

template <class C>
struct OverNorm {
  C norm;
  PX_HD C operator()(C x, int64_t) const { return norm == C(0) ? C(0) : x / norm; }
};
struct LpRow {
  [[maybe_unused]] static constexpr bool kEmitsOnce = true;
  int64_t p;
  template <class Team>
  PX_HD void operator()(Team& team, int64_t) const {
    using C = typename Team::Value;
    const C norm = p == 1 ? team.fold(AbsoluteSum<C>{}) : C(std::sqrt(team.fold(SquaredDifferenceSum<C>{C(0)})));
    team.emit(OverNorm<C>{norm});
  }
};

template <class Device>
Status lp_normalization(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const RowLayout rows = rows_along(x.shape(), PX_TRY(OpCall::resolve_axis(op.integer("axis"), rank_of(x.shape()))));
  const int64_t p = op.integer("p");
  if (p != 1 && p != 2) return wrong_attribute("p", p, "be 1 or 2");
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  return visit_arithmetic<Floats>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    scan_rows<C, C>(op.queue(), LpRow{p}, rows, y, x.view());
    return {};
  });
}

template <class Device>
constexpr KernelRow<Device> kNormalizationRows[] = {
    {"LayerNormalization", kFloats, layer_normalization<Device>},
    {"LpNormalization", kFloats, lp_normalization<Device>},
    {"RMSNormalization", kFloats, rms_normalization<Device>},
    {"SimplifiedLayerNormalization", kFloats, PX_ON_GPU(simplified_layer_normalization<Device>)},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> normalization_rows() {
  return kNormalizationRows<CompiledDevice>;
}

}  // namespace parallax::runtime
