// SPDX-License-Identifier: Apache-2.0
// Two models that define the same: what differs nevertheless is an executor's doing, or rounding.
#pragma once

#include "inspector/diff/localize_models/blame_models_effects.h"
#include "inspector/diff/localize_models/blame_models_regions.h"
#include "inspector/diff/localize_models/blame_models_side.h"

namespace parallax::diff {

// Two definitions whose results are nearly equal compared with the largest elements (a mask, boxes in pixels) may
// differ in smaller ones nevertheless. The largest difference of an element, relative to that element, that is beyond
// the limit and beyond the possible effect of its inputs' rounding to this very element; 0 where there is none.
double diverged_in_some_elements(const RegionRunner& regions, const ValueMatch& match, const Instance& instance,
                                 const Region& region, const Limit& limit);

// To be called where no difference of definition was found and all could be looked at. Judges the nodes of all diverged
// values, each on its own side's inputs. The causes are those that are wrong; where all are right, the values are
// accepted as accumulated rounding, or as far as their quantization explains them. Errors: cancelled, corrupt_file.
Status judge_same_models(const BlameRequest& request, const ModelSide& a, const ModelSide& b,
                         const ModelMatching& matching, const Effects& effects, const Comparison& comparison,
                         Diagnosis& diagnosis);

}  // namespace parallax::diff
