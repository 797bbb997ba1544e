// MatMulInteger, QLinearMatMul and QLinearConv: exact integer products, then one rounding to the output's scale.
#include <cmath>

#include <fmt/format.h>

#include "runtime/device/gemm.h"
#include "runtime/device/map.h"
#include "runtime/device/window.h"
#include "runtime/ops/families.h"
#include "runtime/ops/spatial.h"

namespace parallax::runtime {
namespace {

// One number for all, or one for each line along an axis: value of element i.
struct PerLine {
  std::vector<double> values{0.0};
  int64_t inner = 1;
  int64_t dim = 1;
  double operator()(int64_t element) const {
    return values.size() == 1 ? values[0] : values.data()[element / inner % dim];
  }
};

Result<PerLine> per_line(const OpCall& op, int64_t input, const Shape& shape, int64_t axis) {
  PerLine result;
  if (!op.has_input(input)) return result;
  const Tensor& tensor = op.input(input);
  result.values.resize(static_cast<size_t>(tensor.element_count()));
  load_block<double>(tensor.dtype(), tensor.view().data, 0, 1, tensor.element_count(), result.values.data());
  if (tensor.element_count() == 1) return result;
  result.dim = dim_of(shape, axis);
  result.inner = product(Ints(shape), axis + 1, rank_of(shape));
  if (tensor.element_count() != result.dim)
    return execution_error(fmt::format("input {} does not fit its axis", input));
  return result;
}

// x - zero point, exactly.
template <class Device>
Result<int64_t*> centred(OpContext<Device>& op, int64_t input, const PerLine& zero) {
  const Tensor& tensor = op.input(input);
  const MutableView wide = PX_TRY(op.scratch(DType::int64, tensor.shape()));
  int64_t* values = wide.template as<int64_t>();
  load_block<int64_t>(tensor.dtype(), tensor.view().data, 0, 1, tensor.element_count(), values);
  for (int64_t i = 0; i < tensor.element_count(); ++i) values[i] -= static_cast<int64_t>(zero(i));
  return values;
}

struct IntegerProduct {
  Shape shape;
  int64_t* values = nullptr;
};

// The matrices of the last two axes; leading axes of B may be missing or those of A.
template <class Device>
Result<IntegerProduct> integer_product(OpContext<Device>& op, int64_t a_input, int64_t a_zero, int64_t b_input,
                                       int64_t b_zero) {
  const Ints a(op.input(a_input).shape()), b(op.input(b_input).shape());
  if (a.size() < 2 || b.size() < 2 || a.back() != b[b.size() - 2]) return execution_error("A and B do not multiply");
  GemmProblem problem;
  problem.m = a[a.size() - 2];
  problem.k = a.back();
  problem.n = b.back();
  const int64_t batch = product(a, 0, a.size() - 2);
  const int64_t b_batch = product(b, 0, b.size() - 2);
  if (b_batch != 1 && b_batch != batch) return execution_error("the batches of A and B differ");
  problem.a_offsets = Ints(batch);
  problem.b_offsets = Ints(batch);
  for (int64_t i = 0; i < batch; ++i) {
    problem.a_offsets[i] = i * problem.m * problem.k;
    problem.b_offsets[i] = b_batch == 1 ? 0 : i * problem.k * problem.n;
  }
  const PerLine a_zeros = PX_TRY(per_line(op, a_zero, op.input(a_input).shape(), a.size() - 2));
  const PerLine b_zeros = PX_TRY(per_line(op, b_zero, op.input(b_input).shape(), b.size() - 1));
  const int64_t* left = PX_TRY(centred(op, a_input, a_zeros));
  const int64_t* right = PX_TRY(centred(op, b_input, b_zeros));
  Ints dims = a;
  dims[dims.size() - 1] = problem.n;
  const Shape shape = PX_TRY(shape_of(dims));
  const MutableView out = PX_TRY(op.scratch(DType::int64, shape));
  PX_TRY(gemm(op.queue(), problem, left, right, out.template as<int64_t>()));
  return IntegerProduct{shape, out.template as<int64_t>()};
}

template <class Device>
Status matmul_integer(OpContext<Device>& op) {
  const IntegerProduct product_of = PX_TRY(integer_product(op, 0, 2, 1, 3));
  const MutableView y = PX_TRY(op.make_output(0, DType::int32, product_of.shape));
  store_block<int64_t>(DType::int32, y.data, 0, y.element_count(), product_of.values);
  return {};
}

// sum * factor(i) rounded to even, plus zero(i), clamped to the type's range.
template <class Factor>
void requantize(const int64_t* sums, const Factor& factor, const PerLine& zero, const MutableView& y) {
  const bool is_signed = info_of(y.dtype).kind == DTypeKind::signed_integer;
  const int bits = bits_of(y.dtype);
  const double low = is_signed ? -std::ldexp(1.0, bits - 1) : 0.0;
  const double high = std::ldexp(1.0, is_signed ? bits - 1 : bits) - 1;
  for (int64_t i = 0; i < y.element_count(); ++i) {
    const float scaled = static_cast<float>(sums[i]) * static_cast<float>(factor(i));
    const auto value =
        static_cast<int64_t>(std::clamp(std::nearbyint(static_cast<double>(scaled)) + zero(i), low, high));
    store_block<int64_t>(y.dtype, y.data, i, 1, &value);
  }
}

template <class Device>
Status qlinear_matmul(OpContext<Device>& op) {
  const IntegerProduct product_of = PX_TRY(integer_product(op, 0, 2, 3, 5));
  const Shape& shape = product_of.shape;
  const PerLine a_scale = PX_TRY(per_line(op, 1, shape, rank_of(shape) - 2));
  const PerLine b_scale = PX_TRY(per_line(op, 4, shape, rank_of(shape) - 1));
  const PerLine y_scale = PX_TRY(per_line(op, 6, shape, rank_of(shape) - 2));
  const PerLine y_zero = PX_TRY(per_line(op, 7, shape, rank_of(shape) - 2));
  const MutableView y = PX_TRY(op.make_output(0, op.input(7).dtype(), shape));
  requantize(
      product_of.values, [&](int64_t i) { return a_scale(i) * b_scale(i) / y_scale(i); }, y_zero, y);
  return {};
}

template <class Device>
Status qlinear_conv(OpContext<Device>& op) {
  const Ints x(op.input(0).shape()), w(op.input(3).shape());
  const int64_t groups = op.find_integer("group").value_or(1);
  if (x.size() < 3 || x.size() != w.size() || groups < 1 || x[1] != w[1] * groups || w[0] % groups != 0) {
    return execution_error("x and w do not fit together");
  }
  Ints spatial, kernel;
  for (int64_t axis = 2; axis < x.size(); ++axis) {
    spatial.push_back(x[axis]);
    kernel.push_back(w[axis]);
  }
  const WindowAttributes window = PX_TRY(window_attributes(op, spatial, kernel));
  const WindowGeometry geometry{spatial,        window.out_spatial, kernel,
                                window.strides, window.dilations,   window.pads_begin};
  Ints dims{x[0], w[0]};
  for (int64_t dim : window.out_spatial) dims.push_back(dim);
  const Shape shape = PX_TRY(shape_of(dims));
  const PerLine x_zero = PX_TRY(per_line(op, 2, op.input(0).shape(), 1));
  const PerLine w_zero = PX_TRY(per_line(op, 5, op.input(3).shape(), 0));
  const int64_t* values = PX_TRY(centred(op, 0, x_zero));
  const int64_t* filters = PX_TRY(centred(op, 3, w_zero));
  const PerLine w_scale = PX_TRY(per_line(op, 4, shape, 1));
  const double x_scale = PX_TRY(op.real_of_input(1));
  const double y_scale = PX_TRY(op.real_of_input(6));
  PerLine y_zero;
  y_zero.values = {PX_TRY(op.real_of_input(7))};
  const MutableView sums = PX_TRY(op.scratch(DType::int64, shape));
  const int64_t in_plane = product(spatial), out_plane = product(window.out_spatial), taps = product(kernel);
  const int64_t per_group = w[0] / groups;
  for (int64_t plane = 0; plane < x[0] * w[0]; ++plane) {
    const int64_t channel = plane % w[0];
    const int64_t first = plane / w[0] * x[1] + channel / per_group * w[1];
    int64_t position[Shape::kMaxRank] = {};
    for (int64_t place = 0; place < out_plane; ++place, advance(position, window.out_spatial)) {
      int64_t sum = op.has_input(8) ? load_element<int64_t>(DType::int32, op.input(8).view().data, channel) : 0;
      for_each_tap(geometry, position, [&](int64_t offset, int64_t tap) {
        for (int64_t c = 0; c < w[1]; ++c) {
          sum += values[(first + c) * in_plane + offset] * filters[(channel * w[1] + c) * taps + tap];
        }
      });
      sums.template as<int64_t>()[plane * out_plane + place] = sum;
    }
  }
  const MutableView y = PX_TRY(op.make_output(0, op.input(7).dtype(), shape));
  requantize(
      sums.template as<int64_t>(), [&](int64_t i) { return x_scale * w_scale(i) / y_scale; }, y_zero, y);
  return {};
}

constexpr uint32_t kBytes = dtype_bits({DType::int8, DType::uint8});

template <class Device>
constexpr KernelRow<Device> kRows[] = {
    {"MatMulInteger", kBytes, matmul_integer<Device>},
    {"QLinearConv", kBytes, qlinear_conv<Device>},
    {"QLinearMatMul", kBytes, qlinear_matmul<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> quantized_product_rows() {
  return kRows<CompiledDevice>;
}

}  // namespace parallax::runtime
