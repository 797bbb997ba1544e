// SPDX-License-Identifier: Apache-2.0
// The steps up from an operand, each undone in the order of axes.
#include "runtime/rewrite/attention_operand.h"

#include <algorithm>
#include <numeric>

#include "runtime/rewrite/shape_formula.h"

namespace parallax::runtime {
namespace {

constexpr int kMostSteps = 8;

std::vector<int64_t> plain_order(size_t rank) {
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// True for the same number of axes, each known to be as long as its partner.
bool are_equal(const Dim& a, const Dim& b) {
  return a.is_known() ? b.is_known() && a.value == b.value : !a.name.empty() && a.name == b.name && !b.is_known();
}

// value = other * number, of the same rank.
bool take_scale(const Fuser& fuser, AttentionOperand& operand) {
  const size_t mul = fuser.producer(operand.value, "Mul");
  const size_t div = fuser.producer(operand.value, "Div");
  const size_t at = mul != Fuser::kNowhere ? mul : div;
  if (at == Fuser::kNowhere || !fuser.is_private(operand.value)) return false;
  const Node& node = *fuser.at(at);
  for (size_t side = 0; side < (at == mul ? 2U : 1U); ++side) {
    const ValueId other = fuser.input(node, side);
    const auto number = fuser.scalar(fuser.input(node, 1 - side));
    const auto dims = fuser.dims_of(other), all = fuser.dims_of(operand.value);
    if (!number.has_value() || *number == 0 || !dims.has_value() || !all.has_value() || dims->size() != all->size())
      continue;
    operand.scale *= at == mul ? *number : 1 / *number;
    operand.value = other;
    operand.members.push_back(at);
    return true;
  }
  return false;
}

void transpose(AttentionOperand& operand, const std::vector<int64_t>& permutation) {
  if (operand.order.empty()) operand.order = plain_order(permutation.size());
  for (int64_t& axis : operand.order) axis = permutation[static_cast<size_t>(axis)];
}

bool take_transpose(const Fuser& fuser, AttentionOperand& operand) {
  const size_t at = fuser.producer(operand.value, "Transpose");
  if (at == Fuser::kNowhere || !fuser.is_private(operand.value)) return false;
  const auto permutation = ints_of(*fuser.at(at), "perm");
  if (!permutation.has_value() || (!operand.order.empty() && operand.order.size() != permutation->size())) return false;
  // Groups count along the last batch axis, which has to stay that.
  if (operand.groups > 1) return false;
  transpose(operand, *permutation);
  operand.value = fuser.input(*fuser.at(at), 0);
  operand.members.push_back(at);
  return true;
}

// [b, h, s, d] seen as [b * h, s, d], transposed, and seen as [b, h, d, s]: PyTorch's decomposition of attention.
bool take_flat_transpose(const Fuser& fuser, AttentionOperand& operand) {
  const size_t last = fuser.producer(operand.value, "Reshape");
  if (last == Fuser::kNowhere || !fuser.is_private(operand.value)) return false;
  const ValueId permuted = fuser.input(*fuser.at(last), 0);
  const size_t middle = fuser.producer(permuted, "Transpose");
  if (middle == Fuser::kNowhere || !fuser.is_private(permuted)) return false;
  const auto permutation = ints_of(*fuser.at(middle), "perm");
  const ValueId flat = fuser.input(*fuser.at(middle), 0);
  const size_t first = fuser.producer(flat, "Reshape");
  if (permutation != std::vector<int64_t>{0, 2, 1} || first == Fuser::kNowhere || !fuser.is_private(flat)) return false;
  const ValueId source = fuser.input(*fuser.at(first), 0);
  const auto dims = fuser.dims_of(source);
  if (!dims.has_value() || dims->size() < 3) return false;
  const auto rank = static_cast<int64_t>(dims->size());
  std::vector<ShapeTerm> flat_terms{ShapeTerm::the_rest(), ShapeTerm::dim(rank - 2), ShapeTerm::dim(rank - 1)};
  std::vector<ShapeTerm> last_terms;
  for (int64_t axis = 0; axis + 2 < rank; ++axis) last_terms.push_back(ShapeTerm::dim(axis));
  last_terms.insert(last_terms.end(), {ShapeTerm::dim(rank - 1), ShapeTerm::dim(rank - 2)});
  if (!has_shape(fuser, *fuser.at(first), source, flat_terms) || !has_shape(fuser, *fuser.at(last), source, last_terms))
    return false;
  std::vector<int64_t> swap = plain_order(dims->size());
  std::swap(swap[dims->size() - 1], swap[dims->size() - 2]);
  transpose(operand, swap);
  operand.value = source;
  operand.members.insert(operand.members.end(), {last, middle, first});
  return true;
}

// True where all consumers of `value` are nodes of `taken`, or nodes that read its shape for them: those are taken too.
bool is_read_by(const Fuser& fuser, ValueId value, std::vector<size_t>& taken, int depth = 0) {
  const auto index = static_cast<size_t>(value);
  if (depth > kMostSteps || fuser.edit().pinned[index] || fuser.edit().captured[index]) return false;
  for (size_t reader : fuser.readers(value)) {
    if (std::find(taken.begin(), taken.end(), reader) != taken.end()) continue;
    constexpr std::string_view kOfShapes[] = {"Slice", "Concat", "Gather", "Unsqueeze", "Squeeze"};
    const bool asks = depth == 0 ? fuser.at(reader, "Shape") != nullptr
                                 : std::any_of(std::begin(kOfShapes), std::end(kOfShapes),
                                               [&](std::string_view op) { return fuser.at(reader, op) != nullptr; });
    if (!asks || !is_read_by(fuser, fuser.at(reader)->outputs[0], taken, depth + 1)) return false;
    taken.push_back(reader);
  }
  return true;
}

// [b, h, s, d] with an axis of 1 after h, expanded there and seen as [b, h * groups, s, d].
bool take_groups(const Fuser& fuser, AttentionOperand& operand) {
  const size_t reshape = fuser.producer(operand.value, "Reshape");
  std::vector<size_t> readers = operand.members;
  if (reshape == Fuser::kNowhere || operand.groups > 1 ||
      !(fuser.is_private(operand.value) || is_read_by(fuser, operand.value, readers)))
    return false;
  const ValueId wide = fuser.input(*fuser.at(reshape), 0);
  const size_t expand = fuser.producer(wide, "Expand");
  if (expand == Fuser::kNowhere || !fuser.is_private(wide)) return false;
  const ValueId narrow = fuser.input(*fuser.at(expand), 0);
  const size_t unsqueeze = fuser.producer(narrow, "Unsqueeze");
  if (unsqueeze == Fuser::kNowhere || !fuser.is_private(narrow)) return false;
  const ValueId source = fuser.input(*fuser.at(unsqueeze), 0);
  const auto before = fuser.dims_of(source), one = fuser.dims_of(narrow), many = fuser.dims_of(wide),
             after = fuser.dims_of(operand.value);
  if (!before || !one || !many || !after || before->size() < 3 || after->size() != before->size() ||
      many->size() != before->size() + 1 || one->size() != many->size())
    return false;
  const size_t heads = before->size() - 3, axis = heads + 1;
  for (size_t i = 0; i < many->size(); ++i) {  // only the new axis is made longer, and only it is merged
    if (i == axis) continue;
    const size_t own = i < axis ? i : i - 1;
    if (!are_equal((*many)[i], (*before)[own]) || !are_equal((*one)[i], (*before)[own])) return false;
    if (own != heads && !are_equal((*after)[own], (*before)[own])) return false;
  }
  const Dim &groups = (*many)[axis], &few = (*before)[heads], &all = (*after)[heads];
  if (!groups.is_known() || groups.value < 1 || !(*one)[axis].is_known() || (*one)[axis].value != 1 ||
      !few.is_known() || !all.is_known() || all.value != few.value * groups.value)
    return false;
  // The order must keep the heads last of the batch axes.
  if (!operand.order.empty() && operand.order[heads] != static_cast<int64_t>(heads)) return false;
  operand.groups = groups.value;
  operand.value = source;
  operand.members = std::move(readers);
  operand.members.insert(operand.members.end(), {reshape, expand, unsqueeze});
  return true;
}

}  // namespace

std::optional<AttentionOperand> attention_operand(const Fuser& fuser, ValueId value, bool swapped, bool may_scale) {
  AttentionOperand operand;
  operand.value = value;
  if (swapped) {
    const auto dims = fuser.dims_of(value);
    if (!dims.has_value() || dims->size() < 2) return std::nullopt;
    operand.order = plain_order(dims->size());
    std::swap(operand.order[dims->size() - 1], operand.order[dims->size() - 2]);
  }
  for (int step = 0; step < kMostSteps; ++step) {
    const bool moved = (may_scale && take_scale(fuser, operand)) || take_transpose(fuser, operand) ||
                       take_flat_transpose(fuser, operand) || take_groups(fuser, operand);
    if (!moved) break;
  }
  if (operand.order == plain_order(operand.order.size())) operand.order.clear();
  return operand;
}

}  // namespace parallax::runtime
