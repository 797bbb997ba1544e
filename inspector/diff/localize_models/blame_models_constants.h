// SPDX-License-Identifier: Apache-2.0
// Values computed from constants alone: the node at which two such values begin to differ, on the way from the
// constants to their consumer.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "inspector/diff/localize_models/blame_models_culprits.h"
#include "inspector/diff/localize_models/blame_models_unmatch.h"

namespace parallax::diff {

// The relevance of attributes that differ.
enum class Attributes : uint8_t { relevant, irrelevant };

// The nodes that cause the difference of two paired nodes' definitions: themselves, or, where they read constants that
// other nodes compute, those of these that are defined differently, were put in or left out. Empty where attributes
// alone differ that are irrelevant.
std::vector<Culprit> after_constants(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                     const LocatedNode& node_a, const LocatedNode& node_b,
                                     Attributes attributes = Attributes::relevant);

// The nodes for one constant of A that `reader` reads, and B's in its place; nothing where they are equal.
std::vector<Culprit> after_constant(const ModelSide& a, const ModelSide& b, const ModelMatching& matching, int32_t in_a,
                                    int32_t in_b, const LocatedNode& reader);

// Both hold the constant under this name, in the same type and shape, and not the same numbers in any order: what no
// exporter or optimizer does to a model it means to keep.
bool was_changed(const ModelSide& a, const ModelSide& b, const ValueMatch& match);

// Moves or renames elements: seldom what is wrong where something else is.
bool only_moves(const LocatedNode& node);
// The value that such nodes make this one of; itself where none does.
int32_t before_moves(const ModelSide& side, int32_t id);

// Constants that differ though nothing computed from them was seen to be wrong: the models are not the same.
std::vector<Cause> unobservable_constants(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                          const Effects& effects, const ComparedValues& values);

// Adds those that no node explains: the graph hands them out as they are, or nothing that is made of them differs.
void add_unexplained_constants(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                               const Effects& effects, const ComparedValues& values, std::vector<Cause>& causes);

}  // namespace parallax::diff
