// Dispatch of matrix products: which library or kernel, on how many threads, with which packed weights.
#include "runtime/device/gemm.h"

#include <algorithm>
#include <atomic>

#include <cblas-openblas.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "inspector/base/thread_pool.h"
#include "runtime/device/blocks.h"
#include "runtime/device/buffer_pool.h"
#include "runtime/device/exact_products.h"
#include "runtime/device/gemm_kernels.h"
#include "runtime/device/library_threads.h"
#include "runtime/device/onednn.h"
#include "runtime/device/weight_cache.h"

namespace parallax::runtime {
namespace {

using dnnl::memory;

double work_of(const GemmProblem& problem) {
  return static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k);
}

memory::desc row_major(int64_t rows, int64_t columns) {
  return {{rows, columns}, memory::data_type::f32, memory::format_tag::ab};
}

// A product of one shape, and the layout that oneDNN chose for its right side.
struct PreparedProduct {
  dnnl::matmul primitive;
  memory::desc weights;
};

std::shared_ptr<PreparedProduct> prepare(const GemmProblem& problem) {
  const memory::desc any({problem.k, problem.n}, memory::data_type::f32, memory::format_tag::any);
  const dnnl::matmul::primitive_desc description(
      dnnl::matmul::desc(row_major(problem.m, problem.k), any, row_major(problem.m, problem.n)), onednn_engine());
  return std::make_shared<PreparedProduct>(PreparedProduct{dnnl::matmul(description), description.weights_desc()});
}

bool worth_packing(const GemmProblem& problem) {
  return problem.b_is_constant && problem.batch() == 1 && !problem.transpose_a && problem.m > kFewRows &&
         problem.alpha == 1.0 && problem.beta == 0.0 && problem.k * problem.n >= 64 * 64;
}

void packed_product(Queue<Cpu>& queue, const GemmProblem& problem, const float* a, const float* b, float* c) {
  CacheKey key("gemm");
  key.add(problem.m).add(problem.n).add(problem.k);
  const auto prepared = queue.weights().get<PreparedProduct>(key.text(), [&] { return prepare(problem); });
  const memory::desc plain({problem.k, problem.n}, memory::data_type::f32,
                           problem.transpose_b ? memory::format_tag::ba : memory::format_tag::ab);
  memory source(row_major(problem.m, problem.k), onednn_engine(), const_cast<float*>(a));
  memory target(row_major(problem.m, problem.n), onednn_engine(), c);
  const memory weights = onednn_packed(queue, plain, b, prepared->weights);
  prepared->primitive.execute(onednn_stream(),
                              {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, target}});
  onednn_stream().wait();
}

Status plain_product(const GemmProblem& problem, const float* a, const float* b, float* c) {
  const float alpha = static_cast<float>(problem.alpha);
  const float beta = static_cast<float>(problem.beta);
  if (problem.m <= kFewRows && !problem.transpose_a) {
    gemm_few_rows(problem.m, problem.n, problem.k, a, b, problem.transpose_b, alpha, beta, c);
    return {};
  }
  const int64_t lda = problem.transpose_a ? problem.m : problem.k;
  const int64_t ldb = problem.transpose_b ? problem.k : problem.n;
  const dnnl_status_t status = dnnl_sgemm(problem.transpose_a ? 'T' : 'N', problem.transpose_b ? 'T' : 'N', problem.m,
                                          problem.n, problem.k, alpha, a, lda, b, ldb, beta, c, problem.n);
  if (status != dnnl_success) return execution_error("oneDNN refused a matrix product");
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
  const double work = work_of(problem);
  if (worth_packing(problem)) {
    return guard_onednn([&] {
      const LibraryThreads threads(library_thread_count(work));
      packed_product(queue, problem, a, b, c);
    });
  }
  const auto product = [&](int64_t i) {
    return plain_product(problem, a + problem.a_offsets[i], b + problem.b_offsets[i], c + i * out_elements);
  };
  if (problem.batch() < thread_count()) {  // threads inside each product
    const LibraryThreads threads(library_thread_count(work));
    for (int64_t i = 0; i < problem.batch(); ++i) PX_TRY(product(i));
    return {};
  }
  std::atomic<bool> failed{false};
  parallel_for(problem.batch(), static_cast<int64_t>(work / 16) + 1, [&](int64_t begin, int64_t end) {
    const LibraryThreads threads(1);
    for (int64_t i = begin; i < end; ++i) {
      if (!product(i).ok()) failed = true;
    }
  });
  if (failed) return execution_error("oneDNN refused a matrix product");
  return {};
}

Status gemm(Queue<Cpu>&, const GemmProblem& problem, const double* a, const double* b, double* c) {
  const int64_t out_elements = problem.m * problem.n;
  if (out_elements == 0) return {};
  if (problem.k == 0) return scale(out_elements * problem.batch(), problem.beta, c), Status{};
  constexpr int64_t kLimit = INT32_MAX;  // cblas counts in int
  if (problem.m > kLimit || problem.n > kLimit || problem.k > kLimit) {
    return unsupported("a matrix side beyond 2^31 - 1 in float64");
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

template Result<std::shared_ptr<const float>> converted(Queue<Cpu>&, const TensorView&, bool);
template Result<std::shared_ptr<const double>> converted(Queue<Cpu>&, const TensorView&, bool);
template Result<std::shared_ptr<const int64_t>> converted(Queue<Cpu>&, const TensorView&, bool);
template Result<std::shared_ptr<const uint64_t>> converted(Queue<Cpu>&, const TensorView&, bool);

}  // namespace parallax::runtime
