// Integers are taken from the elements where a double does not hold them.
#include "inspector/workbench/extremes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

constexpr double kMostExact = 0x1p53;  // every integer up to here is a double

template <class Integer>
std::pair<std::string, std::string> integer_extremes(const TensorView& all) {
  auto least = static_cast<Integer>(element_as_int64(all, 0));
  Integer greatest = least;
  for (int64_t index = 1; index < all.element_count(); ++index) {
    const auto element = static_cast<Integer>(element_as_int64(all, index));
    least = std::min(least, element);
    greatest = std::max(greatest, element);
  }
  return {fmt::format("{}", least), fmt::format("{}", greatest)};
}

}  // namespace

std::pair<std::string, std::string> extremes_text(const TensorView* all, const TensorStatistics& statistics,
                                                  DType dtype, int digits) {
  const double least = statistics.min, greatest = statistics.max;
  const bool is_whole = is_integer(dtype) && std::isfinite(least) && std::isfinite(greatest);
  if (is_whole && std::abs(least) < kMostExact && std::abs(greatest) < kMostExact)
    return {fmt::format("{:.0f}", least), fmt::format("{:.0f}", greatest)};
  if (is_whole && all != nullptr && all->element_count() > 0)
    return dtype == DType::uint64 ? integer_extremes<uint64_t>(*all) : integer_extremes<int64_t>(*all);
  return {fmt::format("{:.{}g}", least, digits), fmt::format("{:.{}g}", greatest, digits)};
}

}  // namespace parallax
