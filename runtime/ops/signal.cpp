// Operators on signals: window functions, DFT, STFT, MelWeightMatrix. Sums in double.
#include <cmath>
#include <complex>
#include <numbers>

#include <fmt/format.h>

#include "runtime/device/map.h"
#include "runtime/ops/families.h"

namespace parallax::runtime {
namespace {

using Complex = std::complex<double>;

// ---- Windows: a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), n the size, or one less when not periodic ----

struct WindowTerms {
  double a0, a1, a2;
};
constexpr WindowTerms kHann{0.5, 0.5, 0.0};
constexpr WindowTerms kHamming{25.0 / 46, 21.0 / 46, 0.0};
constexpr WindowTerms kBlackman{0.42, 0.5, 0.08};

template <class Device, const WindowTerms& terms>
Status window(OpContext<Device>& op) {
  const int64_t size = PX_TRY(op.integer_of_input(0));
  const auto dtype = dtype_from_number(op.integer("output_datatype"));
  if (!dtype.has_value() || arithmetic_of(*dtype) == Arithmetic::none)
    return unsupported_dtype(dtype.value_or(DType::undefined));
  if (size < 0) return execution_error("the size is negative");
  const MutableView y = PX_TRY(op.make_output(0, *dtype, shape_of({size})));
  const double n = static_cast<double>(op.integer("periodic") != 0 ? size : std::max<int64_t>(1, size - 1));
  for (int64_t i = 0; i < size; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / n;
    const double value = terms.a0 - terms.a1 * std::cos(angle) + terms.a2 * std::cos(2 * angle);
    store_block<double>(*dtype, y.data, i, 1, &value);
  }
  return {};
}

// ---- DFT ----

// The first `wanted` terms of the transform of `values`.
std::vector<Complex> transform(const std::vector<Complex>& values, bool inverse, int64_t wanted) {
  const auto n = static_cast<int64_t>(values.size());
  std::vector<Complex> roots(values.size());
  for (int64_t i = 0; i < n; ++i) {
    const double angle = (inverse ? 2 : -2) * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
    roots.data()[i] = {std::cos(angle), std::sin(angle)};
  }
  std::vector<Complex> result(static_cast<size_t>(wanted));
  for (int64_t k = 0; k < wanted; ++k) {
    Complex sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += values.data()[i] * roots.data()[k * i % n];
    result.data()[k] = inverse ? sum / static_cast<double>(n) : sum;
  }
  return result;
}

// Element `index` (a pair of numbers, or one real) of a signal whose last axis is 1 or 2.
Complex read_complex(const Tensor& x, int64_t index, int64_t parts) {
  const double real = load_element<double>(x.dtype(), x.view().data, index * parts);
  const double imaginary = parts == 2 ? load_element<double>(x.dtype(), x.view().data, index * 2 + 1) : 0.0;
  return {real, imaginary};
}

void write_complex(const MutableView& y, int64_t index, Complex value) {
  const double parts[] = {value.real(), value.imag()};
  store_block<double>(y.dtype, y.data, index * 2, 2, parts);
}

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
  if (dims.size() < 2 || (dims.back() != 1 && dims.back() != 2)) return execution_error("the last axis must be 1 or 2");
  const int64_t axis = PX_TRY(dft_axis(op, dims.size()));
  if (axis == dims.size() - 1) return execution_error("the last axis holds real and imaginary parts");
  const bool inverse = op.integer("inverse") != 0;
  const bool onesided = op.integer("onesided") != 0;
  if (inverse && onesided) return unsupported("a one-sided inverse has no kernel here; --fallback=reference runs it");
  const int64_t parts = dims.back(), length = dims[axis];
  const int64_t n = op.has_input(1) ? PX_TRY(op.integer_of_input(1)) : length;
  if (n < 1) return execution_error(fmt::format("dft_length is {}", n));
  const int64_t wanted = onesided ? n / 2 + 1 : n;
  const int64_t inner = product(dims, axis + 1, dims.size() - 1);
  const int64_t outer = product(dims, 0, axis);
  dims[axis] = wanted;
  dims[dims.size() - 1] = 2;
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(dims)));
  parallel_for(outer * inner, n * wanted * 4, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      std::vector<Complex> values(static_cast<size_t>(n));
      for (int64_t i = 0; i < std::min(n, length); ++i) {
        values.data()[i] = read_complex(x, (row / inner * length + i) * inner + row % inner, parts);
      }
      const std::vector<Complex> result = transform(values, inverse, wanted);
      for (int64_t k = 0; k < wanted; ++k)
        write_complex(y, (row / inner * wanted + k) * inner + row % inner, result.data()[k]);
    }
  });
  return {};
}

template <class Device>
Status stft(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape());
  if (dims.size() < 2 || dims.size() > 3)
    return execution_error("the signal must be [batch, length] or [batch, length, 1 or 2]");
  const int64_t parts = dims.size() == 3 ? dims[2] : 1;
  if (parts != 1 && parts != 2) return execution_error("the last axis must be 1 or 2");
  const int64_t step = PX_TRY(op.integer_of_input(1));
  int64_t frame = op.has_input(2) ? op.input(2).element_count() : 0;
  if (op.has_input(3)) frame = PX_TRY(op.integer_of_input(3));
  if (step < 1 || frame < 1 || frame > dims[1] || (op.has_input(2) && op.input(2).element_count() != frame)) {
    return execution_error(fmt::format("frames of {} every {} do not fit a signal of {}", frame, step, dims[1]));
  }
  const int64_t wanted = op.integer("onesided") != 0 && parts == 1 ? frame / 2 + 1 : frame;
  const int64_t frames = (dims[1] - frame) / step + 1;
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), Shape{dims[0], frames, wanted, 2}));
  for (int64_t index = 0; index < dims[0] * frames; ++index) {
    std::vector<Complex> values(static_cast<size_t>(frame));
    for (int64_t i = 0; i < frame; ++i) {
      const double weight =
          op.has_input(2) ? load_element<double>(op.input(2).dtype(), op.input(2).view().data, i) : 1.0;
      values.data()[i] = weight * read_complex(x, index / frames * dims[1] + index % frames * step + i, parts);
    }
    const std::vector<Complex> result = transform(values, false, wanted);
    for (int64_t k = 0; k < wanted; ++k) write_complex(y, index * wanted + k, result.data()[k]);
  }
  return {};
}

// Triangles evenly spaced on the mel scale. Source: the specification's reference code.
template <class Device>
Status mel_weight_matrix(OpContext<Device>& op) {
  const int64_t bins = PX_TRY(op.integer_of_input(0));
  const int64_t length = PX_TRY(op.integer_of_input(1));
  const int64_t rate = PX_TRY(op.integer_of_input(2));
  const double low = PX_TRY(op.real_of_input(3));
  const double high = PX_TRY(op.real_of_input(4));
  const auto dtype = dtype_from_number(op.integer("output_datatype"));
  if (!dtype.has_value() || arithmetic_of(*dtype) == Arithmetic::none)
    return unsupported_dtype(dtype.value_or(DType::undefined));
  if (bins < 1 || length < 1 || rate < 1) return execution_error("a count is not positive");
  const int64_t rows = length / 2 + 1;
  const Shape shape = PX_TRY(shape_of({rows, bins}));
  std::vector<double> values(static_cast<size_t>(shape.element_count()));
  const auto mel = [](double hertz) { return 2595.0 * std::log10(1.0 + hertz / 700.0); };
  const double mel_step = (mel(high) - mel(low)) / static_cast<double>(bins + 2);
  const auto edge = [&](int64_t i) {
    const double hertz = 700.0 * (std::pow(10.0, (static_cast<double>(i) * mel_step + mel(low)) / 2595.0) - 1.0);
    return static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate)));
  };
  const auto set = [&](int64_t row, int64_t bin, double value) {
    if (row >= 0 && row < rows) values.data()[row * bins + bin] = value;
  };
  for (int64_t bin = 0; bin < bins; ++bin) {
    const int64_t left = edge(bin), centre = edge(bin + 1), right = edge(bin + 2);
    if (left == centre) set(centre, bin, 1.0);
    for (int64_t j = std::max<int64_t>(left, 0); left < centre && j <= std::min(centre, rows); ++j) {
      set(j, bin, static_cast<double>(j - left) / static_cast<double>(centre - left));
    }
    for (int64_t j = std::max<int64_t>(centre, 0); centre < right && j < std::min(right, rows); ++j) {
      set(j, bin, static_cast<double>(right - j) / static_cast<double>(right - centre));
    }
  }
  const MutableView y = PX_TRY(op.make_output(0, *dtype, shape));
  store_block<double>(*dtype, y.data, 0, y.element_count(), values.data());
  return {};
}

template <class Device>
constexpr KernelRow<Device> kRows[] = {
    {"BlackmanWindow", kInts, window<Device, kBlackman>},  {"DFT", kFloats, dft<Device>},
    {"HammingWindow", kInts, window<Device, kHamming>},    {"HannWindow", kInts, window<Device, kHann>},
    {"MelWeightMatrix", kInts, mel_weight_matrix<Device>}, {"STFT", kFloats, stft<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> signal_rows() {
  return kRows<CompiledDevice>;
}

}  // namespace parallax::runtime
