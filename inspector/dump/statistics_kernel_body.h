// The body of the chunk kernel, included once by each statistics_kernel_<set>.cpp, which names the function
// PX_CHUNK_KERNEL and is compiled for its instruction set. It includes nothing with inline code: such code would be
// shared with files for lesser CPUs.
#pragma once

#include <cstring>

#include "inspector/dump/statistics_kernel.h"

namespace parallax::dump {
namespace {

using Row = double __attribute__((vector_size(64)));  // eight neighbouring elements
using RowBits = int64_t __attribute__((vector_size(64)));
using FloatRow = float __attribute__((vector_size(32)));
using FloatBits = uint32_t __attribute__((vector_size(32)));
using HalfBits = uint16_t __attribute__((vector_size(16)));

constexpr int kRows = 8;
constexpr int kLanes = 8;
constexpr double kInfinity = __builtin_inf();

// +1 or -1 for each bit of a byte.
struct SignTable {
  double signs[256][kSignSequences];
};
constexpr SignTable make_signs() {
  SignTable table{};
  for (int byte = 0; byte < 256; ++byte) {
    for (int bit = 0; bit < kSignSequences; ++bit) table.signs[byte][bit] = (byte >> bit & 1) != 0 ? -1.0 : 1.0;
  }
  return table;
}
constexpr SignTable kSigns = make_signs();

// The finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
inline uint64_t mix(uint64_t value) {
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31);
}
inline const double* group_signs(int64_t group) { return kSigns.signs[mix(static_cast<uint64_t>(group)) >> 56]; }

// t_k(l): quadratic forms in the bits of k. The product of two of them is never a row of the Hadamard matrix, so that
// no two elements of a group have the same eight signs.
inline double lane_sign(int k, int lane) {
  const int k0 = k & 1;
  const int k1 = k >> 1 & 1;
  const int k2 = k >> 2 & 1;
  const int form = ((lane & 1) * k0 * k1) ^ ((lane >> 1 & 1) * k0 * k2) ^ ((lane >> 2 & 1) * k1 * k2);
  return form != 0 ? -1.0 : 1.0;
}
inline double row_sign(int k, int row) { return __builtin_parity(static_cast<unsigned>(k & row)) != 0 ? -1.0 : 1.0; }

constexpr size_t element_bytes(NumberFormat format) {
  return format == NumberFormat::float64 ? 8 : format == NumberFormat::float32 ? 4 : 2;
}

template <NumberFormat kFormat>
inline void load_row(const std::byte* source, Row& row) {
  if constexpr (kFormat == NumberFormat::float64) {
    std::memcpy(&row, source, sizeof row);
  } else if constexpr (kFormat == NumberFormat::float32) {
    FloatRow narrow;
    std::memcpy(&narrow, source, sizeof narrow);
    row = __builtin_convertvector(narrow, Row);
  } else {
    HalfBits half;
    std::memcpy(&half, source, sizeof half);
    const FloatBits wide = __builtin_convertvector(half, FloatBits);
    FloatRow narrow;
    if constexpr (kFormat == NumberFormat::bfloat16) {
      const FloatBits bits = wide << 16;
      std::memcpy(&narrow, &bits, sizeof narrow);
    } else {
      // The mantissa and exponent of float16, read as float32, are too small by 2^112; subnormal ones included.
      const FloatBits magnitude = (wide & 0x7FFFU) << 13;
      FloatRow small;
      std::memcpy(&small, &magnitude, sizeof small);
      small *= 0x1p112F;
      FloatBits bits;
      std::memcpy(&bits, &small, sizeof bits);
      const auto is_special = magnitude >= 0x7C00U << 13;
      bits = is_special ? (magnitude | 0x7F800000U) : bits;
      bits |= (wide & 0x8000U) << 16;
      std::memcpy(&narrow, &bits, sizeof narrow);
    }
    row = __builtin_convertvector(narrow, Row);
  }
}

struct Lanes {
  Row min;
  Row max;
  Row sum;
  Row squares;
  RowBits zeros;
  RowBits nan;
  RowBits positive_inf;
  RowBits negative_inf;
  Row projections[kSignSequences];
};

inline void clear(Lanes& lanes) {
  std::memset(&lanes, 0, sizeof lanes);
  lanes.min += kInfinity;
  lanes.max -= kInfinity;
}

inline void butterfly(Row& a, Row& b) {
  const Row sum = a + b;
  b = a - b;
  a = sum;
}

// x[k] becomes the sum over j of h_k(j) * x[j].
inline void transform(Row (&x)[kRows]) {
  for (int step = 1; step < kRows; step *= 2) {
    for (int j = 0; j < kRows; ++j) {
      if ((j & step) == 0) butterfly(x[j], x[j + step]);
    }
  }
}

// The whole groups of a chunk. Unmasked, numbers that are not finite make `squares` not finite.
template <NumberFormat kFormat, bool kMasked>
inline void add_groups(const std::byte* data, int64_t group_count, int64_t first_group, Lanes& total) {
  Lanes lanes = total;
  for (int64_t group = 0; group < group_count; ++group) {
    const std::byte* source = data + static_cast<size_t>(group * kGroupElements) * element_bytes(kFormat);
    Row x[kRows];
#pragma GCC unroll 8
    for (int j = 0; j < kRows; ++j) {
      load_row<kFormat>(source + static_cast<size_t>(j * kLanes) * element_bytes(kFormat), x[j]);
      lanes.min = x[j] < lanes.min ? x[j] : lanes.min;
      lanes.max = x[j] > lanes.max ? x[j] : lanes.max;
      lanes.zeros -= x[j] == 0.0;
      if constexpr (kMasked) {
        lanes.nan -= x[j] != x[j];
        lanes.positive_inf -= x[j] == kInfinity;
        lanes.negative_inf -= x[j] == -kInfinity;
        x[j] = (x[j] - x[j]) == 0.0 ? x[j] : Row{};
      }
      lanes.squares += x[j] * x[j];
    }
    transform(x);
    lanes.sum += x[0];
    const double* signs = group_signs(first_group + group);
#pragma GCC unroll 8
    for (int k = 0; k < kRows; ++k) lanes.projections[k] += x[k] * signs[k];
  }
  total = lanes;
}

inline double sum_of_lanes(const Row& row) {
  return ((row[0] + row[1]) + (row[2] + row[3])) + ((row[4] + row[5]) + (row[6] + row[7]));
}
inline int64_t sum_of_lanes(const RowBits& row) {
  int64_t sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += row[lane];
  return sum;
}

inline void fold(const Lanes& lanes, ChunkStatistics& out) {
  out.min = lanes.min[0];
  out.max = lanes.max[0];
  for (int lane = 1; lane < kLanes; ++lane) {
    out.min = lanes.min[lane] < out.min ? lanes.min[lane] : out.min;
    out.max = lanes.max[lane] > out.max ? lanes.max[lane] : out.max;
  }
  out.sum = sum_of_lanes(lanes.sum);
  out.sum_of_squares = sum_of_lanes(lanes.squares);
  out.zeros = sum_of_lanes(lanes.zeros);
  out.nan = sum_of_lanes(lanes.nan);
  out.positive_inf = sum_of_lanes(lanes.positive_inf);
  out.negative_inf = sum_of_lanes(lanes.negative_inf);
  for (int k = 0; k < kRows; ++k) {
    out.projections[k] = 0;
    for (int lane = 0; lane < kLanes; ++lane) out.projections[k] += lane_sign(k, lane) * lanes.projections[k][lane];
  }
}

// One element of the last, incomplete group.
inline void add_element(double x, int position, const double* signs, ChunkStatistics& out) {
  out.min = x < out.min ? x : out.min;
  out.max = x > out.max ? x : out.max;
  out.zeros += x == 0.0;
  out.nan += x != x;
  out.positive_inf += x == kInfinity;
  out.negative_inf += x == -kInfinity;
  if (x - x != 0.0) return;
  out.sum += x;
  out.sum_of_squares += x * x;
  for (int k = 0; k < kRows; ++k)
    out.projections[k] += signs[k] * row_sign(k, position / kLanes) * lane_sign(k, position % kLanes) * x;
}

// The last group with zeros after its end, widened.
template <NumberFormat kFormat>
inline void load_tail(const std::byte* source, int count, double (&out)[kGroupElements]) {
  std::byte padded[static_cast<size_t>(kGroupElements) * element_bytes(kFormat)] = {};
  std::memcpy(padded, source, static_cast<size_t>(count) * element_bytes(kFormat));
  for (int j = 0; j < kRows; ++j) {
    Row row;
    load_row<kFormat>(padded + static_cast<size_t>(j * kLanes) * element_bytes(kFormat), row);
    std::memcpy(out + j * kLanes, &row, sizeof row);
  }
}

// Sum of (x - mean)^2 in a second pass, for chunks whose spread is small beside their mean.
template <NumberFormat kFormat>
inline double centred_squares(const std::byte* data, int64_t group_count, const double (&tail)[kGroupElements],
                              int tail_count, double mean) {
  Row total = {};
  for (int64_t row = 0; row < group_count * kRows; ++row) {
    Row x;
    load_row<kFormat>(data + static_cast<size_t>(row * kLanes) * element_bytes(kFormat), x);
    const Row difference = (x - x) == 0.0 ? x - mean : Row{};
    total += difference * difference;
  }
  double sum = sum_of_lanes(total);
  for (int index = 0; index < tail_count; ++index) {
    if (tail[index] - tail[index] == 0.0) sum += (tail[index] - mean) * (tail[index] - mean);
  }
  return sum;
}

template <NumberFormat kFormat>
inline void run_chunk(const std::byte* data, int64_t count, int64_t first_element, ChunkStatistics& out) {
  const int64_t group_count = count / kGroupElements;
  const int64_t first_group = first_element / kGroupElements;
  const auto tail_count = static_cast<int>(count % kGroupElements);
  Lanes lanes;
  clear(lanes);
  add_groups<kFormat, false>(data, group_count, first_group, lanes);
  if (!(sum_of_lanes(lanes.squares) < kInfinity)) {
    clear(lanes);
    add_groups<kFormat, true>(data, group_count, first_group, lanes);
  }
  fold(lanes, out);

  double tail[kGroupElements];
  load_tail<kFormat>(data + static_cast<size_t>(group_count * kGroupElements) * element_bytes(kFormat), tail_count,
                     tail);
  const double* signs = group_signs(first_group + group_count);
  for (int index = 0; index < tail_count; ++index) add_element(tail[index], index, signs, out);

  out.count = count - out.nan - out.positive_inf - out.negative_inf;
  if (out.count == 0) {
    out.centred_squares = 0;
    return;
  }
  // The difference of the two sums keeps seven digits while it is no less than a millionth of them.
  const double mean = out.sum / static_cast<double>(out.count);
  out.centred_squares = out.sum_of_squares - out.sum * mean;
  if (out.centred_squares < 1e-6 * out.sum_of_squares) {
    out.centred_squares = centred_squares<kFormat>(data, group_count, tail, tail_count, mean);
  }
}

}  // namespace

void PX_CHUNK_KERNEL(NumberFormat format, const std::byte* data, int64_t count, int64_t first_element,
                     ChunkStatistics& out);
void PX_CHUNK_KERNEL(NumberFormat format, const std::byte* data, int64_t count, int64_t first_element,
                     ChunkStatistics& out) {
  switch (format) {
    case NumberFormat::float64:
      return run_chunk<NumberFormat::float64>(data, count, first_element, out);
    case NumberFormat::float32:
      return run_chunk<NumberFormat::float32>(data, count, first_element, out);
    case NumberFormat::float16:
      return run_chunk<NumberFormat::float16>(data, count, first_element, out);
    case NumberFormat::bfloat16:
      return run_chunk<NumberFormat::bfloat16>(data, count, first_element, out);
  }
}

}  // namespace parallax::dump
