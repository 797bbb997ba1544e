// SPDX-License-Identifier: Apache-2.0
// MatMulInteger, ConvInteger, QLinearMatMul and QLinearConv: exact integer products, then one rounding to the output's
// scale. Products of 8-bit floats, which QLinearMatMul has too, are summed as doubles.
#include <algorithm>
#include <cmath>
#include <optional>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/multiversion.h"
#include "runtime/device/cpu/products/conv.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/products/int8_conv.h"
#include "runtime/device/cpu/products/int8_gemm.h"
#include "runtime/device/cpu/products/quantize_lines.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/device/gpu/element_of.h"
#include "runtime/ops/families.h"
#include "runtime/ops/pointwise/binary_functors.h"
#include "runtime/ops/pointwise/narrow_casts.h"
#include "runtime/ops/products/matmul_shapes.h"
#include "runtime/ops/spatial/conv_problem.h"

namespace parallax::runtime {
namespace {

// One number for all, or one for each line along an axis: value of element i.
template <class Device>
struct PerLine {
  Elements<Device, const double> values;  // none: 0
  int64_t inner = 1, dim = 1;             // dim is 1 where there is one number
  PX_HD double operator()(int64_t element) const { return values ? values[element / inner % dim] : 0.0; }
};

// The parameters of one product, and what keeps them.
template <class Device>
class Parameters {
 public:
  explicit Parameters(OpContext<Device>& op) : op_(op) {}

  Result<PerLine<Device>> read(int64_t input, const Shape& shape, int64_t axis) {
    PerLine<Device> line;
    if (!op_.has_input(input)) return line;
    const Tensor& tensor = op_.input(input);
    const bool is_read_as_it_is = !GpuDevice<Device> || !is_narrow_quantized(tensor.dtype());
    const TensorView numbers = is_read_as_it_is ? tensor.view() : PX_TRY(decoded(op_, tensor.view()));
    kept_.push_back(PX_TRY(converted<double>(op_.queue(), numbers, is_read_as_it_is && op_.is_constant(input))));
    line.values = {kept_.back().get()};
    if (tensor.element_count() == 1) return line;
    if (axis < 0 || axis >= rank_of(shape)) return wrong_input(op_, input, "be one number");
    line.dim = dim_of(shape, axis);
    line.inner = product(Ints(shape), axis + 1, rank_of(shape));
    if (tensor.element_count() != line.dim)
      return wrong_input(op_, input, "have 1 or {} elements, one for each index along axis {}", line.dim, axis);
    return line;
  }
  Result<PerLine<Device>> single(int64_t input) {
    if (op_.input(input).element_count() != 1) return wrong_input(op_, input, "be one number");
    return read(input, Shape{1}, 0);
  }

 private:
  OpContext<Device>& op_;
  std::vector<std::shared_ptr<const double>> kept_;
};

// x - zero point: exactly in int64; 8-bit floats in double.
template <class Device, class C>
struct Centered {
  Source x;
  PerLine<Device> zero;
  PX_HD C operator()(int64_t element) const {
    return element_of<Device, C>(x, element) - static_cast<C>(zero(element));
  }
};

template <class C, class Device>
Result<C*> centered(OpContext<Device>& op, int64_t input, const PerLine<Device>& zero) {
  const Tensor& tensor = op.input(input);
  const MutableView wide = PX_TRY(op.scratch(storage_of<C>(), tensor.shape()));
  if (tensor.element_count() == 0) return reinterpret_cast<C*>(wide.data);
  TensorView numbers = tensor.view();
  if constexpr (GpuDevice<Device>) {
    if (is_narrow_quantized(tensor.dtype())) numbers = PX_TRY(decoded(op, numbers));
    tabulate<C>(op.queue(), Centered<Device, C>{source_of(numbers), zero}, wide);
  } else {  // as [lines around, lines, numbers of a line]
    numbers.shape = Shape{tensor.element_count() / (zero.dim * zero.inner), zero.dim, zero.inner};
    const MutableView target{wide.dtype, numbers.shape, wide.data};
    const auto* zeros = reinterpret_cast<const std::byte*>(zero.values.data);
    if (zeros == nullptr) {
      map_as<C, C>(op.queue(), Same{}, target, std::array{numbers});
    } else {
      map_as<C, C>(op.queue(), Sub{}, target,
                   std::array{numbers, TensorView{DType::float64, Shape{zero.dim, 1}, zeros, {}}});
    }
  }
  return reinterpret_cast<C*>(wide.data);
}

// An input as the host's products of bytes take it; nothing where it has zero points that differ.
template <class Device>
std::optional<QuantizedValues> quantized_values_of(OpContext<Device>& op, int64_t input, const PerLine<Device>& zero) {
  const Tensor& tensor = op.input(input);
  const bool is_signed = tensor.dtype() == DType::int8;
  if (!is_signed && tensor.dtype() != DType::uint8) return std::nullopt;
  const double* const zeros = zero.values.data;
  for (int64_t line = 1; zeros != nullptr && line < zero.dim; ++line) {
    if (zeros[line] != zeros[0]) return std::nullopt;
  }
  const double its_zero = zeros == nullptr || zero.dim == 0 ? 0.0 : zeros[0];
  const double lowest = is_signed ? INT8_MIN : 0;
  if (its_zero < lowest || its_zero > lowest + UINT8_MAX) return std::nullopt;
  return QuantizedValues{tensor.view().data, is_signed, static_cast<int32_t>(its_zero), op.is_constant(input)};
}

// Two inputs that are multiplied, each with its zero points.
template <class Device>
struct Factors {
  int64_t left = 0, right = 1;
  PerLine<Device> left_zeros, right_zeros;
};

[[maybe_unused]] Status multiply_on_panels(Queue<Cpu>& queue, const GemmProblem& problem, const QuantizedValues& a,
                                           const QuantizedValues& b, const Int8Result& c) {
  return gemm(queue, problem, a, b, c);
}
[[maybe_unused]] Status multiply_on_panels(Queue<Cpu>& queue, const ConvProblem& problem, const QuantizedValues& x,
                                           const QuantizedValues& filters, const Int8Result& y) {
  return conv(queue, problem, x, filters, y);
}

// The sums in int32 where the host has products of bytes for them. False: nothing was done.
template <class Problem, class Device>
Result<bool> int8_sums(OpContext<Device>& op, const Problem& problem, const Factors<Device>& factors, std::byte* sums) {
  if constexpr (!GpuDevice<Device>) {
    const auto left = quantized_values_of(op, factors.left, factors.left_zeros);
    const auto right = quantized_values_of(op, factors.right, factors.right_zeros);
    if (!left.has_value() || !right.has_value()) return false;
    if (suits_int8_panels(problem, *right)) {
      const Int8Result result{sums, DType::int32, {}, 0, nullptr};
      PX_TRY(multiply_on_panels(op.queue(), problem, *left, *right, result));
      return true;
    }
    if (!suits_int8_gemm(problem)) return false;
    auto* const y = reinterpret_cast<int32_t*>(sums);
    if constexpr (std::is_same_v<Problem, GemmProblem>) {
      PX_TRY(gemm(op.queue(), problem, *left, *right, y));
    } else {
      PX_TRY(conv(op.queue(), problem, *left, *right, y));
    }
    return true;
  }
  return false;
}

// A product of matrices, with shapes as in numpy.matmul.
template <class Device>
struct Matrices {
  GemmProblem problem;
  Factors<Device> factors;
  Shape shape;  // of the product
};

template <class Device>
Result<Matrices<Device>> matrices_of(OpContext<Device>& op, Parameters<Device>& parameters, const Ints& inputs) {
  const Shape& a = op.input(inputs[0]).shape();
  const Shape& b = op.input(inputs[2]).shape();
  MatmulShapes shapes = PX_TRY(matmul_shapes(a, b));
  const Factors<Device> factors{inputs[0], inputs[2], PX_TRY(parameters.read(inputs[1], a, rank_of(a) - 2)),
                                PX_TRY(parameters.read(inputs[3], b, rank_of(b) - 1))};
  return Matrices<Device>{std::move(shapes.problem), factors, std::move(shapes.out)};
}

// The sums in C.
template <class C, class Device>
Result<MutableView> summed_product(OpContext<Device>& op, const Matrices<Device>& matrices) {
  const Factors<Device>& factors = matrices.factors;
  const C* left = PX_TRY(centered<C>(op, factors.left, factors.left_zeros));
  const C* right = PX_TRY(centered<C>(op, factors.right, factors.right_zeros));
  const MutableView out = PX_TRY(op.scratch(storage_of<C>(), matrices.shape));
  PX_TRY(gemm(op.queue(), matrices.problem, left, right, reinterpret_cast<C*>(out.data)));
  return out;
}

template <class Device>
Status matmul_integer(OpContext<Device>& op) {
  Parameters<Device> parameters(op);
  const Matrices<Device> matrices = PX_TRY(matrices_of(op, parameters, {0, 2, 1, 3}));
  const MutableView y = PX_TRY(op.make_output(0, DType::int32, matrices.shape));
  if (PX_TRY(int8_sums(op, matrices.problem, matrices.factors, y.data))) return {};
  const MutableView sums = PX_TRY(summed_product<int64_t>(op, matrices));
  map_as<int64_t, int64_t>(op.queue(), Same{}, y, std::array<TensorView, 1>{TensorView(sums)});
  return {};
}

// The sums in int64, with a bias or without.
template <class Device>
Result<MutableView> summed_conv(OpContext<Device>& op, const ConvProblem& problem, const Shape& shape,
                                const Factors<Device>& factors, const int64_t* bias) {
  const int64_t* x = PX_TRY(centered<int64_t>(op, factors.left, factors.left_zeros));
  const int64_t* filters = PX_TRY(centered<int64_t>(op, factors.right, factors.right_zeros));
  const MutableView sums = PX_TRY(op.scratch(DType::int64, shape));
  PX_TRY(conv(op.queue(), problem, x, filters, bias, reinterpret_cast<int64_t*>(sums.data)));
  return sums;
}

template <class Device>
Status conv_integer(OpContext<Device>& op) {
  ConvProblem problem = PX_TRY(conv_problem(op, op.input(0).shape(), op.input(1).shape()));
  problem.filters_are_constant = false;
  Parameters<Device> parameters(op);
  const Factors<Device> factors{0, 1, PX_TRY(parameters.read(2, op.input(0).shape(), 1)),
                                PX_TRY(parameters.read(3, op.input(1).shape(), 0))};
  const MutableView y = PX_TRY(op.make_output(0, DType::int32, output_shape(problem)));
  if (PX_TRY(int8_sums(op, problem, factors, y.data))) return {};
  const MutableView sums = PX_TRY(summed_conv(op, problem, y.shape, factors, nullptr));
  map_as<int64_t, int64_t>(op.queue(), Same{}, y, std::array<TensorView, 1>{TensorView(sums)});
  return {};
}

// The scale of a sum: a * b / y.
template <class Device>
struct Scales {
  PerLine<Device> a, b, y, zero;
  PX_HD double operator()(int64_t element) const { return a(element) * b(element) / y(element); }
};

// sum * scale rounded to even, plus the zero point, clamped to the type's range.
template <class Device, class C>
struct Requantized {
  Elements<Device, const C> sums;
  Scales<Device> scales;
  double low, high;
  PX_HD double scaled(int64_t element) const {
    if constexpr (std::is_same_v<C, double>) return sums[element] * scales(element);
    return static_cast<double>(static_cast<float>(sums[element]) * static_cast<float>(scales(element)));
  }
  PX_HD int64_t operator()(int64_t element) const {
    const double quotient = scaled(element);
    if (quotient != quotient) return static_cast<int64_t>(scales.zero(element));
    const double value = std::nearbyint(quotient) + scales.zero(element);
    return static_cast<int64_t>(value < low ? low : (value > high ? high : value));
  }
};

// The rescaled sum before it is rounded to an 8-bit float.
template <class Device, class C>
struct Rescaled {
  Requantized<Device, C> element;
  PX_HD double operator()(int64_t i) const { return element.scaled(i) + element.scales.zero(i); }
};

// The scales by line for sums on the host, where there is one scale for all or one for each line along one axis.
template <class Device>
std::optional<QuantizedLines> lines_of(const Scales<Device>& scales, DType dtype, int64_t count) {
  const PerLine<Device>* longest = &scales.a;
  for (const PerLine<Device>* each : {&scales.b, &scales.y, &scales.zero}) {
    if (each->dim > longest->dim) longest = each;
  }
  for (const PerLine<Device>* each : {&scales.a, &scales.b, &scales.y, &scales.zero}) {
    if (each->dim != 1 && (each->dim != longest->dim || each->inner != longest->inner)) return std::nullopt;
  }
  QuantizedLines lines{count, longest->inner, {}, {}};
  for (int64_t line = 0; line < longest->dim; ++line) {
    lines.scales.push_back(static_cast<float>(scales(line * longest->inner)));
    lines.zeros.push_back(static_cast<float>(scales.zero(line * longest->inner)));
  }
  return suits_lines(dtype, lines) ? std::optional(std::move(lines)) : std::nullopt;
}

// Computes the quantized product where the host quantizes along with the sums, of a result with `inner` adjacent
// elements of each of its `columns`. Returns false where nothing was done.
template <class Problem, class Device>
Result<bool> int8_values(OpContext<Device>& op, const Problem& problem, const Factors<Device>& factors,
                         const Scales<Device>& scales, const Shape& shape, int64_t columns, int64_t inner, DType dtype,
                         const int64_t* bias) {
  if constexpr (!GpuDevice<Device>) {
    const auto left = quantized_values_of(op, factors.left, factors.left_zeros);
    const auto right = quantized_values_of(op, factors.right, factors.right_zeros);
    if (!left.has_value() || !right.has_value() || !suits_int8_panels(problem, *right)) return false;
    if (dtype != DType::int8 && dtype != DType::uint8) return false;
    auto lines = lines_of(scales, dtype, shape.element_count());
    if (!lines.has_value()) return false;
    const auto count = static_cast<int64_t>(lines->scales.size());
    const bool has_one_zero =
        std::all_of(lines->zeros.begin(), lines->zeros.end(), [&](float zero) { return zero == lines->zeros.front(); });
    if ((count != 1 && (count != columns || lines->inner != inner)) || !has_one_zero) return false;
    const MutableView y = PX_TRY(op.make_output(0, dtype, shape));
    const Int8Result result{y.data, dtype, std::move(lines->scales), lines->zeros.front(), bias};
    PX_TRY(multiply_on_panels(op.queue(), problem, *left, *right, result));
    return true;
  }
  return false;
}

template <class C, class Device>
Status requantize(OpContext<Device>& op, const Scales<Device>& scales, const MutableView& sums, DType dtype) {
  Requantized<Device, C> element{{reinterpret_cast<const C*>(sums.data)}, scales, 0, 0};
  const MutableView y = PX_TRY(op.make_output(0, dtype, sums.shape));
  if (y.element_count() == 0) return {};
  if constexpr (!GpuDevice<Device> && std::is_integral_v<C>) {
    if (const auto lines = lines_of(scales, dtype, sums.element_count())) {
      requantize_lines(op.queue(), *lines, reinterpret_cast<const C*>(sums.data), dtype, y.data);
      return {};
    }
  }
  if (is_floating(dtype)) {
    const MutableView wide = PX_TRY(op.scratch(DType::float64, sums.shape));
    tabulate<double>(op.queue(), Rescaled<Device, C>{element}, wide);
    return encode(op, TensorView(wide), y, {});
  }
  const bool is_signed = info_of(dtype).kind == DTypeKind::signed_integer;
  const int bits = bits_of(dtype);
  element.low = is_signed ? -std::ldexp(1.0, bits - 1) : 0.0;
  element.high = std::ldexp(1.0, is_signed ? bits - 1 : bits) - 1;
  tabulate<int64_t>(op.queue(), element, y);
  return {};
}

template <class Device>
Status qlinear_matmul(OpContext<Device>& op) {
  Parameters<Device> parameters(op);
  const Matrices<Device> matrices = PX_TRY(matrices_of(op, parameters, {0, 2, 3, 5}));
  const Shape& shape = matrices.shape;
  Scales<Device> scales;
  scales.a = PX_TRY(parameters.read(1, shape, rank_of(shape) - 2));
  scales.b = PX_TRY(parameters.read(4, shape, rank_of(shape) - 1));
  scales.y = PX_TRY(parameters.read(6, shape, rank_of(shape) - 2));
  scales.zero = PX_TRY(parameters.read(7, shape, rank_of(shape) - 2));
  const DType dtype = op.input(7).dtype();
  if (!is_integer(op.input(0).dtype()) || !is_integer(op.input(3).dtype()))
    return requantize<double>(op, scales, PX_TRY(summed_product<double>(op, matrices)), dtype);
  if constexpr (!GpuDevice<Device>) {
    const int64_t columns = matrices.problem.n;
    if (PX_TRY(int8_values(op, matrices.problem, matrices.factors, scales, shape, columns, 1, dtype, nullptr)))
      return {};
    const MutableView sums = PX_TRY(op.scratch(DType::int32, shape));
    if (PX_TRY(int8_sums(op, matrices.problem, matrices.factors, sums.data)))
      return requantize<int32_t>(op, scales, sums, dtype);
  }
  return requantize<int64_t>(op, scales, PX_TRY(summed_product<int64_t>(op, matrices)), dtype);
}

// True where no sum leaves int32 with its bias (none: null). For the host only.
[[maybe_unused]] bool has_room_for(const ConvProblem& problem, const int64_t* bias) {
  const int64_t terms = problem.in_channels / problem.groups * product(problem.kernel);
  const int64_t room = INT32_MAX - UINT8_MAX * UINT8_MAX * terms;
  const auto fits = [=](int64_t each) { return -room <= each && each <= room; };
  return bias == nullptr || std::all_of(bias, bias + problem.out_channels, fits);
}

// Adds to each channel its bias, for which there is room. The host's alone.
[[maybe_unused]] void add_bias(const ConvProblem& problem, const int64_t* bias, std::byte* to) {
  const int64_t locations = product(problem.out_spatial);
  for (int64_t line = 0; line < problem.batch * problem.out_channels; ++line) {
    const auto added = static_cast<int32_t>(bias[line % problem.out_channels]);
    auto* const sums = reinterpret_cast<int32_t*>(to) + line * locations;
    vectorized(0, locations, [=](int64_t first, int64_t last) {
      int32_t* const target = sums;
      const int32_t more = added;
      for (int64_t i = first; i < last; ++i) target[i] += more;
    });
  }
}

template <class Device>
Status qlinear_conv(OpContext<Device>& op) {
  ConvProblem problem = PX_TRY(conv_problem(op, op.input(0).shape(), op.input(3).shape()));
  problem.filters_are_constant = false;
  const Shape shape = PX_TRY(output_shape(problem));
  Parameters<Device> parameters(op);
  const Factors<Device> factors{0, 3, PX_TRY(parameters.read(2, op.input(0).shape(), 1)),
                                PX_TRY(parameters.read(5, op.input(3).shape(), 0))};
  std::shared_ptr<const int64_t> bias;
  if (op.has_input(8)) {
    if (op.input(8).element_count() != problem.out_channels)
      return wrong_input(op, 8, "have {} elements, one for each output channel", problem.out_channels);
    bias = PX_TRY(converted<int64_t>(op.queue(), op.input(8).view(), op.is_constant(8)));
  }
  Scales<Device> scales;
  scales.a = PX_TRY(parameters.single(1));
  scales.b = PX_TRY(parameters.read(4, shape, 1));
  scales.y = PX_TRY(parameters.single(6));
  scales.zero = PX_TRY(parameters.single(7));
  const DType dtype = op.input(7).dtype();
  if constexpr (!GpuDevice<Device>) {
    const int64_t locations = product(problem.out_spatial);
    if (has_room_for(problem, bias.get()) &&
        PX_TRY(int8_values(op, problem, factors, scales, shape, problem.out_channels, locations, dtype, bias.get())))
      return {};
    const MutableView sums = PX_TRY(op.scratch(DType::int32, shape));
    if (has_room_for(problem, bias.get()) && PX_TRY(int8_sums(op, problem, factors, sums.data))) {
      if (bias != nullptr) add_bias(problem, bias.get(), sums.data);
      return requantize<int32_t>(op, scales, sums, dtype);
    }
  }
  return requantize<int64_t>(op, scales, PX_TRY(summed_conv(op, problem, shape, factors, bias.get())), dtype);
}

template <class Device>
constexpr KernelRow<Device> kQuantizedProductRows[] = {
    {"ConvInteger", kBytes, conv_integer<Device>},
    {"MatMulInteger", kBytes, matmul_integer<Device>},
    {"QLinearConv", kBytes, qlinear_conv<Device>},
    {"QLinearMatMul", kBytes | kFloat8, qlinear_matmul<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> quantized_product_rows() {
  return kQuantizedProductRows<CompiledDevice>;
}

}  // namespace parallax::runtime
