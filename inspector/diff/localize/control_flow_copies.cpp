// SPDX-License-Identifier: Apache-2.0
// Comparing what leaves a body with what its node gives, and what enters it with what the node was given.
#include "inspector/diff/localize/control_flow_copies.h"

#include <cstring>

#include <fmt/format.h>

#include "inspector/exec/value_path.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

constexpr int64_t kMostIterations = 1'000'000;

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape()) || a.dtype() == DType::string) return false;
  return a.size_bytes() == 0 || std::memcmp(a.view().data, b.view().data, a.size_bytes()) == 0;
}

// `part` is item `position` of `whole` along its first axis.
bool is_slice(const Tensor& whole, const Tensor& part, int64_t position, int64_t count) {
  if (whole.dtype() != part.dtype() || is_sub_byte(whole.dtype()) || whole.dtype() == DType::string) return false;
  if (whole.shape().rank() != part.shape().rank() + 1 || whole.shape()[0] != count) return false;
  const size_t bytes = part.size_bytes();
  if (whole.size_bytes() != bytes * static_cast<size_t>(count)) return false;
  return bytes == 0 ||
         std::memcmp(whole.view().data + bytes * static_cast<size_t>(position), part.view().data, bytes) == 0;
}

class Checker {
 public:
  Checker(const CapturedSide& side, const NodeInstance& instance)
      : side_(side), instance_(instance), node_(instance.definition()) {}

  Result<CarriedValuesCheck> check() {
    if (node_.function != nullptr) return check_single("", ".call//");
    if (node_.op_type == "If") return check_branches();
    if (node_.op_type == "Loop") return check_iterations(1, 2, true);
    const Attribute* scanned = node_.op_type == "Scan" ? find_attribute(node_, "num_scan_inputs") : nullptr;
    const auto* count = scanned == nullptr ? nullptr : std::get_if<int64_t>(&scanned->value);
    const bool is_plain = find_attribute(node_, "scan_output_axes") == nullptr &&
                          find_attribute(node_, "scan_output_directions") == nullptr && node_.opset_version >= 9;
    if (count == nullptr) return CarriedValuesCheck{};
    scan_inputs_ = *count;
    return check_iterations(0, 0, is_plain);
  }

 private:
  Result<CarriedValuesCheck> check_branches() {
    const FoundValue condition = PX_TRY(side_.find(*instance_.location, instance_.prefix, node_.inputs[0]));
    const std::optional<bool> holds = truth_of(condition.value);
    for (const auto& [attribute, frame] : {std::pair{"then_branch", ".then//"}, std::pair{"else_branch", ".else//"}}) {
      const CarriedValuesCheck check = PX_TRY(check_single(attribute, frame));
      if (check.state == CarriedValues::unknown) continue;
      const bool is_then = std::string_view(attribute) == "then_branch";
      if (holds.has_value() && *holds != is_then)
        return CarriedValuesCheck{
            CarriedValues::wrong, 0,
            fmt::format("it took the {} branch although its condition is {}", is_then ? "then" : "else", *holds)};
      return check;
    }
    return CarriedValuesCheck{};
  }

  static std::optional<bool> truth_of(const Value& value) {
    if (!value.is_tensor() || value.tensor().dtype() != DType::bool_ || value.tensor().element_count() != 1)
      return std::nullopt;
    return value.tensor().as<bool>()[0];
  }

  // A Loop ends with its trip count, or after the first iteration whose condition is false.
  Result<CarriedValuesCheck> check_trips(const GraphValues& body, int64_t count) {
    int64_t most = kMostIterations;
    if (node_.inputs[0] != kNoValue) {
      const FoundValue trips = PX_TRY(side_.find(*instance_.location, instance_.prefix, node_.inputs[0]));
      if (!trips.value.is_tensor() || trips.value.tensor().element_count() != 1) return CarriedValuesCheck{};
      most = element_as_int64(trips.value.tensor(), 0);
    }
    for (int64_t iteration = 0; iteration < count; ++iteration) {
      const auto goes_on = truth_of(PX_TRY(body_value(body, inside(iteration), body.graph->outputs[0])));
      if (!goes_on.has_value()) return CarriedValuesCheck{};
      const bool is_last = iteration + 1 == count;
      if (is_last && *goes_on && count < most)
        return CarriedValuesCheck{CarriedValues::wrong, 0,
                                  fmt::format("it ended after {} iterations although its condition held", count)};
      if (!is_last && !*goes_on)
        return CarriedValuesCheck{
            CarriedValues::wrong, 0,
            fmt::format("it went on although its condition was false after iteration {}", iteration)};
    }
    if (count > most)
      return CarriedValuesCheck{CarriedValues::wrong, 0,
                                fmt::format("it ran {} iterations instead of {}", count, most)};
    return CarriedValuesCheck{CarriedValues::right, 0, ""};
  }

  // A body that runs once: its outputs are the node's.
  Result<CarriedValuesCheck> check_single(std::string_view attribute, std::string_view frame) {
    const GraphValues* body = instance_.location->child(instance_.node, attribute);
    if (body == nullptr) return CarriedValuesCheck{};
    const std::string inside = instance_.prefix + escape_name(node_.display_name) + std::string(frame);
    for (size_t index = 0; index < node_.outputs.size() && index < body->graph->outputs.size(); ++index) {
      if (node_.outputs[index] == kNoValue) continue;
      const Value given = PX_TRY(body_value(*body, inside, body->graph->outputs[index]));
      const Value handed = PX_TRY(own_output(index));
      if (!given.is_tensor() || !handed.is_tensor()) return CarriedValuesCheck{};
      if (same_bits(given.tensor(), handed.tensor())) continue;
      return CarriedValuesCheck{CarriedValues::wrong, index,
                                fmt::format("its output {} is not what its body gave", name_of(node_.outputs[index]))};
    }
    return CarriedValuesCheck{CarriedValues::right, 0, ""};
  }

  // `first_state`, in the body's outputs; `body_inputs` that stand before the states in the body.
  Result<CarriedValuesCheck> check_iterations(size_t first_state, size_t before_states, bool checks_scans) {
    const GraphValues* body = instance_.location->child(instance_.node, "body");
    if (body == nullptr) return CarriedValuesCheck{};
    const Graph& graph = *body->graph;
    const size_t states = node_.op_type == "Loop" ? graph.inputs.size() - before_states
                                                  : graph.inputs.size() - static_cast<size_t>(scan_inputs_);
    const int64_t count = PX_TRY(iterations(*body));
    if (count == 0) return CarriedValuesCheck{};
    if (node_.op_type == "Loop") {
      const CarriedValuesCheck check = PX_TRY(check_trips(*body, count));
      if (check.state != CarriedValues::right) return check;
    }
    for (size_t state = 0; state < states; ++state) {
      const CarriedValuesCheck check = PX_TRY(check_state(*body, state, first_state, before_states, count));
      if (check.state != CarriedValues::right) return check;
    }
    for (size_t index = states; index < node_.outputs.size(); ++index) {
      if (node_.outputs[index] == kNoValue) continue;
      if (!checks_scans) return CarriedValuesCheck{};
      const CarriedValuesCheck check = PX_TRY(check_stack(*body, index, first_state, count));
      if (check.state != CarriedValues::right) return check;
    }
    return CarriedValuesCheck{CarriedValues::right, 0, ""};
  }

  Result<CarriedValuesCheck> check_state(const GraphValues& body, size_t state, size_t first_state,
                                         size_t before_states, int64_t count) {
    const ValueId enters = body.graph->inputs[before_states + state];
    const ValueId leaves = body.graph->outputs[first_state + state];
    const size_t own_input = state + (node_.op_type == "Loop" ? 2 : 0);
    FoundValue first = PX_TRY(side_.find(*instance_.location, instance_.prefix, node_.inputs[own_input]));
    Value last = std::move(first.value);
    for (int64_t iteration = 0; iteration < count; ++iteration) {
      const Value entered = PX_TRY(body_value(body, inside(iteration), enters));
      if (!entered.is_tensor() || !last.is_tensor()) return CarriedValuesCheck{};
      if (!same_bits(last.tensor(), entered.tensor())) {
        const std::string source =
            iteration == 0 ? "what the node was given" : fmt::format("what iteration {} gave", iteration - 1);
        return CarriedValuesCheck{CarriedValues::wrong, state,
                                  fmt::format("'{}' enters iteration {} as something else than {}",
                                              body_name(body, enters), iteration, source)};
      }
      last = PX_TRY(body_value(body, inside(iteration), leaves));
    }
    if (state >= node_.outputs.size() || node_.outputs[state] == kNoValue)
      return CarriedValuesCheck{CarriedValues::right, 0, ""};
    const Value handed = PX_TRY(own_output(state));
    if (!handed.is_tensor() || !last.is_tensor()) return CarriedValuesCheck{};
    if (same_bits(last.tensor(), handed.tensor())) return CarriedValuesCheck{CarriedValues::right, 0, ""};
    return CarriedValuesCheck{
        CarriedValues::wrong, state,
        fmt::format("its output {} is not what the last iteration gave", name_of(node_.outputs[state]))};
  }

  Result<CarriedValuesCheck> check_stack(const GraphValues& body, size_t index, size_t first_state, int64_t count) {
    const Value whole = PX_TRY(own_output(index));
    for (int64_t iteration = 0; iteration < count; ++iteration) {
      const Value part = PX_TRY(body_value(body, inside(iteration), body.graph->outputs[first_state + index]));
      if (!whole.is_tensor() || !part.is_tensor()) return CarriedValuesCheck{};
      if (is_slice(whole.tensor(), part.tensor(), iteration, count)) continue;
      return CarriedValuesCheck{CarriedValues::wrong, index,
                                fmt::format("item {} of its output {} is not what that iteration gave", iteration,
                                            name_of(node_.outputs[index]))};
    }
    return CarriedValuesCheck{CarriedValues::right, 0, ""};
  }

  // Iterations that were captured, as the body's first output tells.
  Result<int64_t> iterations(const GraphValues& body) {
    for (int64_t iteration = 0; iteration < kMostIterations; ++iteration) {
      const std::string path = inside(iteration) + escape_name(body_name(body, body.graph->outputs.front()));
      if (!side_.has(path)) return iteration;
    }
    return int64_t{0};
  }

  std::string inside(int64_t iteration) const {
    return fmt::format("{}{}.body[{}]//", instance_.prefix, escape_name(node_.display_name), iteration);
  }
  std::string name_of(ValueId id) const { return "'" + body_name(*instance_.location, id) + "'"; }
  static std::string body_name(const GraphValues& location, ValueId id) {
    return location.graph->values[static_cast<size_t>(id)].name;
  }
  Result<Value> body_value(const GraphValues& body, const std::string& prefix, ValueId id) const {
    FoundValue found = PX_TRY(side_.find(body, prefix, id));
    return found.computed_by.empty() && !found.path.empty() ? std::move(found.value) : Value();
  }
  Result<Value> own_output(size_t index) const {
    return side_.captured(instance_.prefix + escape_name(body_name(*instance_.location, node_.outputs[index])));
  }

  const CapturedSide& side_;
  const NodeInstance& instance_;
  const Node& node_;
  int64_t scan_inputs_ = 0;
};

}  // namespace

Result<CarriedValuesCheck> check_carried_values(const CapturedSide& side, const NodeInstance& instance) {
  return Checker(side, instance).check();
}

}  // namespace parallax::diff
