// SPDX-License-Identifier: Apache-2.0
// Cast and CastLike: the arithmetic type that holds the source exactly, then one rounding to the target.
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "inspector/tensor/elements.h"
#include "inspector/tensor/float_formats.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/ops/families.h"
#include "runtime/ops/pointwise/narrow_casts.h"
#include "runtime/ops/pointwise/pointwise.h"

namespace parallax::runtime {
namespace {

// Integers of 4 and 2 bits take the nearest integer, ties the even one (the specification's pages on these types); all
// others are truncated.
struct Nearest {
  template <class T>
  PX_HD T operator()(T x) const {
    return std::nearbyint(x);
  }
};

template <class Device, class C>
Status convert(OpContext<Device>& op, const TensorView& x, const MutableView& y) {
  map_as<C, C>(op.queue(), Same{}, y, std::array<TensorView, 1>{x});
  return {};
}

// The 8-bit floats have rules of their own for what does not fit.
FloatRounding float_rounding(const OpCall& op) {
  const std::string mode = op.find_text("round_mode").value_or("up");
  return {op.find_integer("saturate").value_or(1) != 0, mode == "down"      ? E8M0Rounding::down
                                                        : mode == "nearest" ? E8M0Rounding::nearest
                                                                            : E8M0Rounding::up};
}

template <class Device>
Status to_narrow_float(OpContext<Device>& op, const TensorView& x, const MutableView& y) {
  const FloatRounding rounding = float_rounding(op);
  for (int64_t i = 0; i < x.element_count(); ++i) {
    const double value = load_element<double>(x.dtype, x.data, i);
    const uint8_t narrow = small_float_from_double(y.dtype, value, rounding.saturate, rounding.mode);
    store_packed(y.data, bits_of(y.dtype), i, narrow);
  }
  return {};
}

constexpr uint32_t kNumbers = kReals | kBool | kFloat8 | kSubByte;

bool is_convertible(DType dtype) { return dtype != DType::string && dtype != DType::undefined && !is_complex(dtype); }

template <class Device>
Status cast_to(OpContext<Device>& op, DType target) {
  const Tensor& x = op.input(0);
  if (!is_convertible(target) || !is_convertible(x.dtype()) || (kNumbers & dtype_bit(target)) == 0) {
    return unsupported("no conversion from " + std::string(name_of(x.dtype())) + " to " + std::string(name_of(target)) +
                       " here; --fallback=reference runs it");
  }
  if (target == x.dtype()) return op.alias_output(0, 0, x.shape()), Status{};
  const MutableView y = PX_TRY(op.make_output(0, target, x.shape()));
  if constexpr (GpuDevice<Device>) {
    const TensorView wide = is_narrow_quantized(x.dtype()) ? PX_TRY(decoded(op, x.view())) : x.view();
    if (is_narrow_quantized(target)) return encode(op, wide, y, float_rounding(op));
    if (wide.dtype != x.dtype()) return convert<Device, double>(op, wide, y);
  } else {
    if (is_floating(target) && bits_of(target) <= 8) return to_narrow_float(op, x.view(), y);
    if (is_floating(x.dtype()) && is_integer(target) && is_sub_byte(target)) {
      map_as<double, double>(op.queue(), Nearest{}, y, std::array<TensorView, 1>{x.view()});
      return {};
    }
  }
  if (is_floating(x.dtype())) {
    return x.dtype() == DType::float64 ? convert<Device, double>(op, x.view(), y)
                                       : convert<Device, float>(op, x.view(), y);
  }
  if (y.dtype == DType::float64 && bits_of(x.dtype()) <= 32) return convert<Device, double>(op, x.view(), y);
  // Floats hold integers of 16 bits exactly, and those of 32 bits are rounded to them once.
  const bool is_short = bits_of(x.dtype()) <= 16 || (y.dtype == DType::float32 && bits_of(x.dtype()) == 32);
  if (is_floating(target) && is_short) return convert<Device, float>(op, x.view(), y);
  return x.dtype() == DType::uint64 ? convert<Device, uint64_t>(op, x.view(), y)
                                    : convert<Device, int64_t>(op, x.view(), y);
}

// Before version 6 attribute 'to' was the type's name in capitals.
std::optional<DType> target_of(const Node& node) {
  const Attribute* to = find_attribute(node, "to");
  if (to == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<int64_t>(&to->value)) return dtype_from_number(*number);
  const auto* text = std::get_if<std::string>(&to->value);
  if (text == nullptr) return std::nullopt;
  std::string name = *text;
  for (char& character : name)
    character = static_cast<char>(character >= 'A' && character <= 'Z' ? character - 'A' + 'a' : character);
  return dtype_from_name(name);
}

template <class Device>
bool supports_cast(const Node& node) {
  const auto target = target_of(node);
  return target.has_value() && is_convertible(*target) && (kNumbers & dtype_bit(*target)) != 0;
}

template <class Device>
Status cast(OpContext<Device>& op) {
  return cast_to(op, target_of(op.node()).value_or(DType::undefined));
}

template <class Device>
Status cast_like(OpContext<Device>& op) {
  return cast_to(op, op.input(1).dtype());
}

template <class Device>
Status bit_cast(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const auto to = dtype_from_number(op.integer("to"));
  if (!to.has_value() || *to == DType::string)
    return wrong_attribute("to", op.integer("to"), "be the number of an element type of fixed width");
  if (bits_of(*to) != bits_of(x.dtype()))
    return wrong_input(op, 0, "have {} bits an element, the width of {}", bits_of(*to), name_of(*to));
  const MutableView y = PX_TRY(op.make_output(0, *to, x.shape()));
  copy_bytes(op.queue(), y.data, x.view().data, x.size_bytes());
  return {};
}

template <class Device>
constexpr KernelRow<Device> kCastRows[] = {
    {"BitCast", kAnyTensor, bit_cast<Device>},
    {"Cast", kNumbers, cast<Device>, 1, INT64_MAX, 0, Arguments::tensors, "ai.onnx", supports_cast<Device>},
    {"CastLike", kNumbers, cast_like<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> cast_rows() {
  return kCastRows<CompiledDevice>;
}

}  // namespace parallax::runtime
