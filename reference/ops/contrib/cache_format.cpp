// SPDX-License-Identifier: Apache-2.0
// Reading, rounding and writing of quantized caches.
#include "reference/ops/contrib/cache_format.h"

#include <algorithm>

#include "inspector/model/rule_errors.h"
#include "inspector/tensor/float_formats.h"
#include "reference/kernels/numbers.h"
#include "reference/ops/quantized.h"

namespace parallax::reference {

Result<CacheFormat> CacheFormat::create(const OpContext& op, size_t past, size_t scale, const std::string& type,
                                        int64_t heads, int64_t size) {
  CacheFormat format;
  format.size_ = size;
  format.dtype_ = op.has_input(past) ? op.input(past).dtype() : op.input(0).dtype();
  const bool plain = format.dtype_ == DType::float32 || format.dtype_ == DType::float16 ||
                     format.dtype_ == DType::bfloat16 || format.dtype_ == DType::float64;
  if (type == "NONE") {
    if (plain) return format;
    return wrong_value("the type of a cache without quantization", name_of(format.dtype_),
                       "be floating of 16 bits or more");
  }
  if (type != "PER_TENSOR" && type != "PER_CHANNEL")
    return as_invalid_model(wrong_value("the quantization of the cache", type, "be NONE, PER_TENSOR or PER_CHANNEL"));
  if (plain) return unsupported("a quantized cache has no past that tells its type; give one, of length 0 at first");
  if (!op.has_input(scale)) return wrong_input(op, scale, "be given for a quantized cache");
  const int64_t count = op.input(scale).element_count();
  if (count != 1 && (type == "PER_TENSOR" || count != heads * size))
    return wrong_input(op, scale, "be one number, or have {} for PER_CHANNEL: {} heads of {} elements", heads * size,
                       heads, size);
  const Numbers<double> scales(op.input(scale));
  format.scales_.assign(scales.span().begin(), scales.span().end());
  format.int4_values_ = format.dtype_ == DType::uint8;
  const int64_t bits = op.find_int("kv_cache_bit_width").value_or(format.int4_values_ ? 4 : 8);
  if (bits != (format.int4_values_ ? 4 : 8))
    return wrong_attribute("kv_cache_bit_width", bits, "be {} for a cache of {}", format.int4_values_ ? 4 : 8,
                           name_of(format.dtype_));
  if (format.int4_values_ && size % 2 != 0)
    return wrong_value("the size of a head", size, "be even, as two values of 4 bits share a byte");
  return format;
}

Result<HeadBlock> CacheFormat::read(const OpContext& op, size_t past) const {
  HeadBlock block = PX_TRY(read_head_block(op, past));
  if (!int4_values_) return block;
  const auto bytes = op.input(past).as<uint8_t>();
  block.numbers.clear();
  for (unsigned byte : bytes) {
    block.numbers.push_back(static_cast<double>(byte & 15) - 8);
    block.numbers.push_back(static_cast<double>(byte >> 4) - 8);
  }
  block.size *= 2;
  return block;
}

double CacheFormat::scale_of(int64_t position, const HeadBlock& block) const {
  if (scales_.size() == 1) return scales_[0];
  const int64_t head = position / block.size / block.sequence % block.heads;
  return scales_[static_cast<size_t>(head * size_ + position % block.size)];
}

void CacheFormat::to_cache(HeadBlock& block) const {
  constexpr double kGreatestFloat8 = 448;  // of float8e4m3fn
  if (scales_.empty()) return;
  for (size_t at = 0; at < block.numbers.size(); ++at) {
    double& value = block.numbers[at];
    value /= scale_of(static_cast<int64_t>(at), block);
    if (is_floating(dtype_)) {
      value = round_to_dtype(dtype_, std::clamp(value, -kGreatestFloat8, kGreatestFloat8));
    } else {
      value = static_cast<double>(quantize_number(value, 0, int4_values_ ? DType::int4 : DType::int8));
    }
  }
}

void CacheFormat::from_cache(HeadBlock& block) const {
  if (scales_.empty()) return;
  for (size_t at = 0; at < block.numbers.size(); ++at) {
    block.numbers[at] *= scale_of(static_cast<int64_t>(at), block);
  }
}

Status CacheFormat::set_output(OpContext& op, size_t index, const HeadBlock& cache) const {
  if (scales_.empty() || is_floating(dtype_)) {
    return op.set_output(index, dtype_, cache.shape(), std::span<const double>(cache.numbers));
  }
  std::vector<int64_t> numbers;
  for (size_t at = 0; at < cache.numbers.size(); at += int4_values_ ? 2 : 1) {
    const auto value = static_cast<int64_t>(cache.numbers[at]);
    numbers.push_back(int4_values_ ? (value + 8) + 16 * (static_cast<int64_t>(cache.numbers[at + 1]) + 8) : value);
  }
  const Shape shape{cache.batch, cache.heads, cache.sequence, int4_values_ ? cache.size / 2 : cache.size};
  return op.set_output(index, dtype_, shape, std::span<const int64_t>(numbers));
}

}  // namespace parallax::reference
