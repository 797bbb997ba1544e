// SPDX-License-Identifier: Apache-2.0
// Dispatch of matrix products: which library or kernel, on how many threads, with which packed weights.
#include "runtime/device/cpu/products/gemm.h"

#include <algorithm>
#include <atomic>
#include <string_view>
#include <vector>

#include <cblas-openblas.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "inspector/base/mapped_ranges.h"
#include "inspector/base/thread_pool.h"
#include "inspector/base/thread_team.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/library_threads.h"
#include "runtime/device/cpu/products/exact_products.h"
#include "runtime/device/cpu/products/float_panels.h"
#include "runtime/device/cpu/products/gemm_kernels.h"
#include "runtime/device/cpu/products/onednn.h"
#include "runtime/device/cpu/products/stored_panels.h"
#include "runtime/device/cpu/weight_cache.h"

namespace parallax::runtime {
namespace {

using dnnl::memory;

double work_of(const GemmProblem& problem) {
  return static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k);
}

memory::desc row_major(int64_t rows, int64_t columns) {
  return {{rows, columns}, memory::data_type::f32, memory::format_tag::ab};
}

memory::desc right_side(const GemmProblem& problem, memory::format_tag layout) {
  return {{problem.k, problem.n}, memory::data_type::f32, layout};
}

// A product of one shape, and the layout that oneDNN chose for its right side.
struct PreparedProduct {
  dnnl::matmul primitive;
  memory::desc weights;
  bool has_own_layout = false;  // not where it would call its general product (2.6: processors without AVX-512)
};

std::shared_ptr<PreparedProduct> prepare(const GemmProblem& problem) {
  const dnnl::matmul::primitive_desc description(
      dnnl::matmul::desc(row_major(problem.m, problem.k), right_side(problem, memory::format_tag::any),
                         row_major(problem.m, problem.n)),
      onednn_engine());
  const bool has_own_layout = std::string_view(description.impl_info_str()).substr(0, 3) == "brg";
  return std::make_shared<PreparedProduct>(
      PreparedProduct{dnnl::matmul(description), description.weights_desc(), has_own_layout});
}

constexpr int64_t kFewNumbers = 64 * 64;  // of a matrix, not worth to be packed

bool worth_packing(const GemmProblem& problem) {
  return problem.b_is_constant && problem.batch() == 1 && !problem.transpose_a && problem.m > 1 &&
         problem.alpha == 1.0 && problem.beta == 0.0 && problem.k * problem.n >= kFewNumbers;
}

bool is_row_of_weights(const GemmProblem& problem) {
  return problem.m == 1 && problem.b_is_constant && problem.batch() == 1 && !problem.transpose_a &&
         problem.alpha == 1.0 && problem.beta == 0.0;
}

// A single row reads each weight once: from the model file's pages as its vectors are stored, from panels a quarter to
// twice as fast. With AVX2 alone those are the panels of more rows, made at the second run: a single one is over sooner
// without. Whether b is copied does not change a bit: panels are summed in the order of rows of b.
bool may_use_float_panels(const GemmProblem& problem) {
  return is_row_of_weights(problem) && has_float_panels() && !problem.transpose_b &&
         problem.k * problem.n >= kFewNumbers;
}

// Elsewhere a copy is read no faster from memory but where the vectors of weights cross the lines of the cache, as they
// do within most model files: by some 6 %. From the caches, as in a recurrent network, columns that are contiguous are
// summed in half the time in panels; they are chosen by the shape alone.
bool worth_panels_for_row(const GemmProblem& problem, const float* b) {
  constexpr int64_t kBeyondCaches = 1 << 20;
  if (!is_row_of_weights(problem)) return false;
  const int64_t numbers = problem.k * problem.n;
  if (problem.transpose_b) return numbers >= kFewNumbers && numbers < kBeyondCaches;
  return !has_float_panels() && numbers >= kBeyondCaches && reinterpret_cast<uintptr_t>(b) % 64 != 0;
}

// A part of a product: rows and columns of c.
struct Tile {
  int64_t row = 0, column = 0;
  int64_t rows = 0, columns = 0;
};

// How a product is cut, by its shape alone: on several threads of its own oneDNN parts sums, and the bits would depend
// on how many there are.
class Tiling {
 public:
  explicit Tiling(const GemmProblem& problem) : problem_(problem) {
    constexpr int64_t kMostRows = 256, kColumnStep = 32, kWork = 1 << 20;  // a tile of some 25 microseconds
    const int64_t bands = (problem.m + kMostRows - 1) / kMostRows;
    rows_ = (problem.m + bands - 1) / bands;
    const int64_t wanted = kWork / std::max<int64_t>(1, rows_ * problem.k);
    columns_ = std::clamp<int64_t>((wanted + kColumnStep - 1) / kColumnStep, 2, 16) * kColumnStep;
    across_ = (problem.n + columns_ - 1) / columns_;
    count_ = bands * across_;
  }
  int64_t count() const { return count_; }
  Tile operator[](int64_t index) const {
    const int64_t row = index / across_ * rows_, column = index % across_ * columns_;
    return {row, column, std::min(rows_, problem_.m - row), std::min(columns_, problem_.n - column)};
  }

 private:
  const GemmProblem& problem_;
  int64_t rows_ = 0, columns_ = 0, across_ = 0, count_ = 0;
};

// Rows of b with a stride of multiples of a page collide in the caches, so their part is copied first.
bool rows_collide(const GemmProblem& problem) { return !problem.transpose_b && problem.n % 256 == 0; }

bool multiply_tile(const GemmProblem& problem, const Tile& tile, const float* a, const float* b, float* c) {
  const LibraryThreads threads(1);
  const int64_t lda = problem.transpose_a ? problem.m : problem.k;
  int64_t ldb = problem.transpose_b ? problem.k : problem.n;
  const float* left = a + (problem.transpose_a ? tile.row : tile.row * lda);
  const float* right = b + (problem.transpose_b ? tile.column * ldb : tile.column);
  std::vector<float> copy;
  constexpr int64_t kPadding = 16, kRowsWorthCopying = 16;
  if (rows_collide(problem) && tile.rows >= kRowsWorthCopying) {
    ldb = tile.columns + kPadding;
    copy.resize(static_cast<size_t>(problem.k * ldb));
    for (int64_t i = 0; i < problem.k; ++i) std::copy_n(right + i * problem.n, tile.columns, copy.data() + i * ldb);
    right = copy.data();
  }
  return dnnl_sgemm(problem.transpose_a ? 'T' : 'N', problem.transpose_b ? 'T' : 'N', tile.rows, tile.columns,
                    problem.k, static_cast<float>(problem.alpha), left, lda, right, ldb,
                    static_cast<float>(problem.beta), c + tile.row * problem.n + tile.column,
                    problem.n) == dnnl_success;
}

// b as panels.
AlignedFloats float_panels_of(const GemmProblem& problem, const float* b, AlignedFloats panels) {
  pack_float_panels(problem.n, problem.k, b, problem.transpose_b ? 1 : problem.n, problem.transpose_b ? problem.k : 1,
                    panels.data());
  return panels;
}

void float_panel_product(const GemmProblem& problem, const float* a, const AlignedFloats& panels, int threads,
                         float* c) {
  PanelRows rows;
  rows.count = problem.m;
  rows.depth = rows.step = problem.k;
  rows.base = a;
  multiply_float_panels(rows, problem.n, panels.data(), threads, nullptr, c);
}

Status plain_product(const GemmProblem& problem, const float* a, const float* b, float* c, int threads) {
  if (problem.m <= kFewRows && !problem.transpose_a) {
    gemm_few_rows(problem.m, problem.n, problem.k, a, b, problem.transpose_b, static_cast<float>(problem.alpha),
                  static_cast<float>(problem.beta), c);
    return {};
  }
  constexpr int64_t kRowsWorthPanels = 24;  // else the making of panels costs more than they gain
  if (has_float_panels() && !problem.transpose_a && problem.m >= kRowsWorthPanels && problem.alpha == 1.0 &&
      problem.beta == 0.0) {
    const AlignedFloats panels = float_panels_of(problem, b, AlignedFloats(float_panel_numbers(problem.n, problem.k)));
    float_panel_product(problem, a, panels, threads, c);
    return {};
  }
  const Tiling tiles(problem);
  const int team = static_cast<int>(std::min<int64_t>(threads, tiles.count()));
  std::atomic<bool> failed{false};
  run_team(team, [&](int index) {
    for (int64_t i = index; i < tiles.count(); i += team) {
      if (!multiply_tile(problem, tiles[i], a, b, c)) failed = true;
    }
  });
  if (failed) return execution_error("oneDNN refused a matrix product; --with reference runs without it");
  return {};
}

// Few rows, whose time goes into reading the weights.
Status panel_product(Queue<Cpu>& queue, const GemmProblem& problem, const float* a, const float* b, float* c) {
  CacheKey key("panels");
  key.add(b).add(problem.k).add(problem.n).add(problem.transpose_b);
  const auto panels = queue.weights().get_shared<AlignedFloats>(key.text(), [&] {
    const int64_t count = panel_floats(problem.n, problem.k);
    auto made = std::make_shared<AlignedFloats>(AlignedFloats::of_weights(count));
    pack_panels(problem.n, problem.k, b, problem.transpose_b, made->data());
    queue.weights().add_bytes(count * static_cast<int64_t>(sizeof(float)));
    return made;
  });
  gemm_panels(problem.m, problem.n, problem.k, a, panels->data(), c);
  return {};
}

std::shared_ptr<AlignedFloats> kept_float_panels(Queue<Cpu>& queue, const GemmProblem& problem, const float* b) {
  CacheKey key("float panels");
  key.add(b).add(problem.k).add(problem.n).add(problem.transpose_b);
  return queue.weights().get_shared<AlignedFloats>(key.text(), [&] {
    const int64_t count = float_panel_numbers(problem.n, problem.k);
    queue.weights().add_bytes(count * static_cast<int64_t>(sizeof(float)));
    auto made = std::make_shared<AlignedFloats>(float_panels_of(problem, b, AlignedFloats::of_weights(count)));
    release_if_mapped(reinterpret_cast<const std::byte*>(b),
                      static_cast<size_t>(problem.k * problem.n) * sizeof(float));
    return made;
  });
}

std::shared_ptr<StoredPanels> kept_stored_panels(Queue<Cpu>& queue, const GemmProblem& problem, const TensorView& b) {
  CacheKey key("stored panels");
  key.add(b.data).add(problem.k).add(problem.n).add(problem.transpose_b).add(b.dtype);
  return queue.weights().get_shared<StoredPanels>(key.text(), [&] {
    queue.weights().add_bytes(static_cast<int64_t>(byte_size(b.dtype, problem.k * problem.n)));
    const int64_t row_step = problem.transpose_b ? 1 : problem.n, column_step = problem.transpose_b ? problem.k : 1;
    auto made = std::make_shared<StoredPanels>(
        pack_stored_panels(b.dtype, problem.n, problem.k, b.data, row_step, column_step));
    release_if_mapped(b.data, byte_size(b.dtype, problem.k * problem.n));
    return made;
  });
}

// The panels of a matrix that met a single row, from the second on.
struct RowPanels {
  std::shared_ptr<AlignedFloats> panels;
};

// False where the matrix is met for the first time.
bool multiply_row_by_kept_panels(Queue<Cpu>& queue, const GemmProblem& problem, const float* a, const float* b,
                                 float* c) {
  CacheKey key("row");
  key.add(b).add(problem.k).add(problem.n);
  bool is_first = false;
  const auto kept = queue.weights().get<RowPanels>(key.text(), [&] {
    is_first = true;
    return std::make_shared<RowPanels>();
  });
  if (is_first) return false;
  if (kept->panels == nullptr) kept->panels = kept_float_panels(queue, problem, b);
  multiply_row_by_float_panels(a, problem.n, problem.k, kept->panels->data(), c);
  return true;
}

Status packed_product(Queue<Cpu>& queue, const GemmProblem& problem, const float* a, const float* b, float* c) {
  if (has_float_panels()) {
    float_panel_product(problem, a, *kept_float_panels(queue, problem, b), library_thread_count(work_of(problem)), c);
    return {};
  }
  if (problem.m <= kFewRows) return panel_product(queue, problem, a, b, c);
  CacheKey key("gemm");
  key.add(problem.m).add(problem.n).add(problem.k);
  const auto prepared = queue.weights().get<PreparedProduct>(key.text(), [&] { return prepare(problem); });
  const memory::desc stored =
      right_side(problem, problem.transpose_b ? memory::format_tag::ba : memory::format_tag::ab);
  if (!prepared->has_own_layout && problem.m <= kMostPanelRows) return panel_product(queue, problem, a, b, c);
  if (!prepared->has_own_layout) {  // columns one after the other suit its general product best
    const memory weights = onednn_packed(queue, stored, b, right_side(problem, memory::format_tag::ba));
    GemmProblem columns = problem;
    columns.transpose_b = true;
    return plain_product(columns, a, static_cast<const float*>(weights.get_data_handle()), c,
                         library_thread_count(work_of(problem)));
  }
  memory source(row_major(problem.m, problem.k), onednn_engine(), const_cast<float*>(a));
  memory target(row_major(problem.m, problem.n), onednn_engine(), c);
  const memory weights = onednn_packed(queue, stored, b, prepared->weights);
  prepared->primitive.execute(onednn_stream(),
                              {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, target}});
  onednn_stream().wait();
  return {};
}

template <class T>
void scale(int64_t count, T beta, T* c) {
  for (int64_t i = 0; i < count; ++i) c[i] = beta == T(0) ? T(0) : beta * c[i];
}

}  // namespace

Status gemm(Queue<Cpu>& queue, const GemmProblem& problem, const float* a, const float* b, float* c) {
  const int64_t out_elements = problem.m * problem.n;
  if (out_elements == 0) return {};
  if (problem.k == 0) return scale(out_elements * problem.batch(), static_cast<float>(problem.beta), c), Status{};
  if (may_use_float_panels(problem) && multiply_row_by_kept_panels(queue, problem, a, b, c)) return {};
  if (worth_panels_for_row(problem, b)) return panel_product(queue, problem, a, b, c);
  const double work = work_of(problem);
  if (worth_packing(problem)) {
    Status status;
    PX_TRY(guard_onednn([&] {
      const LibraryThreads threads(library_thread_count(work));
      status = packed_product(queue, problem, a, b, c);
    }));
    return status;
  }
  const auto product = [&](int64_t i, int threads) {
    return plain_product(problem, a + problem.a_offsets[i], b + problem.b_offsets[i], c + i * out_elements, threads);
  };
  if (problem.batch() < thread_count()) {  // threads inside each product
    for (int64_t i = 0; i < problem.batch(); ++i) PX_TRY(product(i, library_thread_count(work)));
    return {};
  }
  std::atomic<bool> failed{false};
  parallel_for(problem.batch(), static_cast<int64_t>(work / 16) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (!product(i, 1).ok()) failed = true;
    }
  });
  if (failed) return execution_error("oneDNN refused a matrix product; --with reference runs without it");
  return {};
}

Status gemm(Queue<Cpu>&, const GemmProblem& problem, const double* a, const double* b, double* c) {
  const int64_t out_elements = problem.m * problem.n;
  if (out_elements == 0) return {};
  if (problem.k == 0) return scale(out_elements * problem.batch(), problem.beta, c), Status{};
  constexpr int64_t kLimit = INT32_MAX;  // cblas counts in int
  if (problem.m > kLimit || problem.n > kLimit || problem.k > kLimit) {
    return unsupported("a size of a float64 matrix product is above 2^31 - 1; --with reference computes it");
  }
  constexpr double kWorkPerThread = 2e6;  // OpenBLAS has threads of its own, which have to be wakened
  openblas_set_num_threads(static_cast<int>(std::clamp(work_of(problem) / kWorkPerThread, 1.0, 1.0 * thread_count())));
  for (int64_t i = 0; i < problem.batch(); ++i) {
    cblas_dgemm(CblasRowMajor, problem.transpose_a ? CblasTrans : CblasNoTrans,
                problem.transpose_b ? CblasTrans : CblasNoTrans, static_cast<int>(problem.m),
                static_cast<int>(problem.n), static_cast<int>(problem.k), problem.alpha, a + problem.a_offsets[i],
                static_cast<int>(problem.transpose_a ? problem.m : problem.k), b + problem.b_offsets[i],
                static_cast<int>(problem.transpose_b ? problem.k : problem.n), problem.beta, c + i * out_elements,
                static_cast<int>(problem.n));
  }
  return {};
}

Status gemm(Queue<Cpu>& queue, const GemmProblem& problem, const int64_t* a, const int64_t* b, int64_t* c) {
  PX_CHECK(!problem.transpose_a && !problem.transpose_b && problem.alpha == 1.0 && problem.beta == 0.0);
  if (PX_TRY(gemm_in_floats(queue, problem, a, b, c))) return {};
  for (int64_t i = 0; i < problem.batch(); ++i) {
    gemm_integers(problem.m, problem.n, problem.k, a + problem.a_offsets[i], b + problem.b_offsets[i],
                  c + i * problem.m * problem.n);
  }
  return {};
}

template <class C>
Result<std::shared_ptr<const C>> converted(Queue<Cpu>& queue, const TensorView& view, bool is_constant) {
  if (view.dtype == storage_of<C>()) {
    return std::shared_ptr<const C>(std::shared_ptr<void>(), reinterpret_cast<const C*>(view.data));
  }
  const auto convert = [&]() -> Result<std::shared_ptr<const C>> {
    const int64_t count = view.element_count();
    auto memory = PX_TRY(queue.pool().allocate(static_cast<size_t>(count) * sizeof(C)));
    C* target = reinterpret_cast<C*>(memory.get());
    parallel_for(count, 1, [&](int64_t begin, int64_t end) {
      load_block<C>(view.dtype, view.data, begin, 1, end - begin, target + begin);
    });
    return std::shared_ptr<const C>(memory, target);
  };
  if (!is_constant) return convert();
  CacheKey key("convert");
  key.add(view.data).add(view.element_count()).add(sizeof(C)).add(storage_of<C>());
  Status status;
  auto kept = queue.weights().get<std::shared_ptr<const C>>(key.text(), [&] {
    auto made = convert();
    auto holder = std::make_shared<std::shared_ptr<const C>>();
    if (made.ok()) {
      *holder = made.take();
    } else {
      status = std::move(made).error();
    }
    return holder;
  });
  PX_TRY(std::move(status));
  return *kept;
}

Status gemm(Queue<Cpu>& queue, const GemmProblem& problem, const float* a, const TensorView& b, float* c) {
  const bool stays = problem.b_is_constant && problem.batch() == 1 && !problem.transpose_a && problem.alpha == 1.0 &&
                     problem.beta == 0.0 && problem.k * problem.n >= kFewNumbers && problem.m > 0 &&
                     has_stored_panels(b.dtype);
  if (stays) {
    multiply_stored_panels(problem.m, a, *kept_stored_panels(queue, problem, b), c);
    return {};
  }
  const auto floats = PX_TRY(converted<float>(queue, b, problem.b_is_constant));
  return gemm(queue, problem, a, floats.get(), c);
}

Status gemm(Queue<Cpu>& queue, const GemmProblem& problem, const double* a, const TensorView& b, double* c) {
  const auto doubles = PX_TRY(converted<double>(queue, b, problem.b_is_constant));
  return gemm(queue, problem, a, doubles.get(), c);
}

template Result<std::shared_ptr<const float>> converted(Queue<Cpu>&, const TensorView&, bool);
template Result<std::shared_ptr<const double>> converted(Queue<Cpu>&, const TensorView&, bool);
template Result<std::shared_ptr<const int64_t>> converted(Queue<Cpu>&, const TensorView&, bool);
template Result<std::shared_ptr<const uint64_t>> converted(Queue<Cpu>&, const TensorView&, bool);

}  // namespace parallax::runtime
