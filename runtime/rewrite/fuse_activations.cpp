// SPDX-License-Identifier: Apache-2.0
// Activations from their parts: GELU written with erf or tanh, and x * sigmoid(a x).
#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/rewrite/fuser.h"
#include "runtime/rewrite/patterns.h"
#include "runtime/rewrite/product.h"

namespace parallax::runtime {
namespace {

constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kSqrtTwoByPi = 0.79788456080286535588;
constexpr double kCubic = 0.044715;  // Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016

void join(std::vector<size_t>& members, const std::vector<size_t>& more) {
  members.insert(members.end(), more.begin(), more.end());
}

bool is_all(const std::vector<ValueId>& factors, ValueId value, size_t count) {
  return factors.size() == count &&
         std::all_of(factors.begin(), factors.end(), [&](ValueId factor) { return factor == value; });
}

// value = 0.044715 x^3; the nodes that compute it.
bool is_cubic_term(const Fuser& fuser, ValueId value, ValueId x, double factor, std::vector<size_t>& members) {
  const Product term = product_of(fuser, value);
  if (!is_near(term.number, factor, fuser.dtype_of(x))) return false;
  join(members, term.members);
  if (is_all(term.factors, x, 3)) return true;
  if (term.factors.size() != 1) return false;
  const size_t power = fuser.producer(term.factors[0], "Pow");
  if (power == Fuser::kNowhere) return false;
  members.push_back(power);
  const Node& node = *fuser.at(power);
  return fuser.input(node, 0) == x && fuser.scalar(fuser.input(node, 1)) == 3.0;
}

// value = sqrt(2 / pi) (x + 0.044715 x^3), or with x drawn out: sqrt(2 / pi) x (1 + 0.044715 x^2).
bool is_tanh_argument(const Fuser& fuser, ValueId value, ValueId x, std::vector<size_t>& members) {
  const Product outer = product_of(fuser, value);
  if (!is_near(outer.number, kSqrtTwoByPi, fuser.dtype_of(x)) || outer.members.empty()) return false;
  join(members, outer.members);
  if (outer.factors.size() == 2) {
    const size_t at = outer.factors[0] == x ? 1 : 0;
    const auto sum = sum_of(fuser, outer.factors[at]);
    if (outer.factors[1 - at] != x || !sum.has_value() || sum->number != 1) return false;
    members.push_back(sum->member);
    const Product square = product_of(fuser, sum->other);
    join(members, square.members);
    return is_near(square.number, kCubic, fuser.dtype_of(x)) && is_all(square.factors, x, 2);
  }
  const size_t add = outer.factors.size() == 1 ? fuser.producer(outer.factors[0], "Add") : Fuser::kNowhere;
  if (add == Fuser::kNowhere) return false;
  members.push_back(add);
  const Node& node = *fuser.at(add);
  for (size_t index = 0; index < 2; ++index) {
    if (fuser.input(node, index) == x) return is_cubic_term(fuser, fuser.input(node, 1 - index), x, kCubic, members);
  }
  return false;
}

bool is_erf_argument(const Fuser& fuser, ValueId value, ValueId x, std::vector<size_t>& members) {
  const Product inner = product_of(fuser, value);
  join(members, inner.members);
  return is_near(inner.number, kSqrtHalf, fuser.dtype_of(x)) && is_all(inner.factors, x, 1);
}

// ai.onnx has Gelu since version 20; before, and for what other runtimes fuse further, com.microsoft has two.
Node gelu_node(const Fuser& fuser, size_t position, ValueId x, bool is_erf) {
  const std::vector<ValueId> outputs = fuser.at(position)->outputs;
  if (fuser.edit().limit != OperatorSet::standard)
    return fuser.make(kMicrosoft, is_erf ? "Gelu" : "FastGelu", position, {x}, outputs);
  Node made = fuser.make("ai.onnx", "Gelu", position, {x}, outputs);
  made.attributes = {string_attribute("approximate", is_erf ? "none" : "tanh")};
  return made;
}

// 0.5 x (1 + f(...)) at `position`.
void fuse_gelu(Fuser& fuser, size_t position) {
  const Node* root = fuser.at(position, "Mul");
  if (root == nullptr) return;
  const Product product = product_of(fuser, root->outputs[0]);
  if (product.factors.size() != 2 || product.number != 0.5) return;
  for (size_t index = 0; index < 2; ++index) {
    const ValueId x = product.factors[1 - index];
    const auto sum = sum_of(fuser, product.factors[index]);
    if (!sum.has_value() || sum->number != 1) continue;
    for (const bool is_erf : {true, false}) {
      const auto step = step_of(fuser, sum->other, is_erf ? "Erf" : "Tanh");
      if (!step.has_value()) continue;
      std::vector<size_t> members = product.members;
      members.insert(members.end(), {sum->member, step->member});
      const bool fits =
          is_erf ? is_erf_argument(fuser, step->input, x, members) : is_tanh_argument(fuser, step->input, x, members);
      if (!fits) continue;
      fuser.replace(members, position, gelu_node(fuser, position, x, is_erf));
      return;
    }
  }
}

// x * sigmoid(a x) at `position`; a = 1 where the sigmoid is of x itself.
void fuse_sigmoid(Fuser& fuser, size_t position) {
  const Node* root = fuser.at(position, "Mul");
  if (root == nullptr) return;
  for (size_t index = 0; index < 2; ++index) {
    const ValueId x = fuser.input(*root, 1 - index);
    const auto sigmoid = step_of(fuser, fuser.input(*root, index), "Sigmoid");
    if (!sigmoid.has_value()) continue;
    std::vector<size_t> members{position, sigmoid->member};
    double alpha = 1;
    if (sigmoid->input != x) {
      const Product inner = product_of(fuser, sigmoid->input);
      if (!is_all(inner.factors, x, 1)) continue;
      alpha = inner.number;
      join(members, inner.members);
    }
    Node made = fuser.make(kMicrosoft, "QuickGelu", position, {x}, root->outputs);
    made.attributes.push_back(float_attribute("alpha", alpha));
    if (fuser.replace(members, position, std::move(made))) return;
  }
}

}  // namespace

void fuse_gelus(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, fuse_gelu); }
void fuse_swishes(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, fuse_sigmoid); }

}  // namespace parallax::runtime
