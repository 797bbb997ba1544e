// SPDX-License-Identifier: Apache-2.0
// One pass over the strings, where there is a budget.
#include "inspector/tensor/string_texts.h"

#include "inspector/base/memory_budget.h"

namespace parallax {
namespace {

constexpr size_t kInline = 15;  // bytes within a std::string

int64_t text_bytes(std::span<const std::string> strings) {
  size_t bytes = 0;
  for (const std::string& text : strings) {
    if (text.capacity() > kInline) bytes += text.capacity() + 1;
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace

Result<Tensor> with_texts_charged(Tensor tensor) {
  constexpr int64_t kSmall = int64_t{1} << 20;
  if (MemoryBudget::current() == nullptr || tensor.dtype() != DType::string || tensor.storage().use_count() > 1)
    return tensor;
  const int64_t bytes = text_bytes(tensor.as<std::string>());
  if (bytes < kSmall) return tensor;
  const std::string what = "texts of a tensor string" + tensor.shape().to_string();
  auto owner = PX_TRY(MemoryBudget::reserved_with(tensor.storage(), bytes, what));
  return Tensor::wrap(DType::string, tensor.shape(),
                      std::shared_ptr<const std::byte>(std::move(owner), tensor.view().data));
}

}  // namespace parallax
