// SPDX-License-Identifier: Apache-2.0
// Channel shuffles (Reshape, Transpose, Reshape) with the Concat of their groups before and the Split after them.
#include <algorithm>

#include "inspector/tensor/elements.h"
#include "runtime/rewrite/fused_ops.h"
#include "runtime/rewrite/fuser.h"
#include "runtime/rewrite/patterns.h"

namespace parallax::runtime {
namespace {

bool is_fixed(const Dim& dim) { return dim.is_known() || !dim.name.empty(); }

// The groups that x [N, C, spatial...] is seen in as [N, groups, C / groups, spatial...]; 0: it is not.
int64_t groups_of(const std::vector<Dim>& x, const std::vector<Dim>& seen) {
  if (x.size() < 3 || seen.size() != x.size() + 1 || !std::all_of(x.begin(), x.end(), is_fixed)) return 0;
  if (!x[1].is_known() || !seen[1].is_known() || !seen[2].is_known() || seen[1].value * seen[2].value != x[1].value)
    return 0;
  if (!(x[0] == seen[0]) || !std::equal(x.begin() + 2, x.end(), seen.begin() + 3)) return 0;
  return seen[1].value;
}

bool swaps_second_and_third(const Node& transpose, size_t rank) {
  const auto order = ints_of(transpose, "perm");
  if (!order.has_value() || order->size() != rank) return false;
  for (size_t axis = 0; axis < rank; ++axis) {
    const size_t wanted = axis == 1 ? 2 : axis == 2 ? 1 : axis;
    if ((*order)[axis] != static_cast<int64_t>(wanted)) return false;
  }
  return true;
}

void fuse_shuffle(Fuser& fuser, size_t position) {
  const Node* transpose = fuser.at(position, "Transpose");
  if (transpose == nullptr || fuser.dtype_of(transpose->outputs[0]) != DType::float32) return;
  const size_t before = fuser.producer(fuser.input(*transpose, 0), "Reshape");
  const size_t after = fuser.only_reader(transpose->outputs[0]);
  if (before == Fuser::kNowhere || after == Fuser::kNowhere || fuser.at(after, "Reshape") == nullptr) return;
  const ValueId x = fuser.input(*fuser.at(before), 0), y = fuser.at(after)->outputs[0];
  const auto dims = fuser.dims_of(x), seen = fuser.dims_of(fuser.input(*transpose, 0)), made_dims = fuser.dims_of(y);
  if (!dims.has_value() || !seen.has_value() || dims != made_dims) return;
  const int64_t groups = groups_of(*dims, *seen);
  if (groups < 1 || !swaps_second_and_third(*transpose, seen->size())) return;
  Node made = fuser.make(kFusedDomain, "ChannelShuffle", after, {x}, {y});
  made.attributes.push_back(int_attribute("groups", groups));
  const std::array<size_t, 3> members{before, position, after};
  fuser.replace(members, after, std::move(made));
}

bool is_shuffle(const Node* node) {
  return node != nullptr && node->domain == kFusedDomain && node->op_type == "ChannelShuffle";
}

// The inputs are the groups themselves.
void join_concat(Fuser& fuser, size_t position) {
  const Node* shuffle = fuser.at(position);
  if (!is_shuffle(shuffle) || shuffle->inputs.size() != 1) return;
  const size_t before = fuser.producer(fuser.input(*shuffle, 0), "Concat");
  const int64_t groups = int_of(*shuffle, "groups", 0);
  if (before == Fuser::kNowhere || int_of(*fuser.at(before), "axis", 0) != 1) return;
  const Node& concat = *fuser.at(before);
  std::vector<ValueId> parts;
  for (size_t index = 0; index < concat.inputs.size(); ++index) parts.push_back(fuser.input(concat, index));
  const auto dims = fuser.dims_of(parts[0]);
  if (static_cast<int64_t>(parts.size()) != groups || groups < 2 || !dims.has_value() ||
      !std::all_of(dims->begin(), dims->end(), is_fixed) ||
      !std::all_of(parts.begin(), parts.end(), [&](ValueId part) { return fuser.dims_of(part) == dims; }))
    return;
  Node made = *shuffle;
  made.inputs = std::move(parts);
  const std::array<size_t, 2> members{before, position};
  fuser.replace(members, position, std::move(made));
}

// Equal parts, each of which has as many channels of every group.
void join_split(Fuser& fuser, size_t position) {
  const Node* shuffle = fuser.at(position);
  if (!is_shuffle(shuffle) || shuffle->outputs.size() != 1) return;
  const ValueId y = shuffle->outputs[0];
  const size_t after = fuser.only_reader(y);
  const Node* split = after == Fuser::kNowhere ? nullptr : fuser.at(after);
  if (split == nullptr || !is_standard(*split) || split->op_type != "Split" || int_of(*split, "axis", 0) != 1 ||
      fuser.input(*split, 0) != y)
    return;
  const auto dims = fuser.dims_of(y);
  const auto parts = static_cast<int64_t>(split->outputs.size());
  if (!dims.has_value() || !(*dims)[1].is_known() || (*dims)[1].value % (parts * int_of(*shuffle, "groups", 1)) != 0)
    return;
  for (ValueId part : split->outputs) {
    const auto own = fuser.dims_of(part);
    if (part == kNoValue || !own.has_value() || !(*own)[1].is_known() || (*own)[1].value * parts != (*dims)[1].value)
      return;
  }
  Node made = *shuffle;
  made.outputs = split->outputs;
  const std::array<size_t, 2> members{position, after};
  fuser.replace(members, after, std::move(made));
}

}  // namespace

void fuse_channel_shuffles(GraphEdit& edit, const RewriteContext&) {
  fuse_each(edit, fuse_shuffle);
  fuse_each(edit, join_concat);
  fuse_each(edit, join_split);
}

}  // namespace parallax::runtime
