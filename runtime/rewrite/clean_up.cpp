// SPDX-License-Identifier: Apache-2.0
// Patterns that drop or shorten what only changes how a value is written down: Cast, Reshape and its kin, Transpose.
#include <algorithm>
#include <array>
#include <numeric>

#include "inspector/tensor/elements.h"
#include "runtime/rewrite/fuser.h"
#include "runtime/rewrite/patterns.h"

namespace parallax::runtime {
namespace {

// ---- Cast ----

// Every number of `from` is one of `to`.
bool is_exact(DType from, DType to) {
  if (from == to) return true;
  if (to == DType::float64) return from == DType::float32 || from == DType::float16 || from == DType::bfloat16;
  return to == DType::float32 && (from == DType::float16 || from == DType::bfloat16);
}

void clean_cast(Fuser& fuser, size_t position) {
  const Node* cast = fuser.at(position, "Cast");
  if (cast == nullptr) return;
  const ValueId in = fuser.input(*cast, 0);
  const ValueId out = cast->outputs[0];
  const DType to = fuser.dtype_of(out);
  if (to == DType::undefined) return;
  if (fuser.dtype_of(in) == to) {
    fuser.alias(position, in);
    return;
  }
  const size_t before = fuser.producer(in, "Cast");
  if (before == Fuser::kNowhere) return;
  const ValueId origin = fuser.input(*fuser.at(before), 0);
  if (fuser.dtype_of(origin) == to && is_exact(to, fuser.dtype_of(in))) fuser.alias(position, origin);
}

// ---- Reshape, Flatten, Squeeze, Unsqueeze ----

// All dimensions are numbers.
std::optional<std::vector<int64_t>> fixed_dims(const Fuser& fuser, ValueId value) {
  const auto dims = fuser.dims_of(value);
  if (!dims.has_value()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Dim& dim : *dims) {
    if (!dim.is_known()) return std::nullopt;
    numbers.push_back(dim.value);
  }
  return numbers;
}

// The new shape does not look at the old one: no dimension is copied from it.
bool is_free_of_old_shape(const Fuser& fuser, const Node& reshape, GraphEdit& edit) {
  if (int_of(reshape, "allowzero", 0) != 0) return true;
  std::vector<int64_t> wanted;
  if (const auto attribute = ints_of(reshape, "shape")) {
    wanted = *attribute;
  } else if (const Tensor* constant = edit.constant(fuser.input(reshape, 1))) {
    wanted = to_int64s(constant->view());
  } else {
    return false;
  }
  return std::find(wanted.begin(), wanted.end(), 0) == wanted.end();
}

void clean_reshape(Fuser& fuser, size_t position) {
  const Node* reshape = fuser.at(position, "Reshape");
  if (reshape == nullptr) return;
  const ValueId in = fuser.input(*reshape, 0);
  const auto before = fixed_dims(fuser, in);
  if (before.has_value() && before == fixed_dims(fuser, reshape->outputs[0])) {
    fuser.alias(position, in);
    return;
  }
  const size_t first = fuser.producer(in);
  constexpr std::array<std::string_view, 4> kViews = {"Reshape", "Flatten", "Squeeze", "Unsqueeze"};
  const bool is_view = first != Fuser::kNowhere && std::any_of(kViews.begin(), kViews.end(), [&](std::string_view op) {
                         return fuser.at(first, op) != nullptr;
                       });
  if (!is_view || !fuser.is_private(in) || !is_free_of_old_shape(fuser, *reshape, fuser.edit())) return;
  Node made = *reshape;
  made.inputs[0] = fuser.input(*fuser.at(first), 0);
  const std::array<size_t, 2> members{first, position};
  fuser.replace(members, position, std::move(made));
}

// ---- Transpose ----

std::vector<int64_t> order_of(const Fuser& fuser, const Node& transpose) {
  if (auto order = ints_of(transpose, "perm")) return *order;
  const auto dims = fuser.dims_of(fuser.input(transpose, 0));
  std::vector<int64_t> order(dims.has_value() ? dims->size() : 0);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

bool is_identity(const std::vector<int64_t>& order) {
  for (size_t axis = 0; axis < order.size(); ++axis) {
    if (order[axis] != static_cast<int64_t>(axis)) return false;
  }
  return true;
}

void clean_transpose(Fuser& fuser, size_t position) {
  const Node* transpose = fuser.at(position, "Transpose");
  if (transpose == nullptr) return;
  const std::vector<int64_t> order = order_of(fuser, *transpose);
  if (order.empty()) return;
  if (is_identity(order)) {
    fuser.alias(position, fuser.input(*transpose, 0));
    return;
  }
  const size_t first = fuser.producer(fuser.input(*transpose, 0), "Transpose");
  if (first == Fuser::kNowhere) return;
  const std::vector<int64_t> earlier = order_of(fuser, *fuser.at(first));
  if (earlier.size() != order.size()) return;
  std::vector<int64_t> both;
  for (int64_t axis : order) {
    if (axis < 0 || axis >= static_cast<int64_t>(earlier.size())) return;  // the run tells of it
    both.push_back(earlier[static_cast<size_t>(axis)]);
  }
  const ValueId origin = fuser.input(*fuser.at(first), 0);
  if (is_identity(both)) {
    fuser.alias(position, origin);
    return;
  }
  Node made = fuser.make("ai.onnx", "Transpose", position, {origin}, transpose->outputs);
  made.attributes.push_back(ints_attribute("perm", both));
  const std::array<size_t, 2> members{first, position};
  fuser.replace(members, position, std::move(made));
}

}  // namespace

void clean_casts(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, clean_cast); }
void clean_reshapes(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, clean_reshape); }
void clean_transposes(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, clean_transpose); }

}  // namespace parallax::runtime
