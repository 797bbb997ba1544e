// SPDX-License-Identifier: Apache-2.0
// com.microsoft's operators on whole tensors: CDist, ComplexMul, ComplexMulConj, Irfft.
// Definitions: onnxruntime's ContribOperators.md; CDist's metrics are those of scipy.spatial.distance.cdist.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/device/gpu/element_of.h"
#include "runtime/ops/contrib_families.h"
#include "runtime/ops/indices.h"
#include "runtime/ops/inner_op.h"

namespace parallax::runtime {
namespace {

// ---- CDist: a metric is a fold over the pairs of numbers of two rows ----

struct SquaredEuclidean {
  static constexpr bool kIsCentered = false;
  double squares = 0;
  PX_HD void add(double x, double y) { squares += (x - y) * (x - y); }
  PX_HD double distance(int64_t) const { return squares; }
};
struct Euclidean : SquaredEuclidean {
  PX_HD double distance(int64_t) const { return std::sqrt(squares); }
};
struct Cityblock {
  static constexpr bool kIsCentered = false;
  double gaps = 0;
  PX_HD void add(double x, double y) { gaps += std::fabs(x - y); }
  PX_HD double distance(int64_t) const { return gaps; }
};
struct Braycurtis {
  static constexpr bool kIsCentered = false;
  double gaps = 0, totals = 0;
  PX_HD void add(double x, double y) {
    gaps += std::fabs(x - y);
    totals += std::fabs(x + y);
  }
  PX_HD double distance(int64_t) const { return gaps / totals; }
};
struct Canberra {
  static constexpr bool kIsCentered = false;
  double ratios = 0;
  PX_HD void add(double x, double y) {
    const double size = std::fabs(x) + std::fabs(y);
    ratios += size == 0.0 ? 0.0 : std::fabs(x - y) / size;
  }
  PX_HD double distance(int64_t) const { return ratios; }
};
struct Chebyshev {
  static constexpr bool kIsCentered = false;
  double greatest = 0;
  PX_HD void add(double x, double y) { greatest = std::fmax(greatest, std::fabs(x - y)); }
  PX_HD double distance(int64_t) const { return greatest; }
};
struct Cosine {
  static constexpr bool kIsCentered = false;
  double dot = 0, x_norm = 0, y_norm = 0;
  PX_HD void add(double x, double y) {
    dot += x * y;
    x_norm += x * x;
    y_norm += y * y;
  }
  PX_HD double distance(int64_t) const { return 1 - dot / std::sqrt(x_norm * y_norm); }
};
struct Correlation : Cosine {
  static constexpr bool kIsCentered = true;
};
struct Hamming {
  static constexpr bool kIsCentered = false;
  double different = 0;
  PX_HD void add(double x, double y) { different += x != y ? 1.0 : 0.0; }
  PX_HD double distance(int64_t width) const { return different / static_cast<double>(width); }
};

template <class Device>
struct RowMean {
  Elements<Device, const double> numbers;
  int64_t width;
  PX_HD double operator()(int64_t row) const {
    double sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += numbers[row * width + i];
    return sum / static_cast<double>(width);
  }
};

// Rows of one width; means are taken away where the metric is centered.
template <class Device>
struct MetricRows {
  Elements<Device, const double> numbers, means;
  PX_HD double mean(int64_t row) const { return means ? means[row] : 0.0; }
};

template <class Device, class Metric>
struct PairDistance {
  static constexpr int64_t kWork = 200;
  MetricRows<Device> a, b;
  int64_t columns, width;
  PX_HD double operator()(int64_t pair) const {
    const int64_t row = pair / columns, column = pair % columns;
    const double a_mean = a.mean(row), b_mean = b.mean(column);
    Metric metric;
    for (int64_t i = 0; i < width; ++i)
      metric.add(a.numbers[row * width + i] - a_mean, b.numbers[column * width + i] - b_mean);
    return metric.distance(width);
  }
};

template <class Device, class Metric>
Status distances(OpContext<Device>& op, const MutableView& y) {
  const int64_t width = dim_of(op.input(0).shape(), 1);
  std::shared_ptr<const double> numbers[2];
  MetricRows<Device> rows[2];
  for (int64_t input = 0; input < 2; ++input) {
    numbers[input] = PX_TRY(converted<double>(op.queue(), op.input(input).view(), op.is_constant(input)));
    rows[input].numbers = {numbers[input].get()};
    if (!Metric::kIsCentered) continue;
    const MutableView means = PX_TRY(op.scratch(DType::float64, Shape{dim_of(op.input(input).shape(), 0)}));
    tabulate<double>(op.queue(), RowMean<Device>{rows[input].numbers, width}, means);
    rows[input].means = {reinterpret_cast<const double*>(means.data)};
  }
  tabulate<double>(op.queue(), PairDistance<Device, Metric>{rows[0], rows[1], dim_of(y.shape, 1), width}, y);
  return {};
}

template <class Device>
struct NamedMetric {
  std::string_view name;
  Status (*run)(OpContext<Device>& op, const MutableView& y);
};
template <class Device>
constexpr NamedMetric<Device> kMetrics[] = {
    {"braycurtis", distances<Device, Braycurtis>},        {"canberra", distances<Device, Canberra>},
    {"chebyshev", distances<Device, Chebyshev>},          {"cityblock", distances<Device, Cityblock>},
    {"correlation", distances<Device, Correlation>},      {"cosine", distances<Device, Cosine>},
    {"euclidean", distances<Device, Euclidean>},          {"hamming", distances<Device, Hamming>},
    {"sqeuclidean", distances<Device, SquaredEuclidean>},
};

template <class Device>
Status cdist(OpContext<Device>& op) {
  const Shape& a = op.input(0).shape();
  const Shape& b = op.input(1).shape();
  const std::string name = op.text("metric");
  const auto* metric = std::find_if(std::begin(kMetrics<Device>), std::end(kMetrics<Device>),
                                    [&](const NamedMetric<Device>& each) { return each.name == name; });
  if (metric == std::end(kMetrics<Device>))
    return unsupported(
        fmt::format("attribute 'metric' is '{}'; braycurtis, canberra, chebyshev, cityblock, correlation, cosine, "
                    "euclidean, hamming and sqeuclidean have kernels here",
                    name));
  if (a.rank() != 2 || b.rank() != 2 || a[1] != b[1])
    return wrong_input(op, 1, "have rank 2 and the width of A, {}, of rank 2", a.to_string());
  const MutableView y = PX_TRY(op.make_output(0, op.input(0).dtype(), shape_of({a[0], b[0]})));
  return y.element_count() == 0 ? Status{} : metric->run(op, y);
}

// ---- Complex products: the last axis holds real and imaginary part ----

// A part of one number of the result; b is conjugated where `sign` is -1.
template <class Device, class C>
struct ComplexProduct {
  Elements<Device, const C> a, b;
  Axes dims, a_strides, b_strides;  // in complex numbers
  double sign;
  PX_HD double operator()(int64_t part) const {
    int64_t rest = part / 2, at_a = 0, at_b = 0;
    for (int axis = dims.count - 1; axis >= 0; --axis) {
      const int64_t position = axis == 0 ? rest : rest % dims[axis];
      rest = axis == 0 ? 0 : rest / dims[axis];
      at_a += position * a_strides[axis];
      at_b += position * b_strides[axis];
    }
    const double x = a[2 * at_a], x_imaginary = a[2 * at_a + 1], y = b[2 * at_b], y_imaginary = b[2 * at_b + 1];
    if (part % 2 == 0) return x * y - sign * x_imaginary * y_imaginary;
    return x_imaginary * y + sign * x * y_imaginary;
  }
};

// A view of complex numbers as if each were one element.
Result<TensorView> pairs_of(const Tensor& tensor) {
  Ints dims(tensor.shape());
  dims.truncate(dims.size() - 1);
  return TensorView{tensor.dtype(), PX_TRY(shape_of(dims)), tensor.view().data, tensor.device()};
}

template <class Device, int kSign>
Status complex_product(OpContext<Device>& op) {
  const Shape& a = op.input(0).shape();
  const Shape& b = op.input(1).shape();
  if (a.rank() == 0 || b.rank() == 0 || a[a.rank() - 1] != 2 || b[b.rank() - 1] != 2)
    return wrong_input(op, a.rank() == 0 || a[a.rank() - 1] != 2 ? 0 : 1,
                       "have a last axis of 2: real and imaginary part");
  const Shape shapes[] = {a, b};
  const MutableView y = PX_TRY(op.make_output(0, op.input(0).dtype(), broadcast_shapes(shapes)));
  if (y.element_count() == 0) return {};
  Ints dims(y.shape);
  dims.truncate(dims.size() - 1);
  const std::array<TensorView, 2> pairs{PX_TRY(pairs_of(op.input(0))), PX_TRY(pairs_of(op.input(1)))};
  const Shape numbers = PX_TRY(shape_of(dims));
  const MapPlan<2> plan = plan_map(numbers, pairs);
  return visit_arithmetic<Floats>(y.dtype, [&](auto zero) -> Status {
    using C = decltype(zero);
    const auto left = PX_TRY(converted<C>(op.queue(), op.input(0).view(), op.is_constant(0)));
    const auto right = PX_TRY(converted<C>(op.queue(), op.input(1).view(), op.is_constant(1)));
    const ComplexProduct<Device, C> product{{left.get()},          {right.get()},         Axes(plan.dims),
                                            Axes(plan.strides[0]), Axes(plan.strides[1]), kSign};
    tabulate<double>(op.queue(), product, y);
    return {};
  });
}

// ---- Irfft ----

// A part of [rows, n, 2], from [rows, n / 2 + 1, 2]: the upper half of a real signal's spectrum is the conjugate of the
// lower; it is real at 0 and at n / 2.
template <class Device>
struct WholeSpectrum {
  Source x;
  int64_t half, n;
  PX_HD double operator()(int64_t part) const {
    const int64_t row = part / 2 / n, k = part / 2 % n;
    const int64_t at = (row * half + (k < half ? k : n - k)) * 2;
    if (part % 2 == 0) return element_of<Device, double>(x, at);
    if (k == 0 || k == n / 2) return 0;
    const double imaginary = element_of<Device, double>(x, at + 1);
    return k < half ? imaginary : -imaginary;
  }
};

template <class Device>
struct RealPart {
  Elements<Device, const double> parts;
  PX_HD double operator()(int64_t i) const { return parts[2 * i]; }
};

Status check_fft(const OpCall& op) {
  if (op.integer("normalized") != 0 || op.integer("onesided") != 1 || op.integer("signal_ndim") != 1)
    return unsupported("normalized, onesided or signal_ndim is another than 0, 1 and 1; only these have a kernel here");
  return {};
}

template <class Device>
Status irfft(OpContext<Device>& op) {
  PX_TRY(check_fft(op));
  Ints dims(op.input(0).shape());
  const int64_t rank = dims.size();
  if (rank < 2 || dims[rank - 1] != 2 || dims[rank - 2] < 2)
    return wrong_input(op, 0, "be [...,n / 2 + 1,2]: real and imaginary parts");
  const int64_t half = dims[rank - 2], n = 2 * (half - 1), rows = product(dims, 0, rank - 2);
  dims.truncate(rank - 2);
  dims.push_back(n);
  const MutableView y = PX_TRY(op.make_output(0, op.input(0).dtype(), shape_of(dims)));
  if (rows == 0) return {};
  const Shape pairs = PX_TRY(shape_of({rows, n, 2}));
  const Tensor whole = PX_TRY(op.queue().allocate(DType::float64, pairs));
  tabulate<double>(op.queue(), WholeSpectrum<Device>{source_of(op.input(0).view()), half, n}, writable(whole));
  const Tensor signal =
      PX_TRY(run_inner(op, {"DFT", 17, {int_attribute("axis", 1), int_attribute("inverse", 1)}}, {whole}));
  tabulate<double>(op.queue(), RealPart<Device>{{reinterpret_cast<const double*>(signal.view().data)}}, y);
  return {};
}

template <class Device>
constexpr KernelRow<Device> kContribTensorRows[] = {
    of_microsoft<Device>({"CDist", kFloats, cdist<Device>}),
    of_microsoft<Device>({"ComplexMul", kFloats, complex_product<Device, 1>}),
    of_microsoft<Device>({"ComplexMulConj", kFloats, complex_product<Device, -1>}),
    of_microsoft<Device>({"Irfft", kFloats, irfft<Device>}),
};

}  // namespace

template <>
Rows<CompiledDevice> contrib_tensor_rows() {
  return kContribTensorRows<CompiledDevice>;
}

}  // namespace parallax::runtime
