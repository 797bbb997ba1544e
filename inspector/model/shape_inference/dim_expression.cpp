// SPDX-License-Identifier: Apache-2.0
// Arithmetic on polynomials over named dimensions, and their text.
#include "inspector/model/shape_inference/dim_expression.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "inspector/base/checked_math.h"

namespace parallax {
namespace {

// Larger expressions help nobody; they become unknown.
constexpr size_t kMostTerms = 12;
constexpr size_t kMostFactors = 8;
constexpr size_t kLongestName = 120;
constexpr int kDeepestParentheses = 16;

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_name_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == ':';
}

// Recursive descent over sums and products; nothing where the text is anything else.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<DimExpression> read(DimExpression (*make_symbol)(std::string_view)) {
    make_symbol_ = make_symbol;
    auto value = sum(0);
    skip_spaces();
    return value && position_ == text_.size() ? value : std::nullopt;
  }

 private:
  void skip_spaces() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }

  // A minus or plus counts as an operator only between spaces: "batch-size" is a name.
  char next_operator(std::string_view wanted) {
    const size_t start = position_;
    skip_spaces();
    if (position_ >= text_.size() || wanted.find(text_[position_]) == std::string_view::npos) {
      position_ = start;
      return '\0';
    }
    return text_[position_++];
  }

  std::optional<DimExpression> sum(int depth) {
    auto left = product(depth);
    while (left) {
      const char sign = next_operator("+-");
      if (sign == '\0') break;
      auto right = product(depth);
      if (!right) return std::nullopt;
      left = sign == '+' ? *left + *right : *left - *right;
    }
    return left;
  }

  std::optional<DimExpression> product(int depth) {
    auto left = factor(depth);
    while (left && next_operator("*") != '\0') {
      auto right = factor(depth);
      if (!right) return std::nullopt;
      left = *left * *right;
    }
    return left;
  }

  std::optional<DimExpression> factor(int depth) {
    skip_spaces();
    if (position_ >= text_.size()) return std::nullopt;
    if (text_[position_] == '(') return parenthesis(depth);
    const size_t start = position_;
    if (is_name_start(text_[position_])) {
      while (position_ < text_.size() && is_name_part(text_[position_])) ++position_;
      if (position_ < text_.size() && text_[position_] == '(' && !skip_arguments()) return std::nullopt;
      return make_symbol_(text_.substr(start, position_ - start));
    }
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + start, text_.data() + text_.size(), value);
    if (error != std::errc{} || value < 0) return std::nullopt;
    position_ = static_cast<size_t>(end - text_.data());
    return position_ < text_.size() && is_name_part(text_[position_]) ? std::nullopt
                                                                      : std::optional(DimExpression(value));
  }

  // "floor(h/2)" and the like are names as a whole.
  bool skip_arguments() {
    int open = 0;
    while (position_ < text_.size()) {
      const char character = text_[position_++];
      open += character == '(' ? 1 : character == ')' ? -1 : 0;
      if (open == 0) return true;
    }
    return false;
  }

  std::optional<DimExpression> parenthesis(int depth) {
    if (depth >= kDeepestParentheses) return std::nullopt;
    ++position_;
    auto inner = sum(depth + 1);
    if (!inner || next_operator(")") == '\0') return std::nullopt;
    return inner;
  }

  std::string_view text_;
  size_t position_ = 0;
  DimExpression (*make_symbol_)(std::string_view) = nullptr;
};

// "batch-size" and "a/b" are names although they hold the sign of an operator.
bool looks_like_expression(std::string_view text) {
  if (text.find_first_of("*(") != std::string_view::npos) return true;
  return text.find(" + ") != std::string_view::npos || text.find(" - ") != std::string_view::npos;
}

}  // namespace

DimExpression::DimExpression(int64_t number) : known_(true) {
  if (number != 0) terms_.push_back({{}, number});
}

DimExpression DimExpression::symbol(std::string_view name) {
  DimExpression result;
  if (name.empty() || name.size() > kLongestName) return result;
  result.known_ = true;
  result.terms_.push_back({{std::string(name)}, 1});
  return result;
}

DimExpression DimExpression::named(std::string_view text) {
  if (text.size() <= kLongestName && looks_like_expression(text)) {
    if (auto expression = Reader(text).read(&DimExpression::symbol)) return *expression;
  }
  return symbol(text);
}

DimExpression DimExpression::from(const Dim& dim) {
  return dim.is_known() ? DimExpression(dim.value) : named(dim.name);
}

std::optional<int64_t> DimExpression::number() const {
  if (!known_) return std::nullopt;
  if (terms_.empty()) return 0;
  return terms_.size() == 1 && terms_.front().names.empty() ? std::optional(terms_.front().coefficient) : std::nullopt;
}

void DimExpression::add_term(const Term& term) {
  const auto before = [](const Term& a, const Term& b) {
    return a.names.size() != b.names.size() ? a.names.size() > b.names.size() : a.names < b.names;
  };
  const auto location = std::lower_bound(terms_.begin(), terms_.end(), term, before);
  if (location == terms_.end() || location->names != term.names) {
    terms_.insert(location, term);
  } else if (const auto sum = checked_add(location->coefficient, term.coefficient)) {
    location->coefficient = *sum;
    if (*sum == 0) terms_.erase(location);
  } else {
    known_ = false;
  }
  if (terms_.size() > kMostTerms) known_ = false;
}

DimExpression operator+(const DimExpression& a, const DimExpression& b) {
  if (!a.known_ || !b.known_) return {};
  DimExpression sum = a;
  for (const auto& term : b.terms_) sum.add_term(term);
  return sum.known_ ? sum : DimExpression{};
}

DimExpression operator-(const DimExpression& a, const DimExpression& b) { return a + b * DimExpression(-1); }

DimExpression operator*(const DimExpression& a, const DimExpression& b) {
  if (a.is_number(0) || b.is_number(0)) return 0;
  if (!a.known_ || !b.known_) return {};
  DimExpression result(0);
  for (const auto& left : a.terms_) {
    for (const auto& right : b.terms_) {
      const auto coefficient = checked_mul(left.coefficient, right.coefficient);
      if (!coefficient || left.names.size() + right.names.size() > kMostFactors) return {};
      DimExpression::Term term{left.names, *coefficient};
      term.names.insert(term.names.end(), right.names.begin(), right.names.end());
      std::ranges::sort(term.names);
      result.add_term(term);
      if (!result.known_) return {};
    }
  }
  return result;
}

bool DimExpression::is_nonnegative() const {
  return known_ && std::ranges::all_of(terms_, [](const Term& term) { return term.coefficient > 0; });
}

// Exact division of every term, or nothing. -1 is no divisor here: the quotient of the least int64 would overflow.
std::optional<DimExpression> DimExpression::divided_by_term(const Term& divisor) const {
  DimExpression result(0);
  for (const Term& term : terms_) {
    if (divisor.coefficient <= 0 || term.coefficient % divisor.coefficient != 0) return std::nullopt;
    Term quotient{{}, term.coefficient / divisor.coefficient};
    if (!std::ranges::includes(term.names, divisor.names)) return std::nullopt;
    std::ranges::set_difference(term.names, divisor.names, std::back_inserter(quotient.names));
    result.add_term(quotient);
  }
  return result;
}

// Long division by the leading terms.
std::optional<DimExpression> divide_exactly(const DimExpression& a, const DimExpression& b) {
  if (!a.known_ || !b.known_ || b.terms_.empty()) return std::nullopt;
  if (b.terms_.size() == 1) return a.divided_by_term(b.terms_.front());
  DimExpression left = a;
  DimExpression result(0);
  for (size_t step = 0; step < kMostTerms && left.known_ && !left.terms_.empty(); ++step) {
    DimExpression leading(0);
    leading.add_term(left.terms_.front());
    const auto quotient = leading.divided_by_term(b.terms_.front());
    if (!quotient) return std::nullopt;
    result = result + *quotient;
    left = left - *quotient * b;
  }
  return left.known_ && left.terms_.empty() && result.known_ ? std::optional(result) : std::nullopt;
}

DimExpression floor_divide(const DimExpression& a, const DimExpression& b) {
  if (!a.known_ || !b.known_ || b.is_number(0)) return {};
  const auto numerator = a.number(), divisor = b.number();
  if (numerator && divisor && *divisor > 0) {
    return *numerator / *divisor - (*numerator % *divisor < 0 ? 1 : 0);
  }
  if (divisor && *divisor < 0) return {};
  if (const auto exact = divide_exactly(a, b)) return *exact;
  const auto operand = [](const DimExpression& value) {
    return value.terms_.size() == 1 ? value.text() : "(" + value.text() + ")";
  };
  return DimExpression::symbol("floor(" + operand(a) + "/" + operand(b) + ")");
}

DimExpression ceil_divide(const DimExpression& a, const DimExpression& b) { return floor_divide(a + b - 1, b); }

bool same(const DimExpression& a, const DimExpression& b) { return a.known_ && b.known_ && a.terms_ == b.terms_; }

std::string DimExpression::term_text(const Term& term) const {
  std::string text;
  const uint64_t magnitude = term.coefficient < 0 ? uint64_t{0} - static_cast<uint64_t>(term.coefficient)
                                                  : static_cast<uint64_t>(term.coefficient);
  if (magnitude != 1 || term.names.empty()) text = std::to_string(magnitude);
  for (const std::string& name : term.names) {
    if (!text.empty()) text += '*';
    text += name;
  }
  return text;
}

std::string DimExpression::text() const {
  if (!known_) return {};
  if (terms_.empty()) return "0";
  std::string text;
  for (const Term& term : terms_) {
    if (text.empty()) {
      text = term.coefficient < 0 ? "-" : "";
    } else {
      text += term.coefficient < 0 ? " - " : " + ";
    }
    text += term_text(term);
  }
  return text;
}

Dim DimExpression::to_dim() const {
  if (const auto value = number()) return *value >= 0 ? Dim{*value, ""} : Dim{};
  std::string name = text();
  return name.size() <= 2 * kLongestName ? Dim{-1, std::move(name)} : Dim{};
}

DimExpression product(const DimExpressions& factors) {
  DimExpression result = 1;
  for (const DimExpression& factor : factors) result = result * factor;
  return result;
}

}  // namespace parallax
