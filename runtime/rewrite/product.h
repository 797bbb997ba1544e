// SPDX-License-Identifier: Apache-2.0
// A tree of Mul and Div nodes seen as one product: a number times some values. What patterns for formulas look for does
// then not depend on the order in which an exporter wrote the factors.
#pragma once

#include <optional>
#include <vector>

#include "runtime/rewrite/fuser.h"

namespace parallax::runtime {

struct Product {
  double number = 1;
  std::vector<ValueId> factors;
  std::vector<size_t> members;  // the nodes it is made of
};

// The product that makes `value`: its own node whoever reads it, and the nodes below it that only this product reads.
Product product_of(const Fuser& fuser, ValueId value);

// value = number + sum of the other operand, for an Add with one constant number.
struct Sum {
  double number = 0;
  ValueId other = kNoValue;
  size_t member = Fuser::kNowhere;
};
std::optional<Sum> sum_of(const Fuser& fuser, ValueId value);

// A node of one input and this operator makes it: its input and position.
struct Step1 {
  ValueId input = kNoValue;
  size_t member = Fuser::kNowhere;
};
std::optional<Step1> step_of(const Fuser& fuser, ValueId value, std::string_view op);

}  // namespace parallax::runtime
