// SPDX-License-Identifier: Apache-2.0
// Activations that a product or a convolution can apply to its result before it is stored.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/rewrite/fuser.h"

namespace parallax::runtime {

struct EpilogueStep {
  std::string name;               // as com.microsoft FusedConv names it, else the operator's own
  std::vector<float> parameters;  // in the order of FusedConv's activation_params
  bool is_published = false;      // com.microsoft FusedConv and FusedGemm know it
};

// The activation that the node at `position` is, with one input and constant parameters.
std::optional<EpilogueStep> activation_at(const Fuser& fuser, size_t position);

}  // namespace parallax::runtime
