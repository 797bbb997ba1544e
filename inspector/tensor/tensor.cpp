// SPDX-License-Identifier: Apache-2.0
// Allocation and sharing of tensor payloads.
#include "inspector/tensor/tensor.h"

#include <algorithm>
#include <limits>
#include <new>

#include <sys/mman.h>

#include "inspector/base/memory_budget.h"
#include "inspector/base/payload_memory.h"

namespace parallax {
namespace {

static_assert(Tensor::kAlignment <= kPayloadAlignment);

Error no_memory(DType dtype, const Shape& shape, size_t bytes) {
  const std::string tensor = "a tensor " + std::string(name_of(dtype)) + shape.to_string();
  if (auto refused = MemoryBudget::take_refusal(tensor)) return *std::move(refused);
  return out_of_memory("cannot allocate " + std::to_string(bytes) + " bytes for " + tensor);
}

// The objects are charged; their texts, of which most are short, are not.
std::shared_ptr<std::byte> allocate_strings(size_t count) {
  constexpr size_t kMost = std::numeric_limits<size_t>::max() / 2 / sizeof(std::string);
  if (count > kMost) return nullptr;
  auto reserved = MemoryBudget::reserve(static_cast<int64_t>(count * sizeof(std::string)), "");
  if (!reserved.ok()) return nullptr;
  auto* strings = new (std::nothrow) std::string[count];
  if (strings == nullptr) return nullptr;
  auto held = std::make_shared<MemoryBudget::Reservation>(reserved.take());
  return {reinterpret_cast<std::byte*>(strings), [strings, held](std::byte*) { delete[] strings; }};
}

}  // namespace

Result<Tensor> Tensor::allocate(DType dtype, const Shape& shape) {
  PX_CHECK(dtype != DType::undefined);
  const size_t bytes = byte_size(dtype, shape.element_count());
  Tensor tensor;
  tensor.data_ =
      dtype == DType::string ? allocate_strings(static_cast<size_t>(shape.element_count())) : shared_payload(bytes);
  if (tensor.data_ == nullptr) return no_memory(dtype, shape, bytes);
  if (is_sub_byte(dtype) && bytes > 0) tensor.data_.get()[bytes - 1] = std::byte{0};  // unused high bits
  tensor.view_ = {dtype, shape, tensor.data_.get(), Device{}};
  return tensor;
}

Result<Tensor> Tensor::zeros(DType dtype, const Shape& shape) {
  Tensor tensor = PX_TRY(allocate(dtype, shape));
  if (dtype != DType::string) std::memset(tensor.mutable_data(), 0, tensor.size_bytes());
  return tensor;
}

Result<Tensor> Tensor::zero_pages(DType dtype, const Shape& shape) {
  PX_CHECK(bits_of(dtype) != 0);
  const size_t size = byte_size(dtype, shape.element_count());
  if (size == 0) return allocate(dtype, shape);
  void* pages = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return out_of_memory("no address space for a tensor of " + std::to_string(size) + " bytes");
  const auto unmap = [size](const std::byte* begin) { ::munmap(const_cast<std::byte*>(begin), size); };
  return wrap(dtype, shape, std::shared_ptr<const std::byte>(static_cast<const std::byte*>(pages), unmap));
}

Tensor Tensor::wrap(DType dtype, const Shape& shape, std::shared_ptr<const std::byte> data, Device device) {
  PX_CHECK(dtype != DType::undefined);
  Tensor tensor;
  tensor.data_ = std::const_pointer_cast<std::byte>(std::move(data));
  tensor.read_only_ = true;
  tensor.view_ = {dtype, shape, tensor.data_.get(), device};
  return tensor;
}

Tensor Tensor::reshaped(const Shape& shape) const {
  PX_CHECK(shape.element_count() == element_count());
  Tensor tensor = *this;
  tensor.view_.shape = shape;
  return tensor;
}

Result<Tensor> Tensor::clone() const {
  PX_CHECK(view_.device.is_host());
  Tensor copy = PX_TRY(allocate(dtype(), shape()));
  if (dtype() == DType::string) {
    const auto source = as<std::string>();
    std::copy(source.begin(), source.end(), copy.mutable_as<std::string>().begin());
  } else if (size_bytes() > 0) {
    std::memcpy(copy.mutable_data(), view_.data, size_bytes());
  }
  return copy;
}

}  // namespace parallax
