// SPDX-License-Identifier: Apache-2.0
// Integers are taken from the elements where a double does not hold them.
#include "inspector/workbench/extremes.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/render/report_json.h"
#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

constexpr double kMostExact = 0x1p53;  // every integer up to here is a double

bool is_whole(const TensorStatistics& statistics, DType dtype) {
  return is_integer(dtype) && std::isfinite(statistics.min) && std::isfinite(statistics.max);
}

bool is_exact(const TensorStatistics& statistics) {
  return std::abs(statistics.min) < kMostExact && std::abs(statistics.max) < kMostExact;
}

template <class Integer>
IntegerExtremes extremes_of(const TensorView& all) {
  auto least = static_cast<Integer>(element_as_int64(all, 0));
  Integer greatest = least;
  for (int64_t index = 1; index < all.element_count(); ++index) {
    const auto element = static_cast<Integer>(element_as_int64(all, index));
    least = std::min(least, element);
    greatest = std::max(greatest, element);
  }
  return {static_cast<int64_t>(least), static_cast<int64_t>(greatest), std::is_unsigned_v<Integer>};
}

// `use` gets an int64_t or a uint64_t.
template <class Use>
auto with_sign(int64_t integer, const IntegerExtremes& of, const Use& use) {
  return of.is_unsigned ? use(static_cast<uint64_t>(integer)) : use(integer);
}

}  // namespace

std::optional<IntegerExtremes> integer_extremes(const TensorView& all, const TensorStatistics& statistics) {
  if (!is_whole(statistics, all.dtype) || is_exact(statistics) || all.element_count() == 0) return std::nullopt;
  return all.dtype == DType::uint64 ? extremes_of<uint64_t>(all) : extremes_of<int64_t>(all);
}

std::pair<std::string, std::string> extremes_text(const std::optional<IntegerExtremes>& integers,
                                                  const TensorStatistics& statistics, DType dtype, int digits) {
  if (integers.has_value()) {
    const auto text = [](auto integer) { return fmt::format("{}", integer); };
    return {with_sign(integers->least, *integers, text), with_sign(integers->greatest, *integers, text)};
  }
  if (is_whole(statistics, dtype) && is_exact(statistics))
    return {fmt::format("{:.0f}", statistics.min), fmt::format("{:.0f}", statistics.max)};
  return {fmt::format("{:.{}g}", statistics.min, digits), fmt::format("{:.{}g}", statistics.max, digits)};
}

nlohmann::ordered_json exact_statistics_json(const std::optional<IntegerExtremes>& integers,
                                             const TensorStatistics& statistics) {
  nlohmann::ordered_json json = statistics_json(statistics);
  if (!integers.has_value()) return json;
  const auto number = [](auto integer) { return nlohmann::ordered_json(integer); };
  json["min"] = with_sign(integers->least, *integers, number);
  json["max"] = with_sign(integers->greatest, *integers, number);
  return json;
}

}  // namespace parallax
