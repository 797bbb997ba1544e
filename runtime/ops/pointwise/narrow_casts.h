// SPDX-License-Identifier: Apache-2.0
// Conversions from and to 8-bit floats and elements of 4 and 2 bits on a GPU, by tables that the host's own decoding
// and rounding make: both give the same bits.
#pragma once

#include <bit>

#include "inspector/tensor/elements.h"
#include "inspector/tensor/float_formats.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/device/gpu/element_of.h"
#include "runtime/ops/op_context.h"

namespace parallax::runtime {

inline bool is_narrow_quantized(DType dtype) {
  return is_sub_byte(dtype) || (is_floating(dtype) && bits_of(dtype) <= 8);
}

// The values of all bit patterns.
inline std::vector<double> values_of_quantized(DType dtype) {
  std::vector<double> values(size_t{1} << bits_of(dtype));
  for (size_t quantized = 0; quantized < values.size(); ++quantized) {
    const auto byte = static_cast<std::byte>(quantized);
    values[quantized] = load_element<double>(dtype, &byte, 0);
  }
  return values;
}

template <class Device>
struct DecodedElement {
  Elements<Device, const uint8_t> bytes;
  Elements<Device, const double> values;
  int bits;
  PX_HD double operator()(int64_t i) const {
    const int64_t bit = i * bits;
    return values[(bytes[bit / 8] >> (bit % 8)) & ((1 << bits) - 1)];
  }
};

// A double's rank in their order, in which -0 comes before 0.
PX_HD inline int64_t rank_in_order(double value) {
  const auto bits = std::bit_cast<int64_t>(value);
  return bits < 0 ? static_cast<int64_t>(INT64_MIN - bits) : bits;
}

struct FloatRounding {
  bool saturate = true;
  E8M0Rounding mode = E8M0Rounding::up;
};

// Rounding to a format as a step function: results[i] is the result of numbers from bounds[i] on, below bounds[i + 1].
struct RoundingSteps {
  Ints bounds, results;
  int64_t nan_bits[2];  // without and with a sign
};

inline RoundingSteps rounding_steps(DType dtype, const FloatRounding& rounding) {
  const auto result_at = [&](int64_t location) -> int64_t {
    const auto bits = location < 0 ? static_cast<int64_t>(INT64_MIN - location) : location;
    return small_float_from_double(dtype, std::bit_cast<double>(bits), rounding.saturate, rounding.mode);
  };
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  RoundingSteps steps;
  steps.nan_bits[0] = small_float_from_double(dtype, nan, rounding.saturate, rounding.mode);
  steps.nan_bits[1] = small_float_from_double(dtype, -nan, rounding.saturate, rounding.mode);
  // Between neighbors of the format (and the ends of the doubles) the result changes once, and where is found by
  // halving.
  std::vector<int64_t> locations{rank_in_order(-infinity), rank_in_order(-0.0), 0, rank_in_order(infinity)};
  for (double value : values_of_quantized(dtype)) {
    if (value == value) locations.push_back(rank_in_order(value));
  }
  std::sort(locations.begin(), locations.end());
  steps.bounds.push_back(locations.front());
  steps.results.push_back(result_at(locations.front()));
  const auto change_between = [&](int64_t low, int64_t high) {
    while (result_at(low) != result_at(high)) {
      int64_t same = low, other = high;
      while (static_cast<uint64_t>(other) - static_cast<uint64_t>(same) > 1) {
        const auto middle = static_cast<int64_t>(static_cast<uint64_t>(same) +
                                                 (static_cast<uint64_t>(other) - static_cast<uint64_t>(same)) / 2);
        (result_at(middle) == result_at(low) ? same : other) = middle;
      }
      steps.bounds.push_back(other);
      steps.results.push_back(result_at(other));
      low = other;
    }
  };
  for (size_t i = 0; i + 1 < locations.size(); ++i) change_between(locations[i], locations[i + 1]);
  return steps;
}

template <class Device>
struct RoundedElement {
  Source in;
  Elements<Device, const int64_t> bounds, results;
  int64_t count;
  int64_t nan_bits, negative_nan_bits;
  PX_HD int64_t operator()(int64_t i) const {
    const double value = element_of<Device, double>(in, i);
    const int64_t location = rank_in_order(value);
    if (value != value) return location < 0 ? negative_nan_bits : nan_bits;
    int64_t low = 0, high = count;  // the last bound that is not above it
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (bounds[middle] <= location ? low : high) = middle;
    }
    return results[low];
  }
};

// Integers of few bits: the nearest, halves to even, of floats; the last bits of integers.
template <class Device>
struct WrappedElement {
  Source in;
  bool is_float;
  PX_HD int64_t operator()(int64_t i) const {
    if (!is_float) return element_of<Device, int64_t>(in, i);
    return storage::from_storage<int64_t>(std::nearbyint(element_of<Device, double>(in, i)));
  }
};

// Bytes of several elements.
template <class Element>
struct PackedQuantized {
  Element element;
  int bits;
  int64_t count;
  PX_HD int64_t operator()(int64_t byte) const {
    int64_t packed = 0;
    const int64_t per_byte = 8 / bits;
    for (int64_t part = 0; part < per_byte; ++part) {
      const int64_t i = byte * per_byte + part;
      if (i < count) packed |= (element(i) & ((1 << bits) - 1)) << (part * bits);
    }
    return packed;
  }
};

// x as doubles, exactly.
template <class Device>
Result<TensorView> decoded(OpContext<Device>& op, const TensorView& x) {
  const MutableView wide = PX_TRY(op.scratch(DType::float64, x.shape));
  const auto values = PX_TRY(op.table(values_of_quantized(x.dtype)));
  const DecodedElement<Device> element{{reinterpret_cast<const uint8_t*>(x.data)}, values, bits_of(x.dtype)};
  tabulate<double>(op.queue(), element, wide);
  return TensorView(wide);
}

template <class Device, class Element>
void store_quantized(OpContext<Device>& op, const Element& element, const MutableView& y) {
  const auto bytes = static_cast<int64_t>(byte_size(y.dtype, y.element_count()));
  const MutableView out{DType::uint8, Shape{bytes}, y.data, y.device};
  tabulate<int64_t>(op.queue(), PackedQuantized<Element>{element, bits_of(y.dtype), y.element_count()}, out);
}

// y, of a narrow type, from x, of any other.
template <class Device>
Status encode(OpContext<Device>& op, const TensorView& x, const MutableView& y, const FloatRounding& rounding) {
  if (y.element_count() == 0) return {};
  if (!is_floating(y.dtype)) {
    store_quantized(op, WrappedElement<Device>{source_of(x), is_floating(x.dtype)}, y);
    return {};
  }
  const RoundingSteps steps = rounding_steps(y.dtype, rounding);
  const auto bounds = PX_TRY(op.table(steps.bounds));
  const auto results = PX_TRY(op.table(steps.results));
  const RoundedElement<Device> element{source_of(x),      bounds,           results, steps.bounds.size(),
                                       steps.nan_bits[0], steps.nan_bits[1]};
  store_quantized(op, element, y);
  return {};
}

}  // namespace parallax::runtime
