// SPDX-License-Identifier: Apache-2.0
// The operations in the order in which cuDNN's engines look for them (cuDNN, "Fused Flash Attention fprop"): float32
// between them, but for the weights. The logarithms of the sums belong to the pattern (cuDNN 9.19 knows none without),
// nobody reads them.
#ifdef PX_WITH_CUDNN

#include "runtime/device/cuda/attention_graph.h"

#include <cstdint>

namespace parallax::runtime {
namespace {

enum AttentionTensor : int64_t { kQueries = 1, kKeys, kValues, kAttended, kScale, kAdded, kLogSums, kFirstBetween };

// 9.10.0 and 9.10.1 have errors in attention, earlier ones know single queries and wide heads on some GPUs only
// (NVIDIA's cudnn-frontend, sdpa_support_surface.h, which also asks for heads in multiples of 8).
constexpr size_t kFirstSoundCudnn = 91002;
constexpr int64_t kFloat16AtOnce = 8;

// How many heads in a row share the first one's matrix, if all others come in as many.
int64_t heads_of_one(const Ints& offsets, int64_t heads) {
  int64_t count = 1;
  while (count < heads && offsets[count] == offsets[0]) ++count;
  return heads % count == 0 ? count : 1;
}

std::optional<EvenIndices> even_indices(const MatrixOffsets& locations, int64_t rows, int64_t samples, int64_t heads) {
  const int64_t shared = heads_of_one(locations.offsets, heads);
  EvenIndices even{locations.offsets[0], samples, heads / shared, 0, 0, locations.row, locations.column};
  // Any stride is right for a single head.
  even.head_stride =
      even.heads > 1 ? locations.offsets[shared] - even.start : std::max<int64_t>(1, rows * locations.row);
  even.sample_stride = samples > 1 ? locations.offsets[heads] - even.start : even.heads * even.head_stride;
  for (int64_t i = 0; i < locations.offsets.size(); ++i) {
    const int64_t from_start = i / heads * even.sample_stride + i % heads / shared * even.head_stride;
    if (locations.offsets[i] != even.start + from_start) return std::nullopt;
  }
  if (even.head_stride < 1 || even.sample_stride < 0) return std::nullopt;
  if (even.sample_stride == 0) {
    even.samples = 1;
    even.sample_stride = even.heads * even.head_stride;
  }
  return even;
}

// The even strides of matrices whose columns are the contiguous axis.
std::optional<EvenIndices> even_indices_of_columns(const MatrixOffsets& locations, int64_t columns, int64_t samples,
                                                   int64_t heads) {
  auto even = even_indices({locations.offsets, locations.column, locations.row}, columns, samples, heads);
  if (even.has_value()) std::swap(even->row, even->column);
  return even;
}

const std::byte* first_matrix(const std::byte* data, DType dtype, const EvenIndices& locations) {
  return data + byte_size(dtype, locations.start);
}

// Contiguous runs begin at a multiple of a load's size, and no sample is broadcast.
bool can_be_read(const std::byte* data, DType dtype, const EvenIndices& at, int64_t samples) {
  for (const int64_t stride : {at.column == 1 ? at.row : at.column, at.head_stride, at.sample_stride}) {
    if (stride < 1 || stride % kFloat16AtOnce != 0) return false;
  }
  return at.samples == samples && is_cudnn_aligned(first_matrix(data, dtype, at));
}

// The operand that is added: one for all samples, heads or queries, or one for each.
std::optional<EvenIndices> added_locations(const LibraryAttention& attention) {
  const auto added =
      even_indices(attention.added_locations, attention.problem.queries, attention.samples, attention.heads);
  if (!added.has_value() || added->column != 1 || (added->heads != 1 && added->heads != attention.heads)) {
    return std::nullopt;
  }
  if (!is_cudnn_aligned(first_matrix(attention.added, attention.added_dtype, *added))) return std::nullopt;
  return added;
}

class AttentionPattern {
 public:
  using Node = CudnnGraph::Node;
  AttentionPattern(const Cudnn& functions, const LibraryAttention& attention, const AttentionOffsets& locations)
      : graph_(functions), attention_(attention), locations_(locations), type_(*cudnn_type(attention.dtype)) {}

  CudnnChoice choose(const CudnnTarget& target) {
    const AttentionProblem& problem = attention_.problem;
    const Node q = operand(kQueries, locations_.q, problem.queries, problem.size);
    const Node k = operand(kKeys, locations_.k, problem.size, problem.keys);
    const Node v = operand(kValues, locations_.v, problem.keys, problem.value_size);
    const Node y = operand(kAttended, locations_.y, problem.queries, problem.value_size);
    const Node product = between(problem.keys);
    graph_.multiply(q, k, product);
    CudnnTensor factor{kScale, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}};
    factor.is_by_value = true;
    Node scores = of_two(CUDNN_POINTWISE_MUL, product, graph_.tensor(factor), between(problem.keys));
    if (attention_.added != nullptr) scores = of_two(CUDNN_POINTWISE_ADD, scores, added(), between(problem.keys));
    graph_.multiply(softened(scores), v, y);
    return graph_.choose_plan(target, {.may_use_tensor_cores = true});
  }

 private:
  Node softened(Node scores) {
    const int64_t keys = attention_.problem.keys;
    const Node highest = between(1), sums = between(1), logarithms = between(1), exponentials = between(keys);
    graph_.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, highest);
    graph_.pointwise(CUDNN_POINTWISE_EXP, of_two(CUDNN_POINTWISE_SUB, scores, highest, between(keys)), nullptr,
                     exponentials);
    graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sums);
    graph_.pointwise(CUDNN_POINTWISE_LOG, sums, nullptr, logarithms);
    const Node log_sums = graph_.tensor({kLogSums, CUDNN_DATA_FLOAT, score_dims(1), row_major_strides(score_dims(1))});
    graph_.pointwise(CUDNN_POINTWISE_ADD, highest, logarithms, log_sums);
    return of_two(CUDNN_POINTWISE_DIV, exponentials, sums, between(keys, type_));
  }

  Node of_two(cudnnPointwiseMode_t mode, Node x, Node b, Node y) {
    graph_.pointwise(mode, x, b, y);
    return y;
  }
  Node operand(AttentionTensor id, const EvenIndices& at, int64_t rows, int64_t columns) {
    return graph_.tensor(
        {id, type_, {at.samples, at.heads, rows, columns}, {at.sample_stride, at.head_stride, at.row, at.column}});
  }
  Node added() {
    const EvenIndices& at = locations_.added;
    const int64_t keys = attention_.problem.keys;
    const bool is_one_row = at.row == 0;
    return graph_.tensor({kAdded,
                          *cudnn_type(attention_.added_dtype),
                          {at.samples, at.heads, is_one_row ? 1 : attention_.problem.queries, keys},
                          {at.sample_stride, at.head_stride, is_one_row ? keys : at.row, at.column}});
  }
  Ints score_dims(int64_t keys) const {
    return {attention_.samples, attention_.heads, attention_.problem.queries, keys};
  }
  Node between(int64_t keys, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    CudnnTensor described{next_id_++, type, score_dims(keys), row_major_strides(score_dims(keys))};
    described.is_between = true;
    return graph_.tensor(described);
  }

  CudnnGraph graph_;
  const LibraryAttention& attention_;
  const AttentionOffsets& locations_;
  cudnnDataType_t type_;
  int64_t next_id_ = kFirstBetween;
};

}  // namespace

std::optional<AttentionOffsets> suits_cudnn(const LibraryAttention& attention, size_t version) {
  const AttentionProblem& problem = attention.problem;
  const int64_t samples = attention.samples, heads = attention.heads;
  if (version < kFirstSoundCudnn || !is_for_library(attention)) return std::nullopt;
  if (problem.size % kFloat16AtOnce != 0 || problem.value_size % kFloat16AtOnce != 0) return std::nullopt;
  const auto q = even_indices(problem.q, problem.queries, samples, heads);
  const auto k = even_indices_of_columns(problem.k, problem.keys, samples, heads);
  const auto v = even_indices(problem.v, problem.keys, samples, heads);
  const auto y = even_indices(problem.y, problem.queries, samples, heads);
  if (!q.has_value() || !k.has_value() || !v.has_value() || !y.has_value()) return std::nullopt;
  // The numbers of a query, a key and a value are contiguous, and nothing is broadcast but heads of keys and values.
  if (q->column != 1 || k->row != 1 || v->column != 1 || y->column != 1) return std::nullopt;
  if (q->heads != heads || y->heads != heads || k->heads != v->heads) return std::nullopt;
  for (const auto& [data, locations] : {std::pair{attention.q, *q},
                                        {attention.k, *k},
                                        {attention.v, *v},
                                        {static_cast<const std::byte*>(attention.y), *y}}) {
    if (!can_be_read(data, attention.dtype, locations, samples)) return std::nullopt;
  }
  if (attention.added == nullptr) return AttentionOffsets{*q, *k, *v, *y, {}};
  const auto added = added_locations(attention);
  if (!added.has_value()) return std::nullopt;
  return AttentionOffsets{*q, *k, *v, *y, *added};
}

CudnnKey key_of(const LibraryAttention& attention, const AttentionOffsets& locations) {
  const AttentionProblem& problem = attention.problem;
  CudnnKey key{0,  // spatial axes: a convolution has some
               static_cast<int64_t>(attention.dtype),
               static_cast<int64_t>(attention.added == nullptr ? DType::undefined : attention.added_dtype),
               attention.samples,
               attention.heads,
               problem.queries,
               problem.keys,
               problem.size,
               problem.value_size};
  for (const EvenIndices* at : {&locations.q, &locations.k, &locations.v, &locations.y, &locations.added}) {
    key.insert(key.end(), {at->samples, at->heads, at->sample_stride, at->head_stride, at->row, at->column});
  }
  return key;
}

CudnnChoice choose_attention_plan(const Cudnn& functions, const CudnnTarget& target, const LibraryAttention& attention,
                                  const AttentionOffsets& locations) {
  return AttentionPattern(functions, attention, locations).choose(target);
}

Status run_attention_plan(const CudnnPlan& plan, cudnnHandle_t handle, const LibraryAttention& attention,
                          const AttentionOffsets& locations, const AttentionMemory& memory) {
  auto scale = static_cast<float>(attention.problem.scale);
  const auto at = [&](const std::byte* data, const EvenIndices& even) -> void* {
    return const_cast<std::byte*>(first_matrix(data, attention.dtype, even));
  };
  std::vector<int64_t> ids{kQueries, kKeys, kValues, kAttended, kScale, kLogSums};
  std::vector<void*> pointers{at(attention.q, locations.q),
                              at(attention.k, locations.k),
                              at(attention.v, locations.v),
                              at(attention.y, locations.y),
                              &scale,
                              memory.log_sums};
  if (attention.added != nullptr) {
    ids.push_back(kAdded);
    pointers.push_back(const_cast<std::byte*>(first_matrix(attention.added, attention.added_dtype, locations.added)));
  }
  return plan.run(handle, ids, pointers, memory.workspace);
}

}  // namespace parallax::runtime

#endif
