// SPDX-License-Identifier: Apache-2.0
// The nodes that append to a growable input, and the kernels that read one.
#include "runtime/ops/growable_inputs.h"

namespace parallax::runtime {
namespace {

struct GrowableInputs {
  std::string_view domain, op;
  uint32_t inputs;  // a bit for each
  uint32_t dtypes;  // of theirs
  bool on_gpus = true;
};
constexpr GrowableInputs kGrowableInputs[] = {
    {"ai.onnx", "Shape", 0b1, kAnything},
    {"ai.onnx", "Size", 0b1, kAnything},
    {"ai.onnx", "Attention", 0b110000, kFloats},
    {"com.microsoft", "GroupQueryAttention", 0b11000, kAnything, false},
    {"parallax.fused", "Attention", 0b110, kNarrowFloats},
};

bool is_one_growable(const OpInput& input) { return input.value != nullptr && is_growable(*input.value); }

}  // namespace

bool has_growable(std::span<const OpInput> inputs) { return std::ranges::any_of(inputs, is_one_growable); }

bool appends_to_first(std::string_view op, std::span<const OpInput> inputs) {
  if (op != "Concat" || inputs.size() != 2 || !is_one_growable(inputs[0])) return false;
  const Tensor& past = inputs[0].value->tensor();
  if (!is_open(past) || inputs[1].value == nullptr || !inputs[1].value->is_tensor()) return false;
  const Tensor& more = inputs[1].value->tensor();
  Ints dims(more.shape());
  const int64_t axis = growing_axis(past);
  if (is_growable(more) || more.dtype() != past.dtype() || dims.size() != rank_of(past.shape())) return false;
  dims[axis] = dim_of(past.shape(), axis);
  return dims == Ints(past.shape());
}

bool takes_growable(std::string_view domain, std::string_view op, size_t index, DType dtype, bool on_gpu) {
  const auto* const found = std::ranges::find_if(
      kGrowableInputs, [&](const GrowableInputs& each) { return each.op == op && each.domain == domain; });
  return found != std::end(kGrowableInputs) && index < 32 && (found->inputs >> index & 1U) != 0 &&
         (found->dtypes & dtype_bit(dtype)) != 0 && (found->on_gpus || !on_gpu);
}

}  // namespace parallax::runtime
