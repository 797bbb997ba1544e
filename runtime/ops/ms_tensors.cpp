// com.microsoft's operators on whole tensors, on the host: CDist, ComplexMul, ComplexMulConj, Inverse, Irfft.
// Definitions: onnxruntime's ContribOperators.md; CDist's metrics are those of scipy.spatial.distance.cdist.
#include <cmath>

#include <fmt/format.h>

#include "runtime/device/blocks.h"
#include "runtime/device/map.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/families.h"
#include "runtime/ops/inner_op.h"

namespace parallax::runtime {
namespace {

using Context = OpContext<Cpu>;

std::vector<double> doubles_of(const Tensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.element_count()));
  load_block<double>(tensor.dtype(), tensor.view().data, 0, 1, tensor.element_count(), values.data());
  return values;
}

Status set_doubles(Context& op, DType dtype, const Shape& shape, const std::vector<double>& values) {
  const MutableView y = PX_TRY(op.make_output(0, dtype, shape));
  store_block<double>(dtype, y.data, 0, y.element_count(), values.data());
  return {};
}

// ---- CDist ----

// What is summed over a pair of rows; the distance is made of the sums at the end.
struct Pair {
  double squares = 0, absolutes = 0, greatest = 0, totals = 0, ratios = 0, different = 0, dot = 0, a_norm = 0,
         b_norm = 0;
};

Pair compare(const double* a, const double* b, int64_t width, double a_mean, double b_mean) {
  Pair pair;
  for (int64_t i = 0; i < width; ++i) {
    const double x = a[i] - a_mean;
    const double y = b[i] - b_mean;
    const double gap = std::fabs(x - y);
    pair.squares += gap * gap;
    pair.absolutes += gap;
    pair.greatest = std::fmax(pair.greatest, gap);
    pair.totals += std::fabs(x + y);
    const double size = std::fabs(x) + std::fabs(y);
    pair.ratios += size == 0.0 ? 0.0 : gap / size;
    pair.different += x != y ? 1.0 : 0.0;
    pair.dot += x * y;
    pair.a_norm += x * x;
    pair.b_norm += y * y;
  }
  return pair;
}

using Distance = double (*)(const Pair&, int64_t width);

struct Metric {
  std::string_view name;
  Distance distance;
  bool is_centred;
};

double cosine(const Pair& p, int64_t) { return 1 - p.dot / std::sqrt(p.a_norm * p.b_norm); }

constexpr Metric kMetrics[] = {
    {"braycurtis", [](const Pair& p, int64_t) { return p.absolutes / p.totals; }, false},
    {"canberra", [](const Pair& p, int64_t) { return p.ratios; }, false},
    {"chebyshev", [](const Pair& p, int64_t) { return p.greatest; }, false},
    {"cityblock", [](const Pair& p, int64_t) { return p.absolutes; }, false},
    {"correlation", cosine, true},
    {"cosine", cosine, false},
    {"euclidean", [](const Pair& p, int64_t) { return std::sqrt(p.squares); }, false},
    {"hamming", [](const Pair& p, int64_t width) { return p.different / static_cast<double>(width); }, false},
    {"sqeuclidean", [](const Pair& p, int64_t) { return p.squares; }, false},
};

double mean_of(const double* row, int64_t width) {
  double sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += row[i];
  return sum / static_cast<double>(width);
}

Status cdist(Context& op) {
  const Shape& a = op.input(0).shape();
  const Shape& b = op.input(1).shape();
  const std::string name = op.text("metric");
  const auto* metric =
      std::find_if(std::begin(kMetrics), std::end(kMetrics), [&](const Metric& each) { return each.name == name; });
  if (metric == std::end(kMetrics)) return unsupported(fmt::format("the metric '{}'", name));
  if (a.rank() != 2 || b.rank() != 2 || a[1] != b[1])
    return execution_error(fmt::format("A {} and B {} must be matrices of one width", a.to_string(), b.to_string()));
  const std::vector<double> left = doubles_of(op.input(0)), right = doubles_of(op.input(1));
  const Shape shape = PX_TRY(shape_of(Ints{a[0], b[0]}));
  std::vector<double> results(static_cast<size_t>(shape.element_count()));
  const int64_t width = a[1];
  parallel_for(a[0], b[0] * width * 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < b[0]; ++j) {
        const double* x = left.data() + i * width;
        const double* y = right.data() + j * width;
        const double x_mean = metric->is_centred ? mean_of(x, width) : 0.0;
        const double y_mean = metric->is_centred ? mean_of(y, width) : 0.0;
        results.data()[i * b[0] + j] = metric->distance(compare(x, y, width, x_mean, y_mean), width);
      }
    }
  });
  return set_doubles(op, op.input(0).dtype(), shape, results);
}

// ---- Complex products: the last axis holds real and imaginary part ----

Status complex_product(Context& op, double sign) {
  const Shape& a = op.input(0).shape();
  const Shape& b = op.input(1).shape();
  if (a.rank() == 0 || b.rank() == 0 || a[a.rank() - 1] != 2 || b[b.rank() - 1] != 2)
    return execution_error("the last axis must hold real and imaginary part");
  const Shape shapes[] = {a, b};
  const Shape shape = PX_TRY(broadcast_shapes(shapes));
  std::vector<std::vector<double>> wide;
  for (int64_t input = 0; input < 2; ++input) {
    const MutableView expanded = PX_TRY(op.scratch(DType::float64, shape));
    const auto same = [](double x) { return x; };
    map_as<double, double>(op.queue(), same, expanded, std::array<TensorView, 1>{op.input(input).view()});
    const double* values = reinterpret_cast<const double*>(expanded.data);
    wide.emplace_back(values, values + shape.element_count());
  }
  const std::vector<double>& x = wide[0];
  const std::vector<double>& y = wide[1];
  std::vector<double> results(x.size());
  for (size_t at = 0; at < x.size(); at += 2) {
    results[at] = x[at] * y[at] - sign * x[at + 1] * y[at + 1];
    results[at + 1] = x[at + 1] * y[at] + sign * x[at] * y[at + 1];
  }
  return set_doubles(op, op.input(0).dtype(), shape, results);
}
Status complex_mul(Context& op) { return complex_product(op, 1.0); }
Status complex_mul_conj(Context& op) { return complex_product(op, -1.0); }

// ---- Inverse: Gauss and Jordan, with the greatest pivot of each column ----

void invert(double* matrix, double* inverse, int64_t size) {
  std::fill_n(inverse, size * size, 0.0);
  for (int64_t row = 0; row < size; ++row) inverse[row * size + row] = 1.0;
  for (int64_t column = 0; column < size; ++column) {
    int64_t pivot = column;
    for (int64_t row = column + 1; row < size; ++row) {
      if (std::fabs(matrix[row * size + column]) > std::fabs(matrix[pivot * size + column])) pivot = row;
    }
    std::swap_ranges(matrix + pivot * size, matrix + (pivot + 1) * size, matrix + column * size);
    std::swap_ranges(inverse + pivot * size, inverse + (pivot + 1) * size, inverse + column * size);
    const double divisor = matrix[column * size + column];
    for (double* part : {matrix, inverse}) {
      for (int64_t i = 0; i < size; ++i) part[column * size + i] /= divisor;
    }
    for (int64_t row = 0; row < size; ++row) {
      const double factor = matrix[row * size + column];
      if (row == column || factor == 0.0) continue;
      for (double* part : {matrix, inverse}) {
        for (int64_t i = 0; i < size; ++i) part[row * size + i] -= factor * part[column * size + i];
      }
    }
  }
}

Status inverse(Context& op) {
  const Shape& shape = op.input(0).shape();
  const size_t rank = shape.rank();
  if (rank < 2 || shape[rank - 1] != shape[rank - 2])
    return execution_error("X must hold square matrices, its shape is " + shape.to_string());
  const int64_t size = shape[rank - 1];
  std::vector<double> x = doubles_of(op.input(0));
  std::vector<double> results(x.size());
  const int64_t count = size == 0 ? 0 : shape.element_count() / (size * size);
  for (int64_t i = 0; i < count; ++i) invert(x.data() + i * size * size, results.data() + i * size * size, size);
  return set_doubles(op, op.input(0).dtype(), shape, results);
}

// ---- Fourier ----

Status check_fft(const OpCall& op) {
  if (op.integer("normalized") != 0 || op.integer("onesided") != 1 || op.integer("signal_ndim") != 1)
    return unsupported("normalized, onesided and signal_ndim must be 0, 1 and 1");
  return {};
}

// [..., n / 2 + 1, 2] to [..., n]: the upper half of a real signal's spectrum is the conjugate of the lower; it is real
// at 0 and at n / 2.
Status irfft(Context& op) {
  PX_TRY(check_fft(op));
  const Ints dims(op.input(0).shape());
  const int64_t rank = dims.size();
  if (rank < 2 || dims[rank - 1] != 2 || dims[rank - 2] < 2)
    return execution_error("X must be [..., n / 2 + 1, 2], its shape is " + op.input(0).shape().to_string());
  const int64_t half = dims[rank - 2];
  const int64_t n = 2 * (half - 1);
  const int64_t rows = product(dims, 0, rank - 2);
  const std::vector<double> x = doubles_of(op.input(0));
  Tensor full = PX_TRY(op.queue().allocate(DType::float64, Shape{rows, n, 2}));
  double* numbers = reinterpret_cast<double*>(writable(full).data);
  for (int64_t at = 0; at < rows * n; ++at) {
    const int64_t k = at % n;
    const double* source = x.data() + (at / n * half + (k < half ? k : n - k)) * 2;
    numbers[2 * at] = source[0];
    numbers[2 * at + 1] = k == 0 || k == n / 2 ? 0.0 : k < half ? source[1] : -source[1];
  }
  const Tensor signal =
      PX_TRY(run_inner(op, {"DFT", 17, {int_attribute("axis", 1), int_attribute("inverse", 1)}}, {full}));
  std::vector<double> results;
  for (int64_t at = 0; at < rows * n; ++at)
    results.push_back(reinterpret_cast<const double*>(signal.view().data)[2 * at]);
  Ints out(std::span<const int64_t>(dims.data(), static_cast<size_t>(rank - 2)));
  out.push_back(n);
  const Shape shape = PX_TRY(shape_of(out));
  return set_doubles(op, op.input(0).dtype(), shape, results);
}

constexpr KernelRow<Cpu> kMsTensorRows[] = {
    contributed_row("CDist", kFloats, cdist),
    contributed_row("ComplexMul", kFloats, complex_mul),
    contributed_row("ComplexMulConj", kFloats, complex_mul_conj),
    contributed_row("Inverse", kFloats, inverse),
    contributed_row("Irfft", kFloats, irfft),
};

}  // namespace

template <>
Rows<Cpu> ms_tensor_rows() {
  return kMsTensorRows;
}

}  // namespace parallax::runtime
