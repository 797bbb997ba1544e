// SPDX-License-Identifier: Apache-2.0
// Strings and elements as lines.
#include "gui/viewmodel/view_texts.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspector/base/shown_text.h"
#include "inspector/diff/metrics/metrics.h"
#include "inspector/render/compact_numbers.h"
#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

constexpr size_t kMostLines = 10'000;
constexpr int64_t kElementsListed = 8;
constexpr size_t kLongestText = 300;

// One line of one side: a string of a tensor, or a whole tensor of numbers.
struct Piece {
  std::string location;
  const Tensor* tensor = nullptr;  // null: nothing is there
  int64_t element = -1;            // of a tensor of strings
};

class Pieces {
 public:
  explicit Pieces(const Value& value) { add(value, ""); }
  std::vector<Piece> all;
  int64_t left_out = 0;

 private:
  void put(Piece piece) {
    if (all.size() < kMostLines) {
      all.push_back(std::move(piece));
    } else {
      ++left_out;
    }
  }

  void add_tensor(const Tensor& tensor, const std::string& location) {
    if (tensor.dtype() != DType::string) return put({location, &tensor, -1});
    const Shape& shape = tensor.shape();
    for (int64_t element = 0; element < shape.element_count(); ++element) {
      if (all.size() == kMostLines) {
        left_out += shape.element_count() - element;
        return;
      }
      put({fmt::format("{}[{}]", location, fmt::join(shape.index_of(element), ",")), &tensor, element});
    }
  }

  void add_items(const std::vector<Value>& items, const std::string& location) {
    for (size_t index = 0; index < items.size(); ++index) add(items[index], fmt::format("{}[{}]", location, index));
  }

  void add(const Value& value, const std::string& location) {
    if (value.is_absent()) return;
    if (value.is_tensor()) return add_tensor(value.tensor(), location);
    if (value.is_sequence()) return add_items(value.sequence().items, location);
    if (value.is_optional()) return add_items(value.optional().item, location);
    add_tensor(value.map().keys, location + "keys");
    add_items(value.map().values, location + "values");
  }
};

std::string text_of(const Piece& piece) {
  const Tensor& tensor = *piece.tensor;
  if (piece.element >= 0) return shorten(element_to_string(tensor, piece.element), kLongestText);
  std::string text = fmt::format("{}{}:", name_of(tensor.dtype()), tensor.shape().to_string());
  const int64_t listed = std::min(kElementsListed, tensor.element_count());
  for (int64_t element = 0; element < listed; ++element)
    text += (element == 0 ? " " : ", ") + element_to_string(tensor, element);
  return tensor.element_count() > listed ? text + ", ..." : text;
}

bool are_diverged(const Piece& a, const Piece& b, const Limit& limit) {
  if ((a.element < 0) != (b.element < 0)) return true;
  if (a.element >= 0) {
    return a.tensor->as<std::string>()[static_cast<size_t>(a.element)] !=
           b.tensor->as<std::string>()[static_cast<size_t>(b.element)];
  }
  if (a.tensor->dtype() != b.tensor->dtype() || !(a.tensor->shape() == b.tensor->shape())) return true;
  return compare_views(*a.tensor, *b.tensor, {limit.rtol, limit.atol}).mismatches > 0;
}

}  // namespace

bool is_listed_as_text(const Value& value) {
  if (value.is_absent()) return false;
  return !value.is_tensor() || value.tensor().dtype() == DType::string;
}

TextLines list_as_text(const Value& a, const Value& b, const Limit& limit) {
  const Pieces in_a(a), in_b(b);
  TextLines text;
  text.has_b = !b.is_absent();
  text.left_out = std::max(in_a.left_out, in_b.left_out);
  const bool are_two = !a.is_absent() && text.has_b;
  // Both sides are listed in the same order; where one is longer, its rest stands alone.
  for (size_t line = 0; line < std::max(in_a.all.size(), in_b.all.size()); ++line) {
    const Piece* of_a = line < in_a.all.size() ? &in_a.all[line] : nullptr;
    const Piece* of_b = line < in_b.all.size() ? &in_b.all[line] : nullptr;
    const bool is_one_sided = of_a == nullptr || of_b == nullptr;
    text.lines.push_back({(of_a != nullptr ? of_a : of_b)->location, of_a == nullptr ? "" : text_of(*of_a),
                          of_b == nullptr ? "" : text_of(*of_b),
                          are_two && (is_one_sided || are_diverged(*of_a, *of_b, limit))});
  }
  return text;
}

}  // namespace parallax
