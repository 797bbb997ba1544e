// SPDX-License-Identifier: Apache-2.0
// Pointwise nodes that become one: an activated gate (SwiGLU and its kin), rotary embedding, and chains of any of them.
#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "runtime/rewrite/epilogue.h"
#include "runtime/rewrite/fused_ops.h"
#include "runtime/rewrite/fuser.h"
#include "runtime/rewrite/patterns.h"

namespace parallax::runtime {
namespace {

using Dims = std::vector<Dim>;

// Dimensions that are sure to be the same on every run: known, or of one name.
bool are_sure(const std::optional<Dims>& dims) {
  return dims.has_value() &&
         std::all_of(dims->begin(), dims->end(), [](const Dim& dim) { return dim.is_known() || !dim.name.empty(); });
}

// ---- activation(gate) * up ----

void fuse_gate(Fuser& fuser, size_t position) {
  const Node* root = fuser.at(position, "Mul");
  if (root == nullptr) return;
  for (size_t index = 0; index < 2; ++index) {
    const ValueId activated = fuser.input(*root, index), up = fuser.input(*root, 1 - index);
    const size_t from = fuser.producer(activated);
    const auto activation = activation_at(fuser, from);
    if (!activation.has_value() || activated == up || !are_sure(fuser.dims_of(up)) ||
        fuser.dims_of(activated) != fuser.dims_of(up))
      continue;
    Node made = fuser.make(kFusedDomain, "Gated", position, {fuser.input(*fuser.at(from), 0), up}, root->outputs);
    made.attributes.push_back(string_attribute("activation", activation->name));
    if (!activation->parameters.empty())
      made.attributes.push_back(floats_attribute("activation_params", activation->parameters));
    const std::array<size_t, 2> members{from, position};
    if (fuser.replace(members, position, std::move(made))) return;
  }
}

// ---- x * cosine + rotated(x) * sine ----

std::optional<int64_t> integer(const Fuser& fuser, ValueId value) {
  const Tensor* tensor = fuser.edit().constant(value);
  if (tensor == nullptr || tensor->element_count() != 1) return std::nullopt;
  if (tensor->dtype() == DType::int64) return tensor->as<int64_t>()[0];
  if (tensor->dtype() == DType::int32) return tensor->as<int32_t>()[0];
  return std::nullopt;
}

// value = x[..., begin:end] of a last axis of `size`, by a Slice with constant bounds or a Split into halves.
struct Part {
  ValueId x = kNoValue;
  int64_t begin = 0, end = 0;
  size_t member = Fuser::kNowhere;
};
std::optional<Part> half_of(const Fuser& fuser, ValueId value, int64_t rank, int64_t size) {
  const size_t position = fuser.producer(value);
  const Node* node = position == Fuser::kNowhere ? nullptr : fuser.at(position);
  if (node == nullptr || node->op_type != "Split" || !is_standard(*node) || node->function != nullptr ||
      node->outputs.size() != 2 || fuser.input(*node, 0) == kNoValue)
    return std::nullopt;
  const int64_t axis = int_of(*node, "axis", 0);
  if (axis != -1 && axis != rank - 1) return std::nullopt;
  for (const ValueId output : node->outputs) {
    const auto dims = output == kNoValue ? std::nullopt : fuser.dims_of(output);
    if (!dims.has_value() || dims->empty() || !dims->back().is_known() || dims->back().value != size / 2)
      return std::nullopt;
  }
  const int64_t begin = value == node->outputs[0] ? 0 : size / 2;
  return Part{fuser.input(*node, 0), begin, begin + size / 2, position};
}

std::optional<Part> part_of(const Fuser& fuser, ValueId value, int64_t rank, int64_t size) {
  const size_t position = fuser.producer(value, "Slice");
  if (position == Fuser::kNowhere) return half_of(fuser, value, rank, size);
  const Node& node = *fuser.at(position);
  if (node.inputs.size() < 4) return std::nullopt;
  const auto begin = integer(fuser, fuser.input(node, 1)), end = integer(fuser, fuser.input(node, 2)),
             axis = integer(fuser, fuser.input(node, 3));
  const auto step = fuser.input(node, 4) == kNoValue ? std::optional<int64_t>(1) : integer(fuser, fuser.input(node, 4));
  if (!begin || !end || !axis || step != 1 || (*axis != -1 && *axis != rank - 1)) return std::nullopt;
  const auto from_front = [size](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  return Part{fuser.input(node, 0), from_front(*begin), from_front(*end), position};
}

// value = Concat(-second half of x, first half of x) along the last axis.
bool is_rotated(const Fuser& fuser, ValueId value, ValueId x, std::vector<size_t>& members) {
  const auto dims = fuser.dims_of(x);
  const size_t concat = fuser.producer(value, "Concat");
  if (concat == Fuser::kNowhere || !dims.has_value() || dims->empty() || !dims->back().is_known()) return false;
  const Node& node = *fuser.at(concat);
  const auto rank = static_cast<int64_t>(dims->size());
  const int64_t axis = int_of(node, "axis", 0), size = dims->back().value;
  if (node.inputs.size() != 2 || size % 2 != 0 || (axis != -1 && axis != rank - 1)) return false;
  const size_t negation = fuser.producer(fuser.input(node, 0), "Neg");
  if (negation == Fuser::kNowhere) return false;
  const auto second = part_of(fuser, fuser.input(*fuser.at(negation), 0), rank, size);
  const auto first = part_of(fuser, fuser.input(node, 1), rank, size);
  if (!first || !second || first->x != x || second->x != x) return false;
  if (first->begin != 0 || first->end != size / 2 || second->begin != size / 2 || second->end != size) return false;
  members.insert(members.end(), {concat, negation, first->member, second->member});
  return true;
}

// `value` may be broadcast with x without making the result larger, and its rows are as long.
bool is_along(const Fuser& fuser, ValueId value, ValueId x) {
  const auto own = fuser.dims_of(value), wanted = fuser.dims_of(x);
  if (!are_sure(own) || !are_sure(wanted) || own->empty() || own->size() > wanted->size()) return false;
  const size_t lead = wanted->size() - own->size();
  for (size_t axis = 0; axis < own->size(); ++axis) {
    const bool is_one = (*own)[axis].is_known() && (*own)[axis].value == 1;
    const bool is_last = axis + 1 == own->size();
    if (!((*own)[axis] == (*wanted)[axis + lead]) && (!is_one || is_last)) return false;
  }
  return true;
}

bool is_narrow_float(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

// Puts the node in, with a Transpose of x that leaves the last axis where nothing else reads what it makes.
void replace_by_rotary(Fuser& fuser, size_t position, std::vector<size_t> members, Node made) {
  const size_t transpose = fuser.producer(made.inputs[0], "Transpose");
  const auto order = transpose == Fuser::kNowhere ? std::nullopt : ints_of(*fuser.at(transpose), "perm");
  if (order.has_value() && !order->empty() && order->back() == static_cast<int64_t>(order->size()) - 1) {
    Node wider = made;
    wider.inputs[0] = fuser.input(*fuser.at(transpose), 0);
    wider.attributes.push_back(ints_attribute("x_order", *order));
    std::vector<size_t> all = members;
    all.push_back(transpose);
    if (fuser.replace(all, position, std::move(wider))) return;
  }
  fuser.replace(members, position, std::move(made));
}

void fuse_rotary(Fuser& fuser, size_t position) {
  const Node* root = fuser.at(position, "Add");
  if (root == nullptr || !is_narrow_float(fuser.dtype_of(root->outputs[0]))) return;
  for (size_t index = 0; index < 2; ++index) {
    const size_t straight = fuser.producer(fuser.input(*root, index), "Mul");
    const size_t permuted = fuser.producer(fuser.input(*root, 1 - index), "Mul");
    if (straight == Fuser::kNowhere || permuted == Fuser::kNowhere) return;
    for (size_t choice = 0; choice < 4; ++choice) {  // which operand of either product is x
      const Node &one = *fuser.at(straight), &other = *fuser.at(permuted);
      const ValueId x = fuser.input(one, choice / 2), cosine = fuser.input(one, 1 - choice / 2);
      const ValueId rotated = fuser.input(other, choice % 2), sine = fuser.input(other, 1 - choice % 2);
      std::vector<size_t> members{position, straight, permuted};
      if (!is_rotated(fuser, rotated, x, members) || !is_along(fuser, cosine, x) || !is_along(fuser, sine, x)) continue;
      replace_by_rotary(fuser, position, std::move(members),
                        fuser.make(kFusedDomain, "Rotary", position, {x, cosine, sine}, root->outputs));
      return;
    }
  }
}

// ---- Chains ----

constexpr size_t kMostMembers = 16,
                 kMostInputs = 8;  // as runtime/ops/pointwise/pointwise_program.h has them, with the operators
constexpr std::string_view kSteps[] = {"Abs", "Add",        "Div",  "Erf",     "Exp",  "HardSwish", "Mul",
                                       "Neg", "Reciprocal", "Relu", "Sigmoid", "Sqrt", "Sub",       "Tanh"};

bool is_step(const Fuser& fuser, size_t position) {
  const Node* node = position == Fuser::kNowhere ? nullptr : fuser.at(position);
  if (node == nullptr || std::find(std::begin(kSteps), std::end(kSteps), node->op_type) == std::end(kSteps) ||
      fuser.at(position, node->op_type) == nullptr || node->opset_version < 7)
    return false;
  return is_narrow_float(fuser.dtype_of(node->outputs[0])) && are_sure(fuser.dims_of(node->outputs[0]));
}

bool contains(const std::vector<size_t>& positions, size_t position) {
  return std::find(positions.begin(), positions.end(), position) != positions.end();
}

// The values that the members read and do not make, each once.
std::vector<ValueId> inputs_of(const Fuser& fuser, const std::vector<size_t>& members) {
  std::vector<ValueId> inputs;
  for (size_t member : members) {
    const Node& node = *fuser.at(member);
    for (size_t index = 0; index < node.inputs.size(); ++index) {
      const ValueId value = fuser.input(node, index);
      const size_t from = fuser.producer(value);
      if (from != Fuser::kNowhere && contains(members, from)) continue;
      if (std::find(inputs.begin(), inputs.end(), value) == inputs.end()) inputs.push_back(value);
    }
  }
  return inputs;
}

// The steps above `root` whose results have its shape and are read by the chain alone; in execution order.
std::vector<size_t> chain_above(Fuser& fuser, size_t root) {
  std::vector<size_t> members{root};
  const auto dims = fuser.dims_of(fuser.at(root)->outputs[0]);
  for (size_t next = 0; next < members.size(); ++next) {
    const Node& node = *fuser.at(members[next]);
    for (size_t index = 0; index < node.inputs.size() && members.size() < kMostMembers; ++index) {
      const ValueId value = fuser.input(node, index);
      const size_t from = fuser.producer(value);
      if (from == Fuser::kNowhere || contains(members, from) || !is_step(fuser, from)) continue;
      const auto at = static_cast<size_t>(value);
      const Readers readers = fuser.readers(value);
      const bool is_inner =
          !fuser.edit().pinned[at] && !fuser.edit().captured[at] && fuser.dims_of(value) == dims &&
          std::all_of(readers.begin(), readers.end(), [&](size_t reader) { return contains(members, reader); });
      if (!is_inner) continue;
      members.push_back(from);
      if (inputs_of(fuser, members).size() > kMostInputs) members.pop_back();
    }
  }
  std::sort(members.begin(), members.end());
  return members;
}

void fuse_chain(Fuser& fuser, size_t position) {
  if (!is_step(fuser, position)) return;
  const std::vector<size_t> members = chain_above(fuser, position);
  const std::vector<ValueId> inputs = inputs_of(fuser, members);
  const DType dtype = fuser.dtype_of(fuser.at(position)->outputs[0]);
  const bool have_one_type =
      std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) { return fuser.dtype_of(input) == dtype; });
  if (members.size() < 2 || inputs.size() > kMostInputs || !have_one_type) return;
  std::map<ValueId, int64_t> numbers;
  for (ValueId input : inputs) numbers.emplace(input, static_cast<int64_t>(numbers.size()));
  std::vector<std::string> operators;
  std::vector<int64_t> operands;
  for (size_t member : members) {
    const Node& node = *fuser.at(member);
    operators.push_back(node.op_type);
    operands.push_back(numbers.at(fuser.input(node, 0)));
    operands.push_back(node.inputs.size() > 1 ? numbers.at(fuser.input(node, 1)) : -1);
    numbers.emplace(node.outputs[0], static_cast<int64_t>(numbers.size()));
  }
  Node made = fuser.make(kFusedDomain, "Pointwise", position, inputs, fuser.at(position)->outputs);
  made.attributes.push_back(strings_attribute("operators", std::move(operators)));
  made.attributes.push_back(ints_attribute("operands", std::move(operands)));
  fuser.replace(members, position, std::move(made));
}

}  // namespace

void fuse_gates(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, fuse_gate); }
void fuse_rotaries(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, fuse_rotary); }

void fuse_chains(GraphEdit& edit, const RewriteContext&) {
  Fuser fuser(edit);  // from the end: a chain is then met at its last node first
  for (size_t position = fuser.count(); position-- > 0;) fuse_chain(fuser, position);
}

}  // namespace parallax::runtime
