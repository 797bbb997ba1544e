// SPDX-License-Identifier: Apache-2.0
// Follows values of A forward.
#include "inspector/diff/localize_models/blame_models_effects.h"

#include <algorithm>

namespace parallax::diff {
namespace {

// Results that depend on an operand's shape alone.
bool takes_shape_only(const LocatedNode& node) {
  return node.node().op_type == "Shape" || node.node().op_type == "Size" || node.node().op_type == "ConstantOfShape";
}

}  // namespace

Effects::Effects(const ModelSide& a, DifferenceOf difference) : a_(a), difference_(std::move(difference)) {
  const size_t count = a.value_infos().value_infos().size();
  made_of_.resize(count);
  readers_.resize(count);
  is_end_.assign(count, false);
  const GraphValues& main = a.value_infos().main();
  add(main);
  for (const ValueId output : main.graph->outputs) {
    const int32_t id = ModelSide::value_info_read(main, output);
    if (id >= 0) is_end_[static_cast<size_t>(id)] = true;
  }
}

void Effects::add(const GraphValues& location) {
  for (const NodeId node : location.graph->order) {
    const Node& definition = location.graph->nodes[static_cast<size_t>(node)];
    for (const ValueId input : definition.inputs) {
      const int32_t read = ModelSide::value_info_read(location, input);
      if (read < 0) continue;
      readers_[static_cast<size_t>(read)].push_back({&location, node});
      for (const ValueId output : definition.outputs) {
        const int32_t made = ModelSide::value_info_read(location, output);
        if (made >= 0) made_of_[static_cast<size_t>(read)].push_back(made);
      }
    }
  }
  for (const GraphValues::Child& child : location.children) {
    add(*child.value_infos);
    add_passed_on(location, child);
  }
}

// Inputs of functions are those of their call. Outputs of branches and functions are those of their node; outputs of a
// loop's body are carried to the next iteration, too.
void Effects::add_passed_on(const GraphValues& location, const GraphValues::Child& child) {
  const bool goes_round = child.attribute == "body", is_call = child.attribute.empty();
  const std::vector<ValueId>&given = location.graph->nodes[static_cast<size_t>(child.node)].inputs,
        &formal = child.value_infos->graph->inputs;
  for (size_t index = 0; is_call && index < std::min(given.size(), formal.size()); ++index) {
    const int32_t outer = ModelSide::value_info_read(location, given[index]);
    const int32_t inner = ModelSide::value_info_read(*child.value_infos, formal[index]);
    if (outer >= 0 && inner >= 0) made_of_[static_cast<size_t>(outer)].push_back(inner);
  }
  const std::vector<ValueId>& handed_out = child.value_infos->graph->outputs;
  const std::vector<ValueId>& made = location.graph->nodes[static_cast<size_t>(child.node)].outputs;
  for (size_t index = 0; index < handed_out.size(); ++index) {
    const int32_t inner = ModelSide::value_info_read(*child.value_infos, handed_out[index]);
    const int32_t outer = index < made.size() ? ModelSide::value_info_read(location, made[index]) : -1;
    if (inner < 0) continue;
    if (goes_round) is_end_[static_cast<size_t>(inner)] = true;
    if (!goes_round && outer >= 0) made_of_[static_cast<size_t>(inner)].push_back(outer);
  }
}

bool Effects::stops(int32_t id, double difference) const {
  const LocatedNode node = a_.producer(id);
  if (node.id != kNoNode && takes_shape_only(node)) return true;
  const std::optional<double> found = difference_(id);
  return found.has_value() && *found <= difference;
}

bool Effects::leaves_nothing(int32_t id, double difference) {
  std::vector<bool>& traceless = traceless_[difference];
  if (traceless.empty()) {
    traceless.assign(made_of_.size(), false);
    // Values computed from a value come after it, except for outputs of bodies: nothing is claimed about those.
    for (size_t value = made_of_.size(); value-- > 0;) {
      traceless[value] = !is_end_[value] && std::ranges::all_of(made_of_[value], [&](int32_t made) {
        return traceless[static_cast<size_t>(made)] || stops(made, difference);
      });
    }
  }
  return traceless[static_cast<size_t>(id)];
}

bool Effects::is_any_made_of(int32_t id, const std::function<bool(int32_t made)>& holds) const {
  std::vector<int32_t> waiting = {id};
  std::vector<bool> is_seen(made_of_.size(), false);
  while (!waiting.empty()) {
    const int32_t next = waiting.back();
    waiting.pop_back();
    for (const int32_t made : made_of_[static_cast<size_t>(next)]) {
      if (is_seen[static_cast<size_t>(made)]) continue;
      is_seen[static_cast<size_t>(made)] = true;
      if (holds(made)) return true;
      waiting.push_back(made);
    }
  }
  return false;
}

std::vector<bool> Effects::leading_to(const std::function<bool(int32_t id)>& holds, double difference) const {
  std::vector<std::vector<int32_t>> made_from(made_of_.size());
  std::vector<int32_t> waiting;
  for (size_t value = 0; value < made_of_.size(); ++value) {
    const auto id = static_cast<int32_t>(value);
    for (const int32_t made : made_of_[value]) made_from[static_cast<size_t>(made)].push_back(id);
    if (holds(id)) waiting.push_back(id);
  }
  std::vector<bool> leads(made_of_.size(), false);
  while (!waiting.empty()) {
    const int32_t next = waiting.back();
    waiting.pop_back();
    for (const int32_t from : made_from[static_cast<size_t>(next)]) {
      if (leads[static_cast<size_t>(from)]) continue;
      leads[static_cast<size_t>(from)] = true;
      if (!holds(from) && !stops(from, difference)) waiting.push_back(from);  // else it waits, or has waited, already
    }
  }
  return leads;
}

bool Effects::is_compensated(int32_t id, double difference,
                             const std::function<bool(const LocatedNode&)>& is_read_alike) const {
  // A call does the same where the nodes of its function do.
  const auto does_alike = [&](const LocatedNode& reader) {
    return reader.node().function != nullptr || is_read_alike(reader);
  };
  std::vector<int32_t> differing = {id};
  for (size_t index = 0; index < differing.size(); ++index) {
    if (!std::ranges::all_of(readers(differing[index]), does_alike)) return true;
    for (const int32_t made : made_of_[static_cast<size_t>(differing[index])]) {
      if (!stops(made, difference) && std::ranges::find(differing, made) == differing.end()) differing.push_back(made);
    }
  }
  return false;
}

}  // namespace parallax::diff
