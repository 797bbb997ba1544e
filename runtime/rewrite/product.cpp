// SPDX-License-Identifier: Apache-2.0
// Flattening of products and sums.
#include "runtime/rewrite/product.h"

namespace parallax::runtime {
namespace {

constexpr int kDeepest = 8;

void collect(const Fuser& fuser, ValueId value, bool is_root, int depth, Product& product) {
  if (const auto number = fuser.scalar(value); number.has_value() && !is_root) {
    product.number *= *number;
    return;
  }
  const size_t mul = fuser.producer(value, "Mul");
  const size_t div = fuser.producer(value, "Div");
  const bool mine = is_root || fuser.is_private(value);
  if (mine && depth < kDeepest && mul != Fuser::kNowhere) {
    product.members.push_back(mul);
    const Node& node = *fuser.at(mul);
    collect(fuser, fuser.input(node, 0), false, depth + 1, product);
    collect(fuser, fuser.input(node, 1), false, depth + 1, product);
    return;
  }
  if (mine && depth < kDeepest && div != Fuser::kNowhere) {
    const Node& node = *fuser.at(div);
    const auto divisor = fuser.scalar(fuser.input(node, 1));
    if (divisor.has_value() && *divisor != 0) {
      product.members.push_back(div);
      product.number /= *divisor;
      collect(fuser, fuser.input(node, 0), false, depth + 1, product);
      return;
    }
  }
  product.factors.push_back(value);
}

}  // namespace

Product product_of(const Fuser& fuser, ValueId value) {
  Product product;
  collect(fuser, value, true, 0, product);
  return product;
}

std::optional<Sum> sum_of(const Fuser& fuser, ValueId value) {
  const size_t add = fuser.producer(value, "Add");
  if (add == Fuser::kNowhere) return std::nullopt;
  const Node& node = *fuser.at(add);
  for (size_t index = 0; index < 2; ++index) {
    if (const auto number = fuser.scalar(fuser.input(node, index)))
      return Sum{*number, fuser.input(node, 1 - index), add};
  }
  return std::nullopt;
}

std::optional<Step1> step_of(const Fuser& fuser, ValueId value, std::string_view op) {
  const size_t position = fuser.producer(value, op);
  if (position == Fuser::kNowhere) return std::nullopt;
  return Step1{fuser.input(*fuser.at(position), 0), position};
}

}  // namespace parallax::runtime
