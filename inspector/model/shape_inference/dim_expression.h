// SPDX-License-Identifier: Apache-2.0
// A dimension, or an element of a tensor that holds a shape, as far as it is known before a run: an integer polynomial
// over named dimensions ("past + sequence", "2*batch*sequence"), a number being the polynomial without names; or
// unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/tensor/type_info.h"

namespace parallax {

class DimExpression {
 public:
  DimExpression() = default;  // unknown
  DimExpression(int64_t number);

  // Reads a name as exporters write it, which may be an expression: sums and products of names and numbers are
  // understood, so that "past + sequence" equals "sequence + past"; anything else is a name.
  static DimExpression named(std::string_view text);
  static DimExpression from(const Dim& dim);

  bool is_known() const { return known_; }
  std::optional<int64_t> number() const;
  bool is_number(int64_t value) const { return number() == value; }
  // Never negative whatever the named dimensions are (they themselves never are).
  bool is_nonnegative() const;

  // The polynomial, negative numbers included; empty for unknown.
  std::string text() const;
  // As a declared dimension: a number, a name, or neither. Negative numbers are no dimension.
  Dim to_dim() const;

  // Unknown operands, overflow and growth beyond a limit give unknown.
  friend DimExpression operator+(const DimExpression& a, const DimExpression& b);
  friend DimExpression operator-(const DimExpression& a, const DimExpression& b);
  friend DimExpression operator*(const DimExpression& a, const DimExpression& b);
  // Rounded down. Where it does not come out even: a name of its own, so that equal quotients are equal.
  friend DimExpression floor_divide(const DimExpression& a, const DimExpression& b);
  friend DimExpression ceil_divide(const DimExpression& a, const DimExpression& b);

  // Nothing where the division leaves a remainder or may leave one.
  friend std::optional<DimExpression> divide_exactly(const DimExpression& a, const DimExpression& b);

  // Known to be equal. Two unknowns are not.
  friend bool same(const DimExpression& a, const DimExpression& b);

 private:
  // coefficient * the product of the names, which are sorted; a name occurs as often as its power.
  struct Term {
    std::vector<std::string> names;
    int64_t coefficient = 0;
    bool operator==(const Term&) const = default;
  };

  static DimExpression symbol(std::string_view name);
  void add_term(const Term& term);  // sets unknown on overflow
  std::optional<DimExpression> divided_by_term(const Term& divisor) const;
  std::string term_text(const Term& term) const;

  bool known_ = false;
  std::vector<Term> terms_;  // sorted: more names first, then by name; no zero coefficients
};

DimExpression floor_divide(const DimExpression& a, const DimExpression& b);
DimExpression ceil_divide(const DimExpression& a, const DimExpression& b);
std::optional<DimExpression> divide_exactly(const DimExpression& a, const DimExpression& b);
bool same(const DimExpression& a, const DimExpression& b);

using DimExpressions = std::vector<DimExpression>;

// The product of all; 1 for none.
DimExpression product(const DimExpressions& factors);

}  // namespace parallax
