// SPDX-License-Identifier: Apache-2.0
// The body of the kernels, included once by each statistics_kernel_<set>.cpp, which names the functions
// PX_CHUNK_KERNEL and PX_COPY_KERNEL and is compiled for its instruction set. It includes nothing with inline code but
// the intrinsics: other code would be shared with files for lesser CPUs.
#pragma once

#include <cstring>

#include "inspector/dump/statistics/statistics_kernel_vectors.h"

namespace parallax::dump {
namespace {

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

inline const double* bundle_signs(int64_t bundle) { return kSigns.signs[statistics::bundle_sign_bits(bundle)]; }

// The sums of one part of every row.
struct Lanes {
  Part min;
  Part max;
  Part sum;
  Part squares[2];  // of even and odd rows
  PartBits zeros;
  PartBits nan;
  PartBits positive_inf;
  PartBits negative_inf;
  Part projections[kSignSequences];
};

inline void clear(Lanes (&lanes)[kParts]) { std::memset(lanes, 0, sizeof lanes); }

inline void butterfly(Part& a, Part& b) {
  const Part sum = a + b;
  b = a - b;
  a = sum;
}

// x[k] becomes the sum over j of h_k(j) * x[j].
inline void transform(Part (&x)[kRows]) {
#pragma GCC unroll 3
  for (int step = 1; step < kRows; step *= 2) {
#pragma GCC unroll 8
    for (int j = 0; j < kRows; ++j) {
      if ((j & step) == 0) butterfly(x[j], x[j + step]);
    }
  }
}

// The results of comparisons, in the format's own vectors; the count of zeros of a chunk fits into 32 bits.
template <class Vector, class Mask>
struct Compared {
  using Number = decltype(Vector{}[0] + 0);
  Vector min = Vector{} + static_cast<Number>(kInfinity);
  Vector max = Vector{} - static_cast<Number>(kInfinity);
  Mask zeros{};

  void add(const Vector& numbers) {
    min = numbers < min ? numbers : min;
    max = numbers > max ? numbers : max;
    count_zeros(numbers, zeros);
  }
};

// Floats are compared as many at a time as a register holds, where that is one row or two; float16 is widened first,
// and not in two sizes.
template <NumberFormat kFormat>
constexpr bool kComparesFull = (kParts == 2 && kFormat != NumberFormat::float64) ||
                               (kParts == 1 && kFormat == NumberFormat::float32);

template <NumberFormat kFormat>
using ComparedPart = Compared<Numbers<kFormat>, typename NumbersOf<kFormat>::Mask>;
using ComparedFull = Compared<FloatsFull, FloatsFullMask>;

template <NumberFormat kFormat>
inline void compare_full(const std::byte* source, ComparedFull& compared) {
#pragma GCC unroll 8
  for (int64_t first = 0; first < kGroupElements; first += kFullLanes) {
    FloatsFull numbers;
    load_floats<kFormat, FloatsFullBits>(source + static_cast<size_t>(first) * element_bytes(kFormat), numbers);
    compared.add(numbers);
  }
}

// One part of the rows of a group: it is added to or subtracted from the row's sum.
template <NumberFormat kFormat, bool kMasked>
inline void add_part(const std::byte* source, int group, ComparedPart<kFormat>& compared, Lanes& lanes,
                     Part (&row_sums)[kRows]) {
#pragma GCC unroll 8
  for (int j = 0; j < kRows; ++j) {
    Numbers<kFormat> numbers;
    load_numbers<kFormat>(source + static_cast<size_t>(j * kLanes) * element_bytes(kFormat), numbers);
    if constexpr (!kComparesFull<kFormat>) compared.add(numbers);
    Part x = widened(numbers);
    if constexpr (kMasked) {
      lanes.nan -= x != x;
      lanes.positive_inf -= x == kInfinity;
      lanes.negative_inf -= x == -kInfinity;
      x = (x - x) == 0.0 ? x : Part{};
    }
    Part& squares = lanes.squares[j % 2];
    if constexpr (kFormat == NumberFormat::float64) {
      squares += x * x;
    } else {
      squares = add_exact_product(x, x, squares);
    }
    Part& row_sum = row_sums[statistics::row_index(group, j)];
    row_sum = group < kAddedGroups ? row_sum + x : row_sum - x;
  }
}

inline Part sum_of_rows(const Part (&x)[kRows]) {
  return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

// `row_sums`: those of a bundle; `added`: the sum of the rows that are added.
inline void end_bundle(Part (&row_sums)[kRows], const Part& added, const double* signs, Lanes& lanes) {
  transform(row_sums);
  lanes.sum += added + (added - row_sums[0]);
#pragma GCC unroll 8
  for (int k = 0; k < kRows; ++k)
    lanes.projections[k] = add_exact_product(row_sums[k], every_lane(signs[k]), lanes.projections[k]);
}

// One part of the results of comparisons in full registers.
template <NumberFormat kFormat>
inline ComparedPart<kFormat> part_of(const ComparedFull& full, int part) {
  ComparedPart<kFormat> out;
  for (int first = part * kPartLanes; first < kFullLanes; first += kLanes) {
    decltype(out.min) min, max;
    decltype(out.zeros) zeros;
    std::memcpy(&min, reinterpret_cast<const float*>(&full.min) + first, sizeof min);
    std::memcpy(&max, reinterpret_cast<const float*>(&full.max) + first, sizeof max);
    std::memcpy(&zeros, reinterpret_cast<const int32_t*>(&full.zeros) + first, sizeof zeros);
    out.min = min < out.min ? min : out.min;
    out.max = max > out.max ? max : out.max;
    out.zeros += zeros;
  }
  return out;
}

// The work on a chunk's groups besides sums; `masked`: only finite numbers are summed.
enum class Groups : uint8_t { summed, masked, checked, copied };

// One part of a bundle, of which there are `group_count` groups; `before(group)` comes before each.
template <NumberFormat kFormat, bool kMasked, class Before>
inline void add_bundle(const std::byte* source, int group_count, const double* signs, ComparedPart<kFormat>& compared,
                       Lanes& lanes, const Before& before) {
  constexpr size_t kGroupBytes = static_cast<size_t>(kGroupElements) * element_bytes(kFormat);
  Part row_sums[kRows] = {};
  Part added{};
  const auto add = [&](int group) {
    before(group);
    add_part<kFormat, kMasked>(source + static_cast<size_t>(group) * kGroupBytes, group, compared, lanes, row_sums);
    if (group < kAddedGroups) added = sum_of_rows(row_sums);
  };
  if (group_count == kGroups) {
#pragma GCC unroll 8
    for (int group = 0; group < kGroups; ++group) add(group);
  } else {
    for (int group = 0; group < group_count; ++group) add(group);
  }
  end_bundle(row_sums, added, signs, lanes);
}

// The whole groups of a chunk. Unmasked, numbers that are not finite make `squares` not finite.
template <NumberFormat kFormat, Groups kUse>
inline void add_groups(const std::byte* data, int64_t group_count, int64_t first_bundle, std::byte* target,
                       GroupsCrc* crc, Lanes (&total)[kParts]) {
  constexpr size_t kGroupBytes = static_cast<size_t>(kGroupElements) * element_bytes(kFormat);
  constexpr bool kMasked = kUse == Groups::masked, kCopied = kUse == Groups::copied;
  constexpr bool kChecked = kTakesCrc && (kCopied || kUse == Groups::checked);
  CrcStreams<kGroupBytes> streams(data, static_cast<size_t>(group_count) * kGroupBytes / GroupsCrc::kParts);
  Lanes lanes[kParts];
  ComparedPart<kFormat> compared[kParts];
  ComparedFull compared_full;
  clear(lanes);
  for (int64_t first = 0; first < group_count; first += kGroups) {
    const std::byte* source = data + static_cast<size_t>(first) * kGroupBytes;
    const auto here = static_cast<int>(group_count - first < kGroups ? group_count - first : kGroups);
    const auto pass_by = [&](int group) {  // what is done with a group as a whole
      const size_t offset = static_cast<size_t>(group) * kGroupBytes;
      fetch_ahead(source + offset, kGroupBytes);
      if constexpr (kCopied)
        copy_past_cache(target + static_cast<size_t>(first) * kGroupBytes + offset, source + offset, kGroupBytes);
      if constexpr (kChecked) streams.add_group(first + group);
      if constexpr (kComparesFull<kFormat>) compare_full<kFormat>(source + offset, compared_full);
    };
    const double* signs = bundle_signs(first_bundle + first / kGroups);
    add_bundle<kFormat, kMasked>(source, here, signs, compared[0], lanes[0], pass_by);
    for (int part = 1; part < kParts; ++part) {
      add_bundle<kFormat, kMasked>(source + static_cast<size_t>(part * kPartLanes) * element_bytes(kFormat), here,
                                   signs, compared[part], lanes[part], [](int) {});
    }
  }
  if constexpr (kChecked) streams.store(*crc);
  for (int part = 0; part < kParts; ++part) {
    if constexpr (kComparesFull<kFormat>) compared[part] = part_of<kFormat>(compared_full, part);
    total[part].min = widened(compared[part].min);
    total[part].max = widened(compared[part].max);
    total[part].zeros = __builtin_convertvector(compared[part].zeros, PartBits);
    total[part].sum = lanes[part].sum;
    total[part].squares[0] = lanes[part].squares[0] + lanes[part].squares[1];
    total[part].nan = lanes[part].nan;
    total[part].positive_inf = lanes[part].positive_inf;
    total[part].negative_inf = lanes[part].negative_inf;
#pragma GCC unroll 8
    for (int k = 0; k < kRows; ++k) total[part].projections[k] = lanes[part].projections[k];
  }
}

// The eight lanes of a row that is kept in parts.
template <class Number>
struct Row {
  Number lane[kLanes];
};
template <class Number, class Vector>
inline Row<Number> row_of(const Lanes (&lanes)[kParts], Vector Lanes::*member) {
  Row<Number> row;
  for (int lane = 0; lane < kLanes; ++lane) row.lane[lane] = (lanes[lane / kPartLanes].*member)[lane % kPartLanes];
  return row;
}
inline Row<double> squares_of(const Lanes (&lanes)[kParts]) {
  Row<double> row;
  for (int lane = 0; lane < kLanes; ++lane) row.lane[lane] = lanes[lane / kPartLanes].squares[0][lane % kPartLanes];
  return row;
}

inline double sum_of(const Row<double>& row) {
  const double* x = row.lane;
  return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}
inline int64_t sum_of(const Row<int64_t>& row) {
  int64_t sum = 0;
  for (const int64_t count : row.lane) sum += count;
  return sum;
}

inline void fold(const Lanes (&lanes)[kParts], ChunkStatistics& out) {
  out.min = kInfinity;
  out.max = -kInfinity;
  for (const double lane : row_of<double>(lanes, &Lanes::min).lane) out.min = lane < out.min ? lane : out.min;
  for (const double lane : row_of<double>(lanes, &Lanes::max).lane) out.max = lane > out.max ? lane : out.max;
  out.sum = sum_of(row_of<double>(lanes, &Lanes::sum));
  out.sum_of_squares = sum_of(squares_of(lanes));
  out.zeros = sum_of(row_of<int64_t>(lanes, &Lanes::zeros));
  out.nan = sum_of(row_of<int64_t>(lanes, &Lanes::nan));
  out.positive_inf = sum_of(row_of<int64_t>(lanes, &Lanes::positive_inf));
  out.negative_inf = sum_of(row_of<int64_t>(lanes, &Lanes::negative_inf));
  for (int k = 0; k < kRows; ++k) {
    out.projections[k] = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      out.projections[k] += lane_sign(k, lane) * lanes[lane / kPartLanes].projections[k][lane % kPartLanes];
    }
  }
}

// One element of the last, incomplete group of a bundle.
inline void add_element(double x, int group, int position, const double* signs, ChunkStatistics& out) {
  out.min = x < out.min ? x : out.min;
  out.max = x > out.max ? x : out.max;
  out.zeros += x == 0.0;
  out.nan += x != x;
  out.positive_inf += x == kInfinity;
  out.negative_inf += x == -kInfinity;
  if (x - x != 0.0) return;
  out.sum += x;
  out.sum_of_squares += x * x;
  const int row = statistics::row_index(group, position / kLanes);
  const double signed_x = statistics::group_sign(group) * x;
  for (int k = 0; k < kRows; ++k)
    out.projections[k] += signs[k] * row_sign(k, row) * lane_sign(k, position % kLanes) * signed_x;
}

// The last group with zeros after its end, widened.
template <NumberFormat kFormat>
inline void load_tail(const std::byte* source, int count, double (&out)[kGroupElements]) {
  std::byte padded[static_cast<size_t>(kGroupElements) * element_bytes(kFormat)] = {};
  std::memcpy(padded, source, static_cast<size_t>(count) * element_bytes(kFormat));
  for (int begin = 0; begin < static_cast<int>(kGroupElements); begin += kPartLanes) {
    Part part;
    load_part<kFormat>(padded + static_cast<size_t>(begin) * element_bytes(kFormat), part);
    std::memcpy(out + begin, &part, sizeof part);
  }
}

// Sum of (x - mean)^2 in a second pass, for chunks whose spread is small compared with their mean.
template <NumberFormat kFormat>
inline double centered_squares(const std::byte* data, int64_t group_count, const double (&tail)[kGroupElements],
                               int tail_count, double mean) {
  Lanes total[kParts];
  clear(total);
  for (int64_t row = 0; row < group_count * kRows; ++row) {
    for (int part = 0; part < kParts; ++part) {
      Part x;
      load_part<kFormat>(data + static_cast<size_t>(row * kLanes + part * kPartLanes) * element_bytes(kFormat), x);
      const Part difference = (x - x) == 0.0 ? x - mean : Part{};
      total[part].squares[0] += difference * difference;
    }
  }
  double sum = sum_of(squares_of(total));
  for (int index = 0; index < tail_count; ++index) {
    if (tail[index] - tail[index] == 0.0) sum += (tail[index] - mean) * (tail[index] - mean);
  }
  return sum;
}

template <NumberFormat kFormat>
inline void run_chunk(const std::byte* data, int64_t count, int64_t first_element, std::byte* target,
                      ChunkStatistics& out, GroupsCrc* crc) {
  const int64_t group_count = count / kGroupElements;
  const int64_t first_bundle = first_element / kBundleElements;
  const auto tail_count = static_cast<int>(count % kGroupElements);
  const size_t tail_offset = static_cast<size_t>(group_count * kGroupElements) * element_bytes(kFormat);
  Lanes lanes[kParts];
  if (target != nullptr) {
    add_groups<kFormat, Groups::copied>(data, group_count, first_bundle, target, crc, lanes);
    std::memcpy(target + tail_offset, data + tail_offset, static_cast<size_t>(tail_count) * element_bytes(kFormat));
  } else if (crc != nullptr) {
    add_groups<kFormat, Groups::checked>(data, group_count, first_bundle, nullptr, crc, lanes);
  } else {
    add_groups<kFormat, Groups::summed>(data, group_count, first_bundle, nullptr, nullptr, lanes);
  }
  if (!(sum_of(squares_of(lanes)) < kInfinity)) {
    add_groups<kFormat, Groups::masked>(data, group_count, first_bundle, nullptr, nullptr, lanes);
  }
  fold(lanes, out);

  double tail[kGroupElements];
  load_tail<kFormat>(data + tail_offset, tail_count, tail);
  const double* signs = bundle_signs(first_bundle + group_count / kGroups);
  const auto tail_group = static_cast<int>(group_count % kGroups);
  for (int index = 0; index < tail_count; ++index) add_element(tail[index], tail_group, index, signs, out);

  out.count = count - out.nan - out.positive_inf - out.negative_inf;
  if (out.count == 0) {
    out.centered_squares = 0;
    return;
  }
  const double mean = out.sum / static_cast<double>(out.count);
  out.centered_squares = out.sum_of_squares - out.sum * mean;
  if (out.centered_squares < statistics::kLeastDeviation * out.sum_of_squares) {
    out.centered_squares = centered_squares<kFormat>(data, group_count, tail, tail_count, mean);
  }
}

}  // namespace

void PX_CHUNK_KERNEL(NumberFormat format, const std::byte* data, int64_t count, int64_t first_element,
                     std::byte* target, ChunkStatistics& out, GroupsCrc* crc);
void PX_CHUNK_KERNEL(NumberFormat format, const std::byte* data, int64_t count, int64_t first_element,
                     std::byte* target, ChunkStatistics& out, GroupsCrc* crc) {
  switch (format) {
    case NumberFormat::float64:
      return run_chunk<NumberFormat::float64>(data, count, first_element, target, out, crc);
    case NumberFormat::float32:
      return run_chunk<NumberFormat::float32>(data, count, first_element, target, out, crc);
    case NumberFormat::float16:
      return run_chunk<NumberFormat::float16>(data, count, first_element, target, out, crc);
    case NumberFormat::bfloat16:
      return run_chunk<NumberFormat::bfloat16>(data, count, first_element, target, out, crc);
  }
}

void PX_COPY_KERNEL(const std::byte* data, size_t size_bytes, std::byte* target, GroupsCrc& crc);
void PX_COPY_KERNEL(const std::byte* data, size_t size_bytes, std::byte* target, GroupsCrc& crc) {
  constexpr size_t kBlockBytes = 512;
  const size_t blocks = size_bytes / kBlockBytes;
  CrcStreams<kBlockBytes> streams(data, blocks * kBlockBytes / GroupsCrc::kParts);
  for (size_t block = 0; block < blocks; ++block) {
    const size_t offset = block * kBlockBytes;
    copy_past_cache(target + offset, data + offset, kBlockBytes);
    if constexpr (kTakesCrc) streams.add_group(static_cast<int64_t>(block));
  }
  if constexpr (kTakesCrc) streams.store(crc);
  std::memcpy(target + blocks * kBlockBytes, data + blocks * kBlockBytes, size_bytes % kBlockBytes);
}

}  // namespace parallax::dump
