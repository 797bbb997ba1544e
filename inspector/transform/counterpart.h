// SPDX-License-Identifier: Apache-2.0
// Counterpart: what a part of one model is in another model that computes the same, cut at the matching values.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "inspector/transform/extract.h"

namespace parallax::transform {

// How the values of two models A and B match.
struct MatchedValues {
  std::map<std::string, std::string, std::less<>> b_of_a;  // value paths
  std::set<std::string, std::less<>> equal_in_b;           // paths in B whose values are those of A
};

// Returns the value that B's own run computed at an input of one of its parts; absent where it is not known.
using ValueLookup = std::function<Result<Value>(const Part& part_b, const PartValue& input)>;

// The part of `model_b` from the values that match the inputs of `part` to those that match its outputs, as a model
// with the names of `part` at its edges. Outputs without a match are left out. Where B reads more than that, it is cut
// at values that equal those of A, which become initializers with the values of `computed_in_b`. Returns nothing where
// B cannot be cut so: an input without a match, no output with one, a value that is missing.
Result<std::shared_ptr<Model>> counterpart_of(const Part& part, const PartData& data, const MatchedValues& matched,
                                              const std::shared_ptr<const Model>& model_b,
                                              const ValueLookup& computed_in_b);

}  // namespace parallax::transform
