// Allocation and sharing of tensor payloads.
#include "inspector/tensor/tensor.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <new>
#include <vector>

#include <sys/mman.h>

namespace parallax {
namespace {

Error no_memory(DType dtype, const Shape& shape, size_t bytes) {
  return out_of_memory("cannot allocate " + std::to_string(bytes) + " bytes for a tensor " +
                       std::string(name_of(dtype)) + shape.to_string());
}

std::shared_ptr<std::byte> allocate_strings(size_t count) {
  auto* strings = new (std::nothrow) std::string[count];
  if (strings == nullptr) return nullptr;
  return {reinterpret_cast<std::byte*>(strings), [strings](std::byte*) { delete[] strings; }};
}

// Large payloads are mapped one by one: freed, they go back to the system. On the heap they would lie between
// small blocks that live longer, and what a run holds at its end would grow with the number of values that came and
// went. The sanitizers watch only the heap.
#ifdef PARALLAX_SANITIZED
constexpr size_t kMappedBytes = SIZE_MAX;
#else
constexpr size_t kMappedBytes = size_t{256} << 10;
#endif

// The last mappings that were freed, for the next payloads of their sizes: a run's values come and go in the same few
// sizes, and to touch fresh pages costs more than to fill them. What is kept is little beside any model that has such
// payloads.
class FreedMappings {
 public:
  static FreedMappings& instance() {
    static auto* const mappings = new FreedMappings;  // payloads may outlive every static object
    return *mappings;
  }

  std::byte* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(kept_.rbegin(), kept_.rend(), [=](const auto& kept) { return kept.size() == bytes; });
    if (found == kept_.rend()) return nullptr;
    std::byte* memory = found->data();
    kept_.erase(std::next(found).base());
    kept_bytes_ -= bytes;
    return memory;
  }

  void give(std::byte* memory, size_t bytes) {
    const std::lock_guard lock(mutex_);
    while (!kept_.empty() && bytes <= kMostBytes && kept_bytes_ + bytes > kMostBytes) {
      ::munmap(kept_.front().data(), kept_.front().size());
      kept_bytes_ -= kept_.front().size();
      kept_.erase(kept_.begin());
    }
    if (bytes > kMostBytes) {
      ::munmap(memory, bytes);
      return;
    }
    kept_.push_back({memory, bytes});
    kept_bytes_ += bytes;
  }

 private:
  static constexpr size_t kMostBytes = size_t{16} << 20;
  std::mutex mutex_;
  std::vector<std::span<std::byte>> kept_;  // the last freed at the end
  size_t kept_bytes_ = 0;
};

std::shared_ptr<std::byte> map_bytes(size_t bytes) {
  std::byte* memory = FreedMappings::instance().take(bytes);
  if (memory == nullptr) {
    void* fresh = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) return nullptr;
    memory = static_cast<std::byte*>(fresh);
  }
  return {memory, [bytes](std::byte* pointer) { FreedMappings::instance().give(pointer, bytes); }};
}

std::shared_ptr<std::byte> allocate_bytes(size_t bytes) {
  const size_t rounded =
      (bytes / Tensor::kAlignment + 1) * Tensor::kAlignment;  // never zero, never past the end by a vector
  if (rounded >= kMappedBytes) {
    if (auto memory = map_bytes(rounded)) return memory;  // the number of mappings has a limit: then the heap
  }
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(Tensor::kAlignment, rounded));
  if (memory == nullptr) return nullptr;
  return {memory, [](std::byte* pointer) { std::free(pointer); }};
}

}  // namespace

Result<Tensor> Tensor::allocate(DType dtype, const Shape& shape) {
  PX_CHECK(dtype != DType::undefined);
  const size_t bytes = byte_size(dtype, shape.element_count());
  Tensor tensor;
  tensor.data_ =
      dtype == DType::string ? allocate_strings(static_cast<size_t>(shape.element_count())) : allocate_bytes(bytes);
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
