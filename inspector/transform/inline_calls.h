// SPDX-License-Identifier: Apache-2.0
// Inline: calls of model-local functions replaced by the nodes of the functions' bodies. A value of a call is then a
// value of the graph that held the call, and its name is its path: "call.call//x".
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"

namespace parallax::transform {

// The text in a path of each value and node that came out of a function: "call.call//x". All other names are escaped.
using PathTexts = std::map<std::string, std::string, std::less<>>;
std::string path_text(const PathTexts& paths, const std::string& name);

struct InlinedCalls {
  std::shared_ptr<Model> model;
  PathTexts paths;
  std::vector<std::pair<std::string, std::string>> left_out;  // a call that stays, and the reason
};

// Every node has its display name as its name afterwards, so that paths stay what they are when nodes are added or
// removed. What a call reads and gives is passed on by Identity nodes. A call stays where its function uses an operator
// in another version than the model imports.
Result<InlinedCalls> inline_calls(const Model& model);

}  // namespace parallax::transform
