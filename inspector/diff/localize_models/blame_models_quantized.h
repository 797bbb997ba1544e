// SPDX-License-Identifier: Apache-2.0
// Regions of a model of floats and its quantized form: their results without quantization, and the nodes whose
// quantization does more than round.
#pragma once

#include <optional>
#include <vector>

#include "inspector/diff/localize_models/blame_models_counterfactuals.h"
#include "inspector/diff/localize_models/blame_models_culprits.h"

namespace parallax::diff {

struct WithoutQuantization {
  RegionRunner runner;            // without quantization in the region
  Region region;                  // without quantization
  double severity = 0;            // of the difference that it has with them
  std::vector<Culprit> culprits;  // quantizing nodes that suffice to take it beyond the limit
  bool keeps_steps = false;       // of quantized values whose floats are not to be had
};

// Nothing where neither side of a region is quantized. Without a limit, since
// nobody compared the value, quantization may do a good part of its size.
std::optional<WithoutQuantization> without_quantization(const ModelSide& a, const ModelSide& b,
                                                        const ModelMatching& matching, const RegionRunner& runner,
                                                        const ValueMatch& match, const Instance& instance,
                                                        const Region& region, const std::optional<Limit>& known_limit);

// True where one side stores a constant quantized that the other has as floats, and no element is a step off.
bool are_within_steps(const ModelSide& a, int32_t in_a, const ModelSide& b, int32_t in_b);

// The one QuantizeLinear of B's part of a region that makes all of the difference; nothing where there is none.
std::optional<Culprit> find_inserted_quantization(const Region& region, const Interventions& interventions);

// The DequantizeLinear of a constant that one side holds quantized and the other as floats, where the two diverged;
// nothing where the pair is none such.
std::optional<Culprit> explain_held(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                    const ValueMatch& match);

// True where a region holds a node that quantizes or dequantizes, or reads a constant that one makes.
bool quantizes(const ModelSide& a, const ModelSide& b, const Region& region);
bool quantizes_dynamically(const Region& region);

}  // namespace parallax::diff
