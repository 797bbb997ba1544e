// SPDX-License-Identifier: Apache-2.0
// Operators on signals: window functions, DFT, STFT, MelWeightMatrix. Sums in double; on the host transforms are fast
// ones, on a GPU each element is a sum of its own.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/rows/fourier.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/device/gpu/element_of.h"
#include "runtime/ops/families.h"

namespace parallax::runtime {
namespace {

// ---- Windows: a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), n the size, or one less when not periodic ----

struct WindowTerms {
  double a0, a1, a2;
};
constexpr WindowTerms kHann{0.5, 0.5, 0.0};
constexpr WindowTerms kHamming{25.0 / 46, 21.0 / 46, 0.0};
constexpr WindowTerms kBlackman{0.42, 0.5, 0.08};

struct WindowValue {
  WindowTerms terms;
  double step;
  PX_HD double operator()(int64_t location) const {
    const double angle = step * static_cast<double>(location);
    return terms.a0 - terms.a1 * std::cos(angle) + terms.a2 * std::cos(2 * angle);
  }
};

Result<DType> output_datatype(const OpCall& op) {
  const auto dtype = dtype_from_number(op.integer("output_datatype"));
  if (!dtype.has_value() || arithmetic_of(*dtype) == Arithmetic::none)
    return unsupported_dtype(dtype.value_or(DType::undefined));
  return *dtype;
}

template <class Device, const WindowTerms& terms>
Status window(OpContext<Device>& op) {
  const int64_t size = PX_TRY(op.integer_of_input(0));
  const DType dtype = PX_TRY(output_datatype(op));
  if (size < 0) return wrong_value("input 'size'", size, "be 0 or more");
  const MutableView y = PX_TRY(op.make_output(0, dtype, shape_of({size})));
  const double n = static_cast<double>(op.integer("periodic") != 0 ? size : std::max<int64_t>(1, size - 1));
  tabulate<double>(op.queue(), WindowValue{terms, 2 * std::numbers::pi / n}, y);
  return {};
}

// ---- DFT ----

constexpr int64_t kMostLength = int64_t{1} << 24;

// Signals along an axis: [outer, length, inner] of pairs (or of real numbers, where `parts` is 1).
template <class Device>
struct Signals {
  Source x;
  int64_t length, inner, parts;
  PX_HD double part_at(int64_t row, int64_t location, int64_t part) const {
    if (location >= length || part >= parts) return 0;
    const int64_t at = (row / inner * length + location) * inner + row % inner;
    return element_of<Device, double>(x, at * parts + part);
  }
};

// Part 0 or 1 of a sum over n of value(i) times root(k i).
template <class Device, class Value>
PX_HD double transformed(const Elements<Device, const double>& roots, int64_t n, int64_t k, int64_t part,
                         const Value& value) {
  double sum = 0;
  int64_t root = 0;  // k i modulo n
  for (int64_t i = 0; i < n; ++i) {
    const double cosine = roots[2 * root], sine = roots[2 * root + 1];
    sum += part == 0 ? value(i, 0) * cosine - value(i, 1) * sine : value(i, 0) * sine + value(i, 1) * cosine;
    root = root + k >= n ? root + k - n : root + k;
  }
  return sum;
}

// Spectra as they are stored: [outer, wanted, inner, parts], of rows outer * inner.
struct SpectraShape {
  int64_t n, wanted, inner, parts;
  bool inverse;
  PX_HD int64_t element(int64_t row, int64_t k, int64_t part) const {
    return ((row / inner * wanted + k) * inner + row % inner) * parts + part;
  }
};

// An element of the spectra of value(row, i, part).
template <class Device, class Value>
struct SpectrumElement {
  static constexpr int64_t kWork = 1000;
  Value value;
  Elements<Device, const double> roots;
  SpectraShape shape;
  PX_HD double operator()(int64_t element) const {
    const int64_t location = element / shape.parts;
    const int64_t row = location / shape.inner / shape.wanted * shape.inner + location % shape.inner;
    const int64_t k = location / shape.inner % shape.wanted;
    const double sum = transformed<Device>(roots, shape.n, k, element % shape.parts,
                                           [&](int64_t i, int64_t part) { return value(row, i, part); });
    return shape.inverse ? sum / static_cast<double>(shape.n) : sum;
  }
};

constexpr int64_t kRowsAtOnce = 8;  // as many as a vector has doubles

template <class Value>
void transform_rows(const Fourier& fourier, const Value& value, const SpectraShape& shape, int64_t first, int64_t count,
                    double* memory, double* spectra) {
  const Fourier::Parts parts{memory, memory + shape.n * count};
  for (int64_t i = 0; i < shape.n; ++i) {
    for (int64_t row = 0; row < count; ++row) {
      parts.real[i * count + row] = value(first + row, i, 0);
      parts.imaginary[i * count + row] = value(first + row, i, 1);
    }
  }
  fourier.run(count, parts, memory + 2 * shape.n * count);
  const double divisor = shape.inverse ? static_cast<double>(shape.n) : 1.0;
  for (int64_t k = 0; k < shape.wanted; ++k) {
    for (int64_t row = 0; row < count; ++row) {
      const double sums[] = {parts.real[k * count + row], parts.imaginary[k * count + row]};
      for (int64_t part = 0; part < shape.parts; ++part)
        spectra[shape.element(first + row, k, part)] = sums[part] / divisor;
    }
  }
}

template <class Device, class Value>
Status store_spectra(OpContext<Device>& op, const Value& value, const SpectraShape& shape, const MutableView& y) {
  if (y.element_count() == 0) return {};
  if constexpr (GpuDevice<Device>) {
    const SpectrumElement<Device, Value> element{value, PX_TRY(op.table(roots_of_unity(shape.n, shape.inverse))),
                                                 shape};
    tabulate<double>(op.queue(), element, y);
  } else {
    const MutableView spectra = y.dtype == DType::float64 ? y : PX_TRY(op.scratch(DType::float64, y.shape));
    const Fourier fourier(shape.n, shape.inverse);
    const int64_t rows = y.element_count() / (shape.wanted * shape.parts);
    const int64_t groups = (rows + kRowsAtOnce - 1) / kRowsAtOnce;
    const int64_t work = kRowsAtOnce * shape.n * 16;
    parallel_for(groups, work, [&](int64_t begin, int64_t end) {
      const int64_t most = std::min(kRowsAtOnce, rows);
      std::vector<double> memory(static_cast<size_t>(2 * shape.n * most + fourier.scratch_size(most)));
      for (int64_t first = begin * kRowsAtOnce; first < std::min(rows, end * kRowsAtOnce); first += kRowsAtOnce)
        transform_rows(fourier, value, shape, first, std::min(most, rows - first), memory.data(),
                       reinterpret_cast<double*>(spectra.data));
    });
    if (spectra.data != y.data) map_as<double, double>(op.queue(), Same{}, y, std::array{TensorView(spectra)});
  }
  return {};
}

// From half a spectrum the other half follows: bin n - k is the conjugate of bin k.
template <class Device>
struct DftValue {
  Signals<Device> signals;
  int64_t n;
  bool from_half;
  PX_HD double operator()(int64_t row, int64_t i, int64_t part) const {
    if (!from_half || i <= n / 2) return signals.part_at(row, i, part);
    return part == 0 ? signals.part_at(row, n - i, 0) : -signals.part_at(row, n - i, 1);
  }
};

template <class Device>
Result<int64_t> dft_axis(OpContext<Device>& op, int64_t rank) {
  if (op.since_version() < 20) return OpCall::resolve_axis(op.integer("axis"), rank);
  if (op.has_input(2)) return OpCall::resolve_axis(op.integer_of_input(2), rank);
  return OpCall::resolve_axis(-2, rank);
}

template <class Device>
Status dft(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  Ints dims(x.shape());
  if (dims.size() < 2 || (dims.back() != 1 && dims.back() != 2))
    return wrong_input(op, 0, "have rank 2 or more and a last axis of 1 (real) or 2 (real, imaginary)");
  const int64_t axis = PX_TRY(dft_axis(op, dims.size()));
  if (axis == dims.size() - 1)
    return wrong_value("the axis", axis, "not be the last one, which holds real and imaginary parts");
  const bool inverse = op.integer("inverse") != 0;
  const bool onesided = op.integer("onesided") != 0;
  const Signals<Device> signals{source_of(x.view()), dims[axis], product(dims, axis + 1, dims.size() - 1), dims.back()};
  int64_t n = inverse && onesided ? 2 * (signals.length - 1) : signals.length;
  if (op.has_input(1)) n = PX_TRY(op.integer_of_input(1));
  if (n < 1 || n > kMostLength) return wrong_value("the length of the transform", n, "be in [1, {}]", kMostLength);
  const int64_t wanted = onesided && !inverse ? n / 2 + 1 : n;
  dims[axis] = wanted;
  dims[dims.size() - 1] = inverse && onesided ? 1 : 2;
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(dims)));
  const SpectraShape shape{n, wanted, signals.inner, dims.back(), inverse};
  return store_spectra(op, DftValue<Device>{signals, n, inverse && onesided}, shape, y);
}

// An element of a frame, times the window.
template <class Device>
struct FrameValue {
  Signals<Device> signals;
  Source weights;
  int64_t step, frames;
  PX_HD double operator()(int64_t number, int64_t i, int64_t part) const {
    const double weight = weights.data == nullptr ? 1.0 : element_of<Device, double>(weights, i);
    return weight * signals.part_at(number / frames, number % frames * step + i, part);
  }
};

template <class Device>
Status stft(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape());
  if (dims.size() < 2 || dims.size() > 3)
    return wrong_input(op, 0, "be [batch,length], [batch,length,1] or [batch,length,2]");
  const int64_t parts = dims.size() == 3 ? dims[2] : 1;
  if (parts != 1 && parts != 2) return wrong_input(op, 0, "have a last axis of 1 (real) or 2 (real, imaginary)");
  const int64_t step = PX_TRY(op.integer_of_input(1));
  int64_t frame = op.has_input(2) ? op.input(2).element_count() : 0;
  if (op.has_input(3)) frame = PX_TRY(op.integer_of_input(3));
  if (step < 1 || frame < 1 || frame > dims[1] || frame > kMostLength ||
      (op.has_input(2) && op.input(2).element_count() != frame))
    return execution_error(
        fmt::format("frames are of {} samples every {}; they must have 1 to {} samples, fit the signal of {} and the "
                    "window, and begin every 1 or more",
                    frame, step, kMostLength, dims[1]));
  const int64_t wanted = op.integer("onesided") != 0 && parts == 1 ? frame / 2 + 1 : frame;
  const int64_t frames = (dims[1] - frame) / step + 1;
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of({dims[0], frames, wanted, 2})));
  const FrameValue<Device> value{{source_of(x.view()), dims[1], 1, parts},
                                 op.has_input(2) ? source_of(op.input(2).view()) : Source{},
                                 step,
                                 frames};
  return store_spectra(op, value, {frame, wanted, 1, 2, false}, y);
}

template <class Device>
struct TableValue {
  Elements<Device, const double> values;
  PX_HD double operator()(int64_t element) const { return values[element]; }
};

constexpr double kFarthestRow = 1152921504606846976.0;  // 2^60

// Triangles evenly spaced on the mel scale. Source: the specification's reference code.
template <class Device>
Status mel_weight_matrix(OpContext<Device>& op) {
  const int64_t bins = PX_TRY(op.integer_of_input(0));
  const int64_t length = PX_TRY(op.integer_of_input(1));
  const int64_t rate = PX_TRY(op.integer_of_input(2));
  const double low = PX_TRY(op.real_of_input(3));
  const double high = PX_TRY(op.real_of_input(4));
  const DType dtype = PX_TRY(output_datatype(op));
  if (bins < 1 || length < 1 || rate < 1)
    return execution_error(fmt::format("num_mel_bins is {}, dft_length {} and sample_rate {}; they must be 1 or more",
                                       bins, length, rate));
  if (!(std::isfinite(low) && std::isfinite(high) && low > -700 && high > -700))
    return execution_error(fmt::format(
        "lower_edge_hertz is {} and upper_edge_hertz {}; they must be finite and above -700, where mel begins", low,
        high));
  const int64_t rows = length / 2 + 1;
  const Shape shape = PX_TRY(shape_of({rows, bins}));
  constexpr int64_t kMostWeights = int64_t{1} << 28;
  if (shape.element_count() > kMostWeights)
    return out_of_memory(fmt::format("the matrix {} has {} elements; it must have at most {}", shape.to_string(),
                                     shape.element_count(), kMostWeights));
  std::vector<double> values(static_cast<size_t>(shape.element_count()));
  const auto mel = [](double hertz) { return 2595.0 * std::log10(1.0 + hertz / 700.0); };
  const double mel_step = (mel(high) - mel(low)) / static_cast<double>(bins + 2);
  const auto edge = [&](int64_t i) {
    const double hertz = 700.0 * (std::pow(10.0, (static_cast<double>(i) * mel_step + mel(low)) / 2595.0) - 1.0);
    const double row = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    return static_cast<int64_t>(std::clamp(row, -kFarthestRow, kFarthestRow));
  };
  const auto set = [&](int64_t row, int64_t bin, double value) {
    if (row >= 0 && row < rows) values.data()[row * bins + bin] = value;
  };
  for (int64_t bin = 0; bin < bins; ++bin) {
    const int64_t left = edge(bin), center = edge(bin + 1), right = edge(bin + 2);
    if (left == center) set(center, bin, 1.0);
    for (int64_t j = std::max<int64_t>(left, 0); left < center && j <= std::min(center, rows); ++j) {
      set(j, bin, static_cast<double>(j - left) / static_cast<double>(center - left));
    }
    for (int64_t j = std::max<int64_t>(center, 0); center < right && j < std::min(right, rows); ++j) {
      set(j, bin, static_cast<double>(right - j) / static_cast<double>(right - center));
    }
  }
  const MutableView y = PX_TRY(op.make_output(0, dtype, shape));
  tabulate<double>(op.queue(), TableValue<Device>{PX_TRY(op.table(std::move(values)))}, y);
  return {};
}

template <class Device>
constexpr KernelRow<Device> kSignalRows[] = {
    reads_on_host<Device>({0}, {"BlackmanWindow", kInts, window<Device, kBlackman>}),
    reads_on_host<Device>({1, 2}, {"DFT", kFloats, dft<Device>}),
    reads_on_host<Device>({0}, {"HammingWindow", kInts, window<Device, kHamming>}),
    reads_on_host<Device>({0}, {"HannWindow", kInts, window<Device, kHann>}),
    reads_on_host<Device>({0, 1, 2, 3, 4}, {"MelWeightMatrix", kInts, mel_weight_matrix<Device>}),
    reads_on_host<Device>({1, 3}, {"STFT", kFloats, stft<Device>}),
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> signal_rows() {
  return kSignalRows<CompiledDevice>;
}

}  // namespace parallax::runtime
