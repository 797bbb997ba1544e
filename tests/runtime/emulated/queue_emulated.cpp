// SPDX-License-Identifier: Apache-2.0
// Memory and copies of the emulated device.
#include "tests/runtime/emulated/queue_emulated.h"

#include "runtime/device/gpu/copy_kernel.h"
#include "runtime/device/gpu/gemm_kernel.h"
#include "runtime/device/gpu/library_conv.h"
#include "runtime/device/gpu/library_product.h"
#include "runtime/device/gpu/statistics_kernel.h"

namespace parallax::runtime {
namespace {

constexpr parallax::Device kDevice{parallax::Device::Kind::cuda, 99};

}  // namespace

Result<Tensor> Queue<Emulated>::allocate(DType dtype, const Shape& shape) {
  if (dtype == DType::string) return unsupported("strings cannot be on a GPU; --fallback=reference runs such nodes");
  const size_t bytes = std::max<size_t>(1, byte_size(dtype, shape.element_count()));
  if (auto location = memory_->location(bytes)) return Tensor::wrap(dtype, shape, std::move(location), kDevice);
  if (limit_bytes_ > 0 && live_bytes() + static_cast<int64_t>(bytes) > limit_bytes_) {
    return out_of_memory(std::to_string(bytes) + " bytes more would exceed the memory limit");
  }
  if (is_recording()) return allocate_alongside(dtype, shape);
  auto memory = emulation::allocate(bytes);
  peak_bytes_ = std::max(peak_bytes_, live_bytes());
  const std::byte* address = memory.get();
  std::shared_ptr<const std::byte> owner(address, [memory = std::move(memory), runs = memory_,
                                                   request = memory_->note_request(bytes)](const std::byte*) mutable {
    memory.reset();
    runs->note_return(request);
  });
  return Tensor::wrap(dtype, shape, std::move(owner), kDevice);
}

Result<Tensor> Queue<Emulated>::allocate_alongside(DType dtype, const Shape& shape) {
  const size_t bytes = std::max<size_t>(1, byte_size(dtype, shape.element_count()));
  PX_TRY(check_own(static_cast<int64_t>(bytes)));
  return keep(Tensor::wrap(dtype, shape, emulation::allocate(bytes), kDevice));
}

std::shared_ptr<std::byte> Queue<Emulated>::make_block(int64_t bytes) {
  if (limit_bytes_ > 0 && live_bytes() + bytes > limit_bytes_) return nullptr;
  auto block = std::const_pointer_cast<std::byte>(emulation::allocate(static_cast<size_t>(bytes)));
  peak_bytes_ = std::max(peak_bytes_, live_bytes());
  return block;
}

Result<Tensor> Queue<Emulated>::to_device(const Tensor& host) {
  const auto planned = is_recording() ? memory_->location(host.size_bytes()) : nullptr;
  const Tensor tensor =
      PX_TRY(is_recording() ? allocate_alongside(host.dtype(), host.shape()) : allocate(host.dtype(), host.shape()));
  PX_TRY(upload(host, tensor));
  return tensor;
}

Status Queue<Emulated>::upload(const Tensor& host, const Tensor& device) {
  if (host.size_bytes() == 0) return {};
  std::byte* target = PX_TRY(emulation::true_address(device.view().data, host.size_bytes()));
  std::memcpy(target, host.view().data, host.size_bytes());
  return {};
}

Result<Tensor> Queue<Emulated>::to_host(const Tensor& device) {
  PX_TRY(refused_in_recording("bring values to the host"));
  Tensor tensor = PX_TRY(Tensor::allocate(device.dtype(), device.shape()));
  if (device.size_bytes() == 0) return tensor;
  const std::byte* source = PX_TRY(emulation::true_address(device.view().data, device.size_bytes()));
  std::memcpy(tensor.mutable_data(), source, device.size_bytes());
  return tensor;
}

namespace {

struct EmulatedRecording final : Recording {
  std::vector<std::function<Status()>> work;
};

}  // namespace

Status Queue<Emulated>::begin_recording() {
  set_checks(PX_TRY(allocate(DType::int64, Shape{kMostChecks})));
  work_.clear();
  set_recording(true);
  return {};
}

Result<std::unique_ptr<Recording>> Queue<Emulated>::end_recording() {
  set_recording(false);
  auto recording = std::make_unique<EmulatedRecording>();
  recording->work = std::move(work_);
  work_.clear();
  return std::unique_ptr<Recording>(std::move(recording));
}

Status Queue<Emulated>::replay(const Recording& recording) {
  for (const auto& work : static_cast<const EmulatedRecording&>(recording).work) PX_TRY(work());
  return {};
}

Result<std::shared_ptr<std::byte>> Queue<Emulated>::host_memory(size_t bytes) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  PX_CHECK(memory != nullptr);
  return std::shared_ptr<std::byte>(memory, [](std::byte* made) { std::free(made); });
}

Result<int64_t> Queue<Emulated>::start_copy_to_host(std::byte* target, const std::byte* source, size_t bytes) {
  for (const Copy& copy : copies_) {
    if (target < copy.target + copy.bytes && copy.target < target + bytes) {
      return execution_error("emulated: a copy goes to memory that another one is still on its way to");
    }
  }
  copies_.push_back({target, source, bytes});
  return first_ticket_ + static_cast<int64_t>(copies_.size()) - 1;
}

Status Queue<Emulated>::finish_front() {
  const Copy copy = copies_.front();
  copies_.pop_front();
  ++first_ticket_;
  times_asked_ = 0;
  const std::byte* source = PX_TRY(emulation::true_address(copy.source, copy.bytes));
  std::memcpy(copy.target, source, copy.bytes);
  return {};
}

Result<bool> Queue<Emulated>::is_copied(int64_t ticket) {
  constexpr int kAskedInVain = 2;
  if (ticket < first_ticket_) return true;
  if (++times_asked_ > kAskedInVain) PX_TRY(finish_front());
  return ticket < first_ticket_;
}

Status Queue<Emulated>::wait_copied(int64_t ticket) {
  while (ticket >= first_ticket_) PX_TRY(finish_front());
  return {};
}

Result<Tensor> chunk_statistics(Queue<Emulated>& queue, const TensorView& view, ElementOrder order) {
  return chunk_statistics_by_kernel(queue, view, order);
}

void copy_bytes(Queue<Emulated>& queue, std::byte* target, const std::byte* source, size_t bytes) {
  if (bytes == 0) return;
  queue.perform([=]() -> Status {
    std::byte* to = PX_TRY(emulation::true_address(target, bytes));
    const std::byte* from = PX_TRY(emulation::true_address(source, bytes));
    std::memcpy(to, from, bytes);
    return {};
  });
}

void copy_strided(Queue<Emulated>& queue, int64_t bytes_per_element, const Ints& dims, const StridedTarget& target,
                  const StridedSource& source) {
  gpu::copy_strided_by_kernel(queue, bytes_per_element, dims, target, source);
}

void choose(Queue<Emulated>& queue, const MutableView& out, const std::array<TensorView, 3>& in) {
  gpu::choose_by_kernel(queue, out, in);
}

void fill(Queue<Emulated>& queue, const MutableView& out, const std::byte* element) {
  gpu::fill_by_kernel(queue, out, element);
}

template <class C>
void convert_elements(Queue<Emulated>& queue, const MutableView& out, const TensorView& in) {
  gpu::map_by_kernel<C, C>(queue, Same{}, out, std::array<TensorView, 1>{in});
}
template void convert_elements<float>(Queue<Emulated>& queue, const MutableView& out, const TensorView& in);
template void convert_elements<double>(Queue<Emulated>& queue, const MutableView& out, const TensorView& in);
template void convert_elements<int64_t>(Queue<Emulated>& queue, const MutableView& out, const TensorView& in);
template void convert_elements<uint64_t>(Queue<Emulated>& queue, const MutableView& out, const TensorView& in);
template void convert_elements<uint8_t>(Queue<Emulated>& queue, const MutableView& out, const TensorView& in);

Status gemm(Queue<Emulated>& queue, const GemmProblem& problem, const float* a, const float* b, float* c) {
  return gemm_by_kernel<float>(queue, problem, a, b, c);
}

Status gemm(Queue<Emulated>& queue, const GemmProblem& problem, const double* a, const double* b, double* c) {
  return gemm_by_kernel<double>(queue, problem, a, b, c);
}

namespace {

// Copies of an operand's elements on the host, as float.
Result<std::vector<float>> host_floats(Queue<Emulated>& queue, const TensorView& view) {
  const std::shared_ptr<const std::byte> borrowed(view.data, [](const std::byte*) {});
  const Tensor host = PX_TRY(queue.to_host(Tensor::wrap(view.dtype, view.shape, borrowed, view.device)));
  std::vector<float> values(static_cast<size_t>(host.element_count()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = load_element<float>(host.dtype(), host.view().data, static_cast<int64_t>(i));
  }
  return values;
}

Status store(const Tensor& values, const MutableView& target) {
  std::byte* location = PX_TRY(emulation::true_address(target.data, values.size_bytes()));
  std::memcpy(location, values.view().data, values.size_bytes());
  return {};
}

// c = alpha op(a) op(b) + residual + bias, in plain loops on the host.
Status multiply_on_host(Queue<Emulated>& queue, const LibraryProduct& product) {
  const GemmProblem& problem = product.problem;
  const DType dtype = product.c.dtype;
  const std::vector<float> a = PX_TRY(host_floats(queue, product.a));
  const std::vector<float> b = PX_TRY(host_floats(queue, product.b));
  const bool has_bias = product.bias.dtype != DType::undefined;
  const std::vector<float> bias = has_bias ? PX_TRY(host_floats(queue, product.bias)) : std::vector<float>();
  if (has_bias && static_cast<int64_t>(bias.size()) != problem.n) return execution_error("the bias is no row");
  const bool has_residual = product.residual.dtype != DType::undefined;
  const std::vector<float> residual =
      has_residual ? PX_TRY(host_floats(queue, product.residual)) : std::vector<float>();
  Tensor result = PX_TRY(Tensor::allocate(dtype, product.c.shape));
  Tensor sums = PX_TRY(Tensor::allocate(dtype, product.c.shape));
  for (int64_t i = 0; i < problem.batch() * problem.m * problem.n; ++i) {
    const int64_t batch = i / (problem.m * problem.n), row = i / problem.n % problem.m, column = i % problem.n;
    float sum = 0;
    for (int64_t j = 0; j < problem.k; ++j) {
      const int64_t in_a = problem.transpose_a ? j * problem.m + row : row * problem.k + j;
      const int64_t in_b = problem.transpose_b ? column * problem.k + j : j * problem.n + column;
      sum += a[static_cast<size_t>(problem.a_offsets[batch] + in_a)] *
             b[static_cast<size_t>(problem.b_offsets[batch] + in_b)];
    }
    sum *= static_cast<float>(problem.alpha);
    if (has_residual) sum += residual[static_cast<size_t>(i)];
    if (has_bias) sum += bias[static_cast<size_t>(column)];
    const float activated =
        product.epilogue == Epilogue::none ? sum : emulated_library().activate(product.epilogue, sum);
    store_block<float>(dtype, result.mutable_data(), i, 1, &activated);
    store_block<float>(dtype, sums.mutable_data(), i, 1, &sum);
  }
  PX_TRY(store(result, product.c));
  return product.pre_activation.dtype == DType::undefined ? Status{} : store(sums, product.pre_activation);
}

}  // namespace

EmulatedLibrary& emulated_library() {
  static EmulatedLibrary library;
  return library;
}

// In place of the library's, for the types that it has.
template <>
Result<bool> library_product(Queue<Emulated>& queue, const LibraryProduct& product) {
  const GemmProblem& problem = product.problem;
  const DType dtype = product.c.dtype;
  const bool is_known = dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
  if (!is_known || product.a.dtype != dtype || product.b.dtype != dtype || problem.beta != 0 || problem.k == 0) {
    return false;
  }
  const bool keeps = product.pre_activation.dtype != DType::undefined;
  if (keeps && (product.epilogue != Epilogue::tanh_gelu || !emulated_library().keeps_sums)) return false;
  if (product.residual.dtype != DType::undefined) ++emulated_library().residual_products;
  if (product.epilogue != Epilogue::none) ++emulated_library().activated_products;
  if (keeps) ++emulated_library().kept_products;
  queue.perform([&queue, product] { return multiply_on_host(queue, product); });
  return true;
}

// None: our own kernels are to be reached.
template <>
Result<bool> library_conv(Queue<Emulated>&, const LibraryConv&) {
  return false;
}

}  // namespace parallax::runtime
