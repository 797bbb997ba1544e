// SPDX-License-Identifier: Apache-2.0
// The things a graph picture is made of: scopes, nodes, bodies, inputs and outputs as one tree, and the wires between
// its leaves. Built once for a model; which of the groups are open is the business of whoever draws it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/exec/value_table.h"
#include "inspector/model/ir.h"

namespace parallax {

struct GraphItem {
  enum class Kind : uint8_t { group, node, body, input, output };
  Kind kind = Kind::node;
  int32_t parent = -1;
  int32_t depth = 0;
  std::vector<int32_t> children;  // in execution order; of a node: the bodies it runs
  std::string title;              // "layers.0", a node's display name, "then_branch", the name of an input
  std::string module;  // of a node: the scopes it has for itself alone, "layer1.0.conv1"; empty where it has none
  std::string detail;  // class of a scope, operator of a node, type of an input
  std::string scope;   // static frames of the graph it stands in: "loop.body[*]//"
  const Graph* graph = nullptr;  // in which it stands; of a body, the body
  NodeId node = kNoNode;
  ValueId value = kNoValue;        // of inputs and outputs
  int32_t node_count = 0;          // nodes below, itself included
  uint64_t structure = 0;          // equal for groups of the same operators in the same order
  int32_t like = 0;                // number of its siblings of that structure, itself included
  bool is_folded = false;          // a Constant: shown in the boxes of its readers; its parent is the first of them
  std::vector<int32_t> constants;  // of a node: the folded Constants that it is the first to read
  std::string constants_text;      // of a node: the constants it reads, "[1,-1,256], 0.5"; weights are left out
  bool has_children() const { return !children.empty(); }
};

// A value on its way from the leaf that makes it to a leaf that reads it.
struct GraphWire {
  int32_t from = 0;
  int32_t to = 0;
  ValueId value = kNoValue;  // in the graph where `from` stands
};

class GraphItems {
 public:
  // Item 0 is the whole graph. Constants that nodes read are folded into these. A scope in a scope that holds nothing
  // else is one group with it ("features.0"), and a scope around a single node is no group but the node's module. A
  // scope of more than `section` direct members is cut: at repeated blocks where there are any, else into equal parts.
  // Errors: invalid_model, as of ValueTable.
  static Result<std::shared_ptr<const GraphItems>> build(std::shared_ptr<const Model> model, int32_t section = 200);

  const std::vector<GraphItem>& items() const { return items_; }
  const GraphItem& item(int32_t index) const { return items_[static_cast<size_t>(index)]; }
  const std::vector<GraphWire>& wires() const { return wires_; }
  const Model& model() const { return *model_; }

  // The item of a node, by static scope and display name; of an input or an output by static scope and value name. -1
  // when there is none.
  int32_t find_node(std::string_view scope, std::string_view node) const;
  int32_t find_input(std::string_view scope, std::string_view value) const;
  int32_t find_output(std::string_view scope, std::string_view value) const;

  bool is_inside(int32_t item, int32_t group) const;

 private:
  friend class ItemBuilder;
  GraphItems() = default;

  std::shared_ptr<const Model> model_;
  std::unique_ptr<ValueTable> value_infos_;
  std::vector<GraphItem> items_;
  std::vector<GraphWire> wires_;
  std::unordered_map<std::string, int32_t> nodes_;   // scope + name
  std::unordered_map<std::string, int32_t> inputs_;  // likewise
  std::unordered_map<std::string, int32_t> outputs_;
};

// "loop.body[*]//" of "loop.body[3]//x": the static frames of a value path. Frames of steps and graphs are left out.
std::string static_scope_of(std::string_view path);

}  // namespace parallax
