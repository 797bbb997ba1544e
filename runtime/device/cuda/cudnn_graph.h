// SPDX-License-Identifier: Apache-2.0
// cuDNN's graphs: operations on described tensors, of which the library makes a plan that runs on memory. Nothing here
// calls CUDA, and all of cuDNN goes through a table of functions: the tests look at what is described without a GPU.
#pragma once

#include "runtime/device/cuda/cudnn.h"

#ifdef PX_WITH_CUDNN

#include <initializer_list>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "inspector/tensor/dtype.h"
#include "runtime/device/cpu/ints.h"

namespace parallax::runtime {

class CudnnDescriptor {
 public:
  CudnnDescriptor(const Cudnn& functions, cudnnBackendDescriptor_t handle) : functions_(&functions), handle_(handle) {}
  CudnnDescriptor(CudnnDescriptor&& other) noexcept
      : functions_(other.functions_), handle_(std::exchange(other.handle_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(functions_, other.functions_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~CudnnDescriptor() {
    if (handle_ != nullptr) functions_->cudnnBackendDestroyDescriptor(handle_);
  }
  cudnnBackendDescriptor_t get() const { return handle_; }

 private:
  const Cudnn* functions_;
  cudnnBackendDescriptor_t handle_;
};

constexpr int64_t kCudnnAlignmentBytes = 16;  // of the addresses of a plan's tensors
bool is_cudnn_aligned(const std::byte* address);
// cuDNN's type for the floats that it computes with; none for other types.
std::optional<cudnnDataType_t> cudnn_type(DType dtype);

struct CudnnTensor {
  int64_t id = 0;  // its memory is given under; no two tensors of a graph have the same
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Ints dims;
  Ints strides;              // in elements
  bool is_between = false;   // one operation makes it for the next, without memory
  bool is_by_value = false;  // its memory is the host's, read when the plan is run
};

struct CudnnConvolution {
  Ints strides, dilations, pads_begin, pads_end;
};

// The GPU that plans are made for: the one of a handle, or one that is described (cuDNN 9.8 and later).
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  cudnnBackendDescriptor_t properties = nullptr;
};

// CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP, which cuDNN 9 may tell of though its first headers have no name for it.
constexpr auto kCudnnStrictNan = static_cast<cudnnBackendNumericalNote_t>(9);

// Which of the library's engines may compute. Never one that keeps sums in less than float32, whose bits change from
// run to run, that rounds its operands, or that goes through a transform (Winograd, FFT), whose error is another than
// that of sums.
struct CudnnRules {
  bool may_use_tensor_cores = false;  // they would round operands of float32 to TF32
  int64_t most_workspace_bytes = int64_t{1} << 30;
  bool allow(cudnnBackendNumericalNote_t note) const;
};

class CudnnPlan {
 public:
  CudnnPlan(const Cudnn& functions, std::vector<CudnnDescriptor> kept, CudnnDescriptor plan, int64_t workspace_bytes)
      : functions_(functions), kept_(std::move(kept)), plan_(std::move(plan)), workspace_bytes_(workspace_bytes) {}
  int64_t workspace_bytes() const { return workspace_bytes_; }
  // pointers[i] is the memory of the tensor with ids[i].
  Status run(cudnnHandle_t handle, std::span<const int64_t> ids, std::span<void* const> pointers,
             void* workspace) const;

 private:
  const Cudnn& functions_;
  std::vector<CudnnDescriptor> kept_;  // what the plan was made of
  CudnnDescriptor plan_;
  int64_t workspace_bytes_;
};

// The result of asking for a plan.
struct CudnnChoice {
  std::shared_ptr<const CudnnPlan> plan;  // null: the library has no way to do it
  std::string refusal;                    // and why
};

// A graph in the making. After the first refusal nothing more is asked of the library.
class CudnnGraph {
 public:
  using Node = cudnnBackendDescriptor_t;
  explicit CudnnGraph(const Cudnn& functions) : functions_(functions) {}

  Node tensor(const CudnnTensor& described);
  void convolve(const CudnnConvolution& convolution, Node x, Node filters, Node y);
  // The convolution's transpose: dx of dy.
  void convolve_back(const CudnnConvolution& convolution, Node dy, Node filters, Node dx);
  // These in float32, with broadcasting.
  void pointwise(cudnnPointwiseMode_t mode, Node x, Node b, Node y);  // b: null where there is one operand
  void reduce(cudnnReduceTensorOp_t by, Node x, Node y);              // along the axes that are 1 in y
  void multiply(Node a, Node b, Node c);                              // matrices

  // The first of the configurations the library proposes that keeps the rules and can be made: the same for the same
  // graph. The graph is used up.
  CudnnChoice choose_plan(const CudnnTarget& target, const CudnnRules& rules);

 private:
  Node create(cudnnBackendDescriptorType_t type);
  void finish(Node node, const char* what);
  bool passes(cudnnStatus_t status, const char* what);  // a refusal is kept
  template <class T>
  void set(Node node, cudnnBackendAttributeName_t name, const T& value);
  void set(Node node, cudnnBackendAttributeName_t name, const Ints& values);
  void set_nodes(Node node, cudnnBackendAttributeName_t name, std::span<const Node> values);
  using Part = std::pair<cudnnBackendAttributeName_t, Node>;
  void add_operation(cudnnBackendDescriptorType_t type, std::initializer_list<Part> parts, const char* what);
  void convolution_operation(cudnnBackendDescriptorType_t type, const CudnnConvolution& convolution,
                             std::span<const Part> tensors, cudnnBackendAttributeName_t descriptor,
                             cudnnBackendAttributeName_t alpha, cudnnBackendAttributeName_t beta);
  std::vector<CudnnDescriptor> configurations(const CudnnTarget& target, Node graph, cudnnBackendHeurMode_t mode);
  bool keeps(Node configuration, const CudnnRules& rules);
  CudnnChoice make_plan(const CudnnTarget& target, const CudnnRules& rules, CudnnDescriptor configuration);

  const Cudnn& functions_;
  std::vector<CudnnDescriptor> descriptors_;
  std::vector<Node> operations_;
  std::string refusal_;
};

// All that a plan depends on.
using CudnnKey = std::vector<int64_t>;

// The plans that were made, up to `most`: then the oldest goes. What a recorded run launches stays.
class CudnnPlans {
 public:
  explicit CudnnPlans(size_t most) : most_(most) {}
  // Null where it is not known yet. `is_recording`: it is to stay.
  const CudnnChoice* find(const CudnnKey& key, bool is_recording);
  size_t size() const { return entries_.size(); }
  bool is_full() const { return entries_.size() >= most_; }
  const CudnnChoice* keep(CudnnKey key, CudnnChoice choice);

 private:
  struct Entry {
    CudnnKey key;
    CudnnChoice choice;
    bool stays = false;
  };
  size_t most_;
  std::list<Entry> entries_;  // oldest first
  std::map<CudnnKey, std::list<Entry>::iterator> locations_;
};

}  // namespace parallax::runtime

#endif
