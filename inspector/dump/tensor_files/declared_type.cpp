// SPDX-License-Identifier: Apache-2.0
// Conversion to a declared floating type, in blocks.
#include "inspector/dump/tensor_files/declared_type.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "inspector/tensor/elements.h"

namespace parallax {

Result<Value> in_declared_type(const Value& value, const TypeInfo& declared, const std::string& context,
                               std::vector<std::string>& notes) {
  const DType type = declared.dtype;
  if (!value.is_tensor() || declared.kind != TypeInfo::Kind::tensor || !is_floating(type)) return value;
  const Tensor& given = value.tensor();
  const bool is_bits = type == DType::bfloat16 && given.dtype() == DType::uint16;
  if (given.dtype() == type || !(is_floating(given.dtype()) || is_bits)) return value;
  Tensor converted = PX_TRY_CONTEXT(context, Tensor::allocate(type, given.shape()));
  if (is_bits) {
    std::ranges::copy(given.view().bytes(), converted.mutable_data());
    notes.push_back(fmt::format("{} is bfloat16: the uint16 data is taken as its bits", context));
    return Value(std::move(converted));
  }
  constexpr int64_t kBlock = 4096;
  std::vector<double> numbers(kBlock);
  for (int64_t begin = 0; begin < given.element_count(); begin += kBlock) {
    const int64_t count = std::min(kBlock, given.element_count() - begin);
    const auto block = std::span(numbers).first(static_cast<size_t>(count));
    load_doubles(given, begin, block);
    store_doubles(converted, begin, block);
  }
  notes.push_back(
      fmt::format("{} is {}: the {} data is converted to it", context, name_of(type), name_of(given.dtype())));
  return Value(std::move(converted));
}

}  // namespace parallax
