// SPDX-License-Identifier: Apache-2.0
// The left side as uint8, the right one as int8, which is what the product takes: the sign bit of each value is flipped
// where it is the other way round, and the zero point goes along. Convolutions are products with the patches of x.
#include "runtime/device/cpu/products/int8_gemm.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "inspector/base/mapped_ranges.h"
#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/library_threads.h"
#include "runtime/device/cpu/multiversion.h"
#include "runtime/device/cpu/products/onednn.h"
#include "runtime/device/cpu/products/quantized_panels.h"
#include "runtime/device/cpu/products/weight_rows.h"
#include "runtime/device/cpu/weight_cache.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kLeastByteWork = 1 << 14;  // multiply-adds, below which the loops are as fast
constexpr int64_t kMostTerms = 33000;        // 255 * 255 * 33000 < 2^31
constexpr int64_t kLeastFilters = 4, kLeastTaps = 8;
constexpr double kTimesFloat = 4.0;  // how much faster than in float a product is
constexpr uint8_t kSignBit = 0x80;

bool has_exact_bytes() {
  static const bool has = [] {
    constexpr auto kVnni = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_vnni);
    return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & kVnni) == kVnni;
  }();
  return has;
}

// True where oneDNN has such products, or our own panels.
bool are_worth_it(double work, int64_t terms) {
  return (has_exact_bytes() || has_quantized_panels()) && work >= static_cast<double>(kLeastByteWork) &&
         terms <= kMostTerms;
}

void flip(const std::byte* from, int64_t count, std::byte* to) {
  parallel_for(count, 1, [=](int64_t begin, int64_t end) {
    vectorized(begin, end, [=](int64_t first, int64_t last) {
      const auto* const source = reinterpret_cast<const uint8_t*>(from);
      auto* const target = reinterpret_cast<uint8_t*>(to);
      PX_INDEPENDENT_ITERATIONS
      for (int64_t i = first; i < last; ++i) target[i] = static_cast<uint8_t>(source[i] ^ kSignBit);
    });
  });
}

double work_of_bytes(double multiply_adds) { return multiply_adds / kTimesFloat; }

// Quantized values of the signedness that is asked for; `memory` owns them where they are a copy.
struct Side {
  const std::byte* data = nullptr;
  int32_t zero = 0;
  std::shared_ptr<std::byte> memory;
};

Result<Side> side_of(Queue<Cpu>& queue, const QuantizedValues& quantized, int64_t count, bool is_signed) {
  if (quantized.is_signed == is_signed) return Side{quantized.data, quantized.zero, {}};
  const int32_t zero = is_signed ? quantized.zero - kSignBit : quantized.zero + kSignBit;
  Status status;
  const auto make = [&]() -> std::shared_ptr<std::byte> {
    auto memory = queue.pool().allocate(static_cast<size_t>(count));
    if (!memory.ok()) return status = std::move(memory).error(), nullptr;
    flip(quantized.data, count, memory->get());
    return memory.take();
  };
  std::shared_ptr<std::byte> memory;
  if (quantized.is_constant) {
    CacheKey key("flipped");
    memory = queue.weights().get<std::byte>(key.add(quantized.data).add(count).text(), make);
  } else {
    memory = make();
  }
  PX_TRY(std::move(status));
  if (memory == nullptr) return out_of_memory("the quantized values of a weight could not be kept");
  return Side{memory.get(), zero, memory};
}

// c [m, n] = (a - its zero) (b - its zero), all dense.
Status int8_product(int64_t m, int64_t n, int64_t k, const Side& a, const Side& b, int32_t* c) {
  const int32_t no_offset = 0;
  const dnnl_status_t status = dnnl_gemm_u8s8s32(
      'N', 'N', 'F', m, n, k, 1.0F, reinterpret_cast<const uint8_t*>(a.data), k, static_cast<uint8_t>(a.zero),
      reinterpret_cast<const int8_t*>(b.data), n, static_cast<int8_t>(b.zero), 0.0F, c, n, &no_offset);
  if (status != dnnl_success)
    return execution_error("oneDNN refused a product of int8 matrices; --with reference runs without it");
  return {};
}

// ---- Where oneDNN's product would saturate: our own, of 16-bit numbers ----

using Numbers = std::shared_ptr<int16_t>;

// The output of `pack(numbers)`; kept with constant weights.
template <class Pack>
Result<Numbers> packed(Queue<Cpu>& queue, const QuantizedValues& quantized, const char* prefix, int64_t rows,
                       int64_t columns, int64_t count, const Pack& pack) {
  Status status;
  const auto make = [&]() -> Numbers {
    auto memory = queue.pool().allocate(static_cast<size_t>(count) * sizeof(int16_t));
    if (!memory.ok()) return status = std::move(memory).error(), nullptr;
    pack(reinterpret_cast<int16_t*>(memory->get()));
    if (quantized.is_constant) queue.weights().add_bytes(count * static_cast<int64_t>(sizeof(int16_t)));
    return Numbers(*memory, reinterpret_cast<int16_t*>(memory->get()));
  };
  if (!quantized.is_constant) {
    Numbers made = make();
    PX_TRY(std::move(status));
    return made;
  }
  CacheKey key(prefix);
  key.add(quantized.data).add(rows).add(columns).add(quantized.is_signed).add(quantized.zero);
  Numbers kept = queue.weights().get<int16_t>(key.text(), make);
  PX_TRY(std::move(status));
  if (kept == nullptr) return out_of_memory("the quantized values of a weight could not be kept");
  return kept;
}

QuantizedMatrix matrix_of(const QuantizedValues& quantized) {
  return {quantized.data, quantized.is_signed, quantized.zero};
}

Result<Numbers> packed_rows(Queue<Cpu>& queue, const QuantizedValues& quantized, int64_t m, int64_t k) {
  return packed(queue, quantized, "quantized rows", m, k, quantized_row_numbers(m, k),
                [&](int16_t* numbers) { pack_quantized_rows(m, k, matrix_of(quantized), numbers); });
}

Result<Numbers> packed_panels(Queue<Cpu>& queue, const QuantizedValues& quantized, int64_t n, int64_t k) {
  return packed(queue, quantized, "quantized panels", k, n, quantized_panel_numbers(n, k),
                [&](int16_t* numbers) { pack_quantized_panels(n, k, matrix_of(quantized), numbers); });
}

std::shared_ptr<WeightPanels> kept_weight_panels(Queue<Cpu>& queue, const QuantizedValues& quantized, int64_t n,
                                                 int64_t k) {
  CacheKey key("weight panels");
  key.add(quantized.data).add(n).add(k).add(quantized.is_signed).add(quantized.zero);
  return queue.weights().get_shared<WeightPanels>(key.text(), [&] {
    queue.weights().add_bytes(n * k);
    auto made = std::make_shared<WeightPanels>(pack_weight_panels(n, k, matrix_of(quantized)));
    release_if_mapped(quantized.data, static_cast<size_t>(n * k));
    return made;
  });
}

// ---- Products ----

// c [m, n] = a [m, k] b [k, n] of quantized values, all dense.
Status quantized_product(Queue<Cpu>& queue, int64_t m, int64_t n, int64_t k, const QuantizedValues& a,
                         const QuantizedValues& b, int32_t* c) {
  if (!has_exact_bytes()) {
    const Numbers rows = PX_TRY(packed_rows(queue, a, m, k));
    if (m <= kMostWeightRows && b.is_constant) {
      multiply_weight_rows(m, rows.get(), *kept_weight_panels(queue, b, n, k), c);
      return {};
    }
    const Numbers panels = PX_TRY(packed_panels(queue, b, n, k));
    multiply_quantized_panels(m, n, k, rows.get(), panels.get(), c);
    return {};
  }
  const Side rows = PX_TRY(side_of(queue, a, m * k, false));
  const Side columns = PX_TRY(side_of(queue, b, k * n, true));
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const LibraryThreads threads(library_thread_count(work_of_bytes(work)));
  return int8_product(m, n, k, rows, columns, c);
}

// ---- Convolutions ----

int64_t terms_of(const ConvProblem& problem) { return problem.in_channels / problem.groups * product(problem.kernel); }

// True where the patches of x are x itself.
bool is_pointwise(const ConvProblem& problem) {
  const auto all = [](const Ints& values, int64_t wanted) {
    return std::all_of(values.begin(), values.end(), [=](int64_t value) { return value == wanted; });
  };
  return all(problem.kernel, 1) && all(problem.strides, 1) && all(problem.pads_begin, 0) && all(problem.pads_end, 0);
}

// The range in which taps meet x along one axis: position p of y is at p * step + start of x, inside of x for p in
// [begin, end).
struct Reach {
  int64_t step, start, begin, end;
  Reach(const ConvProblem& problem, int64_t axis, int64_t tap)
      : step(problem.strides[axis]), start(tap * problem.dilations[axis] - problem.pads_begin[axis]) {
    const int64_t locations = problem.out_spatial[axis], length = problem.in_spatial[axis];
    begin = std::clamp<int64_t>(start >= 0 ? 0 : (-start + step - 1) / step, 0, locations);
    end = std::clamp<int64_t>(start >= length ? 0 : (length - 1 - start) / step + 1, begin, locations);
  }
};

template <int64_t kStep>  // 0: any
void copy_every(const uint8_t* from, int64_t any_step, int64_t count, uint8_t* to) {
  vectorized(0, count, [=](int64_t first, int64_t last) {
    const uint8_t* const source = from;
    uint8_t* const target = to;
    const int64_t step = kStep == 0 ? any_step : kStep;
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = first; i < last; ++i) target[i] = source[i * step];
  });
}

// The numbers of one channel of x that one tap of the filters meets, one for each position of y.
class PatchRow {
 public:
  PatchRow(const ConvProblem& problem, uint8_t padding, int64_t tap) : problem_(problem), padding_(padding) {
    const int64_t rank = problem.spatial_rank();
    Ints tap_of_axis(rank);
    for (int64_t axis = rank - 1; axis >= 0; --axis) {
      tap_of_axis[axis] = tap % problem.kernel[axis];
      tap /= problem.kernel[axis];
    }
    for (int64_t axis = 0; axis < rank; ++axis) reaches_.emplace_back(problem, axis, tap_of_axis[axis]);
  }

  void write(const uint8_t* plane, uint8_t* to) const { write_axes(0, plane, to); }

 private:
  void write_axes(int64_t axis, const uint8_t* from, uint8_t* to) const {
    const int64_t left = problem_.spatial_rank() - axis;
    if (left == 1) return write_line(from, to);
    const Reach& reach = reaches_[static_cast<size_t>(axis)];
    const Reach& last = reaches_.back();
    const bool is_shifted =
        left == 2 && reach.step == 1 && last.step == 1 && problem_.in_spatial.back() == problem_.out_spatial.back();
    if (is_shifted && last.begin < last.end) return write_shifted(reach, from, to);
    const int64_t in_step = product(problem_.in_spatial, axis + 1, axis + left);
    const int64_t out_step = product(problem_.out_spatial, axis + 1, axis + left);
    pad(to, reach.begin * out_step);
    for (int64_t location = reach.begin; location < reach.end; ++location)
      write_axes(axis + 1, from + (location * reach.step + reach.start) * in_step, to + location * out_step);
    pad(to + reach.end * out_step, (problem_.out_spatial[axis] - reach.end) * out_step);
  }

  // Lines of x and y are equally long, so that all of them are one piece of memory, but for their ends.
  void write_shifted(const Reach& lines, const uint8_t* from, uint8_t* to) const {
    const Reach& line = reaches_.back();
    const int64_t width = problem_.out_spatial.back(), all = problem_.out_spatial[problem_.spatial_rank() - 2];
    if (lines.begin == lines.end) return pad(to, all * width);
    const int64_t first = lines.begin * width + line.begin, stop = (lines.end - 1) * width + line.end;
    pad(to, first);
    std::memcpy(to + first, from + first + lines.start * width + line.start, static_cast<size_t>(stop - first));
    for (int64_t end = lines.begin * width + line.end; end < stop; end += width) {
      for (int64_t i = end; i < end + width - line.end + line.begin; ++i) to[i] = padding_;
    }
    pad(to + stop, all * width - stop);
  }

  void write_line(const uint8_t* from, uint8_t* to) const {
    const Reach& reach = reaches_.back();
    pad(to, reach.begin);
    const uint8_t* const source = from + reach.begin * reach.step + reach.start;
    const int64_t count = reach.end - reach.begin;
    if (reach.step == 1) {
      std::memcpy(to + reach.begin, source, static_cast<size_t>(count));
    } else if (reach.step == 2) {
      copy_every<2>(source, 2, count, to + reach.begin);
    } else {
      copy_every<0>(source, reach.step, count, to + reach.begin);
    }
    pad(to + reach.end, problem_.out_spatial.back() - reach.end);
  }

  void pad(uint8_t* to, int64_t count) const {
    if (count > 0) std::memset(to, padding_, static_cast<size_t>(count));
  }

  const ConvProblem& problem_;
  const uint8_t padding_;
  std::vector<Reach> reaches_;  // by axis
};

// All of one group: [channels of a group * taps, positions].
void write_patches(const ConvProblem& problem, int32_t zero, const std::byte* group, std::byte* to) {
  const int64_t taps = product(problem.kernel), locations = product(problem.out_spatial);
  const int64_t plane = product(problem.in_spatial);
  std::vector<PatchRow> rows;
  for (int64_t tap = 0; tap < taps; ++tap) rows.emplace_back(problem, static_cast<uint8_t>(zero), tap);
  parallel_for(terms_of(problem), locations / 8 + 1, [&, taps, locations, plane](int64_t begin, int64_t end) {
    for (int64_t term = begin; term < end; ++term) {
      const auto* const source = reinterpret_cast<const uint8_t*>(group) + term / taps * plane;
      rows[static_cast<size_t>(term % taps)].write(source, reinterpret_cast<uint8_t*>(to) + term * locations);
    }
  });
}

}  // namespace

bool suits_int8_gemm(const GemmProblem& problem) {
  return are_worth_it(static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k),
                      problem.k);
}

bool suits_int8_gemm(const ConvProblem& problem) {
  if (problem.spatial_rank() == 0 || problem.out_channels == 0) return false;
  const int64_t terms = terms_of(problem);
  if (problem.out_channels / problem.groups < kLeastFilters || terms < kLeastTaps) return false;
  const double sums = static_cast<double>(problem.batch) * static_cast<double>(problem.out_channels) *
                      static_cast<double>(product(problem.out_spatial));
  return are_worth_it(sums * static_cast<double>(terms), terms);
}

Status gemm(Queue<Cpu>& queue, const GemmProblem& problem, const QuantizedValues& a, const QuantizedValues& b,
            int32_t* c) {
  const int64_t m = problem.m, n = problem.n, k = problem.k;
  for (int64_t i = 0; i < problem.batch(); ++i) {
    QuantizedValues left = a, right = b;
    left.data += problem.a_offsets[i];
    right.data += problem.b_offsets[i];
    PX_TRY(quantized_product(queue, m, n, k, left, right, c + i * m * n));
  }
  return {};
}

Status conv(Queue<Cpu>& queue, const ConvProblem& problem, const QuantizedValues& x, const QuantizedValues& filters,
            int32_t* y) {
  const int64_t terms = terms_of(problem), locations = product(problem.out_spatial);
  const int64_t rows = problem.out_channels / problem.groups;
  const int64_t group_size = problem.in_channels / problem.groups * product(problem.in_spatial);
  // Flipped once, before it is multiplied into patches.
  const bool is_signed = has_exact_bytes() || x.is_signed;
  const Side source = PX_TRY(side_of(queue, x, problem.batch * problem.groups * group_size, is_signed));
  QuantizedValues patches{source.data, is_signed, source.zero, false};
  std::shared_ptr<std::byte> memory;
  const bool is_itself = is_pointwise(problem);
  if (!is_itself) memory = PX_TRY(queue.pool().allocate(static_cast<size_t>(terms * locations)));
  for (int64_t part = 0; part < problem.batch * problem.groups; ++part) {
    patches.data = source.data + part * group_size;
    if (!is_itself) {
      write_patches(problem, source.zero, patches.data, memory.get());
      patches.data = memory.get();
    }
    QuantizedValues its_filters = filters;
    its_filters.data += part % problem.groups * rows * terms;
    PX_TRY(quantized_product(queue, rows, locations, terms, its_filters, patches, y + part * rows * locations));
  }
  return {};
}

}  // namespace parallax::runtime
