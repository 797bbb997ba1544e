// Tensors are cut into chunks that do not depend on the number of threads; chunks are joined in order.
#include "inspector/dump/statistics.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "inspector/base/check.h"
#include "inspector/base/crc32c.h"
#include "inspector/base/thread_pool.h"
#include "inspector/dump/statistics_kernel.h"
#include "inspector/tensor/elements.h"

namespace parallax {
namespace dump {

void chunk_kernel_portable(NumberFormat format, const std::byte* data, int64_t count, int64_t first_element,
                           std::byte* target, ChunkStatistics& out);
#if defined(__x86_64__)
void chunk_kernel_avx2(NumberFormat format, const std::byte* data, int64_t count, int64_t first_element,
                       std::byte* target, ChunkStatistics& out);
void chunk_kernel_avx512(NumberFormat format, const std::byte* data, int64_t count, int64_t first_element,
                         std::byte* target, ChunkStatistics& out);

bool is_available(InstructionSet set) {
  if (set == InstructionSet::portable) return true;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  // clang 14 knows no __builtin_cpu_supports("f16c").
  const bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  if (set == InstructionSet::avx2)
    return has_f16c && __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  return has_f16c && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0;
}

ChunkKernel chunk_kernel(InstructionSet set) {
  if (set == InstructionSet::avx2) return chunk_kernel_avx2;
  return set == InstructionSet::avx512 ? chunk_kernel_avx512 : chunk_kernel_portable;
}
#else
bool is_available(InstructionSet set) { return set == InstructionSet::portable; }
ChunkKernel chunk_kernel(InstructionSet) { return chunk_kernel_portable; }
#endif

ChunkKernel best_chunk_kernel() {
  static const ChunkKernel kernel = [] {
    for (const InstructionSet set : {InstructionSet::avx512, InstructionSet::avx2}) {
      if (is_available(set)) return chunk_kernel(set);
    }
    return chunk_kernel(InstructionSet::portable);
  }();
  return kernel;
}

}  // namespace dump

namespace {

using dump::ChunkStatistics;
using dump::kChunkElements;
static_assert(kProjectionCount == dump::kSignSequences);
using dump::NumberFormat;

// A tensor as the kernel sees it: numbers in one of its formats, or numbers to be converted to double chunk by chunk.
struct Source {
  TensorView view;  // complex tensors as twice as many real numbers
  NumberFormat format = NumberFormat::float64;
  bool is_converted = false;
};

Source source_of(const TensorView& view) {
  const auto real_pairs = [&view](DType dtype) {
    const int64_t count = view.element_count() * 2;
    return TensorView{dtype, Shape(std::span(&count, 1)), view.data, view.device};
  };
  switch (view.dtype) {
    case DType::float64:
      return {view, NumberFormat::float64};
    case DType::float32:
      return {view, NumberFormat::float32};
    case DType::float16:
      return {view, NumberFormat::float16};
    case DType::bfloat16:
      return {view, NumberFormat::bfloat16};
    case DType::complex64:
      return {real_pairs(DType::float32), NumberFormat::float32};
    case DType::complex128:
      return {real_pairs(DType::float64), NumberFormat::float64};
    default:
      return {view, NumberFormat::float64, true};
  }
}

// Larger tensors go past the cache.
constexpr size_t kPastCacheBytes = 64 << 10;

struct Chunk {
  ChunkStatistics statistics;
  uint32_t crc;  // of a copied chunk
  size_t size_bytes;
};

// Statistics of elements [begin, begin + count), and their copy unless `target` is null.
void run_chunk(const Source& source, int64_t begin, int64_t count, std::byte* target, std::vector<double>& buffer,
               Chunk& chunk) {
  ChunkStatistics& out = chunk.statistics;
  const std::byte* data = source.view.data + byte_size(source.view.dtype, begin);
  std::byte* const chunk_target = target == nullptr ? nullptr : target + byte_size(source.view.dtype, begin);
  const bool is_aligned = reinterpret_cast<uintptr_t>(chunk_target) % dump::kCopyAlignment == 0;
  const bool is_past_cache = !source.is_converted && is_aligned && source.view.size_bytes() >= kPastCacheBytes;
  if (source.is_converted) {
    buffer.resize(static_cast<size_t>(count));
    load_doubles(source.view, begin, buffer);
    dump::best_chunk_kernel()(source.format, reinterpret_cast<const std::byte*>(buffer.data()), count, begin, nullptr,
                              out);
  } else {
    dump::best_chunk_kernel()(source.format, data, count, begin, is_past_cache ? chunk_target : nullptr, out);
  }
  if (chunk_target == nullptr) return;
  chunk.size_bytes = byte_size(source.view.dtype, count);
  if (!is_past_cache) std::memcpy(chunk_target, data, chunk.size_bytes);
  chunk.crc = crc32c(data, chunk.size_bytes);  // of the source, which is in the cache now
}

void fence_stores() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances, 1979.
class Joiner {
 public:
  void add(const ChunkStatistics& chunk) {
    statistics_.min = std::min(statistics_.min, chunk.min);
    statistics_.max = std::max(statistics_.max, chunk.max);
    statistics_.zeros += chunk.zeros;
    statistics_.nan += chunk.nan;
    statistics_.positive_inf += chunk.positive_inf;
    statistics_.negative_inf += chunk.negative_inf;
    for (size_t k = 0; k < kProjectionCount; ++k) statistics_.projections[k] += chunk.projections[k];
    if (chunk.count == 0) return;
    const auto count = static_cast<double>(chunk.count);
    const double difference = chunk.sum / count - mean_;
    const double total = count_ + count;
    mean_ += difference * (count / total);
    centred_squares_ += chunk.centred_squares + difference * difference * (count_ * count / total);
    squares_ += chunk.sum_of_squares;
    count_ = total;
  }

  TensorStatistics finish(int64_t count) {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    statistics_.count = count;
    if (statistics_.nan == count) statistics_.min = statistics_.max = kNaN;
    statistics_.mean = count_ > 0 ? mean_ : kNaN;
    statistics_.std = count_ > 0 ? std::sqrt(std::max(0.0, centred_squares_) / count_) : kNaN;
    statistics_.l2 = std::sqrt(squares_);
    return statistics_;
  }

  Joiner() {
    statistics_.min = std::numeric_limits<double>::infinity();
    statistics_.max = -std::numeric_limits<double>::infinity();
  }

 private:
  TensorStatistics statistics_;
  double count_ = 0;
  double mean_ = 0;
  double centred_squares_ = 0;
  double squares_ = 0;
};

CheckedCopy run(const TensorView& view, std::byte* target) {
  PX_CHECK(view.device.is_host());
  const Source source = source_of(view);
  const int64_t count = source.view.element_count();
  const int64_t chunk_count = (count + kChunkElements - 1) / kChunkElements;
  std::vector<Chunk> chunks(static_cast<size_t>(chunk_count));
  parallel_for(chunk_count, kChunkElements / 2, [&](int64_t chunk_begin, int64_t chunk_end) {
    std::vector<double> buffer;
    for (int64_t chunk = chunk_begin; chunk < chunk_end; ++chunk) {
      const int64_t begin = chunk * kChunkElements;
      run_chunk(source, begin, std::min(kChunkElements, count - begin), target, buffer,
                chunks[static_cast<size_t>(chunk)]);
    }
    fence_stores();
  });
  Joiner joiner;
  CheckedCopy copy;
  for (const Chunk& chunk : chunks) {
    joiner.add(chunk.statistics);
    copy.crc = crc32c_joined(copy.crc, chunk.crc, chunk.size_bytes);
  }
  copy.statistics = joiner.finish(count);
  return copy;
}

}  // namespace

TensorStatistics compute_statistics(const TensorView& view) {
  if (view.dtype != DType::string) return run(view, nullptr).statistics;
  TensorStatistics statistics = Joiner().finish(0);
  statistics.count = view.element_count();
  return statistics;
}

CheckedCopy copy_with_statistics(const TensorView& view, std::byte* target) {
  PX_CHECK(view.dtype != DType::string);
  return run(view, target);
}

}  // namespace parallax
