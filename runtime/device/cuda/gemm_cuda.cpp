// SPDX-License-Identifier: Apache-2.0
// Matrix products on CUDA: cuBLAS for plain ones, cublasLt for those of narrow floats and with what follows them. No
// kernel is here, so that the host's compiler does.
#ifdef PX_WITH_CUDA

#include <algorithm>
#include <memory>

#include <cuda_runtime.h>

#include "runtime/device/cuda/cublas.h"
#include "runtime/device/cuda/library_cuda.h"
#include "runtime/device/gpu/library_product.h"
#include "runtime/device/gpu/product_batches.h"

namespace parallax::runtime {
namespace {

constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // what NVIDIA advises for Hopper (cuBLAS, "cublasSetWorkspace")
constexpr uint32_t kFullAlignment = 256;

Status checked(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return execution_error(std::string("cuda: cuBLAS: ") + cublas().cublasGetStatusString(status));
}

// The distance between neighbors where the matrices of a batch have an even stride, else -1.
int64_t even_distance(const Ints& offsets) {
  const int64_t distance = offsets.size() < 2 ? 0 : offsets[1] - offsets[0];
  for (int64_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] - offsets[i - 1] != distance) return -1;
  }
  return distance < 0 ? -1 : distance;
}

struct GemmTypes {
  cudaDataType_t storage;
  cublasComputeType_t compute;
};

// cuBLAS counts columns first: row-major c = a b is its c^T = b^T a^T.
template <class C>
Status multiply(Queue<Cuda>& queue, const GemmProblem& given, const GemmTypes& types, const C* a, const C* b, C* c) {
  const GemmProblem problem = with_joined_rows(given);
  if (problem.m * problem.n * problem.batch() == 0) return {};
  const C alpha = static_cast<C>(problem.alpha);
  const C beta = static_cast<C>(problem.beta);
  const auto leading = [](int64_t columns) { return std::max<int64_t>(1, columns); };
  for (const EvenBatch& part : even_batches(problem)) {
    PX_TRY(checked(cublas().cublasGemmStridedBatchedEx_64(
        queue.library().handle, problem.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
        problem.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, problem.n, problem.m, problem.k, &alpha,
        b + problem.b_offsets[part.first], types.storage, leading(problem.transpose_b ? problem.k : problem.n),
        part.b_distance, a + problem.a_offsets[part.first], types.storage,
        leading(problem.transpose_a ? problem.m : problem.k), part.a_distance, &beta,
        c + part.first * problem.m * problem.n, types.storage, problem.n, problem.m * problem.n, part.count,
        types.compute, CUBLAS_GEMM_DEFAULT)));
  }
  return {};
}

// ---- cublasLt ----

template <class Handle, cublasStatus_t (*Cublas::*kDestroy)(Handle)>
struct Destroyer {
  using pointer = Handle;
  void operator()(Handle handle) const { (cublas().*kDestroy)(handle); }
};
using Operation = std::unique_ptr<void, Destroyer<cublasLtMatmulDesc_t, &Cublas::cublasLtMatmulDescDestroy>>;
using Layout = std::unique_ptr<void, Destroyer<cublasLtMatrixLayout_t, &Cublas::cublasLtMatrixLayoutDestroy>>;
using Preference =
    std::unique_ptr<void, Destroyer<cublasLtMatmulPreference_t, &Cublas::cublasLtMatmulPreferenceDestroy>>;

std::optional<cudaDataType_t> library_type(DType dtype) {
  if (dtype == DType::float32) return CUDA_R_32F;
  if (dtype == DType::float16) return CUDA_R_16F;
  if (dtype == DType::bfloat16) return CUDA_R_16BF;
  return std::nullopt;
}

uint32_t alignment_of(const std::byte* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address);
  return bits == 0 ? kFullAlignment : static_cast<uint32_t>(std::min<uintptr_t>(kFullAlignment, bits & (~bits + 1)));
}

// The description of one product for cublasLt: its first operand is our b, its second our a.
struct Described {
  Operation operation;
  Layout first, second, result;
  const std::byte* first_data = nullptr;
  const std::byte* second_data = nullptr;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
};

template <class T>
Status set(const Operation& operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  return checked(cublas().cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value, sizeof value));
}

Result<Layout> layout_of(cudaDataType_t type, int64_t rows, int64_t columns, int64_t count, int64_t distance) {
  cublasLtMatrixLayout_t made = nullptr;
  PX_TRY(checked(cublas().cublasLtMatrixLayoutCreate(&made, type, static_cast<uint64_t>(rows),
                                                     static_cast<uint64_t>(columns), rows)));
  Layout layout(made);
  const auto matrices = static_cast<int32_t>(count);
  PX_TRY(checked(
      cublas().cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &matrices, sizeof matrices)));
  PX_TRY(checked(cublas().cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &distance,
                                                           sizeof distance)));
  return layout;
}

cublasLtEpilogue_t epilogue_of(const LibraryProduct& product) {
  const bool has_bias = product.bias.dtype != DType::undefined;
  switch (product.epilogue) {
    case Epilogue::none:
      return has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::relu:
      return has_bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case Epilogue::tanh_gelu:
      return has_bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

Status describe_operation(const LibraryProduct& product, cudaDataType_t type, Described& described) {
  const GemmProblem& problem = product.problem;
  cublasLtMatmulDesc_t made = nullptr;
  PX_TRY(checked(cublas().cublasLtMatmulDescCreate(&made, described.compute, CUDA_R_32F)));
  described.operation.reset(made);
  const cublasOperation_t first = problem.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = problem.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  PX_TRY(set(described.operation, CUBLASLT_MATMUL_DESC_TRANSA, first));
  PX_TRY(set(described.operation, CUBLASLT_MATMUL_DESC_TRANSB, second));
  if (product.bias.dtype != DType::undefined) {
    const void* bias = product.bias.data;
    PX_TRY(set(described.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
    PX_TRY(set(described.operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type));
  }
  described.epilogue = epilogue_of(product);
  return set(described.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, described.epilogue);
}

// True where the operation can store its activation's input. The library does that for its GELU alone (its ReLU keeps
// signs), in rows of a multiple of eight elements ("CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD").
bool may_keep_pre_activation(const LibraryProduct& product) {
  return product.epilogue == Epilogue::tanh_gelu && product.problem.n % 8 == 0;
}
Status keep_pre_activation(const LibraryProduct& product, Described& described) {
  const bool has_bias = product.bias.dtype != DType::undefined;
  described.epilogue = has_bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  void* kept = product.pre_activation.data;
  const int64_t columns = product.problem.n;
  const int64_t distance = product.problem.m * columns;
  PX_TRY(set(described.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, described.epilogue));
  PX_TRY(set(described.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, kept));
  PX_TRY(set(described.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, columns));
  return set(described.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, distance);
}

Result<Described> describe(const LibraryProduct& product, cudaDataType_t type, bool tf32) {
  const GemmProblem& problem = product.problem;
  Described described;
  if (type == CUDA_R_32F && tf32) described.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  PX_TRY(describe_operation(product, type, described));
  const int64_t batch = problem.batch();
  const int64_t a_distance = even_distance(problem.a_offsets);
  const int64_t b_distance = even_distance(problem.b_offsets);
  const bool permuted_a = problem.transpose_a;
  const bool permuted_b = problem.transpose_b;
  described.first = PX_TRY(
      layout_of(type, permuted_b ? problem.k : problem.n, permuted_b ? problem.n : problem.k, batch, b_distance));
  described.second = PX_TRY(
      layout_of(type, permuted_a ? problem.m : problem.k, permuted_a ? problem.k : problem.m, batch, a_distance));
  described.result = PX_TRY(layout_of(type, problem.n, problem.m, batch, problem.m * problem.n));
  described.first_data = product.b.data + byte_size(product.b.dtype, problem.b_offsets[0]);
  described.second_data = product.a.data + byte_size(product.a.dtype, problem.a_offsets[0]);
  return described;
}

ProductKey key_of(const LibraryProduct& product, const Described& described) {
  const GemmProblem& problem = product.problem;
  return {problem.m,
          problem.n,
          problem.k,
          problem.transpose_a,
          problem.transpose_b,
          problem.batch(),
          even_distance(problem.a_offsets),
          even_distance(problem.b_offsets),
          static_cast<int64_t>(product.c.dtype),
          described.compute,
          described.epilogue,
          alignment_of(described.first_data),
          alignment_of(described.second_data),
          alignment_of(product.c.data),
          alignment_of(product.bias.data),
          alignment_of(product.residual.data)};
}

template <class T>
Status prefer(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  return checked(cublas().cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value));
}

bool has_residual(const LibraryProduct& product) { return product.residual.dtype != DType::undefined; }

// The library's first choice; none where it has none, for whatever reason: the callers' own way is always open.
Result<std::optional<cublasLtMatmulAlgo_t>> choose_algorithm(CudaLibrary& library, const LibraryProduct& product,
                                                             const Described& described) {
  cublasLtMatmulPreference_t made = nullptr;
  PX_TRY(checked(cublas().cublasLtMatmulPreferenceCreate(&made)));
  const Preference preference(made);
  // Sums of parts are joined in float32, never in the type of the result.
  const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  PX_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kWorkspaceBytes}));
  PX_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions));
  const uint32_t of_result = alignment_of(product.c.data);
  const uint32_t of_residual = has_residual(product) ? alignment_of(product.residual.data) : of_result;
  PX_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(described.first_data)));
  PX_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(described.second_data)));
  PX_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, of_residual));
  PX_TRY(prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, of_result));
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status = cublas().cublasLtMatmulAlgoGetHeuristic(
      library.light, described.operation.get(), described.first.get(), described.second.get(), described.result.get(),
      described.result.get(), preference.get(), 1, &found, &count);
  if (status != CUBLAS_STATUS_SUCCESS || count == 0) return std::optional<cublasLtMatmulAlgo_t>();
  return std::optional(found.algo);
}

// Even batches of types that the library knows, and something to compute.
bool suits(const LibraryProduct& product) {
  const GemmProblem& problem = product.problem;
  return problem.m > 0 && problem.n > 0 && problem.k > 0 && problem.batch() > 0 && problem.batch() <= INT32_MAX &&
         problem.beta == 0.0 && even_distance(problem.a_offsets) >= 0 && even_distance(problem.b_offsets) >= 0 &&
         product.a.dtype == product.c.dtype && product.b.dtype == product.c.dtype &&
         (!has_residual(product) || product.residual.dtype == product.c.dtype);
}

Result<cublasLtMatmulAlgo_t*> algorithm_for(CudaLibrary& library, const LibraryProduct& product,
                                            const Described& described) {
  const ProductKey key = key_of(product, described);
  auto known = library.algorithms.find(key);
  if (known == library.algorithms.end()) {
    known = library.algorithms.emplace(key, PX_TRY(choose_algorithm(library, product, described))).first;
  }
  return known->second.has_value() ? &*known->second : nullptr;
}

bool can_run(const CudaLibrary& library, const Described& described, const cublasLtMatmulAlgo_t* algorithm) {
  cublasLtMatmulHeuristicResult_t seen{};
  return cublas().cublasLtMatmulAlgoCheck(library.light, described.operation.get(), described.first.get(),
                                          described.second.get(), described.result.get(), described.result.get(),
                                          algorithm, &seen) == CUBLAS_STATUS_SUCCESS &&
         seen.workspaceSize <= kWorkspaceBytes;
}

}  // namespace

CudaLibrary::~CudaLibrary() {
  if (workspace != nullptr) cudaFree(workspace);
  if (light != nullptr) cublas().cublasLtDestroy(light);
  if (handle != nullptr) cublas().cublasDestroy(handle);
}

Result<std::unique_ptr<CudaLibrary>> open_library(void* stream) {
  PX_TRY(load_cublas());
  auto library = std::make_unique<CudaLibrary>();
  PX_TRY_CONTEXT("cannot start cuBLAS", checked(cublas().cublasCreate(&library->handle)));
  PX_TRY_CONTEXT("cannot start cuBLAS",
                 checked(cublas().cublasSetStream(library->handle, static_cast<cudaStream_t>(stream))));
  PX_TRY_CONTEXT("cannot start cublasLt", checked(cublas().cublasLtCreate(&library->light)));
  return library;
}

Status gemm(Queue<Cuda>& queue, const GemmProblem& problem, const float* a, const float* b, float* c) {
  const bool tf32 = queue.options().tf32;
  return multiply(queue, problem, {CUDA_R_32F, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F}, a, b, c);
}

Status gemm(Queue<Cuda>& queue, const GemmProblem& problem, const double* a, const double* b, double* c) {
  return multiply(queue, problem, {CUDA_R_64F, CUBLAS_COMPUTE_64F}, a, b, c);
}

template <>
Result<bool> library_product(Queue<Cuda>& queue, const LibraryProduct& given) {
  LibraryProduct product = given;
  product.problem = with_joined_rows(given.problem);
  const auto type = library_type(product.c.dtype);
  if (!type.has_value() || !suits(product)) return false;
  CudaLibrary& library = queue.library();
  if (library.workspace == nullptr && cudaMalloc(&library.workspace, kWorkspaceBytes) != cudaSuccess) {
    cudaGetLastError();  // reported here, and not by the next launch
    return out_of_memory("cuda: no memory for the workspace of cublasLt");
  }
  const bool keeps = product.pre_activation.dtype != DType::undefined;
  if (keeps && !may_keep_pre_activation(product)) return false;
  Described described = PX_TRY(describe(product, *type, queue.options().tf32));
  const cublasLtMatmulAlgo_t* algorithm = PX_TRY(algorithm_for(library, product, described));
  if (algorithm == nullptr) return false;
  if (keeps) {
    PX_TRY(keep_pre_activation(product, described));
    if (!can_run(library, described, algorithm)) return false;
  }
  const auto alpha = static_cast<float>(product.problem.alpha);
  const float beta = has_residual(product) ? 1.0F : 0.0F;
  const std::byte* added = has_residual(product) ? product.residual.data : product.c.data;
  PX_TRY(
      checked(cublas().cublasLtMatmul(library.light, described.operation.get(), &alpha, described.first_data,
                                      described.first.get(), described.second_data, described.second.get(), &beta,
                                      added, described.result.get(), product.c.data, described.result.get(), algorithm,
                                      library.workspace, kWorkspaceBytes, static_cast<cudaStream_t>(queue.stream()))));
  return true;
}

}  // namespace parallax::runtime

#endif
