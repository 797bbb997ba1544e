// SPDX-License-Identifier: Apache-2.0
// Enumerates the value sites of a model: every input, initializer and node output of the main graph, of all bodies, and
// of each function call's body, in execution order. All executors use it, so that their sites have the same ids and
// paths.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "inspector/exec/observer.h"
#include "inspector/model/ir.h"

namespace parallax {

// One graph as it is executed in one static place: the main graph, a body of a control-flow node, a called function.
struct GraphSites {
  const Graph* graph = nullptr;
  std::string scope;                     // as ValueSite::scope
  std::vector<const ValueSite*> values;  // by ValueId; null for outer values (see outer)
  // For each ValueId with is_outer: the site in the enclosing place that it names.
  std::unordered_map<ValueId, const ValueSite*> outer;
  // Children by node, in execution order: one for each graph attribute in attribute order, or one for a function call.
  struct Child {
    NodeId node = kNoNode;
    std::string attribute;  // "body", "then_branch", ...; empty for a function call
    std::unique_ptr<GraphSites> sites;
  };
  std::vector<Child> children;
  const GraphSites* parent = nullptr;

  const GraphSites* child(NodeId node, std::string_view attribute) const;

  // (value in this body, value of the enclosing graph) for all that the body reads from outside. Errors: invalid_model,
  // naming a value that the enclosing graph does not have.
  Result<std::vector<std::pair<ValueId, ValueId>>> outer_values(const Graph& enclosing) const;
};

// `error` with the node's place in front, "node 'loop.body[3]//add' (Add-14), cpu: ...", and the node as the one at
// fault. `prefix` is the text of the frames; `executor` may be empty.
Error at_site(Error error, std::string_view prefix, const NodeSite& site, std::string_view executor = {});

class SiteTable {
 public:
  // Errors: invalid_model when nesting exceeds 256 or the expansion of functions exceeds 1,000,000 nodes.
  static Result<SiteTable> build(std::shared_ptr<const Model> model);

  const GraphSites& main() const { return *main_; }
  const std::deque<ValueSite>& sites() const { return sites_; }  // by id

 private:
  class Builder;
  SiteTable() = default;

  std::shared_ptr<const Model> model_;
  std::vector<std::shared_ptr<const Graph>> bound_functions_;
  std::deque<ValueSite> sites_;
  std::unique_ptr<GraphSites> main_;
};

}  // namespace parallax
