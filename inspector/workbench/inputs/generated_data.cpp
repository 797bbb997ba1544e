// SPDX-License-Identifier: Apache-2.0
// Random and regular fillings, one function a kind of use.
#include "inspector/workbench/inputs/generated_data.h"

#include <cmath>
#include <functional>
#include <numbers>
#include <random>

#include <fmt/format.h>

#include "inspector/base/hash.h"
#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

using Random = std::mt19937_64;  // its sequence is fixed by the C++ standard

double uniform(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

// Box-Muller, one of the pair: std::normal_distribution differs between libraries.
double normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - uniform(random)));
  return radius * std::cos(2 * std::numbers::pi * uniform(random));
}

int64_t integer_between(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(std::floor(uniform(random) * static_cast<double>(high - low + 1)));
}

void fill_doubles(Tensor& tensor, const std::function<double(int64_t)>& value_at) {
  constexpr int64_t kBlock = 4096;
  std::vector<double> block(kBlock);
  for (int64_t begin = 0; begin < tensor.element_count(); begin += kBlock) {
    const int64_t count = std::min(kBlock, tensor.element_count() - begin);
    for (int64_t index = 0; index < count; ++index) block[static_cast<size_t>(index)] = value_at(begin + index);
    store_doubles(tensor, begin, std::span(block).first(static_cast<size_t>(count)));
  }
}

int64_t last_dim(const Shape& shape) { return shape.rank() == 0 ? 1 : std::max<int64_t>(1, shape[shape.rank() - 1]); }

std::string fill_range(Tensor& tensor, std::pair<double, double> range, Random& random) {
  const double low = range.first;
  const double high = range.second;
  if (is_floating(tensor.dtype()) || is_complex(tensor.dtype())) {
    fill_doubles(tensor, [&](int64_t) { return low + (high - low) * uniform(random); });
    return fmt::format("uniform {}..{}", low, high);
  }
  const auto first = static_cast<int64_t>(std::ceil(low));
  const auto last = static_cast<int64_t>(std::floor(high));
  fill_doubles(tensor, [&](int64_t) { return static_cast<double>(integer_between(random, first, last)); });
  return fmt::format("integers {}..{}", first, last);
}

// Each row along the last axis starts with ones, at least half of it: no row is masked wholly, not even under a causal
// mask.
std::string fill_mask(Tensor& tensor, Random& random) {
  const int64_t width = last_dim(tensor.shape());
  int64_t ones = width;
  fill_doubles(tensor, [&](int64_t index) {
    if (index % width == 0) ones = integer_between(random, (width + 1) / 2, width);
    return index % width < ones ? 1.0 : 0.0;
  });
  return "mask: ones, then zeros";
}

std::string fill_positions(Tensor& tensor, int64_t limit) {
  const int64_t width = last_dim(tensor.shape());
  fill_doubles(tensor,
               [&](int64_t index) { return static_cast<double>(limit > 0 ? index % width % limit : index % width); });
  return "0, 1, 2, ... along the last axis";
}

// For Reshape (limit 1) one dimension takes all, so that it fits any data; for others every dimension is 1.
std::string fill_shape(Tensor& tensor, bool is_reshape) {
  fill_doubles(tensor, [&](int64_t index) { return is_reshape && index == 0 ? -1.0 : 1.0; });
  return is_reshape ? "[-1, 1, ...]" : "ones";
}

// Along `axis`, so that a scatter along it writes no element twice.
std::string fill_indices_along(Tensor& tensor, const InputUse& use) {
  const Shape& shape = tensor.shape();
  const auto rank = static_cast<int64_t>(shape.rank());
  const int64_t axis = use.axis < 0 ? use.axis + rank : use.axis;
  const int64_t limit = std::max<int64_t>(1, use.limit);
  int64_t stride = 1;
  for (int64_t inner = axis + 1; inner < rank; ++inner)
    stride *= std::max<int64_t>(1, shape[static_cast<size_t>(inner)]);
  const int64_t size = axis >= 0 && axis < rank ? std::max<int64_t>(1, shape[static_cast<size_t>(axis)]) : 1;
  fill_doubles(tensor, [&](int64_t index) { return static_cast<double>(index / stride % size % limit); });
  return fmt::format("0, 1, 2, ... along axis {}", use.axis);
}

std::string fill_tuples(Tensor& tensor, int64_t limit) {
  const int64_t width = last_dim(tensor.shape());
  fill_doubles(tensor, [&](int64_t index) { return static_cast<double>(index / width % std::max<int64_t>(1, limit)); });
  return "rows of 0, of 1, of 2, ...";
}

// The first part takes what is left over.
std::string fill_parts(Tensor& tensor, int64_t total) {
  const int64_t count = std::max<int64_t>(1, tensor.element_count());
  const int64_t part = total < 0 ? 1 : total / count;
  const int64_t rest = total < 0 ? 0 : total - part * count;
  fill_doubles(tensor, [&](int64_t index) { return static_cast<double>(index == 0 ? part + rest : part); });
  return total < 0 ? "all 1" : fmt::format("{} together", total);
}

std::string fill_scales(Tensor& tensor) {
  const bool has_channels = tensor.element_count() > 2;
  fill_doubles(tensor, [&](int64_t index) { return has_channels && index < 2 ? 1.0 : 2.0; });
  return has_channels ? "1, 1, then 2" : "all 2";
}

std::string fill_listed(Tensor& tensor, const std::vector<int64_t>& elements) {
  const auto count = static_cast<int64_t>(elements.size());
  fill_doubles(tensor,
               [&](int64_t index) { return static_cast<double>(elements[static_cast<size_t>(index % count)]); });
  return fmt::format("from {}", fmt::join(elements, ", "));
}

// A few of them, for people.
std::string text_of(const Categories& column) {
  constexpr size_t kShown = 4;
  std::string text;
  const size_t count = std::max(column.texts.size(), column.numbers.size());
  for (size_t index = 0; index < std::min(count, kShown); ++index) {
    text += index == 0 ? "" : ", ";
    text += column.texts.empty() ? fmt::format("{}", column.numbers[index]) : '"' + column.texts[index] + '"';
  }
  return count > kShown ? text + ", ..." : text;
}

template <class T>
const T& any_of(const std::vector<T>& items, Random& random) {
  return items[static_cast<size_t>(integer_between(random, 0, static_cast<int64_t>(items.size()) - 1))];
}

// Two inputs hold different texts.
std::string plain_text(const std::string& name, int64_t index) { return fmt::format("{} {}", name, index); }

// Three words where the model cuts texts into words; a number where a column lists none.
std::string fill_categories(Tensor& tensor, const InputCategories& categories, const std::string& name,
                            Random& random) {
  const auto count = static_cast<int64_t>(categories.columns.size());
  const auto column_of = [&](int64_t index) -> const Categories& {
    return categories.columns[static_cast<size_t>(index % count)];
  };
  if (tensor.dtype() == DType::string) {
    int64_t index = 0;
    for (std::string& text : tensor.mutable_as<std::string>()) {
      const std::vector<std::string>& texts = column_of(index).texts;
      text = texts.empty() ? plain_text(name, index) : any_of(texts, random);
      for (int word = 1; word < 3 && categories.is_prose && !texts.empty(); ++word) text += " " + any_of(texts, random);
      ++index;
    }
  } else {
    fill_doubles(tensor, [&](int64_t index) {
      const std::vector<double>& numbers = column_of(index).numbers;
      return numbers.empty() ? normal(random) : any_of(numbers, random);
    });
  }
  std::string how;
  for (const Categories& column : categories.columns) {
    if (!column.empty()) how += (how.empty() ? "from " : "; ") + text_of(column);
    if (how.size() > 100) break;
  }
  return how;
}

std::string fill_constant(Tensor& tensor, double value) {
  fill_doubles(tensor, [&](int64_t) { return value; });
  return fmt::format("all {}", value);
}

std::string fill_values(Tensor& tensor, const std::string& name, Random& random) {
  switch (info_of(tensor.dtype()).kind) {
    case DTypeKind::floating:
      if (tensor.dtype() == DType::float8e8m0) return fill_range(tensor, {0.25, 4}, random);
      fill_doubles(tensor, [&](int64_t) { return normal(random); });
      return "normal(0, 1)";
    case DTypeKind::complex: {
      fill_doubles(tensor, [&](int64_t) { return normal(random); });
      return "real normal(0, 1)";
    }
    case DTypeKind::boolean:
      return fill_range(tensor, {0, 1}, random);
    case DTypeKind::string: {
      int64_t index = 0;
      for (std::string& text : tensor.mutable_as<std::string>()) text = plain_text(name, index++);
      return fmt::format("\"{}\", \"{}\", ...", plain_text(name, 0), plain_text(name, 1));
    }
    default:
      break;
  }
  // Images are bytes; other integers stay small, so that they fit wherever they are used.
  if (tensor.dtype() == DType::uint8) return fill_range(tensor, {0, 255}, random);
  const double highest = is_sub_byte(tensor.dtype()) ? 1 : 9;
  return fill_range(tensor, {0, highest}, random);
}

std::string fill(Tensor& tensor, const InputUse& use, const std::string& name, Random& random) {
  switch (use.kind) {
    case InputUse::Kind::values:
      return fill_values(tensor, name, random);
    case InputUse::Kind::indices:
      return fill_range(tensor, {0, static_cast<double>(std::max<int64_t>(0, use.limit - 1))}, random);
    case InputUse::Kind::mask:
      return fill_mask(tensor, random);
    case InputUse::Kind::condition:
      return fill_constant(tensor, 1);
    case InputUse::Kind::trip_count:
      return fill_constant(tensor, 3);
    case InputUse::Kind::lengths:
      return fill_constant(tensor, static_cast<double>(std::max<int64_t>(1, use.limit)));
    case InputUse::Kind::shape:
      return fill_shape(tensor, use.limit == 1);
    case InputUse::Kind::positions:
      return fill_positions(tensor, use.limit);
    case InputUse::Kind::locations:
      return fill_indices_along(tensor, use);
    case InputUse::Kind::tuples:
      return fill_tuples(tensor, use.limit);
    case InputUse::Kind::positive:
      return fill_range(tensor, {1, is_sub_byte(tensor.dtype()) ? 1 : 9}, random);
    case InputUse::Kind::parts:
      return fill_parts(tensor, use.limit);
    case InputUse::Kind::scales:
      return fill_scales(tensor);
    case InputUse::Kind::listed:
      return fill_listed(tensor, use.elements);
    case InputUse::Kind::categories:
      return fill_categories(tensor, use.categories, name, random);
  }
  return {};
}

}  // namespace

Result<GeneratedData> generate_data(const std::string& name, DType dtype, const Shape& shape, const InputUse& use,
                                    std::optional<std::pair<double, double>> range, uint64_t seed) {
  GeneratedData data{PX_TRY(Tensor::zeros(dtype, shape)), {}};
  Random random(seed ^ hash128(name.data(), name.size()).low);
  if (range.has_value()) {
    const DTypeKind kind = info_of(dtype).kind;
    if (kind == DTypeKind::string)
      return usage_error(fmt::format("--range for input '{}': it holds strings; a range is for numbers", name));
    const bool whole = kind == DTypeKind::signed_integer || kind == DTypeKind::unsigned_integer;
    const double lowest = kind == DTypeKind::signed_integer ? -std::ldexp(1.0, bits_of(dtype) - 1) : 0;
    const double highest = std::ldexp(1.0, bits_of(dtype) - (kind == DTypeKind::signed_integer ? 1 : 0));
    if (whole && (range->first < lowest || range->second >= highest))
      return usage_error(fmt::format("--range for input '{}' does not fit {}, which holds {} to {}", name,
                                     name_of(dtype), lowest, highest - 1));
    data.how = fill_range(data.tensor, *range, random);
  } else {
    data.how = fill(data.tensor, use, name, random);
  }
  return data;
}

}  // namespace parallax
