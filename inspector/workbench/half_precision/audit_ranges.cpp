// SPDX-License-Identifier: Apache-2.0
// One pass over each tensor on bits of magnitudes, which are in the order of the numbers.
#include "inspector/workbench/half_precision/audit_ranges.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "inspector/tensor/float_formats.h"

namespace parallax::audit {
namespace {

constexpr int32_t kInfinityBits = 0x7F800000;
constexpr int32_t kSmallestNormalBits = 0x00800000;  // of float32
constexpr float kLowestMask = 3.0e38F;               // a mask plus a score may be a little above the lowest float32
constexpr size_t kBlock = 8192;                      // counters of 32 bits suffice for it

int32_t bits_of_magnitude(float value) { return static_cast<int32_t>(std::bit_cast<uint32_t>(value) & 0x7FFFFFFFU); }

struct BlockRange {
  int32_t largest = 0, smallest = kInfinityBits, beyond = 0, below = 0, not_finite = 0, lowest = 0;
};

BlockRange range_of_block(std::span<const float> values, const RangeLimits& limits) {
  const int32_t beyond = bits_of_magnitude(limits.largest), below = bits_of_magnitude(limits.smallest);
  const int32_t mask = bits_of_magnitude(kLowestMask);
  BlockRange range;
  for (const float value : values) {
    const auto bits = std::bit_cast<int32_t>(value);
    const int32_t magnitude = bits & 0x7FFFFFFF;
    const bool finite = magnitude < kInfinityBits;
    range.largest = std::max(range.largest, finite ? magnitude : 0);
    range.smallest = std::min(range.smallest, magnitude == 0 ? kInfinityBits : magnitude);
    range.beyond += (magnitude > beyond) & finite;
    range.below += (magnitude < below) & (magnitude >= kSmallestNormalBits);
    range.not_finite += !finite;
    range.lowest += (magnitude > mask) & finite & (bits < 0);
  }
  return range;
}

bool are_integers(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return !std::isfinite(value) || value == std::trunc(value); });
}

void add_rows(std::span<const float> values, size_t length, ValueRange& range) {
  for (size_t begin = 0; length > 0 && begin < values.size(); begin += length) {
    float squares = 0, sum = 0;
    for (const float value : values.subspan(begin, length)) {
      squares += value * value;
      sum += std::abs(value);
    }
    range.row_norm = std::max(range.row_norm, std::sqrt(static_cast<double>(squares)));
    range.row_sum = std::max(range.row_sum, static_cast<double>(sum));
    range.sum += static_cast<double>(sum);
    range.norm = std::hypot(range.norm, std::sqrt(static_cast<double>(squares)));
  }
}

void add_columns(std::span<const float> values, size_t rows, size_t columns, ValueRange& range) {
  std::vector<float> squares(columns);
  for (size_t begin = 0; rows * columns > 0 && begin < values.size(); begin += rows * columns) {
    std::ranges::fill(squares, 0.0F);
    for (size_t row = 0; row < rows; ++row) {
      const float* numbers = values.data() + begin + row * columns;
      for (size_t column = 0; column < columns; ++column) squares[column] += numbers[column] * numbers[column];
    }
    const float largest = *std::ranges::max_element(squares);
    range.column_norm = std::max(range.column_norm, std::sqrt(static_cast<double>(largest)));
  }
}

}  // namespace

RangeLimits limits_of(DType to) {
  const FloatLimits limits = float_limits(to);
  return {static_cast<float>(limits.max_finite), static_cast<float>(limits.min_normal)};
}

void add_tensor(const TensorView& tensor, const RangeLimits& limits, uint8_t wanted, ValueRange& range) {
  if (tensor.dtype != DType::float32) return;
  const auto values = tensor.as<float>();
  range.is_seen = true;
  range.elements = tensor.element_count();
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    const BlockRange part = range_of_block(block, limits);
    range.largest = std::max(range.largest, std::bit_cast<float>(part.largest));
    const float smallest = part.smallest >= kInfinityBits ? 0 : std::bit_cast<float>(part.smallest);
    if (range.smallest == 0 || (smallest > 0 && smallest < range.smallest)) range.smallest = smallest;
    range.beyond += part.beyond;
    range.below += part.below;
    range.not_finite += part.not_finite;
    range.lowest += part.lowest;
  }
  if ((wanted & kIntegers) != 0) range.has_integers = (range.count == 0 || range.has_integers) && are_integers(values);
  range.count += tensor.element_count();
  const size_t rank = tensor.shape.rank();
  const size_t length = rank == 0 ? 1 : static_cast<size_t>(tensor.shape[rank - 1]);
  range.last_dim = static_cast<int64_t>(length);
  if ((wanted & (kRows | kColumns)) != 0) add_rows(values, length, range);
  if ((wanted & kColumns) != 0)
    add_columns(values,
                rank < 2 ? values.size() / std::max<size_t>(length, 1) : static_cast<size_t>(tensor.shape[rank - 2]),
                length, range);
}

CaptureLevel RangeObserver::wants(const ValueInfo& value_info) {
  return value_info.role == ValueInfo::Role::initializer ? CaptureLevel::none : CaptureLevel::stats;
}

Status RangeObserver::observe(const Observation& observation) {
  const auto id = static_cast<size_t>(observation.value_info.id);
  if (id >= ranges_.size() || !observation.value.is_tensor()) return {};
  ValueRange& range = ranges_[id];
  const TensorView& tensor = observation.value.tensor().view();
  const bool is_alias = observation.alias_of != nullptr && wanted_[id] == kNothingElse && !range.is_seen;
  const auto other = is_alias ? static_cast<size_t>(observation.alias_of->id) : ranges_.size();
  // A value with the payload of an earlier one, seen once in this run, has the same range.
  if (other < ranges_.size() && ranges_[other].is_seen && ranges_[other].count == tensor.element_count() &&
      ranges_[other].elements == tensor.element_count()) {
    range = ranges_[other];
    return {};
  }
  if (!tensor.device.is_host())
    return usage_error("the values of an audit must be on the host; watch the model with --with cpu or reference");
  add_tensor(tensor, limits_, wanted_[id], range);
  return {};
}

std::vector<ValueRange> RangeObserver::take() {
  std::vector<ValueRange> taken(ranges_.size());
  taken.swap(ranges_);
  return taken;
}

}  // namespace parallax::audit
