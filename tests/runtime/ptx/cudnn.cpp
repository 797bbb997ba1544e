// SPDX-License-Identifier: Apache-2.0
// libcudnn.so.9 by the fake of tests/runtime/device/cuda, which computes what its descriptors say. A plan's execution
// becomes work of the stream.
#include "runtime/device/cuda/cudnn.h"

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "tests/runtime/device/cuda/fake_cudnn.h"
#include "tests/runtime/ptx/stand_in.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace {

using parallax::runtime::FakeCudnn;

const parallax::runtime::Cudnn& fake() { return FakeCudnn::functions(); }

struct Attribute {
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  std::vector<int64_t> values;  // numbers and pointers, 64 bits each
};
// The attributes of each variant pack that is alive.
std::map<cudnnBackendDescriptor_t, std::vector<Attribute>>& packs() {
  static auto* all = new std::map<cudnnBackendDescriptor_t, std::vector<Attribute>>;
  return *all;
}

// A variant pack for later: the caller destroys its own, and what it passes by value is read at the call.
struct KeptPack {
  cudnnBackendDescriptor_t pack = nullptr;
  std::deque<float> values;
  std::vector<parallax::ptx::LibraryOperand> operands;  // their sizes are in descriptors: one byte of each is compared

  explicit KeptPack(std::vector<Attribute> attributes) {
    fake().cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    for (Attribute& attribute : attributes) {
      if (attribute.name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) take_pointers(attribute.values);
      fake().cudnnBackendSetAttribute(pack, attribute.name, attribute.type,
                                      static_cast<int64_t>(attribute.values.size()), attribute.values.data());
    }
    fake().cudnnBackendFinalize(pack);
  }
  ~KeptPack() { fake().cudnnBackendDestroyDescriptor(pack); }
  KeptPack(const KeptPack&) = delete;
  KeptPack& operator=(const KeptPack&) = delete;

 private:
  void take_pointers(std::vector<int64_t>& addresses) {
    for (int64_t& address : addresses) {
      const auto* memory = reinterpret_cast<const float*>(address);
      if (parallax::ptx::is_device_memory(memory)) {
        operands.push_back({memory, 1, "of a variant pack"});
      } else {
        address = reinterpret_cast<int64_t>(&values.emplace_back(*memory));
      }
    }
  }
};

}  // namespace

extern "C" {

size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t status) { return fake().cudnnGetErrorString(status); }
void cudnnGetLastErrorString(char* text, size_t room) { fake().cudnnGetLastErrorString(text, room); }
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  FakeCudnn::propose({{}});  // one engine, without a note: deterministic, sums in float32
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  const cudnnStatus_t status = fake().cudnnBackendCreateDescriptor(type, descriptor);
  if (type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) packs()[*descriptor] = {};
  return status;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  packs().erase(descriptor);
  return fake().cudnnBackendDestroyDescriptor(descriptor);
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return fake().cudnnBackendFinalize(descriptor);
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room, int64_t* count, void* values) {
  return fake().cudnnBackendGetAttribute(descriptor, name, type, room, count, values);
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  if (const auto pack = packs().find(descriptor); pack != packs().end()) {
    std::vector<int64_t> kept(static_cast<size_t>(count));
    std::memcpy(kept.data(), values, kept.size() * sizeof kept[0]);
    pack->second.push_back({name, type, std::move(kept)});
  }
  return fake().cudnnBackendSetAttribute(descriptor, name, type, count, values);
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const auto kept = std::make_shared<KeptPack>(packs().at(pack));
  parallax::ptx::submit_library_call(handle->stream, "cudnnBackendExecute", kept->operands,
                                     [plan, kept] { fake().cudnnBackendExecute(nullptr, plan, kept->pack); });
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
