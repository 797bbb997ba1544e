// Memory and copies of the emulated device.
#include "tests/runtime/emulated/queue_emulated.h"

#include "runtime/device/gpu/copy_kernel.h"
#include "runtime/device/gpu/gemm_kernel.h"

namespace parallax::runtime {
namespace {

constexpr parallax::Device kDevice{parallax::Device::Kind::cuda, 99};

}  // namespace

Result<Tensor> Queue<Emulated>::allocate(DType dtype, const Shape& shape) {
  if (dtype == DType::string) return unsupported("strings do not lie on a GPU; --fallback=reference runs such nodes");
  const size_t bytes = std::max<size_t>(1, byte_size(dtype, shape.element_count()));
  if (limit_bytes_ > 0 && live_bytes() + static_cast<int64_t>(bytes) > limit_bytes_) {
    return out_of_memory(std::to_string(bytes) + " bytes more would exceed the memory limit");
  }
  auto memory = emulation::allocate(bytes);
  peak_bytes_ = std::max(peak_bytes_, live_bytes());
  return Tensor::wrap(dtype, shape, std::move(memory), kDevice);
}

Result<Tensor> Queue<Emulated>::to_device(const Tensor& host) {
  Tensor tensor = PX_TRY(allocate(host.dtype(), host.shape()));
  if (host.size_bytes() == 0) return tensor;
  std::byte* target = PX_TRY(emulation::true_address(tensor.view().data, host.size_bytes()));
  std::memcpy(target, host.view().data, host.size_bytes());
  return tensor;
}

Result<Tensor> Queue<Emulated>::to_host(const Tensor& device) {
  Tensor tensor = PX_TRY(Tensor::allocate(device.dtype(), device.shape()));
  if (device.size_bytes() == 0) return tensor;
  const std::byte* source = PX_TRY(emulation::true_address(device.view().data, device.size_bytes()));
  std::memcpy(tensor.mutable_data(), source, device.size_bytes());
  return tensor;
}

void copy_bytes(Queue<Emulated>& queue, std::byte* target, const std::byte* source, size_t bytes) {
  if (bytes == 0) return;
  const auto to = emulation::true_address(target, bytes);
  const auto from = emulation::true_address(source, bytes);
  if (!to.ok()) return queue.fail(to.error());
  if (!from.ok()) return queue.fail(from.error());
  std::memcpy(*to, *from, bytes);
}

void copy_region(Queue<Emulated>& queue, int64_t bytes_per_element, const Ints& dims, const StridedTarget& target,
                 const StridedSource& source) {
  copy_strided(queue, bytes_per_element, dims, target, source);
}

Status gemm(Queue<Emulated>& queue, const GemmProblem& problem, const float* a, const float* b, float* c) {
  return gemm_by_kernel<float>(queue, problem, a, b, c);
}

Status gemm(Queue<Emulated>& queue, const GemmProblem& problem, const double* a, const double* b, double* c) {
  return gemm_by_kernel<double>(queue, problem, a, b, c);
}

}  // namespace parallax::runtime
