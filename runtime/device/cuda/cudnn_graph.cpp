// SPDX-License-Identifier: Apache-2.0
// Descriptors of cuDNN's backend API: what attributes they have and of what types is NVIDIA's to say (cuDNN, "Backend
// API", descriptor types).
#ifdef PX_WITH_CUDNN

#include "runtime/device/cuda/cudnn_graph.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace parallax::runtime {
namespace {

template <class T>
constexpr cudnnBackendAttributeType_t attribute_type() {
  if constexpr (std::is_same_v<T, int64_t>) return CUDNN_TYPE_INT64;
  if constexpr (std::is_same_v<T, bool>) return CUDNN_TYPE_BOOLEAN;
  if constexpr (std::is_same_v<T, float>) return CUDNN_TYPE_FLOAT;
  if constexpr (std::is_same_v<T, cudnnDataType_t>) return CUDNN_TYPE_DATA_TYPE;
  if constexpr (std::is_same_v<T, cudnnConvolutionMode_t>) return CUDNN_TYPE_CONVOLUTION_MODE;
  if constexpr (std::is_same_v<T, cudnnPointwiseMode_t>) return CUDNN_TYPE_POINTWISE_MODE;
  if constexpr (std::is_same_v<T, cudnnReduceTensorOp_t>) return CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
  if constexpr (std::is_same_v<T, cudnnBackendHeurMode_t>) return CUDNN_TYPE_HEUR_MODE;
  if constexpr (std::is_same_v<T, cudnnHandle_t>) return CUDNN_TYPE_HANDLE;
}

std::string refusal_of(const Cudnn& functions, cudnnStatus_t status, const char* what) {
  std::array<char, 512> details{};
  functions.cudnnGetLastErrorString(details.data(), details.size());
  return std::string(what) + ": " + functions.cudnnGetErrorString(status) +
         (details[0] == '\0' ? "" : " (" + std::string(details.data()) + ")");
}

// A descriptor for the library to fill in, or null.
CudnnDescriptor empty_descriptor(const Cudnn& functions, cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  if (functions.cudnnBackendCreateDescriptor(type, &made) != CUDNN_STATUS_SUCCESS) made = nullptr;
  return {functions, made};
}

}  // namespace

bool is_cudnn_aligned(const std::byte* address) {
  return reinterpret_cast<uintptr_t>(address) % kCudnnAlignmentBytes == 0;
}

std::optional<cudnnDataType_t> cudnn_type(DType dtype) {
  if (dtype == DType::float32) return CUDNN_DATA_FLOAT;
  if (dtype == DType::float16) return CUDNN_DATA_HALF;
  if (dtype == DType::bfloat16) return CUDNN_DATA_BFLOAT16;
  return std::nullopt;
}

bool CudnnRules::allow(cudnnBackendNumericalNote_t note) const {
  if (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE) return may_use_tensor_cores;
  return note == kCudnnStrictNan;  // nothing else, and nothing that later versions may note
}

// ---- A graph in the making ----

bool CudnnGraph::passes(cudnnStatus_t status, const char* what) {
  if (!refusal_.empty()) return false;
  if (status == CUDNN_STATUS_SUCCESS) return true;
  refusal_ = refusal_of(functions_, status, what);
  return false;
}

CudnnGraph::Node CudnnGraph::create(cudnnBackendDescriptorType_t type) {
  if (!refusal_.empty()) return nullptr;
  Node made = nullptr;
  if (!passes(functions_.cudnnBackendCreateDescriptor(type, &made), "a descriptor")) return nullptr;
  descriptors_.emplace_back(functions_, made);
  return made;
}

void CudnnGraph::finish(Node node, const char* what) {
  if (refusal_.empty()) passes(functions_.cudnnBackendFinalize(node), what);
}

template <class T>
void CudnnGraph::set(Node node, cudnnBackendAttributeName_t name, const T& value) {
  if (!refusal_.empty()) return;
  passes(functions_.cudnnBackendSetAttribute(node, name, attribute_type<T>(), 1, &value), "an attribute");
}

void CudnnGraph::set(Node node, cudnnBackendAttributeName_t name, const Ints& values) {
  if (!refusal_.empty()) return;
  passes(functions_.cudnnBackendSetAttribute(node, name, CUDNN_TYPE_INT64, values.size(), values.data()),
         "an attribute");
}

void CudnnGraph::set_nodes(Node node, cudnnBackendAttributeName_t name, std::span<const Node> values) {
  if (!refusal_.empty()) return;
  passes(functions_.cudnnBackendSetAttribute(node, name, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                             static_cast<int64_t>(values.size()), values.data()),
         "an attribute");
}

CudnnGraph::Node CudnnGraph::tensor(const CudnnTensor& described) {
  const Node node = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set(node, CUDNN_ATTR_TENSOR_UNIQUE_ID, described.id);
  set(node, CUDNN_ATTR_TENSOR_DATA_TYPE, described.type);
  set(node, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kCudnnAlignmentBytes);
  set(node, CUDNN_ATTR_TENSOR_DIMENSIONS, described.dims);
  set(node, CUDNN_ATTR_TENSOR_STRIDES, described.strides);
  set(node, CUDNN_ATTR_TENSOR_IS_VIRTUAL, described.is_between);
  if (described.is_by_value) set(node, CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  finish(node, "a tensor");
  return node;
}

void CudnnGraph::convolution_operation(cudnnBackendDescriptorType_t type, const CudnnConvolution& convolution,
                                       std::span<const Part> tensors, cudnnBackendAttributeName_t descriptor,
                                       cudnnBackendAttributeName_t alpha, cudnnBackendAttributeName_t beta) {
  const Node how = create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  set(how, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  set(how, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  set(how, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, convolution.strides.size());
  set(how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, convolution.strides);
  set(how, CUDNN_ATTR_CONVOLUTION_DILATIONS, convolution.dilations);
  set(how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, convolution.pads_begin);
  set(how, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, convolution.pads_end);
  finish(how, "a convolution");
  const Node operation = create(type);
  set_nodes(operation, descriptor, {&how, 1});
  for (const auto& [name, tensor] : tensors) set_nodes(operation, name, {&tensor, 1});
  set(operation, alpha, 1.0F);
  set(operation, beta, 0.0F);
  finish(operation, "the operation convolution");
  operations_.push_back(operation);
}

void CudnnGraph::convolve(const CudnnConvolution& convolution, Node x, Node filters, Node y) {
  const std::array<Part, 3> tensors{{{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x},
                                     {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, filters},
                                     {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y}}};
  convolution_operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, convolution, tensors,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
}

void CudnnGraph::convolve_back(const CudnnConvolution& convolution, Node dy, Node filters, Node dx) {
  const std::array<Part, 3> tensors{{{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, dy},
                                     {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, filters},
                                     {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, dx}}};
  convolution_operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, convolution, tensors,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
}

void CudnnGraph::add_operation(cudnnBackendDescriptorType_t type, std::initializer_list<Part> parts, const char* what) {
  const Node operation = create(type);
  for (const auto& [name, node] : parts) {
    if (node != nullptr) set_nodes(operation, name, {&node, 1});
  }
  finish(operation, what);
  operations_.push_back(operation);
}

void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, Node x, Node b, Node y) {
  const Node how = create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  set(how, CUDNN_ATTR_POINTWISE_MODE, mode);
  set(how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  finish(how, "a function");
  add_operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how},
                 {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x},
                 {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b},
                 {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y}},
                "the operation of a function");
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t by, Node x, Node y) {
  const Node how = create(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  set(how, CUDNN_ATTR_REDUCTION_OPERATOR, by);
  set(how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  finish(how, "a reduction");
  add_operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_REDUCTION_DESC, how},
                 {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x},
                 {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y}},
                "the operation reduction");
}

void CudnnGraph::multiply(Node a, Node b, Node c) {
  const Node how = create(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  set(how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  finish(how, "a product");
  add_operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_MATMUL_DESC, how},
                 {CUDNN_ATTR_OPERATION_MATMUL_ADESC, a},
                 {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b},
                 {CUDNN_ATTR_OPERATION_MATMUL_CDESC, c}},
                "the operation product");
}

// ---- The choice of a plan ----

std::vector<CudnnDescriptor> CudnnGraph::configurations(const CudnnTarget& target, Node graph,
                                                        cudnnBackendHeurMode_t mode) {
  constexpr int64_t kMost = 256;
  std::vector<CudnnDescriptor> found;
  const Node heuristics = create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set_nodes(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, {&graph, 1});
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, mode);
#if CUDNN_VERSION >= 90800
  if (target.properties != nullptr) set_nodes(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, {&target.properties, 1});
#else
  static_cast<void>(target);
#endif
  finish(heuristics, "the heuristics");
  if (!refusal_.empty()) return found;
  int64_t count = 0;
  if (!passes(functions_.cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
              "the heuristics' results")) {
    return found;
  }
  std::vector<Node> handles;
  for (int64_t i = 0; i < std::min(count, kMost); ++i) {
    found.push_back(empty_descriptor(functions_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    handles.push_back(found.back().get());
  }
  if (handles.empty()) return found;
  // Fewer may come than were announced.
  passes(functions_.cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                             static_cast<int64_t>(handles.size()), &count, handles.data()),
         "the heuristics' results");
  while (!found.empty() && static_cast<int64_t>(found.size()) > count) found.pop_back();
  return found;
}

bool CudnnGraph::keeps(Node configuration, const CudnnRules& rules) {
  const CudnnDescriptor engine = empty_descriptor(functions_, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  Node handle = engine.get();
  int64_t count = 0;
  if (functions_.cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                          &count, &handle) != CUDNN_STATUS_SUCCESS) {
    return false;
  }
  std::array<cudnnBackendNumericalNote_t, 64> notes{};
  if (functions_.cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                          notes.size(), &count, notes.data()) != CUDNN_STATUS_SUCCESS) {
    return false;
  }
  if (count > static_cast<int64_t>(notes.size())) return false;
  return std::all_of(notes.begin(), notes.begin() + count, [&](auto note) { return rules.allow(note); });
}

CudnnChoice CudnnGraph::make_plan(const CudnnTarget& target, const CudnnRules& rules, CudnnDescriptor configuration) {
  CudnnDescriptor plan = empty_descriptor(functions_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  const Node node = plan.get();
  const Node of = configuration.get();
  set_nodes(node, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, {&of, 1});
  if (target.handle != nullptr) set(node, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle);
#if CUDNN_VERSION >= 90800
  if (target.properties != nullptr) set_nodes(node, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, {&target.properties, 1});
#endif
  finish(node, "a plan");
  int64_t bytes = 0, count = 0;
  if (refusal_.empty()) {
    passes(functions_.cudnnBackendGetAttribute(node, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                               &count, &bytes),
           "a plan's workspace");
  }
  if (refusal_.empty() && bytes > rules.most_workspace_bytes) {
    refusal_ = "a plan wants " + std::to_string(bytes) + " bytes of workspace";
  }
  if (!refusal_.empty()) return {nullptr, refusal_};
  descriptors_.push_back(std::move(configuration));
  return {std::make_shared<CudnnPlan>(functions_, std::exchange(descriptors_, {}), std::move(plan), bytes), ""};
}

CudnnChoice CudnnGraph::choose_plan(const CudnnTarget& target, const CudnnRules& rules) {
  const Node graph = create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  set_nodes(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
  if (target.handle != nullptr) set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
  finish(graph, "the graph");
  if (!refusal_.empty()) return {nullptr, refusal_};
  std::string last = "no engine knows the graph";
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    std::vector<CudnnDescriptor> found = configurations(target, graph, mode);
    if (!refusal_.empty()) last = std::exchange(refusal_, "");
    for (CudnnDescriptor& configuration : found) {
      if (!keeps(configuration.get(), rules)) {
        last = "an engine does not keep the rules of precision";
        continue;
      }
      CudnnChoice choice = make_plan(target, rules, std::move(configuration));
      if (choice.plan != nullptr) return choice;
      last = std::exchange(refusal_, "");
    }
  }
  return {nullptr, last};
}

// ---- Running ----

Status CudnnPlan::run(cudnnHandle_t handle, std::span<const int64_t> ids, std::span<void* const> pointers,
                      void* workspace) const {
  const CudnnDescriptor pack = empty_descriptor(functions_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const auto set = [&](cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, size_t count,
                       const void* values) {
    return functions_.cudnnBackendSetAttribute(pack.get(), name, type, static_cast<int64_t>(count), values);
  };
  cudnnStatus_t status = set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids.size(), ids.data());
  if (status == CUDNN_STATUS_SUCCESS) {
    status = set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers.size(), pointers.data());
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  }
  if (status == CUDNN_STATUS_SUCCESS) status = functions_.cudnnBackendFinalize(pack.get());
  if (status == CUDNN_STATUS_SUCCESS) {
    status = functions_.cudnnBackendExecute(handle, plan_.get(), pack.get());
  }
  if (status == CUDNN_STATUS_SUCCESS) return {};
  return execution_error("cuda: cuDNN: " + refusal_of(functions_, status, "running a plan"));
}

const CudnnChoice* CudnnPlans::find(const CudnnKey& key, bool is_recording) {
  const auto found = locations_.find(key);
  if (found == locations_.end()) return nullptr;
  found->second->stays |= is_recording;
  return &found->second->choice;
}

const CudnnChoice* CudnnPlans::keep(CudnnKey key, CudnnChoice choice) {
  const auto oldest = std::find_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return !entry.stays; });
  if (is_full() && oldest != entries_.end()) {
    locations_.erase(oldest->key);
    entries_.erase(oldest);
  }
  entries_.push_back({key, std::move(choice), false});
  locations_[std::move(key)] = std::prev(entries_.end());
  return &entries_.back().choice;
}

}  // namespace parallax::runtime

#endif
