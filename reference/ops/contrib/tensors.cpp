// SPDX-License-Identifier: Apache-2.0
// com.microsoft's operators on whole tensors: CDist, ComplexMul, ComplexMulConj, ExpandDims, Inverse, Irfft,
// IsAllFinite, Rfft, TorchEmbedding, Unique.
#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "reference/ops/contrib/shared.h"
#include "reference/ops/families.h"
#include "reference/ops/inner_op.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

using Row = std::span<const double>;

double sum_of(Row a, Row b, const std::function<double(double, double)>& term) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += term(a[k], b[k]);
  return sum;
}

double squared_distance(Row a, Row b) {
  return sum_of(a, b, [](double x, double y) { return (x - y) * (x - y); });
}

double product(Row a, Row b) {
  return sum_of(a, b, [](double x, double y) { return x * y; });
}

double cosine_distance(Row a, Row b) { return 1 - product(a, b) / std::sqrt(product(a, a) * product(b, b)); }

std::vector<double> less_mean(Row a) {
  std::vector<double> centered(a.begin(), a.end());
  double mean = 0;
  for (double value : a) mean += value / static_cast<double>(a.size());
  for (double& value : centered) value -= mean;
  return centered;
}

struct Metric {
  std::string_view name;
  double (*distance)(Row a, Row b);
};

// The names are those of scipy.spatial.distance.cdist, whose page defines the distances.
constexpr Metric kMetrics[] = {
    {"sqeuclidean", squared_distance},
    {"euclidean", [](Row a, Row b) { return std::sqrt(squared_distance(a, b)); }},
    {"cityblock", [](Row a, Row b) { return sum_of(a, b, [](double x, double y) { return std::fabs(x - y); }); }},
    {"chebyshev",
     [](Row a, Row b) {
       double greatest = 0;
       for (size_t k = 0; k < a.size(); ++k) greatest = std::max(greatest, std::fabs(a[k] - b[k]));
       return greatest;
     }},
    {"cosine", cosine_distance},
    {"correlation", [](Row a, Row b) { return cosine_distance(less_mean(a), less_mean(b)); }},
    {"canberra",
     [](Row a, Row b) {
       return sum_of(a, b, [](double x, double y) {
         const double size = std::fabs(x) + std::fabs(y);
         return size == 0.0 ? 0.0 : std::fabs(x - y) / size;
       });
     }},
    {"braycurtis",
     [](Row a, Row b) {
       return sum_of(a, b, [](double x, double y) { return std::fabs(x - y); }) /
              sum_of(a, b, [](double x, double y) { return std::fabs(x + y); });
     }},
    {"hamming",
     [](Row a, Row b) {
       return sum_of(a, b, [](double x, double y) { return x != y ? 1.0 : 0.0; }) / static_cast<double>(a.size());
     }},
};

// Gauss and Jordan's elimination with the greatest pivot of each column. A singular matrix gives infinities and NaN.
void invert(std::span<double> matrix, std::span<double> inverse, size_t size) {
  std::fill(inverse.begin(), inverse.end(), 0.0);
  for (size_t row = 0; row < size; ++row) inverse[row * size + row] = 1.0;
  for (size_t column = 0; column < size; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < size; ++row) {
      if (std::fabs(matrix[row * size + column]) > std::fabs(matrix[pivot * size + column])) pivot = row;
    }
    const double divisor = matrix[pivot * size + column];
    for (size_t k = 0; k < size; ++k) {
      std::swap(matrix[pivot * size + k], matrix[column * size + k]);
      std::swap(inverse[pivot * size + k], inverse[column * size + k]);
      matrix[column * size + k] /= divisor;
      inverse[column * size + k] /= divisor;
    }
    for (size_t row = 0; row < size; ++row) {
      const double factor = matrix[row * size + column];
      if (row == column || factor == 0.0) continue;
      for (size_t k = 0; k < size; ++k) {
        matrix[row * size + k] -= factor * matrix[column * size + k];
        inverse[row * size + k] -= factor * inverse[column * size + k];
      }
    }
  }
}

Status expect_plain_fft(const OpContext& op) {
  if (op.int_attribute("normalized") != 0) return unsupported("normalized: the page says it must be 0");
  if (op.int_attribute("onesided") != 1) return unsupported("onesided: the page says it must be 1");
  if (op.int_attribute("signal_ndim") != 1) return unsupported("signal_ndim above 1: the page defines one dimension");
  return {};
}

// (a + bi) (c + di), or (a + bi) (c - di), of broadcast inputs whose last axis holds the two parts.
Status multiply_complex(OpContext& op, double sign) {
  const Shape& a = op.input(0).shape();
  const Shape& b = op.input(1).shape();
  if (a.rank() == 0 || b.rank() == 0 || a[a.rank() - 1] != 2 || b[b.rank() - 1] != 2)
    return wrong_input(op, a.rank() == 0 || a[a.rank() - 1] != 2 ? 0 : 1,
                       "have a last axis of 2: real and imaginary part");
  const Shape shape = PX_TRY(broadcast_shapes(a, b));
  const std::vector<double> x = PX_TRY(broadcast_input(op, 0, shape));
  const std::vector<double> y = PX_TRY(broadcast_input(op, 1, shape));
  std::vector<double> results;
  for (size_t at = 0; at < x.size(); at += 2) {
    results.push_back(x[at] * y[at] - sign * x[at + 1] * y[at + 1]);
    results.push_back(x[at + 1] * y[at] + sign * x[at] * y[at + 1]);
  }
  return op.set_output(0, op.input(0).dtype(), shape, std::span<const double>(results));
}

// ContribOperators.md, com.microsoft.CDist: the distance of every row of A to every row of B.
Status op_contrib_cdist(OpContext& op) {
  const Shape& a = op.input(0).shape();
  const Shape& b = op.input(1).shape();
  const std::string name = op.string_attribute("metric");
  const auto* metric =
      std::find_if(std::begin(kMetrics), std::end(kMetrics), [&](const Metric& m) { return m.name == name; });
  if (metric == std::end(kMetrics))
    return unsupported(
        fmt::format("attribute 'metric' is '{}'; it must be a metric that the operator's page names", name));
  if (a.rank() != 2 || b.rank() != 2 || a[1] != b[1])
    return wrong_input(op, 1, "have rank 2 and the width of A, {}, of rank 2", a.to_string());
  const Numbers<double> rows(op.input(0)), columns(op.input(1));
  const auto width = static_cast<size_t>(a[1]);
  std::vector<double> results;
  for (int64_t i = 0; i < a[0]; ++i) {
    for (int64_t j = 0; j < b[0]; ++j) {
      results.push_back(metric->distance(rows.span().subspan(static_cast<size_t>(i) * width, width),
                                         columns.span().subspan(static_cast<size_t>(j) * width, width)));
    }
  }
  return op.set_output(0, op.input(0).dtype(), Shape{a[0], b[0]}, std::span<const double>(results));
}

// com.microsoft.ComplexMul, ComplexMulConj
Status op_contrib_complex_mul(OpContext& op) { return multiply_complex(op, 1.0); }
Status op_contrib_complex_mul_conj(OpContext& op) { return multiply_complex(op, -1.0); }

// com.microsoft.ExpandDims: a new axis of 1 at `axis`, which may count from the end.
Status op_contrib_expand_dims(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const int64_t given = PX_TRY(op.int64_of_input(1));
  const size_t axis = PX_TRY(normalize_axis(given, shape.rank() + 1));
  std::vector<int64_t> dims(shape.begin(), shape.end());
  dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), 1);
  return op.set_output(0, op.input(0).reshaped(PX_TRY(Shape::create(dims))));
}

// com.microsoft.Inverse: of every matrix of [*, M, M].
Status op_contrib_inverse(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const size_t rank = shape.rank();
  if (rank < 2 || shape[rank - 1] != shape[rank - 2])
    return wrong_input(op, 0, "have rank 2 or more and two last axes of equal size");
  const auto size = static_cast<size_t>(shape[rank - 1]);
  std::vector<double> x = PX_TRY(broadcast_input(op, 0, shape));
  std::vector<double> results(x.size());
  for (size_t begin = 0; size > 0 && begin < x.size(); begin += size * size) {
    invert(std::span(x).subspan(begin, size * size), std::span(results).subspan(begin, size * size), size);
  }
  return op.set_output(0, op.input(0).dtype(), shape, std::span<const double>(results));
}

// com.microsoft.Rfft: [..., n] to [..., n / 2 + 1, 2].
Status op_contrib_rfft(OpContext& op) {
  PX_TRY(expect_plain_fft(op));
  const Tensor& x = op.input(0);
  const size_t rank = x.shape().rank();
  if (rank == 0) return wrong_input(op, 0, "have rank 1 or more");
  const int64_t n = x.shape()[rank - 1];
  const Tensor rows = x.reshaped(Shape{count_of(x.shape(), 0, rank - 1), n, 1});
  const InnerOp dft{"DFT", 17, {int_attribute("axis", 1), int_attribute("onesided", 1)}};
  const Tensor spectrum = PX_TRY(run_inner(op, dft, {rows}));
  std::vector<int64_t> dims(x.shape().begin(), x.shape().end() - 1);
  dims.insert(dims.end(), {n / 2 + 1, 2});
  return set_rounded(op, 0, x.dtype(), spectrum.reshaped(PX_TRY(Shape::create(dims))));
}

// com.microsoft.Irfft: the inverse of Rfft for an even n, so divided by n: [..., n / 2 + 1, 2] to [..., n].
Status op_contrib_irfft(OpContext& op) {
  PX_TRY(expect_plain_fft(op));
  const Shape& shape = op.input(0).shape();
  const size_t rank = shape.rank();
  if (rank < 2 || shape[rank - 1] != 2 || shape[rank - 2] < 2)
    return wrong_input(op, 0, "be [...,n / 2 + 1,2]: real and imaginary parts");
  const int64_t half = shape[rank - 2];
  const int64_t n = 2 * (half - 1);
  const int64_t rows = count_of(shape, 0, rank - 2);
  const Numbers<double> x(op.input(0));
  Tensor full = PX_TRY(Tensor::allocate(DType::float64, Shape{rows, n, 2}));
  const auto numbers = full.mutable_as<double>();
  for (int64_t at = 0; at < rows * n; ++at) {
    const int64_t k = at % n;
    const int64_t source = (at / n * half + (k < half ? k : n - k)) * 2;
    numbers[static_cast<size_t>(2 * at)] = x[source];
    // The spectrum of a real signal: conjugate in its upper half, real at 0 and at n / 2.
    const double sign = k == 0 || k == n / 2 ? 0.0 : k < half ? 1.0 : -1.0;
    numbers[static_cast<size_t>(2 * at + 1)] = sign * x[source + 1];
  }
  const Tensor signal =
      PX_TRY(run_inner(op, {"DFT", 17, {int_attribute("axis", 1), int_attribute("inverse", 1)}}, {full}));
  std::vector<double> results;
  for (int64_t at = 0; at < rows * n; ++at) results.push_back(signal.as<double>()[static_cast<size_t>(2 * at)]);
  std::vector<int64_t> dims(shape.begin(), shape.end() - 2);
  dims.push_back(n);
  return op.set_output(0, op.input(0).dtype(), PX_TRY(Shape::create(dims)), std::span<const double>(results));
}

// com.microsoft.IsAllFinite: whether no element of any input is infinite or NaN, or only of the one kind asked for.
Status op_contrib_is_all_finite(OpContext& op) {
  const bool infinities = op.int_attribute("isnan_only") == 0;
  const bool nans = op.int_attribute("isinf_only") == 0;
  if (!infinities && !nans)
    return invalid_model("attributes 'isinf_only' and 'isnan_only' are both set; at most one must be");
  int64_t finite = 1;
  for (size_t index = 0; index < op.input_count(); ++index) {
    const Numbers<double> numbers(op.input(index));
    for (double value : numbers.span()) {
      if ((infinities && std::isinf(value)) || (nans && std::isnan(value))) finite = 0;
    }
  }
  return op.set_output(0, DType::bool_, Shape{}, std::span<const int64_t>(&finite, 1));
}

// com.microsoft.TorchEmbedding: rows of the weight; the padding index and the scaling are relevant to training alone.
Status op_contrib_torch_embedding(OpContext& op) {
  if (op.input(0).shape().rank() != 2) return wrong_input(op, 0, "have rank 2");
  const Tensor rows = PX_TRY(run_inner(op, {"Gather", 13, {int_attribute("axis", 0)}}, {op.value(0), op.value(1)}));
  return set_rounded(op, 0, op.input(0).dtype(), rows);
}

// com.microsoft.Unique: the values in the order in which they first occur, where each element's value is, and counts.
Status op_contrib_unique(OpContext& op) {
  if (op.input(0).shape().rank() != 1) return wrong_input(op, 0, "have rank 1");
  const std::vector<Value> found =
      PX_TRY(run_inner(op, {"Unique", 11, {int_attribute("sorted", 0)}}, {op.value(0)}, 4));
  const DType dtype = op.input(0).dtype();
  if (is_floating(dtype)) {
    PX_TRY(set_rounded(op, 0, dtype, found[0].tensor()));
  } else {
    PX_TRY(op.set_output(0, found[0]));
  }
  PX_TRY(op.set_output(1, found[2]));
  return op.set_output(2, found[3]);
}

constexpr OpRow kContribTensorsRows[] = {
    {"CDist", kMicrosoft, 1, 1, op_contrib_cdist},
    {"ComplexMul", kMicrosoft, 1, 1, op_contrib_complex_mul},
    {"ComplexMulConj", kMicrosoft, 1, 1, op_contrib_complex_mul_conj},
    {"ExpandDims", kMicrosoft, 1, 1, op_contrib_expand_dims},
    {"Inverse", kMicrosoft, 1, 1, op_contrib_inverse},
    {"Irfft", kMicrosoft, 1, 1, op_contrib_irfft},
    {"IsAllFinite", kMicrosoft, 1, 1, op_contrib_is_all_finite},
    {"Rfft", kMicrosoft, 1, 1, op_contrib_rfft},
    {"TorchEmbedding", kMicrosoft, 1, 1, op_contrib_torch_embedding},
    {"Unique", kMicrosoft, 1, 1, op_contrib_unique},
};

}  // namespace

OpRows contrib_tensors_rows() { return kContribTensorsRows; }

}  // namespace parallax::reference
