// SPDX-License-Identifier: Apache-2.0
// Attention from its parts: MatMul, a scale before or after it, masks that are added or hide scores, Softmax, MatMul;
// with casts around the Softmax, the guard against rows without a number, and whatever moves the operands about.
#include <array>
#include <cmath>

#include "runtime/rewrite/attention_operand.h"
#include "runtime/rewrite/fused_ops.h"
#include "runtime/rewrite/fuser.h"
#include "runtime/rewrite/patterns.h"

namespace parallax::runtime {
namespace {

bool is_narrow(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

bool is_product(const Node* node) {
  if (node == nullptr) return false;
  if (is_standard(*node)) return node->op_type == "MatMul";
  return node->domain == "com.microsoft" && node->op_type == "FusedMatMul" &&
         text_of(*node, "activation", "").empty() && int_of(*node, "transBatchA", 0) == 0 &&
         int_of(*node, "transBatchB", 0) == 0;
}

// ---- From the softmax up to the product of queries and keys ----

struct Scores {
  size_t product = Fuser::kNowhere;
  double scale = 1;
  std::vector<ValueId> added;
  ValueId hidden = kNoValue;
  bool hides_where = true;
  double hidden_value = 0;
  std::vector<size_t> members;
};

// A Where of a number and scores: the scores.
ValueId take_hidden(const Fuser& fuser, ValueId value, Scores& scores) {
  const size_t at = fuser.producer(value, "Where");
  if (at == Fuser::kNowhere || !fuser.is_private(value)) return value;
  const Node& node = *fuser.at(at);
  for (size_t side = 1; side < 3; ++side) {
    const auto number = fuser.scalar(fuser.input(node, side));
    if (!number.has_value()) continue;
    scores.hidden = fuser.input(node, 0);
    scores.hides_where = side == 1;
    scores.hidden_value = *number;
    scores.members.push_back(at);
    return fuser.input(node, 3 - side);
  }
  return value;
}

// Fills in the nodes between `value` and the product that makes it. False: it is none.
bool find_product(const Fuser& fuser, ValueId value, int added_left, Scores& scores) {
  if (!fuser.is_private(value)) return false;
  const size_t at = fuser.producer(value);
  if (at == Fuser::kNowhere) return false;
  const Node& node = *fuser.at(at);
  if (is_product(&node)) {
    scores.product = at;
    scores.scale *= float_of(node, "alpha", 1.0);
    return true;
  }
  const bool is_scaled = fuser.at(at, "Mul") != nullptr || fuser.at(at, "Div") != nullptr;
  const bool is_added = fuser.at(at, "Add") != nullptr && added_left > 0;
  for (size_t side = 0; side < 2 && (is_scaled || is_added); ++side) {
    const ValueId inner = fuser.input(node, side), other = fuser.input(node, 1 - side);
    const Scores before = scores;
    if (is_scaled) {
      const auto number = fuser.scalar(other);
      const bool is_div = fuser.at(at, "Div") != nullptr;
      if (!number.has_value() || *number == 0 || (is_div && side == 1)) continue;
      scores.scale *= is_div ? 1 / *number : *number;
    } else {
      scores.added.insert(scores.added.begin(), other);
    }
    // The scale comes first, then what is added: below a scale nothing may be added any more.
    if (find_product(fuser, inner, is_scaled ? 0 : added_left - 1, scores)) {
      scores.members.push_back(at);
      return true;
    }
    scores = before;
  }
  return false;
}

// ---- From the softmax down to the product with the values ----

struct Weighing {
  size_t product = Fuser::kNowhere;
  bool no_number_is_zero = false;
  std::vector<size_t> members;
};

// The one reader of `value` when it is this operator.
size_t next(const Fuser& fuser, ValueId value, std::string_view op) {
  const size_t reader = fuser.only_reader(value);
  return reader != Fuser::kNowhere && fuser.at(reader, op) != nullptr ? reader : Fuser::kNowhere;
}

// Takes the guard Where(IsNaN(w), 0, w): PyTorch gives a query whose keys are all hidden nothing instead of NaN.
ValueId take_guard(const Fuser& fuser, ValueId weights, Weighing& weighing) {
  std::array<size_t, 2> readers{};
  size_t count = 0;
  for (const size_t reader : fuser.readers(weights)) {
    if (count == readers.size()) return weights;
    readers[count++] = reader;
  }
  if (count != readers.size()) return weights;
  for (size_t i = 0; i < 2; ++i) {
    const Node* test = fuser.at(readers[i], "IsNaN");
    const Node* where = fuser.at(readers[1 - i], "Where");
    if (test == nullptr || where == nullptr || fuser.input(*where, 0) != test->outputs[0] ||
        fuser.input(*where, 2) != weights || fuser.scalar(fuser.input(*where, 1)) != 0.0)
      continue;
    weighing.no_number_is_zero = true;
    weighing.members.insert(weighing.members.end(), {readers[i], readers[1 - i]});
    return where->outputs[0];
  }
  return weights;
}

std::optional<Weighing> find_weighing(const Fuser& fuser, size_t softmax, DType outer) {
  Weighing weighing;
  ValueId weights = take_guard(fuser, fuser.at(softmax)->outputs[0], weighing);
  if (const size_t cast = next(fuser, weights, "Cast"); cast != Fuser::kNowhere) {
    weights = fuser.at(cast)->outputs[0];
    weighing.members.push_back(cast);
    if (!weighing.no_number_is_zero) weights = take_guard(fuser, weights, weighing);
  }
  if (fuser.dtype_of(weights) != outer) return std::nullopt;
  weighing.product = fuser.only_reader(weights);
  const Node* product = weighing.product == Fuser::kNowhere ? nullptr : fuser.at(weighing.product);
  if (!is_product(product) || fuser.input(*product, 0) != weights || int_of(*product, "transA", 0) != 0 ||
      float_of(*product, "alpha", 1.0) != 1.0)
    return std::nullopt;
  return weighing;
}

// ---- Together ----

// The Softmax works along the last axis.
bool is_along_rows(const Fuser& fuser, const Node& softmax) {
  const int64_t axis = int_of(softmax, "axis", -1);
  const auto dims = fuser.dims_of(fuser.input(softmax, 0));
  return axis == -1 || (dims.has_value() && axis == static_cast<int64_t>(dims->size()) - 1);
}

// A Transpose of the result that leaves its last axis: taken in, and its order.
std::vector<int64_t> take_result_order(const Fuser& fuser, size_t& location, ValueId& output,
                                       std::vector<size_t>& members) {
  const size_t after = next(fuser, output, "Transpose");
  if (after == Fuser::kNowhere) return {};
  const auto order = ints_of(*fuser.at(after), "perm");
  const auto dims = fuser.dims_of(output);
  if (!order.has_value() || !dims.has_value() || order->size() != dims->size() || order->size() < 2 ||
      order->back() != static_cast<int64_t>(order->size()) - 1)
    return {};
  location = after;
  output = fuser.at(after)->outputs[0];
  members.push_back(after);
  return *order;
}

bool may_be_added(const Fuser& fuser, const Scores& scores, DType around) {
  for (ValueId added : scores.added) {
    if (fuser.dtype_of(added) != around) return false;
  }
  return true;
}

Node attention_node(const Fuser& fuser, size_t location, ValueId output, const Scores& scores,
                    const AttentionOperand (&operands)[3]) {
  std::vector<ValueId> inputs{operands[0].value, operands[1].value, operands[2].value};
  inputs.insert(inputs.end(), scores.added.begin(), scores.added.end());
  if (scores.hidden != kNoValue) {
    inputs.resize(5, kNoValue);
    inputs.push_back(scores.hidden);
  }
  Node made = fuser.make(kFusedDomain, "Attention", location, std::move(inputs), {output});
  const double scale = scores.scale * operands[0].scale * operands[1].scale;
  made.attributes = {float_attribute("scale", scale), int_attribute("k_groups", operands[1].groups),
                     int_attribute("v_groups", operands[2].groups)};
  constexpr std::string_view kOrders[] = {"q_order", "k_order", "v_order"};
  for (size_t i = 0; i < 3; ++i) {
    if (!operands[i].order.empty())
      made.attributes.push_back(ints_attribute(std::string(kOrders[i]), operands[i].order));
  }
  if (scores.hidden != kNoValue) {
    made.attributes.push_back(int_attribute("hides_where", scores.hides_where ? 1 : 0));
    made.attributes.push_back(float_attribute("hidden_value", scores.hidden_value));
  }
  return made;
}

void fuse_attention(Fuser& fuser, size_t position) {
  const Node* softmax = fuser.at(position, "Softmax");
  if (softmax == nullptr || !is_along_rows(fuser, *softmax)) return;
  Scores scores;
  ValueId value = fuser.input(*softmax, 0);
  const DType inner = fuser.dtype_of(value);
  if (const size_t cast = fuser.producer(value, "Cast"); cast != Fuser::kNowhere && fuser.is_private(value)) {
    scores.members.push_back(cast);
    value = fuser.input(*fuser.at(cast), 0);
  }
  value = take_hidden(fuser, value, scores);
  const DType outer = fuser.dtype_of(value);
  const bool is_known = (outer == DType::float32 || is_narrow(outer)) && (inner == outer || inner == DType::float32);
  if (!is_known || !find_product(fuser, value, 2, scores) || !may_be_added(fuser, scores, outer)) return;
  const auto weighing = find_weighing(fuser, position, outer);
  if (!weighing.has_value() || weighing->product == scores.product) return;
  const Node& first = *fuser.at(scores.product);
  const Node& second = *fuser.at(weighing->product);
  const auto q = attention_operand(fuser, fuser.input(first, 0), int_of(first, "transA", 0) != 0, true);
  const auto k = attention_operand(fuser, fuser.input(first, 1), int_of(first, "transB", 0) != 0, true);
  const auto v = attention_operand(fuser, fuser.input(second, 1), int_of(second, "transB", 0) != 0, false);
  if (!q.has_value() || !k.has_value() || !v.has_value() || q->groups != 1) return;
  std::vector<size_t> members{position, scores.product, weighing->product};
  for (const std::vector<size_t>& taken : {scores.members, weighing->members, q->members, k->members, v->members})
    members.insert(members.end(), taken.begin(), taken.end());
  size_t location = weighing->product;
  ValueId output = second.outputs[0];
  const std::vector<int64_t> order = take_result_order(fuser, location, output, members);
  Node made = attention_node(fuser, location, output, scores, {*q, *k, *v});
  if (!order.empty()) made.attributes.push_back(ints_attribute("y_order", order));
  if (weighing->no_number_is_zero) made.attributes.push_back(int_attribute("no_number_is_zero", 1));
  fuser.replace(members, location, std::move(made));
}

}  // namespace

void fuse_attentions(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, fuse_attention); }

}  // namespace parallax::runtime
