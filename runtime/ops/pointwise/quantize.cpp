// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, and the integer products between them.
#include <cmath>
#include <optional>

#include "inspector/model/rule_errors.h"
#include "inspector/tensor/elements.h"
#include "inspector/tensor/float_formats.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/products/quantize_lines.h"
#include "runtime/device/cpu/rows/rows.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/device/gpu/element_of.h"
#include "runtime/ops/families.h"
#include "runtime/ops/pointwise/narrow_casts.h"

namespace parallax::runtime {
namespace {

// The index of element i's scale: one for all, one along an axis, or one for each block along it.
struct ScaleIndex {
  int64_t inner = 1;   // elements after the axis
  int64_t dim = 1;     // of the axis in x
  int64_t scales = 1;  // of the axis in the scale
  int64_t block = 1;   // elements of the axis that share a scale
  bool blocked = false;
  bool single = true;
  PX_HD int64_t operator()(int64_t element) const {
    if (single) return 0;
    const int64_t along = element / inner % dim;
    if (!blocked) return along;
    return (element / inner / dim * scales + along / block) * inner + element % inner;
  }
};

Result<ScaleIndex> scale_index(const OpCall& op, const Shape& x, const Shape& scale) {
  ScaleIndex index;
  if (scale.element_count() == 1 && scale.rank() <= 1) return index;
  index.single = false;
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.find_integer("axis").value_or(1), rank_of(x)));
  const Ints dims(x);
  index.dim = dims[axis];
  index.inner = product(dims, axis + 1, dims.size());
  const int64_t block = op.find_integer("block_size").value_or(0);
  if (block > 0) {
    index.blocked = true;
    index.block = block;
    index.scales = rank_of(scale) == dims.size() ? dim_of(scale, axis) : 0;
    Ints wanted = dims;
    wanted[axis] = dims[axis] / block + (dims[axis] % block == 0 ? 0 : 1);
    if (!(Ints(scale) == wanted))
      return wrong_shape("the scale", scale, "be {} for blocks of {} along axis {}", dims_text(wanted), block, axis);
  } else if (scale.rank() != 1 || scale[0] != index.dim)
    return wrong_shape("the scale", scale, "be one number or [{}], one for each index along axis {} of {}", index.dim,
                       axis, x.to_string());
  return index;
}

struct IntegerRange {
  double low;
  double high;
};

IntegerRange integer_range_of(DType dtype) {
  const int bits = bits_of(dtype);
  if (info_of(dtype).kind == DTypeKind::signed_integer)
    return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1};
  return {0.0, std::ldexp(1.0, bits) - 1};
}

// The type that the attribute 'output_dtype' names, else `otherwise`.
Result<DType> output_type(const OpCall& op, DType otherwise) {
  const int64_t wanted = op.find_integer("output_dtype").value_or(0);
  if (wanted == 0) return otherwise;
  const auto dtype = dtype_from_number(wanted);
  const OpSchema* schema = op.node().schema;
  if (!dtype.has_value() || (schema != nullptr && !schema->output(0)->types->contains_tensor(*dtype)))
    return wrong_attribute("output_dtype", wanted, "be the number of an element type that y may have");
  return *dtype;
}

// The type of the division: the attribute precision, else the type of the scale; float32 for integer scales.
Result<DType> division_type(const OpCall& op) {
  const DType scale = op.input(1).dtype();
  const int64_t wanted = op.find_integer("precision").value_or(0);
  if (wanted == 0) return is_floating(scale) ? scale : DType::float32;
  const auto dtype = dtype_from_number(wanted);
  if (!dtype.has_value() || !is_floating(*dtype))
    return wrong_attribute("precision", wanted, "be the number of a floating type");
  return *dtype;
}

// One element after quantization, before it is stored.
template <class Device>
struct Quantized {
  Source x, scale, zero;  // zero may be missing
  ScaleIndex index;
  IntegerRange range;
  DType division;  // the quotient is rounded to this type

  PX_HD double quotient(int64_t element, int64_t at) const {
    const double value = element_of<Device, double>(x, element) / element_of<Device, double>(scale, at);
    if (division == DType::float64) return value;
    if (division == DType::float16) return static_cast<double>(storage::decode(storage::to_storage<Float16>(value)));
    if (division == DType::bfloat16) return static_cast<double>(storage::decode(storage::to_storage<BFloat16>(value)));
    return static_cast<double>(static_cast<float>(value));
  }
  PX_HD double zero_point(int64_t at) const {
    return zero.data == nullptr ? 0.0 : element_of<Device, double>(zero, at);
  }
  PX_HD int64_t operator()(int64_t element) const {
    const int64_t at = index(element);
    const double number = quotient(element, at);
    const double rounded = (number != number ? 0.0 : std::nearbyint(number)) + zero_point(at);  // NaN counts as 0
    return static_cast<int64_t>(rounded < range.low ? range.low : (rounded > range.high ? range.high : rounded));
  }
};

// One element before storing, for formats that round by rules of their own.
template <class Device>
struct Unrounded {
  Quantized<Device> quantized;
  PX_HD double operator()(int64_t element) const {
    const int64_t at = quantized.index(element);
    return quantized.quotient(element, at) + quantized.zero_point(at);
  }
};

// An operand as functors read it. On a GPU the elements of narrow types are decoded first.
template <class Device>
Result<Source> readable(OpContext<Device>& op, int64_t input) {
  if (!op.has_input(input)) return Source{};
  if constexpr (GpuDevice<Device>) {
    if (is_narrow_quantized(op.input(input).dtype())) return source_of(PX_TRY(decoded(op, op.input(input).view())));
  }
  return source_of(op.input(input).view());
}

template <class Device>
struct Dequantized {
  Source x, scale, zero;
  ScaleIndex index;
  PX_HD double operator()(int64_t element) const {
    const int64_t at = index(element);
    const double shift = zero.data == nullptr ? 0.0 : element_of<Device, double>(zero, at);
    return (element_of<Device, double>(x, element) - shift) * element_of<Device, double>(scale, at);
  }
};

// Neighboring elements whose scales are one, or stand side by side.
struct ScaleRun {
  int64_t at = 0;      // of the first element's scale
  int64_t stride = 0;  // 0: one for all
  int64_t length = 0;
};
inline ScaleRun scale_run(const ScaleIndex& index, int64_t element) {
  if (index.single) return {0, 0, std::numeric_limits<int64_t>::max()};
  const int64_t at = index(element);
  if (index.inner > 1) return {at, index.blocked ? 1 : 0, index.inner - element % index.inner};
  const int64_t along = element % index.dim, left = index.dim - along;
  if (!index.blocked) return {at, 1, left};
  return {at, 0, std::min(left, index.block - along % index.block)};
}

// Computes Dequantized for each element, converting whole blocks between the types, on the host.
template <class Device>
void dequantize_blocks(const TensorView& x, const TensorView& scale, const TensorView* zero, const ScaleIndex& index,
                       const MutableView& y) {
  parallel_for(x.element_count(), 3, [&](int64_t begin, int64_t end) {
    alignas(64) double numbers[kBlockElements], scales[kBlockElements], zeros[kBlockElements] = {};
    for (int64_t first = begin; first < end; first += kBlockElements) {
      const int64_t count = std::min(kBlockElements, end - first);
      load_block<double>(x.dtype, x.data, first, 1, count, numbers);
      for (int64_t done = 0; done < count;) {
        const ScaleRun run = scale_run(index, first + done);
        const int64_t length = std::min(run.length, count - done);
        load_block<double>(scale.dtype, scale.data, run.at, run.stride, length, scales + done);
        if (zero != nullptr) load_block<double>(zero->dtype, zero->data, run.at, run.stride, length, zeros + done);
        done += length;
      }
      vectorized(0, count, [to = numbers, its_scales = scales, its_zeros = zeros](int64_t, int64_t last) {
        for (int64_t i = 0; i < last; ++i) to[i] = (to[i] - its_zeros[i]) * its_scales[i];
      });
      store_block<double>(y.dtype, y.data, first, count, numbers);
    }
  });
}

// The scales and zero points of lines, where the host has a loop for them: none for blocks and other types.
template <class Device>
std::optional<QuantizedLines> lines_of(const OpContext<Device>& op, const ScaleIndex& index, DType real, DType dtype) {
  const Tensor& scale = op.input(1);
  if (index.blocked || real != DType::float32 || scale.dtype() != DType::float32) return std::nullopt;
  if (op.has_input(2) && op.input(2).dtype() != dtype) return std::nullopt;
  QuantizedLines lines;
  lines.count = op.input(0).element_count();
  lines.inner = index.inner;
  lines.scales.assign(scale.as<float>().begin(), scale.as<float>().end());
  lines.zeros.assign(lines.scales.size(), 0.0F);
  if (!suits_lines(dtype, lines)) return std::nullopt;
  for (size_t line = 0; op.has_input(2) && line < lines.zeros.size(); ++line) {
    const auto zero = load_element<double>(dtype, op.input(2).view().data, static_cast<int64_t>(line));
    lines.zeros[line] = static_cast<float>(zero);
    if (static_cast<double>(lines.zeros[line]) != zero) return std::nullopt;
  }
  return lines;
}

template <class Device>
Status quantize_linear(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Tensor& scale = op.input(1);
  const DType target = op.has_input(2) ? op.input(2).dtype() : PX_TRY(output_type(op, DType::uint8));
  const ScaleIndex index = PX_TRY(scale_index(op, x.shape(), scale.shape()));
  if (op.has_input(2) && op.input(2).element_count() != scale.element_count())
    return wrong_input(op, 2, "have {} elements, as many as the scale", scale.element_count());
  const bool to_float = is_floating(target);
  if (!to_float && !is_integer(target)) return unsupported_dtype(target);
  const bool saturate = op.find_integer("saturate").value_or(1) != 0;
  const IntegerRange range = to_float ? IntegerRange{} : integer_range_of(target);
  const DType division = PX_TRY(division_type(op));
  const Quantized<Device> quantized{
      PX_TRY(readable(op, 0)), PX_TRY(readable(op, 1)), PX_TRY(readable(op, 2)), index, range, division};
  const MutableView y = PX_TRY(op.make_output(0, target, x.shape()));
  if constexpr (!GpuDevice<Device>) {
    const bool suits = division == DType::float32 && target != DType::int32;
    const auto lines = suits ? lines_of(op, index, x.dtype(), target) : std::nullopt;
    if (lines.has_value()) return quantize_lines(op.queue(), *lines, x.as<float>().data(), target, y.data), Status{};
  }
  if (!to_float && !is_sub_byte(target)) return tabulate<int64_t>(op.queue(), quantized, y), Status{};
  if constexpr (GpuDevice<Device>) {
    if (!to_float) return store_quantized(op, quantized, y), Status{};
    if (!is_narrow_quantized(target)) return unsupported_dtype(target);
    const MutableView wide = PX_TRY(op.scratch(DType::float64, x.shape()));
    tabulate<double>(op.queue(), Unrounded<Device>{quantized}, wide);
    return encode(op, TensorView(wide), y, {saturate, E8M0Rounding::up});
  } else {  // neighbors share bytes, or the format has rules of its own
    for (int64_t i = 0; i < x.element_count(); ++i) {
      const int64_t at = index(i);
      if (to_float) {
        const double value = quantized.quotient(i, at) + quantized.zero_point(at);
        store_packed(y.data, bits_of(target), i, small_float_from_double(target, value, saturate));
      } else {
        const int64_t value = quantized(i);
        store_block<int64_t>(target, y.data, i, 1, &value);
      }
    }
    return {};
  }
}

template <class Device>
Status dequantize_linear(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Tensor& scale = op.input(1);
  const ScaleIndex index = PX_TRY(scale_index(op, x.shape(), scale.shape()));
  if (op.has_input(2) && op.input(2).element_count() != scale.element_count())
    return wrong_input(op, 2, "have {} elements, as many as the scale", scale.element_count());
  const DType target = PX_TRY(output_type(op, scale.dtype()));
  if (!is_floating(target)) return unsupported_dtype(target);
  const MutableView y = PX_TRY(op.make_output(0, target, x.shape()));
  if (GpuDevice<Device> && is_narrow_quantized(target)) return unsupported_dtype(target);
  if constexpr (!GpuDevice<Device>) {
    if (const auto lines = lines_of(op, index, target, x.dtype())) {
      dequantize_lines(op.queue(), *lines, x.dtype(), x.view().data, reinterpret_cast<float*>(y.data));
      return {};
    }
  }
  if constexpr (GpuDevice<Device>) {
    const Dequantized<Device> dequantized{PX_TRY(readable(op, 0)), PX_TRY(readable(op, 1)), PX_TRY(readable(op, 2)),
                                          index};
    tabulate<double>(op.queue(), dequantized, y);
  } else {
    const TensorView zero = op.has_input(2) ? op.input(2).view() : TensorView{};
    dequantize_blocks<Device>(x.view(), scale.view(), op.has_input(2) ? &zero : nullptr, index, y);
  }
  return {};
}

// ---- DynamicQuantizeLinear: scale = (max - min) / 255 over a range that holds 0; zero point = round(-min / scale)
// ----

template <bool kGreatest>
struct EndOfRange {
  template <class C>
  PX_HD C init() const {
    return C(0);
  }
  PX_HD float step(float a, float x) const { return (kGreatest ? x > a : x < a) ? x : a; }
  PX_HD float merge(float a, float b) const { return step(a, b); }
  PX_HD float finish(float a, int64_t) const { return a; }
};

template <class Device>
struct DynamicScale {
  Elements<Device, const float> low, high;
  PX_HD float operator()(int64_t) const { return (high[0] - low[0]) / 255.0F; }
};
PX_HD inline float clamped_byte(float x) { return x < 0.0F ? 0.0F : (x > 255.0F ? 255.0F : x); }
template <class Device>
struct DynamicZero {
  DynamicScale<Device> scale;
  PX_HD int64_t operator()(int64_t) const {
    const float step = scale(0);
    return step == 0.0F ? 0 : static_cast<int64_t>(clamped_byte(std::nearbyint(-scale.low[0] / step)));
  }
};
template <class Device>
struct DynamicByte {
  Elements<Device, const float> x;
  DynamicZero<Device> zero;
  PX_HD int64_t operator()(int64_t element) const {
    const float step = zero.scale(0);
    const float number = step == 0.0F ? 0.0F : x[element] / step;
    const float quotient = number != number ? 0.0F : number;
    return static_cast<int64_t>(clamped_byte(std::nearbyint(quotient) + static_cast<float>(zero(0))));
  }
};

template <class Device>
Status dynamic_quantize_linear(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const MutableView low = PX_TRY(op.scratch(DType::float32, Shape{}));
  const MutableView high = PX_TRY(op.scratch(DType::float32, Shape{}));
  const RowLayout all{1, x.element_count(), 1};
  fold_rows<float>(op.queue(), EndOfRange<false>{}, all, low, x.view());
  fold_rows<float>(op.queue(), EndOfRange<true>{}, all, high, x.view());
  const DynamicScale<Device> scale{{reinterpret_cast<const float*>(low.data)},
                                   {reinterpret_cast<const float*>(high.data)}};
  const DynamicZero<Device> zero{scale};
  const MutableView y = PX_TRY(op.make_output(0, DType::uint8, x.shape()));
  if constexpr (GpuDevice<Device>) {
    tabulate<int64_t>(op.queue(), DynamicByte<Device>{{reinterpret_cast<const float*>(x.view().data)}, zero}, y);
  } else {  // where the scale is 0, x is 0 or NaN throughout, and its quantized values are the zero point
    const QuantizedLines lines{x.element_count(), 1, {scale(0)}, {static_cast<float>(zero(0))}};
    quantize_lines(op.queue(), lines, x.as<float>().data(), DType::uint8, y.data);
  }
  tabulate<float>(op.queue(), scale, PX_TRY(op.make_output(1, DType::float32, Shape{})));
  tabulate<int64_t>(op.queue(), zero, PX_TRY(op.make_output(2, DType::uint8, Shape{})));
  return {};
}

template <class Device>
constexpr KernelRow<Device> kQuantizeRows[] = {
    {"DequantizeLinear", kInts | kFloat8 | kSubByte, dequantize_linear<Device>},
    {"DynamicQuantizeLinear", dtype_bit(DType::float32), dynamic_quantize_linear<Device>},
    {"QuantizeLinear", kFloats | dtype_bit(DType::int32), quantize_linear<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> quantize_rows() {
  return kQuantizeRows<CompiledDevice>;
}

}  // namespace parallax::runtime
