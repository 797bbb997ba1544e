// Storing with one rounding, or wrapping to the integer's width.
#include "reference/ops/numbers.h"

#include <limits>

namespace parallax::reference {
namespace {

template <class Stored>
void store_cast(Tensor& tensor, int64_t begin, std::span<const int64_t> values) {
  auto* target = reinterpret_cast<Stored*>(tensor.mutable_data()) + begin;
  for (size_t index = 0; index < values.size(); ++index) target[index] = static_cast<Stored>(values[index]);
}

}  // namespace

int64_t truncate_to_int64(double value) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (!(value >= -kLimit && value < kLimit)) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

void store_rounded(Tensor& tensor, int64_t begin, std::span<const double> values) {
  PX_CHECK(is_floating(tensor.dtype()));
  store_doubles(tensor, begin, values);
}

void store_wrapped(Tensor& tensor, int64_t begin, std::span<const int64_t> values) {
  switch (tensor.dtype()) {
    case DType::int8:
    case DType::uint8:
      return store_cast<uint8_t>(tensor, begin, values);
    case DType::int16:
    case DType::uint16:
      return store_cast<uint16_t>(tensor, begin, values);
    case DType::int32:
    case DType::uint32:
      return store_cast<uint32_t>(tensor, begin, values);
    case DType::int64:
    case DType::uint64:
    case DType::bool_:
    case DType::int4:
    case DType::uint4:
    case DType::int2:
    case DType::uint2:
      return store_int64s(tensor, begin, values);
    default:
      PX_CHECK(false && "an integer type");
  }
}

}  // namespace parallax::reference
