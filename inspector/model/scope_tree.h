// SPDX-License-Identifier: Apache-2.0
// The tree of scopes a graph's nodes stand in: torch's module scopes from metadata_props, or slashes and dots in node
// names.
#pragma once

#include <string>
#include <vector>

#include "inspector/model/ir.h"

namespace parallax {

struct Scope {
  std::string name;        // path below the parent's: "layers.0", "self_attn"
  std::string path;        // whole: "model.layers.0.self_attn"; empty for the root
  std::string class_name;  // "LlamaAttention" where the exporter wrote class_hierarchy
  int32_t parent = -1;     // index into ScopeTree::scopes
  std::vector<int32_t> children;
  std::vector<NodeId> nodes;  // directly in this scope, in execution order
};

struct ScopeTree {
  std::vector<Scope> scopes;           // the root first; parents before children
  std::vector<int32_t> scope_of_node;  // for each NodeId
};

ScopeTree build_scope_tree(const Graph& graph);

// The origin of a node, as far as the exporter wrote it: module path, "model.py:11" (file name only), and the operator
// of the exported program that the node is a part of ("aten.softmax.int").
struct SourceLocation {
  std::string module;
  std::string line;
  std::string operator_name;
};
SourceLocation source_of(const Node& node);

// The modules whose calls contain the node, from the outside in, the traced module itself ("") included; only what
// torch's metadata say, so that it is empty for a node that an optimizer inserted.
std::vector<std::string> torch_modules_of(const Node& node);

// The name of the node of the exported program (FX) that an ONNX node is a part of: "softmax_1"; empty when unknown.
std::string fx_name_of(const Node& node);

}  // namespace parallax
