// Descriptors, their checks, and the loops.
#include "tests/runtime/device/fake_cudnn.h"

#ifdef PX_WITH_CUDNN

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "inspector/base/check.h"
#include "runtime/device/blocks.h"
#include "runtime/device/storage.h"

namespace parallax::runtime {
namespace {

using Numbers = std::vector<int64_t>;

struct Attribute {
  cudnnBackendAttributeType_t type = CUDNN_TYPE_INT64;
  int64_t count = 0;
  std::vector<std::byte> bytes;
};

struct Descriptor {
  explicit Descriptor(cudnnBackendDescriptorType_t made) : type(made) {}
  cudnnBackendDescriptorType_t type;
  bool is_final = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;
  const Descriptor* graph = nullptr;  // of an engine's configuration
  int engine = -1;                    // of a configuration, and of an engine

  template <class T>
  std::vector<T> list(cudnnBackendAttributeName_t name) const {
    const Attribute& attribute = attributes.at(name);
    std::vector<T> values(static_cast<size_t>(attribute.count));
    std::memcpy(values.data(), attribute.bytes.data(), attribute.bytes.size());
    return values;
  }
  template <class T>
  T one(cudnnBackendAttributeName_t name) const {
    const Attribute& attribute = attributes.at(name);
    PX_CHECK(attribute.count == 1);
    T value{};
    std::memcpy(&value, attribute.bytes.data(), attribute.bytes.size());
    return value;
  }
  const Descriptor& node(cudnnBackendAttributeName_t name) const { return *one<const Descriptor*>(name); }
};

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
};

// clang-format off
constexpr Rule kRules[] = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, kAny},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, kAny},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1},
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
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1},
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

// ---- Tensors and the loops over them ----

struct FakeTensor {
  explicit FakeTensor(const Descriptor& descriptor)
      : id(descriptor.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
        dims(descriptor.list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        strides(descriptor.list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES)),
        is_virtual(descriptor.one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL)) {
    const auto type = descriptor.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
    dtype = type == CUDNN_DATA_HALF ? DType::float16 : type == CUDNN_DATA_BFLOAT16 ? DType::bfloat16 : DType::float32;
  }
  int64_t offset(const Numbers& index) const {
    int64_t sum = 0;
    for (size_t axis = 0; axis < dims.size(); ++axis) sum += dims[axis] == 1 ? 0 : index[axis] * strides[axis];
    return sum;
  }
  float at(const Numbers& index) const { return load_element<float>(dtype, data, offset(index)); }
  void put(const Numbers& index, float value) const {
    storage::visit_storage(dtype, [&](auto* type) {
      using S = std::remove_pointer_t<decltype(type)>;
      reinterpret_cast<S*>(data)[offset(index)] = storage::to_storage<S>(value);
    });
  }
  int64_t id;
  Numbers dims, strides;
  bool is_virtual;
  DType dtype;
  std::byte* data = nullptr;
};

void for_each(const Numbers& dims, const std::function<void(const Numbers&)>& visit) {
  Numbers index(dims.size(), 0);
  while (true) {
    visit(index);
    size_t axis = dims.size();
    while (axis > 0 && ++index[axis - 1] == dims[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

struct Windows {
  explicit Windows(const Descriptor& descriptor)
      : strides(descriptor.list<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)),
        dilations(descriptor.list<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS)),
        before(descriptor.list<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)),
        behind(descriptor.list<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)),
        axes(static_cast<size_t>(descriptor.one<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS))) {}
  Numbers strides, dilations, before, behind;
  size_t axes;

  // Calls visit(image and place of the windowed tensor, place of the windows', filter's) for each product of a group.
  void for_each_product(const FakeTensor& x, const FakeTensor& w, const FakeTensor& y,
                        const std::function<void(const Numbers&, const Numbers&, const Numbers&)>& visit) const {
    const int64_t groups = x.dims[1] / w.dims[1], per_group = y.dims[1] / groups;
    for_each(y.dims, [&](const Numbers& out) {
      for_each({w.dims.begin() + 1, w.dims.end()}, [&](const Numbers& tap) {
        Numbers in{out[0], out[1] / per_group * w.dims[1] + tap[0]}, filter{out[1]};
        filter.insert(filter.end(), tap.begin(), tap.end());
        for (size_t axis = 0; axis < axes; ++axis) {
          in.push_back(out[axis + 2] * strides[axis] - before[axis] + tap[axis + 1] * dilations[axis]);
          if (in.back() < 0 || in.back() >= x.dims[axis + 2]) return;
        }
        visit(in, filter, out);
      });
    });
  }

  // Of tensors as they stand in a forward convolution.
  std::string problem_with(const FakeTensor& x, const FakeTensor& w, const FakeTensor& y) const {
    const size_t rank = axes + 2;
    if (axes < 2 || axes > 3) return "two or three spatial axes are known";
    for (const Numbers* list : {&strides, &dilations, &before, &behind}) {
      if (list->size() != axes) return "a list of the convolution has another length";
    }
    if (x.dims.size() != rank || w.dims.size() != rank || y.dims.size() != rank) return "the ranks differ";
    if (x.dims[0] != y.dims[0] || w.dims[0] != y.dims[1] || x.dims[1] % w.dims[1] != 0) return "the channels differ";
    if (y.dims[1] % (x.dims[1] / w.dims[1]) != 0) return "groups of different size";
    for (size_t axis = 0; axis < axes; ++axis) {
      const int64_t extent = (w.dims[axis + 2] - 1) * dilations[axis] + 1;
      const int64_t room = x.dims[axis + 2] + before[axis] + behind[axis] - extent;
      if (before[axis] < 0 || behind[axis] < 0 || room / strides[axis] + 1 != y.dims[axis + 2]) {
        return "the sizes do not fit windows and pads";
      }
    }
    return "";
  }
};

struct Operation {
  explicit Operation(const Descriptor& made) : descriptor(made), type(made.type) {}
  const Descriptor& descriptor;
  cudnnBackendDescriptorType_t type;
  FakeTensor tensor(cudnnBackendAttributeName_t name) const { return FakeTensor(descriptor.node(name)); }
  bool is_back() const { return type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR; }
  bool is_sum() const { return type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR; }
  // In the order in which a forward convolution names them; of a sum, its operands and its result.
  std::array<FakeTensor, 3> tensors() const {
    if (is_sum()) {
      return {tensor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC), tensor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
              tensor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC)};
    }
    if (is_back()) {
      return {tensor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX), tensor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W),
              tensor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY)};
    }
    return {tensor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X), tensor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W),
            tensor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y)};
  }
  Windows windows() const {
    return Windows(descriptor.node(is_back() ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC
                                             : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC));
  }
};

void compute(const Operation& operation, const std::array<FakeTensor, 3>& tensors) {
  const auto& [x, w, y] = tensors;
  if (operation.is_sum()) {
    for_each(y.dims, [&, &x = x, &w = w, &y = y](const Numbers& at) { y.put(at, x.at(at) + w.at(at)); });
    return;
  }
  const FakeTensor& result = operation.is_back() ? x : y;
  FakeTensor sums = result;
  sums.dtype = DType::float32;
  int64_t count = 1;
  for (const int64_t dim : result.dims) count *= dim;
  std::vector<float> memory(static_cast<size_t>(count), 0.0F);
  sums.data = reinterpret_cast<std::byte*>(memory.data());
  operation.windows().for_each_product(
      x, w, y, [&, &x = x, &w = w, &y = y](const Numbers& in, const Numbers& filter, const Numbers& out) {
        const Numbers& at = operation.is_back() ? in : out;
        sums.put(at, sums.at(at) + w.at(filter) * (operation.is_back() ? y.at(out) : x.at(in)));
      });
  for_each(result.dims, [&](const Numbers& at) { result.put(at, sums.at(at)); });
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

std::string problem_with_operation(const Descriptor& descriptor) {
  const Operation operation(descriptor);
  const auto tensors = operation.tensors();
  if (!operation.is_sum()) {
    const bool back = operation.is_back();
    const auto alpha = descriptor.one<float>(back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA
                                                  : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
    const auto beta = descriptor.one<float>(back ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA
                                                 : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
    if (alpha != 1.0F || beta != 0.0F) return "not the plain result";
    return operation.windows().problem_with(tensors[0], tensors[1], tensors[2]);
  }
  const Descriptor& how = descriptor.node(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  const bool is_known = how.one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE) == CUDNN_POINTWISE_ADD &&
                        tensors[0].dims == tensors[2].dims;
  return is_known ? "" : "a pointwise operation that is no sum";
}

std::string problem_with_convolution(const Descriptor& how) {
  if (how.one<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION)
    return "filters turned";
  if (how.one<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT) return "sums not in float32";
  return "";
}

cudnnStatus_t finalize(cudnnBackendDescriptor_t handle) {
  Descriptor* descriptor = of(handle);
  for (const Rule& rule : kRules) {
    if (rule.descriptor != descriptor->type || descriptor->attributes.count(rule.name) == 1) continue;
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
  const bool is_operation = descriptor->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
                            descriptor->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
                            descriptor->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
  if (is_operation) problem = problem_with_operation(*descriptor);
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
    const Operation operation(*node);
    auto tensors = operation.tensors();
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
    compute(operation, tensors);
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
