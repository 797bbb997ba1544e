// SPDX-License-Identifier: Apache-2.0
// ChannelAffine: what is left of a BatchNormalization with constant statistics, and its activation, in one walk over
// either layout. On the host alone.
#include "inspector/base/thread_pool.h"
#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/activation.h"
#include "runtime/device/cpu/channels_last.h"
#include "runtime/ops/fused_families.h"
#include "runtime/ops/op_context.h"
#include "runtime/ops/pointwise/activation_attributes.h"

namespace parallax::runtime {
namespace {

struct AffineOperands {
  const float *x, *factors, *offsets;
  float* y;
};

// Rows of channels.
template <class Apply>
void scale_rows(int64_t rows, int64_t channels, const AffineOperands& of, const Apply& apply) {
  parallel_for(rows, channels / 2 + 4, [&](int64_t begin, int64_t end) {
    vectorized(begin, end, [=](int64_t first, int64_t last) {
      const float *const factors = of.factors, *const offsets = of.offsets;
      for (int64_t row = first; row < last; ++row) {
        const float* const from = of.x + row * channels;
        float* const to = of.y + row * channels;
        PX_INDEPENDENT_ITERATIONS
        for (int64_t c = 0; c < channels; ++c) to[c] = apply(from[c] * factors[c] + offsets[c]);
      }
    });
  });
}

// Planes of one channel each.
template <class Apply>
void scale_planes(int64_t planes, int64_t channels, int64_t locations, const AffineOperands& of, const Apply& apply) {
  parallel_for(planes, locations / 2 + 4, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const float factor = of.factors[plane % channels], offset = of.offsets[plane % channels];
      const float* const from = of.x + plane * locations;
      float* const to = of.y + plane * locations;
      vectorized(0, locations, [=](int64_t first, int64_t last) {
        PX_INDEPENDENT_ITERATIONS
        for (int64_t i = first; i < last; ++i) to[i] = apply(from[i] * factor + offset);
      });
    }
  });
}

Status channel_affine(OpContext<Cpu>& op) {
  const Tensor& x = op.input(0);
  const int64_t channels = x.shape().rank() < 2 ? 1 : x.shape()[1];
  if (op.input(1).element_count() != channels || op.input(2).element_count() != channels)
    return wrong_input(op, op.input(1).element_count() != channels ? 1 : 2,
                       "have {} elements, one for each channel of X", channels);
  const Activation activation = PX_TRY(activation_of_conv(op));
  const Ints dims(x.shape());
  const int64_t locations = product(dims, std::min<int64_t>(2, dims.size()), dims.size());
  const bool are_rows = is_channels_last(x) || locations == 1;
  Tensor y = x;
  if (!op.may_overwrite(0)) {
    const Tensor made = PX_TRY(op.queue().allocate(x.dtype(), x.shape()));
    y = Tensor::wrap(x.dtype(), x.shape(), made.storage(), x.device());
  }
  op.set_output(0, y);
  const auto data = [](const Tensor& tensor) { return reinterpret_cast<float*>(tensor.storage().get()); };
  const AffineOperands operands{data(x), data(op.input(1)), data(op.input(2)), data(y)};
  const int64_t planes = x.element_count() / std::max<int64_t>(1, locations);
  visit_activation(activation, [&](auto apply) {
    if (are_rows) return scale_rows(x.element_count() / channels, channels, operands, apply);
    scale_planes(planes, channels, locations, operands, apply);
  });
  return {};
}

constexpr KernelRow<Cpu> affine_row() {
  KernelRow<Cpu> made{"ChannelAffine", dtype_bit(DType::float32), channel_affine};
  made.domain = "parallax.fused";
  made.order.channels_last_inputs = 1;
  return made;
}

constexpr KernelRow<Cpu> kAffineRows[] = {affine_row()};

}  // namespace

template <>
Rows<Cpu> channel_affine_rows<Cpu>() {
  return kAffineRows;
}

}  // namespace parallax::runtime
