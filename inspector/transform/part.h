// SPDX-License-Identifier: Apache-2.0
// Part: nodes of one graph cut out of a model, with the values that go in and come out.
#pragma once

#include <string>
#include <vector>

#include "inspector/transform/graph_location.h"

namespace parallax::transform {

struct PartValue {
  ValueId id = kNoValue;  // in the located graph
  std::string name;
  std::string path;  // where the value was computed: after the location's frames, or of a graph around it
};

struct Part {
  Location location;
  std::vector<NodeId> nodes;      // in execution order
  std::vector<PartValue> inputs;  // what is computed elsewhere
  std::vector<PartValue> outputs;
  std::vector<ValueId> stored;  // read, and given by initializers or by Constant nodes that are no part of it
};

// The part that computes `to` from `from`, as value paths of one graph (`from` may also name values of graphs around it
// that it reads). Any other value that it needs and does not compute from them is an input, too; without `from` these
// are the graph's inputs. Errors: usage.
Result<Part> find_part(const std::shared_ptr<const Model>& model, const std::vector<std::string>& from,
                       const std::vector<std::string>& to);

// The part that computes the values `to` of the graph from `from`; nothing is checked. Values of `to` that no node
// computes, or that are among `from`, are outputs all the same.
Part part_between(const Location& location, const std::vector<ValueId>& from, const std::vector<ValueId>& to);

// These nodes of the located graph. Outputs are what others read of them and what the graph gives back; all they make
// where that is nothing.
Part part_of_nodes(const Location& location, std::vector<NodeId> nodes);

}  // namespace parallax::transform
