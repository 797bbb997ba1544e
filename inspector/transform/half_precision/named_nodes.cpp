// SPDX-License-Identifier: Apache-2.0
// Finds nodes by display name, path or glob, in all graphs of a model.
#include <fmt/format.h>

#include "inspector/exec/value_path.h"
#include "inspector/model/link.h"
#include "inspector/transform/half_precision/precision_groups.h"
#include "inspector/transform/half_precision/to_half.h"

namespace parallax::transform {
namespace {

class NodeFinder {
 public:
  explicit NodeFinder(const std::vector<std::string>& entries) : entries_(entries), used_(entries.size()) {}

  void visit(const Graph& graph, const std::string& prefix) {
    for (const NodeId id : graph.order) {
      const Node& node = graph.nodes[static_cast<size_t>(id)];
      match(graph, id, node, prefix);
      const std::string own = prefix + escape_name(node.display_name);
      if (node.function != nullptr) visit(node.function->body, own + ".call//");
      for (const Attribute& attribute : node.attributes) {
        const auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
        if (body != nullptr) visit(**body, own + std::string(frame_of(attribute.name)));
      }
    }
  }

  static std::string frame_of(std::string_view attribute) {
    if (attribute == "then_branch") return ".then//";
    return attribute == "else_branch" ? ".else//" : ".body[*]//";
  }

  std::vector<size_t> unused() const {
    std::vector<size_t> entries;
    for (size_t entry = 0; entry < entries_.size(); ++entry) {
      if (!used_[entry]) entries.push_back(entry);
    }
    return entries;
  }

  std::set<NodeKey> take() { return std::move(found_); }

 private:
  void match(const Graph& graph, NodeId id, const Node& node, const std::string& prefix) {
    if (entries_.empty()) return;
    const std::string path = prefix + escape_name(node.display_name);
    for (size_t entry = 0; entry < entries_.size(); ++entry) {
      const std::string& text = entries_[entry];
      if (text != path && text != node.display_name && !glob_matches(text, path) &&
          !glob_matches(text, node.display_name))
        continue;
      used_[entry] = true;
      found_.insert({&graph, id});
    }
  }

  const std::vector<std::string>& entries_;
  std::vector<bool> used_;
  std::set<NodeKey> found_;
};

}  // namespace

Result<std::set<NodeKey>> find_named_nodes(const Model& model, const std::vector<std::string>& entries) {
  NodeFinder finder(entries);
  if (!entries.empty()) finder.visit(model.graph, "");
  if (const auto unused = finder.unused(); !unused.empty())
    return usage_error(fmt::format("--keep '{}' matches no node; {}", entries[unused.front()], kNodesToKeep));
  return finder.take();
}

std::vector<size_t> entries_without_node(const Model& model, const std::vector<std::string>& entries) {
  NodeFinder finder(entries);
  if (!entries.empty()) finder.visit(model.graph, "");
  return finder.unused();
}

}  // namespace parallax::transform
