// SPDX-License-Identifier: Apache-2.0
// Operators and declared types, and nothing of names or of what is around.
#include "inspector/diff/matching/matching_likeness.h"

#include <algorithm>
#include <array>

#include "inspector/diff/matching/definition_distance.h"
#include "inspector/diff/matching/matching_attributes.h"
#include "inspector/diff/tolerance/quantization.h"

namespace parallax::diff {
namespace {

bool is_numeric_kind(const TypeInfo& type) { return type.kind == TypeInfo::Kind::tensor && is_floating(type.dtype); }

}  // namespace

bool may_replace(HashKey a, HashKey b) {
  static const std::array<HashKey, 4> kProducts = {hash_standard_operator("Gemm"), hash_standard_operator("Conv"),
                                                   hash_standard_operator("ConvTranspose"),
                                                   hash_standard_operator("MatMul")};
  static const HashKey kSum = hash_standard_operator("Add");
  const auto is_product = [](HashKey op) { return std::ranges::find(kProducts, op) != kProducts.end(); };
  return a == b || (a == kSum && is_product(b)) || (b == kSum && is_product(a));
}

bool may_be_equal(const FlatValue& a, const FlatValue& b) {
  const TypeInfo &x = *a.stands_for, &y = *b.stands_for;
  if (x.kind == TypeInfo::Kind::unknown || y.kind == TypeInfo::Kind::unknown) return true;
  if (x.kind != y.kind) return false;
  if (x.dtype == DType::undefined || y.dtype == DType::undefined) return true;
  if (is_numeric_kind(x) != is_numeric_kind(y)) return false;
  if (!x.dims.has_value() || !y.dims.has_value() || a.is_constant) return true;
  return x.dims->size() == y.dims->size();
}

double known_size(const TypeInfo& type) {
  double product = type.dims.has_value() ? 1 : -1;
  for (const Dim& dim : type.dims.value_or(std::vector<Dim>{}))
    product = dim.is_known() && product >= 0 ? product * static_cast<double>(dim.value) : -1;
  return product;
}

bool have_other_sizes(const TypeInfo& a, const TypeInfo& b) {
  return known_size(a) >= 0 && known_size(b) >= 0 && known_size(a) != known_size(b);
}

std::vector<std::pair<int32_t, int32_t>> stored_differently(const MatchSide& a, const MatchSide& b) {
  struct Held {
    int32_t id;
    const Tensor* tensor;
  };
  const auto free_floats = [](const MatchSide& side) {
    std::vector<Held> found;
    for (const FlatValue& value : side.flat.values) {
      if (!value.is_constant || !side.is_free(value.value_info->id)) continue;
      const Tensor* tensor = constant_tensor(*value.value_info->graph, value.value_info->value);
      if (tensor != nullptr && is_floating(tensor->dtype())) found.push_back({value.value_info->id, tensor});
    }
    return found;
  };
  std::vector<Held> in_b = free_floats(b);
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (const Held& x : free_floats(a)) {
    const auto holds_it = [&](const Held& y) {
      return x.tensor->dtype() != y.tensor->dtype() && x.tensor->shape() == y.tensor->shape() &&
             differ_by_storing(*x.tensor, *y.tensor, narrower(x.tensor->dtype(), y.tensor->dtype()));
    };
    const auto found = std::ranges::find_if(in_b, holds_it);
    if (found == in_b.end()) continue;
    pairs.emplace_back(x.id, found->id);
    in_b.erase(found);
  }
  return pairs;
}

}  // namespace parallax::diff
