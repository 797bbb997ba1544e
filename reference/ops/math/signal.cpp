// SPDX-License-Identifier: Apache-2.0
// Signal processing: DFT, STFT, window functions, MelWeightMatrix. Transforms are the defining sums, O(N^2), in double.
#include <cmath>
#include <complex>
#include <numbers>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

// exp(+-2 pi i k / length), with k taken modulo the length so that the angle is exact to a rounding.
std::complex<double> root_of_unity(int64_t k, int64_t length, bool inverse) {
  const int64_t reduced = k % length;
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(reduced) / static_cast<double>(length);
  // Eighths of the circle are exact, so that what cancels in theory cancels here.
  if (4 * reduced % length == 0) {
    constexpr std::complex<double> kQuarters[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    const std::complex<double> quarter = kQuarters[4 * reduced / length];
    return inverse ? quarter : std::conj(quarter);
  }
  return {std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle)};
}

// The first `count` terms of the transform of a signal (zero-padded or cut to `length`).
std::vector<std::complex<double>> transform(const std::vector<std::complex<double>>& signal, int64_t length,
                                            int64_t count, bool inverse) {
  std::vector<std::complex<double>> roots;
  for (int64_t k = 0; k < length; ++k) roots.push_back(root_of_unity(k, length, inverse));
  std::vector<std::complex<double>> result(static_cast<size_t>(count));
  const int64_t present = std::min<int64_t>(length, static_cast<int64_t>(signal.size()));
  for (int64_t k = 0; k < count; ++k) {
    std::complex<double> sum = 0;
    for (int64_t n = 0; n < present; ++n)
      sum += signal[static_cast<size_t>(n)] * roots[static_cast<size_t>(k * n % length)];
    result[static_cast<size_t>(k)] = inverse ? sum / static_cast<double>(length) : sum;
  }
  return result;
}

Result<size_t> dft_axis(const OpContext& op, size_t rank) {
  int64_t axis = op.find_int("axis").value_or(1);  // attribute until 19
  if (op.since_version() >= 20) axis = op.has_input(2) ? PX_TRY(op.int64_of_input(2)) : -2;
  const size_t normal = PX_TRY(normalize_axis(axis, rank));
  if (normal == rank - 1)
    return wrong_value("the axis", axis, "not be the last one, which holds real and imaginary parts");
  return normal;
}

constexpr int64_t kMaxLength = int64_t{1} << 24;

// onesided = 1 with inverse = 1 rebuilds a real signal from the first half of its spectrum: bin length - k is the
// conjugate of bin k.
void complete_spectrum(std::vector<std::complex<double>>& half, int64_t length) {
  half.resize(static_cast<size_t>(length / 2 + 1));
  for (int64_t k = length / 2 + 1; k < length; ++k) half.push_back(std::conj(half[static_cast<size_t>(length - k)]));
}

// Along one axis of [batch, ..., 1 or 2].
Status op_dft(OpContext& op) {
  const Tensor& input = op.input(0);
  const Shape& shape = input.shape();
  const size_t rank = shape.rank();
  if (rank < 2 || shape[rank - 1] < 1 || shape[rank - 1] > 2)
    return wrong_input(op, 0, "have rank 2 or more and a last axis of 1 (real) or 2 (real, imaginary)");
  const size_t axis = PX_TRY(dft_axis(op, rank));
  const bool inverse = op.int_attribute("inverse") != 0;
  const bool onesided = op.int_attribute("onesided") != 0;
  const bool real_output = inverse && onesided;
  int64_t length = real_output ? 2 * (shape[axis] - 1) : shape[axis];
  if (op.has_input(1)) length = PX_TRY(op.int64_of_input(1));
  if (length < 1 || length > kMaxLength)
    return wrong_value("the length of the transform", length, "be in [1, {}]", kMaxLength);
  const int64_t count = onesided && !inverse ? length / 2 + 1 : length;
  std::vector<int64_t> dims(shape.begin(), shape.end());
  dims[axis] = count;
  dims[rank - 1] = real_output ? 1 : 2;
  const Shape result = PX_TRY(Shape::create(dims));
  const int64_t parts = shape[rank - 1];
  const int64_t inner = count_of(shape, axis + 1, rank - 1);
  const Numbers<double> numbers(input);
  std::vector<double> values(static_cast<size_t>(result.element_count()));
  parallel_for(count_of(shape, 0, axis) * inner, length * count, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      std::vector<std::complex<double>> signal;
      for (int64_t n = 0; n < shape[axis]; ++n) {
        const int64_t at = ((line / inner * shape[axis] + n) * inner + line % inner) * parts;
        signal.emplace_back(numbers[at], parts == 2 ? numbers[at + 1] : 0.0);
      }
      if (real_output) complete_spectrum(signal, length);
      const auto spectrum = transform(signal, length, count, inverse);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t at = ((line / inner * count + k) * inner + line % inner) * dims[rank - 1];
        values[static_cast<size_t>(at)] = spectrum[static_cast<size_t>(k)].real();
        if (!real_output) values[static_cast<size_t>(at + 1)] = spectrum[static_cast<size_t>(k)].imag();
      }
    }
  });
  return op.set_output(0, input.dtype(), result, std::span<const double>(values));
}

// Frames of the signal, each multiplied by the window and transformed: [batch, frames, bins, 2].
Status op_stft(OpContext& op) {
  const Tensor& signal = op.input(0);
  const Shape& shape = signal.shape();
  if (shape.rank() < 2 || shape.rank() > 3)
    return wrong_input(op, 0, "be [batch,length], [batch,length,1] or [batch,length,2]");
  const int64_t parts = shape.rank() == 3 ? shape[2] : 1;
  const int64_t step = PX_TRY(op.int64_of_input(1));
  const bool onesided = op.int_attribute("onesided") != 0;
  if (!op.has_input(2) && !op.has_input(3)) return wrong_input(op, 2, "be given where frame_length is missing");
  const int64_t length = op.has_input(3) ? PX_TRY(op.int64_of_input(3)) : op.input(2).element_count();
  if (step < 1 || length < 1 || length > shape[1] || parts < 1 || parts > 2)
    return execution_error(
        fmt::format("frame_length is {}, frame_step {} and the signal {}; the first must be in [1, length of the "
                    "signal], the second 1 or more, a third axis 1 or 2",
                    length, step, shape.to_string()));
  std::vector<double> window(static_cast<size_t>(length), 1.0);
  if (op.has_input(2)) {
    if (op.input(2).element_count() != length) return wrong_input(op, 2, "have {} elements, frame_length", length);
    load<double>(op.input(2), 0, window);
  }
  const int64_t frames = (shape[1] - length) / step + 1;
  const int64_t bins = onesided ? length / 2 + 1 : length;
  const Shape result = PX_TRY(make_shape({shape[0], frames, bins, 2}));
  const Numbers<double> numbers(signal);
  std::vector<double> values(static_cast<size_t>(result.element_count()));
  parallel_for(shape[0] * frames, length * bins, [&](int64_t begin, int64_t end) {
    for (int64_t frame = begin; frame < end; ++frame) {
      std::vector<std::complex<double>> windowed;
      for (int64_t n = 0; n < length; ++n) {
        const int64_t at = (frame / frames * shape[1] + frame % frames * step + n) * parts;
        windowed.emplace_back(numbers[at] * window[static_cast<size_t>(n)],
                              parts == 2 ? numbers[at + 1] * window[static_cast<size_t>(n)] : 0.0);
      }
      const auto spectrum = transform(windowed, length, bins, false);
      for (int64_t k = 0; k < bins; ++k) {
        values[static_cast<size_t>((frame * bins + k) * 2)] = spectrum[static_cast<size_t>(k)].real();
        values[static_cast<size_t>((frame * bins + k) * 2 + 1)] = spectrum[static_cast<size_t>(k)].imag();
      }
    }
  });
  return op.set_output(0, signal.dtype(), result, std::span<const double>(values));
}

Result<DType> float_type_attribute(const OpContext& op, std::string_view name) {
  const auto dtype = dtype_from_number(op.int_attribute(name));
  if (!dtype.has_value() || *dtype == DType::string || is_complex(*dtype))
    return unsupported(fmt::format("attribute '{}' is {}; only types of real numbers have a function here", name,
                                   op.int_attribute(name)));
  return *dtype;
}

Status set_as(OpContext& op, DType dtype, const Shape& shape, const std::vector<double>& values) {
  if (is_floating(dtype)) return op.set_output(0, dtype, shape, std::span<const double>(values));
  std::vector<int64_t> whole;
  for (double value : values) whole.push_back(truncate_to_int64(value));
  return op.set_output(0, dtype, shape, std::span<const int64_t>(whole));
}

// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N), with N the size (periodic) or one less.
Status cosine_window(OpContext& op, double a0, double a1, double a2) {
  const int64_t size = PX_TRY(op.int64_of_input(0));
  const DType dtype = PX_TRY(float_type_attribute(op, "output_datatype"));
  const std::array<int64_t, 1> dims{size};
  const Shape shape = PX_TRY(Shape::create(dims));
  const auto period = static_cast<double>(op.int_attribute("periodic") != 0 ? size : size - 1);
  Tensor output = PX_TRY(op.allocate(dtype, shape));
  for_blocks(size, 40, [&](int64_t begin, int64_t end) {
    std::vector<double> values;
    for (int64_t n = begin; n < end; ++n) {
      const double angle = period == 0.0 ? 0.0 : 2.0 * std::numbers::pi * static_cast<double>(n) / period;
      values.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
    }
    if (is_floating(dtype)) return store<double>(output, begin, values);
    std::vector<int64_t> whole;
    for (double value : values) whole.push_back(truncate_to_int64(value));
    store<int64_t>(output, begin, whole);
  });
  return op.set_output(0, std::move(output));
}

Status op_hann_window(OpContext& op) { return cosine_window(op, 0.5, 0.5, 0.0); }

// 25/46 and 21/46, as the function body has them.
Status op_hamming_window(OpContext& op) { return cosine_window(op, 25.0 / 46.0, 21.0 / 46.0, 0.0); }
Status op_blackman_window(OpContext& op) { return cosine_window(op, 0.42, 0.5, 0.08); }

// Triangular filters, equally spaced in mel = 2595 log10(1 + f / 700), over the bins of a DFT: [bins, filters].
Status op_mel_weight_matrix(OpContext& op) {
  const int64_t filters = PX_TRY(op.int64_of_input(0));
  const int64_t dft_length = PX_TRY(op.int64_of_input(1));
  const int64_t sample_rate = PX_TRY(op.int64_of_input(2));
  const double lower = PX_TRY(op.double_of_input(3));
  const double upper = PX_TRY(op.double_of_input(4));
  const DType dtype = PX_TRY(float_type_attribute(op, "output_datatype"));
  if (filters < 1 || dft_length < 1 || sample_rate < 1 || filters > kMaxLength || dft_length > kMaxLength)
    return execution_error(fmt::format(
        "num_mel_bins is {}, dft_length {} and sample_rate {}; they must be 1 or more, the first two at most {}",
        filters, dft_length, sample_rate, kMaxLength));
  if (!(std::isfinite(lower) && std::isfinite(upper) && lower > -700 && upper > -700))
    return execution_error(fmt::format(
        "lower_edge_hertz is {} and upper_edge_hertz {}; they must be finite and above -700, where mel begins", lower,
        upper));
  const int64_t bins = dft_length / 2 + 1;
  const auto to_mel = [](double frequency) { return 2595.0 * std::log10(1.0 + frequency / 700.0); };
  const double low = to_mel(lower);
  const double spacing = (to_mel(upper) - low) / static_cast<double>(filters + 2);
  std::vector<int64_t> edges;
  for (int64_t index = 0; index < filters + 2; ++index) {
    const double frequency = 700.0 * (std::pow(10.0, (low + static_cast<double>(index) * spacing) / 2595.0) - 1.0);
    edges.push_back(truncate_to_int64(
        std::floor(static_cast<double>(dft_length + 1) * frequency / static_cast<double>(sample_rate))));
  }
  const std::array<int64_t, 2> dims{bins, filters};
  const Shape shape = PX_TRY(Shape::create(dims));
  std::vector<double> values(static_cast<size_t>(shape.element_count()), 0.0);
  for (int64_t filter = 0; filter < filters; ++filter) {
    const int64_t begin = edges[static_cast<size_t>(filter)];
    const int64_t center = edges[static_cast<size_t>(filter + 1)];
    const int64_t end = edges[static_cast<size_t>(filter + 2)];
    for (int64_t bin = std::max<int64_t>(0, begin); bin < std::min(bins, end + 1); ++bin) {
      double weight = 0;
      if (bin <= center)
        weight = center == begin ? (bin == center ? 1.0 : 0.0)
                                 : static_cast<double>(bin - begin) / static_cast<double>(center - begin);
      else if (bin < end)
        weight = static_cast<double>(end - bin) / static_cast<double>(end - center);
      values[static_cast<size_t>(bin * filters + filter)] = weight;
    }
  }
  return set_as(op, dtype, shape, values);
}

constexpr OpRow kSignalRows[] = {
    {"BlackmanWindow", kOnnx, 17, 17, op_blackman_window},    {"DFT", kOnnx, 17, 20, op_dft},
    {"HammingWindow", kOnnx, 17, 17, op_hamming_window},      {"HannWindow", kOnnx, 17, 17, op_hann_window},
    {"MelWeightMatrix", kOnnx, 17, 17, op_mel_weight_matrix}, {"STFT", kOnnx, 17, 17, op_stft},
};

}  // namespace

OpRows signal_rows() { return kSignalRows; }

}  // namespace parallax::reference
