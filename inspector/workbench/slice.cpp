// SPDX-License-Identifier: Apache-2.0
// Reading slices and copying what they select.
#include "inspector/workbench/slice.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "inspector/base/text.h"
#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

Error bad_slice(std::string_view text, std::string_view problem) {
  return usage_error(fmt::format("--slice '{}': {}", text, problem));
}

Result<std::optional<int64_t>> parse_part(std::string_view whole, std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (text.empty()) return std::optional<int64_t>();
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return bad_slice(whole, fmt::format("'{}' is not a whole number", text));
  return std::optional(number);
}

Result<AxisSlice> parse_index(std::string_view whole, std::string_view text, size_t axis, int64_t size) {
  const auto index = PX_TRY(parse_part(whole, text));
  if (!index.has_value()) return bad_slice(whole, "an index is missing");
  const int64_t at = *index < 0 ? *index + size : *index;
  if (at < 0 || at >= size)
    return bad_slice(whole, fmt::format("index {} is outside axis {} of size {}", *index, axis, size));
  return AxisSlice{at, 1, 1, true};
}

// Bounds beyond the axis are clipped, as in numpy.
Result<AxisSlice> parse_range(std::string_view whole, std::string_view text, int64_t size) {
  const auto parts = split(text, ':');
  if (parts.size() > 3) return bad_slice(whole, "a range is start:stop:step");
  const auto start = PX_TRY(parse_part(whole, parts[0]));
  const auto stop = PX_TRY(parse_part(whole, parts[1]));
  const int64_t step = (parts.size() == 3 ? PX_TRY(parse_part(whole, parts[2])) : std::nullopt).value_or(1);
  if (step == 0 || step < -size - 1 || step > INT64_MAX / 2)
    return bad_slice(whole, "a step must be a number other than 0 within the axis");
  const auto location = [&](int64_t bound) { return bound < 0 ? std::max<int64_t>(bound + size, -1) : bound; };
  const int64_t low = step > 0 ? 0 : -1;
  const int64_t high = step > 0 ? size : size - 1;
  const int64_t first = start.has_value() ? std::clamp(location(*start), low, high) : (step > 0 ? 0 : size - 1);
  const int64_t last = stop.has_value() ? std::clamp(location(*stop), low, high) : (step > 0 ? size : -1);
  const int64_t count = step > 0 ? (last - first + step - 1) / step : (first - last - step - 1) / -step;
  return AxisSlice{first, step, std::max<int64_t>(0, count), false};
}

}  // namespace

Result<std::vector<AxisSlice>> parse_slice(std::string_view text, const Shape& shape) {
  std::vector<std::string_view> parts = text.empty() ? std::vector<std::string_view>{} : split(text, ',');
  const auto dots = std::find(parts.begin(), parts.end(), "...");
  const size_t named = parts.size() - (dots == parts.end() ? 0 : 1);
  if (named > shape.rank()) return bad_slice(text, fmt::format("{} parts for a tensor {}", named, shape.to_string()));
  const size_t whole_axes = shape.rank() - named;
  const auto at = dots == parts.end() ? parts.end() : parts.erase(dots);
  parts.insert(at, whole_axes, ":");
  std::vector<AxisSlice> slices;
  for (size_t axis = 0; axis < parts.size(); ++axis) {
    const bool is_range = parts[axis].find(':') != std::string_view::npos;
    slices.push_back(is_range ? PX_TRY(parse_range(text, parts[axis], shape[axis]))
                              : PX_TRY(parse_index(text, parts[axis], axis, shape[axis])));
  }
  return slices;
}

Result<Tensor> take_slice(const TensorView& tensor, const std::vector<AxisSlice>& slices) {
  PX_CHECK(slices.size() == tensor.shape.rank());
  std::vector<int64_t> kept;
  std::vector<int64_t> strides(slices.size(), 1);
  for (size_t axis = slices.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * tensor.shape[axis];
  for (const AxisSlice& slice : slices) {
    if (!slice.drops_axis) kept.push_back(slice.count);
  }
  const Shape shape = PX_TRY(Shape::create(kept));
  Tensor result = PX_TRY(Tensor::zeros(tensor.dtype, shape));
  const int bits = bits_of(tensor.dtype);
  std::vector<int64_t> index(slices.size(), 0);
  for (int64_t position = 0; position < result.element_count(); ++position) {
    int64_t source = 0;
    for (size_t axis = 0; axis < slices.size(); ++axis)
      source += (slices[axis].start + index[axis] * slices[axis].step) * strides[axis];
    if (tensor.dtype == DType::string) {
      result.mutable_as<std::string>()[static_cast<size_t>(position)] =
          tensor.as<std::string>()[static_cast<size_t>(source)];
    } else if (bits < 8) {
      store_packed(result.mutable_data(), bits, position, load_packed(tensor.data, bits, source));
    } else {
      const int64_t size = bits / 8;
      std::memcpy(result.mutable_data() + position * size, tensor.data + source * size, static_cast<size_t>(size));
    }
    for (size_t axis = slices.size(); axis-- > 0;) {
      if (++index[axis] < slices[axis].count) break;
      index[axis] = 0;
    }
  }
  return result;
}

}  // namespace parallax
