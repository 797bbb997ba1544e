// Two models that define the same: what differs nevertheless is an executor's doing, or rounding.
#pragma once

#include "inspector/diff/blame_models_side.h"

namespace parallax::diff {

// To be called where no difference of definition was found and all could be looked at. Judges the nodes of all diverged
// values, each on its own side's inputs. The causes are those that are wrong; where all are right, the verdicts are
// changed to pass, with reasons. Errors: cancelled, corrupt_file.
Result<std::vector<Cause>> judge_same_models(const BlameRequest& request, const ModelSide& a, const ModelSide& b,
                                             Comparison& comparison);

}  // namespace parallax::diff
