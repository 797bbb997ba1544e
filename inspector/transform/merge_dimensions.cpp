// SPDX-License-Identifier: Apache-2.0
// Gives each pair of names one name.
#include "inspector/transform/merge_dimensions.h"

#include <algorithm>

namespace parallax::transform {
namespace {

constexpr const char* kOther = "(of one model alone)";

}  // namespace

Dim MergedDimensions::named(const NamePair& key, std::initializer_list<std::string> candidates) {
  const auto known = given_.find(key);
  if (known != given_.end()) return {-1, known->second};
  for (const std::string& candidate : candidates) {
    if (candidate.empty() || !used_.insert(candidate).second) continue;
    given_.emplace(key, candidate);
    return {-1, candidate};
  }
  given_.emplace(key, "");
  return {};
}

Dim MergedDimensions::merged(const Dim& first, const Dim& second) {
  if (first.is_known() && second.is_known()) return first.value == second.value ? first : Dim{};
  if (first.name.empty() && second.name.empty()) return {};
  return named({first.name, second.name}, {second.name, first.name});
}

TypeInfo MergedDimensions::shared_input(const TypeInfo& first, const TypeInfo& second) {
  TypeInfo type = second;
  if (!first.dims || !second.dims || first.dims->size() != second.dims->size()) {
    type.dims.reset();
    return type;
  }
  for (size_t axis = 0; axis < type.dims->size(); ++axis)
    (*type.dims)[axis] = merged((*first.dims)[axis], (*second.dims)[axis]);
  return type;
}

TypeInfo MergedDimensions::own_input(const TypeInfo& declared, bool is_of_second) {
  TypeInfo type = declared;
  if (!type.dims) return type;
  for (size_t axis = 0; axis < type.dims->size(); ++axis) {
    Dim& dim = (*type.dims)[axis];
    if (dim.name.empty()) continue;
    const auto pair = std::ranges::find_if(
        given_, [&](const auto& entry) { return (is_of_second ? entry.first.second : entry.first.first) == dim.name; });
    if (axis == 0 && pair != given_.end()) {  // rows: both models have the same number of them
      dim.name = pair->second;
      continue;
    }
    const NamePair key = is_of_second ? NamePair{kOther, dim.name} : NamePair{dim.name, kOther};
    dim = named(key, {dim.name, "past_" + dim.name});
  }
  return type;
}

TypeInfo MergedDimensions::output(const TypeInfo& first, const TypeInfo& second) const {
  TypeInfo type = second;
  if (!first.dims || !second.dims || first.dims->size() != second.dims->size()) {
    type.dims.reset();
    return type;
  }
  for (size_t axis = 0; axis < type.dims->size(); ++axis) {
    Dim& dim = (*type.dims)[axis];
    const Dim& other = (*first.dims)[axis];
    const auto pair = given_.find({other.name, dim.name});
    const bool is_named = !dim.name.empty() && !other.name.empty() && pair != given_.end();
    if (is_named)
      dim.name = pair->second;
    else if (!dim.is_known() || !(dim == other))
      dim = {};
  }
  return type;
}

}  // namespace parallax::transform
