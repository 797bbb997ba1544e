// SPDX-License-Identifier: Apache-2.0
// Dropout where nothing is dropped: in inference, or with ratio 0. With a ratio in training it draws (random.cpp).
#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/ops/families.h"
#include "runtime/ops/random_dropout.h"

namespace parallax::runtime {
namespace {

template <class Device>
Result<bool> is_training(OpContext<Device>& op) {
  const int64_t version = op.since_version();
  if (version < 7) return op.find_integer("is_test").value_or(0) == 0;
  if (version < 12 || !op.has_input(2)) return false;
  const int64_t training = PX_TRY(op.integer_of_input(2));
  return training != 0;
}

template <class Device>
Result<double> ratio_of(OpContext<Device>& op) {
  if (op.since_version() < 12) return op.find_real("ratio").value_or(0.5);
  if (op.has_input(1)) return op.real_of_input(1);
  return 0.5;
}

template <class Device>
Status dropout(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const bool training = PX_TRY(is_training(op));
  const double ratio = PX_TRY(ratio_of(op));
  if (training && ratio != 0.0) return random_dropout(op, ratio);
  op.alias_output(0, 0, x.shape());
  if (!op.wants_output(1)) return {};
  const bool mask_is_bool = op.since_version() >= 10;
  const MutableView mask = PX_TRY(op.make_output(1, mask_is_bool ? DType::bool_ : x.dtype(), x.shape()));
  const int64_t one = 1;
  std::byte element[16] = {};
  store_block<int64_t>(mask.dtype, element, 0, 1, &one);
  fill(op.queue(), mask, element);
  return {};
}

template <class Device>
constexpr KernelRow<Device> kDropoutRows[] = {
    reads_on_host<Device>({1, 2}, {"Dropout", kFloats | kFloat8, dropout<Device>}),
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> dropout_rows() {
  return kDropoutRows<CompiledDevice>;
}

}  // namespace parallax::runtime
