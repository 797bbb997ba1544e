// SPDX-License-Identifier: Apache-2.0
// Names that torch has for values of an exported graph, found through the metadata that the exporter wrote: nodes of
// the exported program ("linear_3") and outputs of modules ("decoder.norm_1", "module(decoder.norm_1).call[0]//out").
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "inspector/model/ir.h"

namespace parallax::dump {

// A name that the graph does not have, and the type of what it stands for.
struct ForeignName {
  std::string name;
  TypeInfo type;
};

struct TorchMatches {
  std::map<std::string, std::string> value_of;  // foreign name -> value of the main graph
  std::vector<std::string> notes;               // sentences on what could not be matched, and why
};

// The output of a module's call is the value that leaves the last of its nodes; of several outputs each is found by its
// type, where only one fits. No value gets two names: the innermost module's wins, and none of `taken` is given away.
TorchMatches match_torch_names(const Graph& graph, std::span<const ForeignName> names,
                               std::span<const std::string> taken);

}  // namespace parallax::dump
