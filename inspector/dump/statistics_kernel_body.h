// The body of the chunk kernel, included once by each statistics_kernel_<set>.cpp, which names the function
// PX_CHUNK_KERNEL and is compiled for its instruction set. It includes nothing with inline code but the intrinsics:
// other code would be shared with files for lesser CPUs.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <cstring>

#include "inspector/dump/statistics_kernel.h"

namespace parallax::dump {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

using statistics::kLanes;
using statistics::kRows;
using statistics::lane_sign;
using statistics::row_sign;
constexpr int kPartLanes = kVectorBytes / 8;  // of which one vector holds a part
constexpr int kParts = kLanes / kPartLanes;
using Part = double __attribute__((vector_size(kVectorBytes)));
using PartBits = int64_t __attribute__((vector_size(kVectorBytes)));
using FloatPart = float __attribute__((vector_size(kVectorBytes / 2)));
using FloatBits = uint32_t __attribute__((vector_size(kVectorBytes / 2)));
using FloatMask = int32_t __attribute__((vector_size(kVectorBytes / 2)));

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

inline const double* group_signs(int64_t group) { return kSigns.signs[statistics::group_sign_bits(group)]; }

constexpr size_t element_bytes(NumberFormat format) {
  return format == NumberFormat::float64 ? 8 : format == NumberFormat::float32 ? 4 : 2;
}

// Numbers as they are compared: where vectors are wide, in float32, into which every format but float64 fits; of
// vectors of 16 bytes half would be idle.
template <bool kInFloats>
struct NumbersIn {
  using Number = double;
  using Type = Part;
  using Mask = PartBits;
};
template <>
struct NumbersIn<true> {
  using Number = float;
  using Type = FloatPart;
  using Mask = FloatMask;
};
template <NumberFormat kFormat>
using NumbersOf = NumbersIn<(kVectorBytes > 16 && kFormat != NumberFormat::float64)>;
template <NumberFormat kFormat>
using Numbers = typename NumbersOf<kFormat>::Type;
template <NumberFormat kFormat>
using ComparedNumber = typename NumbersOf<kFormat>::Number;

template <NumberFormat kFormat>
inline void load_numbers(const std::byte* source, Numbers<kFormat>& numbers) {
  FloatPart narrow;
  if constexpr (kFormat == NumberFormat::float64) {
    std::memcpy(&numbers, source, sizeof numbers);
    return;
  } else if constexpr (kFormat == NumberFormat::float32) {
    std::memcpy(&narrow, source, sizeof narrow);
  } else {
    uint16_t half[kPartLanes];
    std::memcpy(half, source, sizeof half);
    FloatBits bits;
    for (int lane = 0; lane < kPartLanes; ++lane) bits[lane] = half[lane];
    if constexpr (kFormat == NumberFormat::bfloat16) {
      bits <<= 16;
      std::memcpy(&narrow, &bits, sizeof narrow);
    } else {
      // The mantissa and exponent of float16, read as float32, are too small by 2^112; subnormal ones included.
      const FloatBits magnitude = (bits & 0x7FFFU) << 13;
      std::memcpy(&narrow, &magnitude, sizeof narrow);
      narrow *= 0x1p112F;
      FloatBits scaled;
      std::memcpy(&scaled, &narrow, sizeof scaled);
      scaled = magnitude >= 0x7C00U << 13 ? (magnitude | 0x7F800000U) : scaled;
      scaled |= (bits & 0x8000U) << 16;
      std::memcpy(&narrow, &scaled, sizeof narrow);
    }
  }
  if constexpr (kFormat != NumberFormat::float64) numbers = __builtin_convertvector(narrow, Numbers<kFormat>);
}

#if defined(__F16C__)
template <>
inline void load_numbers<NumberFormat::float16>(const std::byte* source, FloatPart& numbers) {
  const auto* half = reinterpret_cast<const __m128i*>(source);
#if defined(__AVX512F__)
  numbers = _mm256_cvtph_ps(_mm_loadu_si128(half));
#else
  numbers = _mm_cvtph_ps(_mm_loadl_epi64(half));
#endif
}
#endif

inline Part widened(Part numbers) { return numbers; }
inline Part widened(FloatPart numbers) {
#if defined(__AVX512F__)
  // GCC 12 makes two halves of __builtin_convertvector, and warns of its own _mm512_cvtps_pd.
  return _mm512_maskz_cvtps_pd(0xFF, numbers);
#elif defined(__AVX2__)
  return _mm256_cvtps_pd(numbers);
#else
  return __builtin_convertvector(numbers, Part);
#endif
}

template <NumberFormat kFormat>
inline void load_part(const std::byte* source, Part& part) {
  Numbers<kFormat> numbers;
  load_numbers<kFormat>(source, numbers);
  part = widened(numbers);
}

// a * b + c where the product has no more digits than a double: both ways round the same.
inline Part add_exact_product(Part a, Part b, Part c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_pd(a, b, c);
#else
  return a * b + c;
#endif
}

// Past the cache: what is captured is not read again soon, and its lines need not be fetched before they are written.
inline void copy_past_cache(std::byte* target, const std::byte* source, size_t size) {
  for (size_t offset = 0; offset < size; offset += static_cast<size_t>(kVectorBytes)) {
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(target + offset), _mm512_loadu_si512(source + offset));
#elif defined(__AVX2__)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(target + offset),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + offset)));
#elif defined(__SSE2__)
    _mm_stream_si128(reinterpret_cast<__m128i*>(target + offset),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + offset)));
#else
    std::memcpy(target + offset, source + offset, static_cast<size_t>(kVectorBytes));
#endif
  }
}

// So much work a group is more than the processor looks ahead by itself. Addresses past the end do no harm.
inline void fetch_ahead(const std::byte* source, size_t size) {
  constexpr size_t kAheadBytes = 2048, kLineBytes = 64;
  for (size_t offset = 0; offset < size; offset += kLineBytes) __builtin_prefetch(source + kAheadBytes + offset);
}

// What is summed up of one part of every row.
struct Lanes {
  Part min;
  Part max;
  Part sum;
  Part squares;
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

// What is found by comparing, in the format's own vectors; zeros of a chunk fit into 32 bits.
template <NumberFormat kFormat>
struct Compared {
  Numbers<kFormat> min = Numbers<kFormat>{} + static_cast<ComparedNumber<kFormat>>(kInfinity);
  Numbers<kFormat> max = Numbers<kFormat>{} - static_cast<ComparedNumber<kFormat>>(kInfinity);
  typename NumbersOf<kFormat>::Mask zeros{};
};

// One part of the rows of a group.
template <NumberFormat kFormat, bool kMasked>
inline void add_part(const std::byte* source, const double* signs, Compared<kFormat>& compared, Lanes& lanes) {
  Part x[kRows];
#pragma GCC unroll 8
  for (int j = 0; j < kRows; ++j) {
    Numbers<kFormat> numbers;
    load_numbers<kFormat>(source + static_cast<size_t>(j * kLanes) * element_bytes(kFormat), numbers);
    compared.min = numbers < compared.min ? numbers : compared.min;
    compared.max = numbers > compared.max ? numbers : compared.max;
    compared.zeros -= numbers == 0;
    x[j] = widened(numbers);
    if constexpr (kMasked) {
      lanes.nan -= x[j] != x[j];
      lanes.positive_inf -= x[j] == kInfinity;
      lanes.negative_inf -= x[j] == -kInfinity;
      x[j] = (x[j] - x[j]) == 0.0 ? x[j] : Part{};
    }
    if constexpr (kFormat == NumberFormat::float64) {
      lanes.squares += x[j] * x[j];
    } else {
      lanes.squares = add_exact_product(x[j], x[j], lanes.squares);
    }
  }
  transform(x);
  lanes.sum += x[0];
#pragma GCC unroll 8
  for (int k = 0; k < kRows; ++k)
    lanes.projections[k] = add_exact_product(x[k], Part{} + signs[k], lanes.projections[k]);
}

// The whole groups of a chunk. Unmasked, numbers that are not finite make `squares` not finite.
template <NumberFormat kFormat, bool kMasked, bool kCopied>
inline void add_groups(const std::byte* data, int64_t group_count, int64_t first_group, std::byte* target,
                       Lanes (&total)[kParts]) {
  constexpr size_t kGroupBytes = static_cast<size_t>(kGroupElements) * element_bytes(kFormat);
  Lanes lanes[kParts];
  Compared<kFormat> compared[kParts];
  clear(lanes);
  for (int64_t group = 0; group < group_count; ++group) {
    const std::byte* source = data + static_cast<size_t>(group) * kGroupBytes;
    fetch_ahead(source, kGroupBytes);
    if constexpr (kCopied) copy_past_cache(target + static_cast<size_t>(group) * kGroupBytes, source, kGroupBytes);
    const double* signs = group_signs(first_group + group);
    if constexpr (kParts == 1) {  // without a loop GCC keeps the sums in registers
      add_part<kFormat, kMasked>(source, signs, compared[0], lanes[0]);
      continue;
    }
#pragma GCC unroll 1
    for (int part = 0; part < kParts; ++part) {
      add_part<kFormat, kMasked>(source + static_cast<size_t>(part * kPartLanes) * element_bytes(kFormat), signs,
                                 compared[part], lanes[part]);
    }
  }
  for (int part = 0; part < kParts; ++part) {
    total[part].min = widened(compared[part].min);
    total[part].max = widened(compared[part].max);
    total[part].zeros = __builtin_convertvector(compared[part].zeros, PartBits);
    total[part].sum = lanes[part].sum;
    total[part].squares = lanes[part].squares;
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
  out.sum_of_squares = sum_of(row_of<double>(lanes, &Lanes::squares));
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
  for (int begin = 0; begin < static_cast<int>(kGroupElements); begin += kPartLanes) {
    Part part;
    load_part<kFormat>(padded + static_cast<size_t>(begin) * element_bytes(kFormat), part);
    std::memcpy(out + begin, &part, sizeof part);
  }
}

// Sum of (x - mean)^2 in a second pass, for chunks whose spread is small beside their mean.
template <NumberFormat kFormat>
inline double centred_squares(const std::byte* data, int64_t group_count, const double (&tail)[kGroupElements],
                              int tail_count, double mean) {
  Lanes total[kParts];
  clear(total);
  for (int64_t row = 0; row < group_count * kRows; ++row) {
    for (int part = 0; part < kParts; ++part) {
      Part x;
      load_part<kFormat>(data + static_cast<size_t>(row * kLanes + part * kPartLanes) * element_bytes(kFormat), x);
      const Part difference = (x - x) == 0.0 ? x - mean : Part{};
      total[part].squares += difference * difference;
    }
  }
  double sum = sum_of(row_of<double>(total, &Lanes::squares));
  for (int index = 0; index < tail_count; ++index) {
    if (tail[index] - tail[index] == 0.0) sum += (tail[index] - mean) * (tail[index] - mean);
  }
  return sum;
}

template <NumberFormat kFormat>
inline void run_chunk(const std::byte* data, int64_t count, int64_t first_element, std::byte* target,
                      ChunkStatistics& out) {
  const int64_t group_count = count / kGroupElements;
  const int64_t first_group = first_element / kGroupElements;
  const auto tail_count = static_cast<int>(count % kGroupElements);
  const size_t tail_offset = static_cast<size_t>(group_count * kGroupElements) * element_bytes(kFormat);
  Lanes lanes[kParts];
  if (target == nullptr) {
    add_groups<kFormat, false, false>(data, group_count, first_group, nullptr, lanes);
  } else {
    add_groups<kFormat, false, true>(data, group_count, first_group, target, lanes);
    std::memcpy(target + tail_offset, data + tail_offset, static_cast<size_t>(tail_count) * element_bytes(kFormat));
  }
  if (!(sum_of(row_of<double>(lanes, &Lanes::squares)) < kInfinity)) {
    add_groups<kFormat, true, false>(data, group_count, first_group, nullptr, lanes);
  }
  fold(lanes, out);

  double tail[kGroupElements];
  load_tail<kFormat>(data + tail_offset, tail_count, tail);
  const double* signs = group_signs(first_group + group_count);
  for (int index = 0; index < tail_count; ++index) add_element(tail[index], index, signs, out);

  out.count = count - out.nan - out.positive_inf - out.negative_inf;
  if (out.count == 0) {
    out.centred_squares = 0;
    return;
  }
  const double mean = out.sum / static_cast<double>(out.count);
  out.centred_squares = out.sum_of_squares - out.sum * mean;
  if (out.centred_squares < statistics::kLeastSpread * out.sum_of_squares) {
    out.centred_squares = centred_squares<kFormat>(data, group_count, tail, tail_count, mean);
  }
}

}  // namespace

void PX_CHUNK_KERNEL(NumberFormat format, const std::byte* data, int64_t count, int64_t first_element,
                     std::byte* target, ChunkStatistics& out);
void PX_CHUNK_KERNEL(NumberFormat format, const std::byte* data, int64_t count, int64_t first_element,
                     std::byte* target, ChunkStatistics& out) {
  switch (format) {
    case NumberFormat::float64:
      return run_chunk<NumberFormat::float64>(data, count, first_element, target, out);
    case NumberFormat::float32:
      return run_chunk<NumberFormat::float32>(data, count, first_element, target, out);
    case NumberFormat::float16:
      return run_chunk<NumberFormat::float16>(data, count, first_element, target, out);
    case NumberFormat::bfloat16:
      return run_chunk<NumberFormat::bfloat16>(data, count, first_element, target, out);
  }
}

}  // namespace parallax::dump
