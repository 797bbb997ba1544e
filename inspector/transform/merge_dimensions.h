// SPDX-License-Identifier: Apache-2.0
// Names of dimensions where the inputs of two models become those of one.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "inspector/tensor/type_info.h"

namespace parallax::transform {

// A name is given to dimensions that are equal in both models, and to no others: whatever fits one of the models fits
// the merged one.
class MergedDimensions {
 public:
  // The type of an input that both have; `second`'s names win. All of these are asked for first.
  TypeInfo shared_input(const TypeInfo& first, const TypeInfo& second);
  // The type of an input that one has.
  TypeInfo own_input(const TypeInfo& type, bool is_of_second);
  TypeInfo output(const TypeInfo& first, const TypeInfo& second) const;

 private:
  using NamePair = std::pair<std::string, std::string>;  // in the first, in the second
  Dim merged(const Dim& first, const Dim& second);
  Dim named(const NamePair& key, std::initializer_list<std::string> candidates);

  std::map<NamePair, std::string> given_;
  std::set<std::string> used_;
};

}  // namespace parallax::transform
