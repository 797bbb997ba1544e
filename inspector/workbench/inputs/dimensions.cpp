// SPDX-License-Identifier: Apache-2.0
// The little expression reader for dim_param, and the table of what a dimension's name suggests.
#include "inspector/workbench/inputs/dimensions.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include "inspector/base/checked_math.h"
#include "inspector/base/text.h"

namespace parallax {
namespace {

constexpr int kMaxExpressionDepth = 64;

// Recursive descent over: sum = product {(+|-) product}; product = atom {(*|/|//) atom}; atom = number | name | ( sum
// ).
class ExpressionReader {
 public:
  ExpressionReader(std::string_view text, const DimSizes* sizes) : rest_(text), sizes_(sizes) {}

  std::optional<int64_t> read() {
    const auto value = sum();
    skip_blanks();
    return rest_.empty() && !failed_ ? value : std::nullopt;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  void skip_blanks() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front())) != 0) rest_.remove_prefix(1);
  }
  bool take(std::string_view token) {
    skip_blanks();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  std::optional<int64_t> fail() {
    failed_ = true;
    return std::nullopt;
  }

  std::optional<int64_t> sum() {
    if (++depth_ > kMaxExpressionDepth) return fail();
    auto value = product();
    while (!failed_) {
      const bool plus = take("+");
      if (!plus && !take("-")) break;
      const auto right = product();
      if (value && right) value = plus ? checked_add(*value, *right) : checked_add(*value, -*right);
    }
    --depth_;
    return value;
  }

  std::optional<int64_t> product() {
    auto value = atom();
    while (!failed_) {
      const bool times = take("*");
      if (!times && !take("//") && !take("/")) break;
      const auto right = atom();
      if (!value || !right) continue;
      if (!times && *right == 0) return fail();
      value = times ? checked_mul(*value, *right) : std::optional(*value / *right);
    }
    return value;
  }

  std::optional<int64_t> atom() {
    if (take("(")) {
      const auto value = sum();
      return take(")") ? value : fail();
    }
    skip_blanks();
    int64_t number = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error == std::errc()) {
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      return number;
    }
    return name();
  }

  std::optional<int64_t> name() {
    const auto is_part = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == ':';
    };
    const auto length = static_cast<size_t>(std::find_if_not(rest_.begin(), rest_.end(), is_part) - rest_.begin());
    if (length == 0) return fail();
    names_.emplace_back(rest_.substr(0, length));
    rest_.remove_prefix(length);
    if (sizes_ == nullptr) return std::nullopt;
    const auto found = sizes_->find(names_.back());
    return found == sizes_->end() ? std::nullopt : std::optional(found->second);
  }

  std::string_view rest_;
  const DimSizes* sizes_;
  std::vector<std::string> names_;
  int depth_ = 0;
  bool failed_ = false;
};

struct NameSize {
  std::string_view part;  // of the lower-case name
  int64_t size;
};
// First match counts. Small sizes, all different where they mean different things, so that a mix-up of axes does not go
// unseen.
constexpr std::array<NameSize, 11> kSizesByName = {{{"batch", 1},
                                                    {"past", 4},
                                                    {"cache", 4},
                                                    {"height", 64},
                                                    {"width", 64},
                                                    {"channel", 3},
                                                    {"beam", 2},
                                                    {"encoder", 6},
                                                    {"head", 2},
                                                    {"seq", 8},
                                                    {"len", 8}}};
constexpr int64_t kOtherSize = 8;

int64_t size_by_name(const std::string& name) {
  const std::string lowered = lower_case(name);
  if (lowered == "n" || lowered == "b" || lowered == "bs") return 1;
  if (lowered == "h" || lowered == "w") return 64;
  if (lowered == "c") return 3;
  for (const NameSize& row : kSizesByName) {
    if (lowered.find(row.part) != std::string::npos) return row.size;
  }
  return kOtherSize;
}

template <class Visit>
void for_each_input_dim(const Graph& graph, Visit visit) {
  for (ValueId id : graph.inputs) {
    const ValueDef& input = graph.values[static_cast<size_t>(id)];
    if (!input.type.dims.has_value()) continue;
    for (const Dim& dim : *input.type.dims) {
      if (!dim.is_known() && !dim.name.empty()) visit(dim.name);
    }
  }
}

// "total_sequence_length" is past + sequence where the model has one name of each kind.
void add_totals(DimSizes& sizes, const DimSizes& given) {
  for (auto& [name, size] : sizes) {
    if (lower_case(name).find("total") == std::string::npos || given.contains(name)) continue;
    const auto find = [&](std::string_view part) {
      return std::find_if(sizes.begin(), sizes.end(), [&](const auto& row) {
        const std::string other = lower_case(row.first);
        return other.find("total") == std::string::npos && other.find(part) == 0;
      });
    };
    const auto past = find("past");
    const auto sequence = find("seq");
    if (past != sizes.end() && sequence != sizes.end()) size = past->second + sequence->second;
  }
}

// "past_and_sequence" and "past_plus_sequence" are the sum of the two, where the model has both.
void add_sums(DimSizes& sizes, const DimSizes& given) {
  for (auto& [name, size] : sizes) {
    for (const std::string_view joint : {"_and_", "_plus_"}) {
      const size_t at = name.find(joint);
      if (at == std::string::npos || given.contains(name)) continue;
      const auto left = sizes.find(name.substr(0, at)), right = sizes.find(name.substr(at + joint.size()));
      if (left != sizes.end() && right != sizes.end()) size = left->second + right->second;
    }
  }
}

}  // namespace

std::optional<int64_t> evaluate_dimension(std::string_view expression, const DimSizes& sizes) {
  return ExpressionReader(expression, &sizes).read();
}

std::vector<std::string> names_in_dimension(std::string_view expression) {
  ExpressionReader reader(expression, nullptr);
  reader.read();
  return reader.names();
}

DimSizes choose_dimensions(const Graph& graph, const DimSizes& given) {
  DimSizes sizes = given;
  for_each_input_dim(graph, [&](const std::string& text) {
    for (const std::string& name : names_in_dimension(text)) sizes.try_emplace(name, size_by_name(name));
  });
  add_totals(sizes, given);
  add_sums(sizes, given);
  return sizes;
}

Result<std::vector<int64_t>> concrete_shape(const ValueDef& input, const DimSizes& sizes) {
  std::vector<int64_t> shape;
  if (!input.type.dims.has_value()) return shape;
  const std::vector<Dim>& dims = *input.type.dims;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis].is_known()) {
      shape.push_back(dims[axis].value);
    } else if (dims[axis].name.empty()) {
      const bool is_spatial_axis = dims.size() == 4 && is_floating(input.type.dtype) && axis >= 2;
      shape.push_back(is_spatial_axis ? 64 : 1);
    } else {
      // A name that is no expression we read stands for itself.
      const auto by_name = sizes.find(dims[axis].name);
      const auto size =
          by_name != sizes.end() ? std::optional(by_name->second) : evaluate_dimension(dims[axis].name, sizes);
      if (!size.has_value() || *size < 0) {
        return usage_error(fmt::format("dimension {} ('{}') of input '{}' has no size: give --dim or --shape {}=...",
                                       axis, dims[axis].name, input.name, input.name));
      }
      shape.push_back(*size);
    }
  }
  return shape;
}

}  // namespace parallax
