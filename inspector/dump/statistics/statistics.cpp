// SPDX-License-Identifier: Apache-2.0
// Tensors are cut into chunks that do not depend on the number of threads; chunks are joined in order.
#include "inspector/dump/statistics/statistics.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "inspector/base/check.h"
#include "inspector/base/cpu_features.h"
#include "inspector/base/crc32c.h"
#include "inspector/base/thread_pool.h"
#include "inspector/dump/statistics/statistics_kernel.h"
#include "inspector/dump/statistics/statistics_write.h"
#include "inspector/tensor/channels_last.h"
#include "inspector/tensor/elements.h"

namespace parallax {
namespace dump {

void chunk_kernel_portable(NumberFormat format, const std::byte* data, int64_t count, int64_t first_element,
                           std::byte* target, ChunkStatistics& out, GroupsCrc* crc);
void copy_kernel_portable(const std::byte* data, size_t size_bytes, std::byte* target, GroupsCrc& crc);
#if defined(__x86_64__)
void copy_kernel_avx2(const std::byte* data, size_t size_bytes, std::byte* target, GroupsCrc& crc);
void copy_kernel_avx512(const std::byte* data, size_t size_bytes, std::byte* target, GroupsCrc& crc);
void chunk_kernel_avx2(NumberFormat format, const std::byte* data, int64_t count, int64_t first_element,
                       std::byte* target, ChunkStatistics& out, GroupsCrc* crc);
void chunk_kernel_avx512(NumberFormat format, const std::byte* data, int64_t count, int64_t first_element,
                         std::byte* target, ChunkStatistics& out, GroupsCrc* crc);

ChunkKernel chunk_kernel(VectorLevel level) {
  if (level == VectorLevel::avx2) return chunk_kernel_avx2;
  return level == VectorLevel::avx512 ? chunk_kernel_avx512 : chunk_kernel_portable;
}
CopyKernel copy_kernel(VectorLevel level) {
  if (level == VectorLevel::avx2) return copy_kernel_avx2;
  return level == VectorLevel::avx512 ? copy_kernel_avx512 : copy_kernel_portable;
}
#else
ChunkKernel chunk_kernel(VectorLevel) { return chunk_kernel_portable; }
CopyKernel copy_kernel(VectorLevel) { return copy_kernel_portable; }
#endif

ChunkKernel best_chunk_kernel() {
  static const ChunkKernel kernel = chunk_kernel(vector_level());
  return kernel;
}
CopyKernel best_copy_kernel() {
  static const CopyKernel kernel = copy_kernel(vector_level());
  return kernel;
}

}  // namespace dump

namespace {

using dump::NumberFormat;
using statistics::ChunkStatistics;
using statistics::kChunkElements;

// A tensor as the kernel sees it: numbers in one of its formats, or numbers to be converted to double chunk by chunk.
struct Source {
  TensorView view;
  NumberFormat format = NumberFormat::float64;
  DType dtype = DType::undefined;  // of the numbers: complex elements are two real ones each
  bool is_converted = false;
  int64_t count() const { return view.element_count() * (is_complex(view.dtype) ? 2 : 1); }
};

Source source_of(const TensorView& view) {
  switch (view.dtype) {
    case DType::float64:
    case DType::complex128:
      return {view, NumberFormat::float64, DType::float64};
    case DType::float32:
    case DType::complex64:
      return {view, NumberFormat::float32, DType::float32};
    case DType::float16:
      return {view, NumberFormat::float16, view.dtype};
    case DType::bfloat16:
      return {view, NumberFormat::bfloat16, view.dtype};
    default:
      return {view, NumberFormat::float64, view.dtype, true};
  }
}

// Larger tensors go past the cache.
constexpr size_t kPastCacheBytes = 64 << 10;

// The results for a chunk that is copied or checked.
struct Chunk {
  uint32_t crc = 0;
  size_t size_bytes = 0;
};

uint32_t joined_crc(std::span<const Chunk> chunks) {
  uint32_t crc = 0;
  for (const Chunk& chunk : chunks) crc = crc32c_joined(crc, chunk.crc, chunk.size_bytes);
  return crc;
}

// The work on the elements besides statistics.
enum class Use : uint8_t { nothing, checked, copied };

// The CRC of a chunk that is in the cache now, apart from the groups that the kernel took.
uint32_t crc_of(const dump::GroupsCrc& groups, const std::byte* data, size_t size_bytes) {
  if (!groups.is_taken) return crc32c(data, size_bytes);
  uint32_t crc = 0;
  size_t done_bytes = 0;
  for (const uint32_t part : groups.parts) {
    crc = crc32c_joined(crc, part, groups.part_bytes);
    done_bytes += groups.part_bytes;
  }
  return crc32c(data + done_bytes, size_bytes - done_bytes, crc);
}

// True where a payload's part is copied to `target` by stores that bypass the cache.
bool goes_past_cache(const TensorView& view, const std::byte* target) {
  return reinterpret_cast<uintptr_t>(target) % dump::kCopyAlignment == 0 && view.size_bytes() >= kPastCacheBytes;
}

// Statistics of the numbers [begin, begin + count), stored at `data`, and their CRC and copy where these are wanted.
void run_chunk(const Source& source, const std::byte* data, int64_t begin, int64_t count, Use use, std::byte* target,
               std::vector<double>& buffer, Chunk& chunk, ChunkStatistics& out) {
  std::byte* const chunk_target = use != Use::copied ? nullptr : target + byte_size(source.dtype, begin);
  const bool is_past_cache = use == Use::copied && !source.is_converted && goes_past_cache(source.view, chunk_target);
  dump::GroupsCrc groups;
  if (source.is_converted) {
    buffer.resize(static_cast<size_t>(count));
    load_doubles({source.dtype, Shape(std::span(&count, 1)), data, {}}, 0, buffer);
    dump::best_chunk_kernel()(source.format, reinterpret_cast<const std::byte*>(buffer.data()), count, begin, nullptr,
                              out, nullptr);
  } else {
    dump::best_chunk_kernel()(source.format, data, count, begin, is_past_cache ? chunk_target : nullptr, out,
                              use == Use::nothing ? nullptr : &groups);
  }
  if (use == Use::nothing) return;
  chunk.size_bytes = byte_size(source.dtype, count);
  if (use == Use::copied && !is_past_cache) std::memcpy(chunk_target, data, chunk.size_bytes);
  chunk.crc = crc_of(groups, data, chunk.size_bytes);
}

void fence_stores() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// Mean, spread and norm of numbers whose sums or squares leave the range of double: once more, scaled down.
void sum_scaled(std::span<const double> numbers, TensorStatistics& statistics) {
  constexpr int kScaleBits = 600;  // squares of what is left, and 2^60 of them, stay in range
  double count = 0, sum = 0, squares = 0, centered_squares = 0;
  const auto for_each_finite = [&](const auto& add) {
    for (const double number : numbers) {
      if (std::isfinite(number)) add(std::ldexp(number, -kScaleBits));
    }
  };
  for_each_finite([&](double number) {
    count += 1;
    sum += number;
    squares += number * number;
  });
  const double mean = sum / count;
  for_each_finite([&](double number) { centered_squares += (number - mean) * (number - mean); });
  const auto repair = [](double& number, double scaled) {
    if (!std::isfinite(number)) number = std::ldexp(scaled, kScaleBits);
  };
  repair(statistics.mean, mean);
  repair(statistics.std, statistics.min == statistics.max ? 0 : std::sqrt(centered_squares / count));
  repair(statistics.l2, std::sqrt(squares));
}

// How chunks go through the kernel.
struct Parts {
  int64_t at_once = 1;  // chunks that are read together
  int64_t ranges = 1;   // of chunks, each of which a thread goes through, keeping what it read ahead
};

// The parts of a tensor that is transposed: as many chunks are read together as have rows that share cache lines, and
// the bytes read on both sides of a range's end are few compared with the range.
Parts parts_of(const TensorView& view, ElementOrder order, int64_t chunk_count, size_t chunk_bytes) {
  if (!must_transpose(view, order)) return {1, chunk_count};
  constexpr int64_t kRangesOfThread = 2;
  const TransposingReader reader(view);
  const size_t line_bytes = static_cast<size_t>(reader.rows_of_line()) * reader.row_bytes();
  const auto of_line = static_cast<int64_t>((line_bytes + chunk_bytes - 1) / chunk_bytes);
  const int64_t ranges = std::min<int64_t>(chunk_count, kRangesOfThread * thread_count());
  return {std::clamp<int64_t>(of_line, 1, (chunk_count + ranges - 1) / ranges), ranges};
}

// A tensor on its way through the kernel.
class Pass {
 public:
  Pass(const TensorView& view, ElementOrder order)
      : source_(source_of(view)),
        order_(order),
        count_(source_.count()),
        chunks_(static_cast<size_t>((count_ + kChunkElements - 1) / kChunkElements)),
        statistics_(chunks_.size()) {
    PX_CHECK(view.device.is_host() || is_channels_last(view));
  }
  int64_t chunk_count() const { return static_cast<int64_t>(chunks_.size()); }

  // All chunks. `target`: where the tensor is copied to, in the order of the pass.
  void run(Use use, std::byte* target) {
    if (chunk_count() == 0) return;
    const Parts parts = parts_of(source_.view, order_, chunk_count(), byte_size(source_.dtype, kChunkElements));
    const int64_t work = kChunkElements * (must_transpose(source_.view, order_) ? 2 : 1);
    parallel_for(parts.ranges, work * chunk_count() / parts.ranges, [&](int64_t from, int64_t to) {
      const int64_t begin = from * chunk_count() / parts.ranges, end = to * chunk_count() / parts.ranges;
      std::vector<double> buffer;
      OrderedPieces pieces(source_.view, order_, bytes_before(end));
      for (int64_t first = begin; first < end; first += parts.at_once) {
        const int64_t last = std::min(end, first + parts.at_once);
        run_chunks(first, last, pieces.read(bytes_before(first), bytes_before(last)), use, target, buffer);
      }
      fence_stores();
    });
  }
  // The chunks [first, end) of a tensor that is stored in that order.
  void check(int64_t first, int64_t end) {
    parallel_for(end - first, kChunkElements, [&](int64_t from, int64_t to) {
      std::vector<double> buffer;
      const std::byte* const data = source_.view.data + bytes_before(first + from);
      run_chunks(first + from, first + to, data, Use::checked, nullptr, buffer);
    });
  }

  CheckedCopy joined() const {
    CheckedCopy copy;
    copy.crc = joined_crc(chunks_);
    copy.statistics = joined_statistics(statistics_, count_, order_);
    const TensorStatistics& joined = copy.statistics;
    const bool has_finite = joined.nan + joined.positive_inf + joined.negative_inf < count_;
    const bool is_in_range = std::isfinite(joined.mean) && std::isfinite(joined.std) && std::isfinite(joined.l2);
    if (has_finite && !is_in_range && source_.dtype == DType::float64) {
      OrderedPieces pieces(source_.view, order_);
      const std::byte* const data = pieces.read(0, source_.view.size_bytes());
      sum_scaled({reinterpret_cast<const double*>(data), static_cast<size_t>(count_)}, copy.statistics);
    }
    return copy;
  }

 private:
  size_t bytes_before(int64_t chunk) const {
    return byte_size(source_.dtype, std::min(chunk * kChunkElements, count_));
  }

  // They are stored at `data`.
  void run_chunks(int64_t first, int64_t end, const std::byte* data, Use use, std::byte* target,
                  std::vector<double>& buffer) {
    const size_t begin_bytes = bytes_before(first);
    for (int64_t chunk = first; chunk < end; ++chunk) {
      const int64_t begin = chunk * kChunkElements;
      const auto index = static_cast<size_t>(chunk);
      run_chunk(source_, data + byte_size(source_.dtype, begin) - begin_bytes, begin,
                std::min(kChunkElements, count_ - begin), use, target, buffer, chunks_[index], statistics_[index]);
    }
  }

  Source source_;
  ElementOrder order_;
  int64_t count_;
  std::vector<Chunk> chunks_;
  std::vector<ChunkStatistics> statistics_;
};

// The payload of a row-major tensor, copied alone. Returns its CRC.
uint32_t copy_payload(const TensorView& view, std::byte* target) {
  constexpr size_t kPartBytes = 64 << 10;
  const size_t size_bytes = view.size_bytes();
  std::vector<Chunk> parts((size_bytes + kPartBytes - 1) / kPartBytes);
  const bool is_past_cache = goes_past_cache(view, target);
  parallel_for(static_cast<int64_t>(parts.size()), kPartBytes / 8, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const size_t offset = static_cast<size_t>(index) * kPartBytes;
      const std::byte* const data = view.data + offset;
      Chunk& part = parts[static_cast<size_t>(index)];
      part.size_bytes = std::min(kPartBytes, size_bytes - offset);
      dump::GroupsCrc groups;
      if (is_past_cache) {
        dump::best_copy_kernel()(data, part.size_bytes, target + offset, groups);
      } else {
        std::memcpy(target + offset, data, part.size_bytes);
      }
      part.crc = crc_of(groups, data, part.size_bytes);
    }
    fence_stores();
  });
  return joined_crc(parts);
}

// Adds to each projection a number of its own with the sign that it has in bundle number `bundle`.
template <class NumberOf>
void add_projections(int64_t bundle, const NumberOf& number_of, std::span<double, kProjectionCount> projections) {
  const unsigned signs = statistics::bundle_sign_bits(bundle);
  for (size_t k = 0; k < kProjectionCount; ++k) projections[k] += (signs >> k & 1U) != 0 ? -number_of(k) : number_of(k);
}

TensorStatistics text_statistics(const TensorView& view) {
  TensorStatistics statistics = joined_statistics({}, 0);
  statistics.count = view.element_count();
  const std::span<const std::string> texts = view.as<std::string>();
  for (size_t i = 0; i < texts.size(); ++i) {
    const double number = 1.0 + crc32c(texts[i].data(), texts[i].size());
    add_projections(
        static_cast<int64_t>(i), [number](size_t) { return number; }, statistics.projections);
  }
  return statistics;
}

// A tensor within a value as one chunk of it, its index `index` counted from 0.
ChunkStatistics as_chunk(const TensorStatistics& whole, int64_t index) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const int64_t finite = whole.count - whole.nan - whole.positive_inf - whole.negative_inf;
  const bool has_numbers = finite > 0 && !std::isnan(whole.mean);  // a text has none
  const auto count = static_cast<double>(finite);
  ChunkStatistics chunk{};
  chunk.min = std::isnan(whole.min) ? kInfinity : whole.min;
  chunk.max = std::isnan(whole.max) ? -kInfinity : whole.max;
  if (has_numbers) {
    chunk.sum = whole.mean * count;
    chunk.sum_of_squares = whole.l2 * whole.l2;
    chunk.centered_squares = whole.std * whole.std * count;
    chunk.count = finite;
  }
  chunk.zeros = whole.zeros;
  chunk.nan = whole.nan;
  chunk.positive_inf = whole.positive_inf;
  chunk.negative_inf = whole.negative_inf;
  add_projections(
      index, [&whole](size_t k) { return whole.projections[k]; }, chunk.projections);
  return chunk;
}

struct ValueParts {
  std::vector<ChunkStatistics> chunks;
  int64_t count = 0;

  void add(const TensorView& tensor) {
    const TensorStatistics whole = compute_statistics(tensor);
    chunks.push_back(as_chunk(whole, static_cast<int64_t>(chunks.size())));
    count += whole.count;
  }
  void add(const Value& value) {
    if (value.is_tensor()) add(value.tensor().view());
    if (value.is_map()) add(value.map().keys.view());
    const std::vector<Value>* const items = value.is_sequence()   ? &value.sequence().items
                                            : value.is_optional() ? &value.optional().item
                                            : value.is_map()      ? &value.map().values
                                                                  : nullptr;
    if (items == nullptr) return;
    for (const Value& item : *items) add(item);
  }
};

// At a time through the kernel and then to the writer: large calls cost least, and this is still in the cache.
constexpr int64_t kChunksWritten = 64;

}  // namespace

TensorStatistics compute_statistics(const TensorView& view, ElementOrder order) {
  if (view.dtype == DType::string) return text_statistics(view);
  Pass pass(view, order);
  pass.run(Use::nothing, nullptr);
  return pass.joined().statistics;
}

TensorStatistics value_statistics(const Value& value) {
  if (value.is_tensor()) return compute_statistics(value.tensor().view());
  ValueParts parts;
  parts.add(value);
  TensorStatistics statistics = joined_statistics(parts.chunks, parts.count);
  const bool has_numbers = statistics.min <= statistics.max;
  if (!has_numbers) statistics.min = statistics.max = std::numeric_limits<double>::quiet_NaN();
  return statistics;
}

ElementOrder payload_order(const TensorView& view, ElementOrder order) {
  const bool stays = is_channels_last(view) && order == ElementOrder::channels_last && !is_order_free(view.shape);
  return stays ? ElementOrder::channels_last : ElementOrder::row_major;
}

CheckedCopy copy_with_statistics(const TensorView& view, std::byte* target, ElementOrder order) {
  PX_CHECK(view.dtype != DType::string);
  if (!is_channels_last(view) && must_transpose(view, order))
    return {compute_statistics(view, order), copy_payload(view, target)};
  Pass pass(view, order);
  pass.run(Use::copied, target);
  return pass.joined();
}

Result<CheckedCopy> write_with_statistics(const TensorView& view, const PayloadWriter& write, ElementOrder order) {
  PX_CHECK(view.dtype != DType::string);
  if (is_channels_last(view) && must_transpose(view, order)) {
    const Tensor row_major = PX_TRY(read_row_major(view));
    return write_with_statistics(row_major, write, order);
  }
  Pass pass(view, is_channels_last(view) ? order : ElementOrder::row_major);  // as stored
  const std::span<const std::byte> bytes(view.data, view.size_bytes());
  const size_t written_bytes = byte_size(source_of(view).dtype, kChunksWritten * kChunkElements);
  size_t offset = 0;
  for (int64_t first = 0; first < pass.chunk_count(); first += kChunksWritten) {
    pass.check(first, std::min(first + kChunksWritten, pass.chunk_count()));
    const std::span<const std::byte> part = bytes.subspan(offset, std::min(written_bytes, bytes.size() - offset));
    PX_TRY(write(offset, part));
    offset += part.size();
  }
  CheckedCopy copy = pass.joined();
  if (copy.statistics.order != order) copy.statistics = compute_statistics(view, order);
  return copy;
}

}  // namespace parallax
