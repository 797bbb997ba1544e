// SPDX-License-Identifier: Apache-2.0
// The functions, and what they check.
#include "tests/runtime/device/cuda/fake_cudnn.h"

#ifdef PX_WITH_CUDNN

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "inspector/base/check.h"
#include "tests/runtime/device/cuda/fake_operations.h"

namespace parallax::runtime {
namespace {

using namespace fake_cudnn;

struct State {
  std::vector<FakeEngine> engines;
  std::set<const Descriptor*> live;
  int last_engine = -1;
  std::string error;
};
State& state() {
  static State only;
  return only;
}

cudnnStatus_t refuse(const std::string& error) {
  state().error = error;
  return CUDNN_STATUS_BAD_PARAM;
}

// ---- What each descriptor must and may have (cuDNN, "Backend Descriptor Types") ----

constexpr int64_t kAny = -1;
struct Rule {
  cudnnBackendDescriptorType_t descriptor;
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  int64_t count;
  bool may_be_absent = false;
};

// clang-format off
constexpr Rule kRules[] = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, kAny},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, kAny},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, true},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1},
    {CUDNN_BACKEND_MATMUL_DESCRIPTOR, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_CDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, kAny},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, kAny},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, kAny},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, kAny},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, 1},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, 1},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, true},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, kAny},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, kAny},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, kAny},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1},
};
// clang-format on

size_t bytes_of(cudnnBackendAttributeType_t type) {
  if (type == CUDNN_TYPE_BOOLEAN) return sizeof(bool);
  const bool is_wide = type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_BACKEND_DESCRIPTOR || type == CUDNN_TYPE_HANDLE ||
                       type == CUDNN_TYPE_VOID_PTR;
  return is_wide ? sizeof(int64_t) : sizeof(int32_t);
}

// ---- The functions ----

Descriptor* of(cudnnBackendDescriptor_t handle) {
  auto* descriptor = static_cast<Descriptor*>(handle);
  PX_CHECK(state().live.count(descriptor) == 1);
  return descriptor;
}

cudnnStatus_t create(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made) {
  auto* descriptor = new Descriptor(type);
  state().live.insert(descriptor);
  *made = descriptor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t destroy(cudnnBackendDescriptor_t handle) {
  state().live.erase(of(handle));
  delete static_cast<Descriptor*>(handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t set_attribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  Descriptor* descriptor = of(handle);
  const auto* rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& candidate) {
    return candidate.descriptor == descriptor->type && candidate.name == name;
  });
  const std::string named = "attribute " + std::to_string(name);
  if (rule == std::end(kRules)) return refuse(named + " is not this descriptor's");
  if (rule->type != type) return refuse(named + " has another type");
  if (rule->count != kAny && rule->count != count) return refuse(named + " has another count");
  if (descriptor->is_final) return refuse(named + " comes after the end");
  const auto* bytes = static_cast<const std::byte*>(values);
  descriptor->attributes[name] = {type, count, {bytes, bytes + bytes_of(type) * static_cast<size_t>(count)}};
  return CUDNN_STATUS_SUCCESS;
}

std::string problem_with_tensor(const Descriptor& descriptor) {
  const FakeTensor tensor(descriptor);
  if (tensor.dims.size() != tensor.strides.size()) return "a tensor has more strides than dimensions, or fewer";
  return descriptor.one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) < 4 ? "a tensor is not aligned" : "";
}

std::string problem_with_convolution(const Descriptor& how) {
  if (how.one<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION)
    return "filters transposed";
  if (how.one<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT) return "sums not in float32";
  return "";
}

cudnnStatus_t finalize(cudnnBackendDescriptor_t handle) {
  Descriptor* descriptor = of(handle);
  for (const Rule& rule : kRules) {
    if (rule.descriptor != descriptor->type || descriptor->attributes.count(rule.name) == 1) continue;
    if (rule.may_be_absent) continue;
    return refuse("attribute " + std::to_string(rule.name) + " is missing");
  }
  for (const auto& [name, attribute] : descriptor->attributes) {
    if (attribute.type != CUDNN_TYPE_BACKEND_DESCRIPTOR) continue;
    for (const Descriptor* node : descriptor->list<const Descriptor*>(name)) {
      if (state().live.count(node) == 0 || !node->is_final) return refuse("a part is not finished");
    }
  }
  std::string problem;
  if (descriptor->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR) problem = problem_with_tensor(*descriptor);
  if (descriptor->type == CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR) problem = problem_with_convolution(*descriptor);
  if (const OperationKind* kind = kind_of(*descriptor)) problem = kind->problem(*descriptor, tensors_of(*descriptor));
  if (descriptor->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    const int engine = descriptor->node(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).engine;
    if (!state().engines[static_cast<size_t>(engine)].can_be_planned) problem = "this engine can not";
  }
  if (!problem.empty()) return refuse(problem);
  descriptor->is_final = true;
  return CUDNN_STATUS_SUCCESS;
}

// The heuristics' own: every engine in mode A, none as a last resort.
cudnnStatus_t get_configurations(const Descriptor& heuristics, int64_t room, int64_t* count, void* values) {
  const auto mode = heuristics.one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE);
  *count = mode == CUDNN_HEUR_MODE_A ? static_cast<int64_t>(state().engines.size()) : 0;
  for (int64_t i = 0; i < std::min(room, *count); ++i) {
    Descriptor* configuration = of(static_cast<cudnnBackendDescriptor_t*>(values)[i]);
    configuration->graph = &heuristics.node(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    configuration->engine = static_cast<int>(i);
    configuration->is_final = true;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t get_attribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t, int64_t room, int64_t* count, void* values) {
  const Descriptor& descriptor = *of(handle);
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) return get_configurations(descriptor, room, count, values);
  if (name == CUDNN_ATTR_ENGINECFG_ENGINE) {
    of(*static_cast<cudnnBackendDescriptor_t*>(values))->engine = descriptor.engine;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
  }
  if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
    const auto& notes = state().engines[static_cast<size_t>(descriptor.engine)].notes;
    *count = static_cast<int64_t>(notes.size());
    if (!notes.empty()) std::memcpy(values, notes.data(), notes.size() * sizeof notes[0]);
    return CUDNN_STATUS_SUCCESS;
  }
  if (name != CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) return refuse("an attribute that nobody asks for");
  const int engine = descriptor.node(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).engine;
  *static_cast<int64_t*>(values) = state().engines[static_cast<size_t>(engine)].workspace_bytes;
  *count = 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t execute(cudnnHandle_t, cudnnBackendDescriptor_t plan_handle, cudnnBackendDescriptor_t pack_handle) {
  const Descriptor& pack = *of(pack_handle);
  const Descriptor& configuration = of(plan_handle)->node(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const bool wants_workspace = state().engines[static_cast<size_t>(configuration.engine)].workspace_bytes > 0;
  if (wants_workspace && pack.one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE) == nullptr) return refuse("no workspace");
  const auto ids = pack.list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack.list<std::byte*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  std::map<int64_t, std::vector<std::byte>> between;
  for (const Descriptor* node : configuration.graph->list<const Descriptor*>(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    Tensors tensors = tensors_of(*node);
    for (FakeTensor& tensor : tensors) {
      const auto given = std::find(ids.begin(), ids.end(), tensor.id);
      if (tensor.is_virtual != (given == ids.end()))
        return refuse("memory for a virtual tensor, or none for a real one");
      auto& memory = between[tensor.id];
      if (tensor.is_virtual && memory.empty()) {
        memory.resize(static_cast<size_t>(tensor.dims[0] * tensor.strides[0]) * sizeof(float));
      }
      tensor.data = tensor.is_virtual ? memory.data() : pointers[static_cast<size_t>(given - ids.begin())];
    }
    kind_of(*node)->compute(*node, tensors);
  }
  state().last_engine = configuration.engine;
  return CUDNN_STATUS_SUCCESS;
}

const char* error_string(cudnnStatus_t) { return "refused"; }
void last_error_string(char* text, size_t room) { std::strncpy(text, state().error.c_str(), room - 1); }

}  // namespace

const Cudnn& FakeCudnn::functions() {
  static const Cudnn table = [] {
    Cudnn made;
    made.cudnnBackendCreateDescriptor = create;
    made.cudnnBackendDestroyDescriptor = destroy;
    made.cudnnBackendExecute = execute;
    made.cudnnBackendFinalize = finalize;
    made.cudnnBackendGetAttribute = get_attribute;
    made.cudnnBackendSetAttribute = set_attribute;
    made.cudnnGetErrorString = error_string;
    made.cudnnGetLastErrorString = last_error_string;
    return made;
  }();
  return table;
}

void FakeCudnn::propose(std::vector<FakeEngine> engines) { state().engines = std::move(engines); }
int64_t FakeCudnn::live_descriptors() { return static_cast<int64_t>(state().live.size()); }
int FakeCudnn::last_engine() { return state().last_engine; }
std::string FakeCudnn::last_error() { return state().error; }

}  // namespace parallax::runtime

#endif
