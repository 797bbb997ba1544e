// SPDX-License-Identifier: Apache-2.0
// Reading, rounding and writing of GroupQueryAttention's caches.
#include "runtime/ops/contrib/cache.h"

#include <algorithm>
#include <cmath>

#include "inspector/base/thread_pool.h"
#include "inspector/model/rule_errors.h"
#include "inspector/tensor/elements.h"
#include "inspector/tensor/float_formats.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/growable.h"
#include "runtime/ops/contributed.h"

namespace parallax::runtime {

Result<CacheFormat> CacheFormat::create(const OpCall& op, int64_t past, int64_t scale, const std::string& type,
                                        int64_t heads, int64_t size) {
  CacheFormat format;
  format.size_ = size;
  format.dtype_ = op.has_input(past) ? op.input(past).dtype() : op.input(0).dtype();
  const bool is_plain = is_floating(format.dtype_) && bits_of(format.dtype_) >= 16;
  if (type == "NONE") {
    if (is_plain) return format;
    return wrong_value("the type of a cache without quantization", name_of(format.dtype_),
                       "be floating of 16 bits or more");
  }
  if (type != "PER_TENSOR" && type != "PER_CHANNEL")
    return wrong_value("the quantization of the cache", type, "be NONE, PER_TENSOR or PER_CHANNEL");
  if (is_plain) return unsupported("a quantized cache has no past that tells its type; give one, of length 0 at first");
  if (!op.has_input(scale)) return wrong_input(op, scale, "be given for a quantized cache");
  const int64_t count = op.input(scale).element_count();
  if (count != 1 && (type == "PER_TENSOR" || count != heads * size))
    return wrong_input(op, scale, "be one number, or have {} for PER_CHANNEL: {} heads of {} elements", heads * size,
                       heads, size);
  format.scale_input_ = scale;
  format.scale_count_ = count;
  format.int4_values_ = format.dtype_ == DType::uint8;
  const int64_t bits = op.find_integer("kv_cache_bit_width").value_or(format.int4_values_ ? 4 : 8);
  if (bits != (format.int4_values_ ? 4 : 8) || (format.int4_values_ && size % 2 != 0))
    return wrong_attribute("kv_cache_bit_width", bits,
                           "be {} for a cache of {}, of even head size where it is 4 (it is {})",
                           format.int4_values_ ? 4 : 8, name_of(format.dtype_), size);
  return format;
}

float CacheFormat::scale_of(int64_t head, int64_t element) const {
  return scales_.size() == 1 ? scales_[0] : scales_.data()[head * size_ + element];
}

// A number in units of its scale, as the cache holds it.
float CacheFormat::rounded(float number) const {
  constexpr float kGreatestFloat8 = 448;  // of float8e4m3fn
  if (is_floating(dtype_)) {
    const auto quantized = small_float_from_double(
        dtype_, static_cast<double>(std::clamp(number, -kGreatestFloat8, kGreatestFloat8)), true);
    std::byte bits{};
    store_packed(&bits, 8, 0, quantized);
    return load_element<float>(dtype_, &bits, 0);
  }
  const float limit = int4_values_ ? 7.0F : 127.0F;
  return std::clamp(std::nearbyint(number), -limit - 1, limit);
}

Result<std::vector<float>> CacheFormat::numbers_of_past(const OpCall& op, int64_t past, const CacheRows& rows) const {
  const Tensor& given = op.input(past);
  const Ints dims(given.shape());
  if (dims.size() != 4 || dims[0] != rows.batch || dims[1] != rows.heads ||
      dims[3] * (int4_values_ ? 2 : 1) != rows.size || dims[2] > rows.capacity)
    return wrong_input(op, past, "be [{},{},at most {},{}], to be joined with the new tokens", rows.batch, rows.heads,
                       rows.capacity, rows.size / (int4_values_ ? 2 : 1));
  std::vector<float> numbers(static_cast<size_t>(given.element_count()));
  const int64_t matrix = element_strides(given)[1], count = dims[2] * dims[3];
  for (int64_t head = 0; head < dims[0] * dims[1]; ++head)
    load_block<float>(given.dtype(), given.view().data, head * matrix, 1, count, numbers.data() + head * count);
  if (!int4_values_) return numbers;
  std::vector<float> both;
  for (float byte : numbers) {
    const auto bits = static_cast<int>(byte);
    both.push_back(static_cast<float>((bits & 15) - 8));
    both.push_back(static_cast<float>((bits >> 4) - 8));
  }
  return both;
}

Status CacheFormat::set_output(OpContext<Cpu>& op, int64_t output, const Tensor& numbers) const {
  if (!op.wants_output(output)) return {};
  const float* values = reinterpret_cast<const float*>(numbers.view().data);
  Ints dims(numbers.shape());
  const int64_t count = numbers.element_count();
  if (!int4_values_) {
    const MutableView out = PX_TRY(op.make_output(output, dtype_, numbers.shape()));
    if (is_floating(dtype_) && bits_of(dtype_) == 8) {
      for (int64_t i = 0; i < count; ++i)
        store_packed(out.data, 8, i, small_float_from_double(dtype_, static_cast<double>(values[i]), true));
    } else {
      store_block<float>(dtype_, out.data, 0, count, values);
    }
    return {};
  }
  dims[3] /= 2;
  const MutableView out = PX_TRY(op.make_output(output, dtype_, shape_of(dims)));
  for (int64_t i = 0; i < count / 2; ++i) {
    const auto low = static_cast<int64_t>(values[2 * i]) + 8, high = static_cast<int64_t>(values[2 * i + 1]) + 8;
    const int64_t byte = low + 16 * high;
    store_block<int64_t>(dtype_, out.data, i, 1, &byte);
  }
  return {};
}

Result<Tensor> CacheFormat::extend(OpContext<Cpu>& op, int64_t past, int64_t output, const Tensor& fresh,
                                   const CacheRows& rows) {
  if (is_quantized()) scales_ = floats_of(op.input(scale_input_));
  std::vector<float> old;
  if (op.has_input(past)) old = PX_TRY(numbers_of_past(op, past, rows));
  const int64_t old_rows = op.has_input(past) ? op.input(past).shape()[2] : 0;
  const Shape shape = PX_TRY(shape_of({rows.batch, rows.heads, rows.capacity, rows.size}));
  Tensor cache = PX_TRY(op.queue().allocate(DType::float32, shape));
  float* numbers = reinterpret_cast<float*>(writable(cache).data);
  const float* added = reinterpret_cast<const float*>(fresh.view().data);
  parallel_for(rows.batch * rows.heads, rows.capacity * rows.size, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      float* to = numbers + head * rows.capacity * rows.size;
      const int64_t kept = rows.locations.data()[head / rows.heads].past * rows.size;
      const int64_t fresh_count = rows.sequence * rows.size;
      std::copy_n(old.data() + head * old_rows * rows.size, kept, to);
      const float* from = added + head * fresh_count;
      for (int64_t i = 0; i < fresh_count; ++i) {
        to[kept + i] = scales_.empty() ? from[i] : rounded(from[i] / scale_of(head % rows.heads, i % rows.size));
      }
      std::fill(to + kept + fresh_count, to + rows.capacity * rows.size, 0.0F);
    }
  });
  PX_TRY(set_output(op, output, cache));
  for (int64_t i = 0; !scales_.empty() && i < cache.element_count(); ++i)
    numbers[i] *= scale_of(i / rows.size / rows.capacity % rows.heads, i % rows.size);
  return cache;
}

}  // namespace parallax::runtime
