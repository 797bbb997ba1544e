// SPDX-License-Identifier: Apache-2.0
// Finding captured values by graph and position, and computing those between them.
#include "inspector/diff/localize/captured_side.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "inspector/diff/tolerance/paths.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/exec/value_path.h"

namespace parallax::diff {
namespace {

constexpr int64_t kMostComputedBytes = int64_t{256} << 20;  // kept of values that were not captured

}  // namespace

CapturedSide::CapturedSide(const BlameSide& side, std::shared_ptr<const Model> model, std::shared_ptr<Executor> oracle)
    : side_(side), model_(std::move(model)), oracle_(std::move(oracle)) {
  oracle_options_.keep_casts = true;
  const auto entries = side_.dump->entries();
  for (size_t index = 0; index < entries.size(); ++index) {
    const DumpEntry& entry = entries[index];
    if (entry.execution > 0 || entry.absence.has_value() || entry.level != CaptureLevel::all) continue;
    if (side_.damaged.contains(entry.path)) continue;
    by_path_.emplace(entry.path, static_cast<int32_t>(index));  // of repeated calls the first
  }
}

bool CapturedSide::is_reference() const {
  const auto executions = side_.dump->executions();
  return !executions.empty() && executions.front().executor.starts_with("reference");
}

Result<Value> CapturedSide::captured(const std::string& path) const {
  const auto found = by_path_.find(path);
  return found == by_path_.end() ? Value() : side_.dump->load(found->second);
}

// An initializer of the model; absent where only the dump's graph is at hand and left its payload out.
Value CapturedSide::stored(const Graph& graph, const ValueDef& definition) const {
  if (definition.initializer_index < 0) return {};
  const StoredTensor& tensor = graph.initializers[static_cast<size_t>(definition.initializer_index)];
  return !tensor.absence.empty() ? Value() : Value(tensor.tensor);
}

Result<FoundValue> CapturedSide::find(const GraphValues& location, const std::string& prefix, ValueId id) const {
  return find(location, prefix, id, 0);
}

Result<FoundValue> CapturedSide::find(const GraphValues& start, const std::string& start_prefix, ValueId id,
                                      int depth) const {
  const std::string name = value_at(*start.graph, id).name;
  const GraphValues* location = &start;
  std::string prefix = start_prefix;
  for (;;) {
    const ValueId here = location->find_value(name);
    const ValueDef* definition = here == kNoValue ? nullptr : &value_at(*location->graph, here);
    if (definition != nullptr && !definition->is_outer) {
      FoundValue found;
      found.is_constant = definition->initializer_index >= 0 && definition->input_index < 0;
      found.path = prefix + escape_name(name);
      found.value = PX_TRY(captured(found.path));
      if (!found.value.is_absent()) return found;
      found.path.clear();
      found.value = stored(*location->graph, *definition);
      if (!found.value.is_absent()) return found;
      return definition->producer == kNoNode ? found : compute_absent(*location, prefix, here, depth);
    }
    if (location->parent == nullptr || !leave_frame(prefix)) return FoundValue{};
    location = location->parent;
  }
}

Result<FoundValue> CapturedSide::compute_absent(const GraphValues& location, const std::string& prefix, ValueId id,
                                                int depth) const {
  if (depth >= thresholds::kLongestFusedChain) return FoundValue{};
  const std::string path = prefix + escape_name(value_at(*location.graph, id).name);
  if (const auto known = computed_.find(path); known != computed_.end()) return known->second;
  const auto failed = not_computed_.find(path);
  if (failed != not_computed_.end() && failed->second <= depth) return FoundValue{};
  FoundValue found = PX_TRY(compute_from_inputs(location, prefix, id, depth));
  if (found.value.is_absent()) {
    not_computed_[path] = depth;
    return found;
  }
  const int64_t bytes = found.value.is_tensor() ? static_cast<int64_t>(found.value.tensor().size_bytes()) : 0;
  if (computed_bytes_ + bytes > kMostComputedBytes) {
    computed_.clear();
    computed_bytes_ = 0;
  }
  computed_bytes_ += bytes;
  computed_.emplace(path, found);
  return found;
}

Result<FoundValue> CapturedSide::compute_from_inputs(const GraphValues& location, const std::string& prefix, ValueId id,
                                                     int depth) const {
  const ValueDef& definition = value_at(*location.graph, id);
  const NodeInstance producer{&location, definition.producer, prefix};
  Computed computed = PX_TRY(gather(producer, depth + 1));
  std::vector<Value> values;
  FoundValue found;
  for (FoundValue& input : computed.inputs) {
    if (input.value.is_absent()) return FoundValue{};
    for (const Node* node : input.computed_by) {
      if (std::ranges::find(found.computed_by, node) == found.computed_by.end()) found.computed_by.push_back(node);
    }
    values.push_back(std::move(input.value));
  }
  NodeReplay replay(model_, *location.graph, producer.definition(), oracle_, oracle_options_);
  auto outputs = replay.run(values);
  if (!outputs.ok()) return FoundValue{};
  found.value = std::move((*outputs)[static_cast<size_t>(definition.output_index)]);
  found.computed_by.push_back(&producer.definition());
  return found;
}

NodeReplay& CapturedSide::replay_of(const NodeInstance& instance) const {
  const Node& node = instance.definition();
  if (replayed_ != &node) {
    replay_ = std::make_unique<NodeReplay>(model_, *instance.location->graph, node, oracle_, oracle_options_);
    replayed_ = &node;
  }
  return *replay_;
}

Result<CapturedSide::Computed> CapturedSide::gather(const NodeInstance& instance) const { return gather(instance, 0); }

Result<CapturedSide::Computed> CapturedSide::gather(const NodeInstance& instance, int depth) const {
  Computed computed;
  computed.reads = depth == 0 ? replay_of(instance).reads()
                              : NodeReplay(model_, *instance.location->graph, instance.definition(), oracle_).reads();
  for (const ValueId id : computed.reads) {
    computed.inputs.push_back(PX_TRY(find(*instance.location, instance.prefix, id, depth)));
  }
  return computed;
}

Result<CapturedSide::Computed> CapturedSide::compute(const NodeInstance& instance) const {
  Computed computed = PX_TRY(gather(instance));
  std::vector<Value> values;
  for (size_t index = 0; index < computed.inputs.size(); ++index) {
    if (computed.inputs[index].value.is_absent())
      return usage_error(fmt::format("its input '{}' was not captured; --capture all captures every value",
                                     value_at(*instance.location->graph, computed.reads[index]).name));
    values.push_back(computed.inputs[index].value);
  }
  const auto start = std::chrono::steady_clock::now();
  computed.outputs = PX_TRY(replay_of(instance).run(values));
  computed.oracle_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return computed;
}

std::unique_ptr<NodeReplay> CapturedSide::make_replay(const NodeInstance& instance, const Node& node) const {
  return std::make_unique<NodeReplay>(model_, *instance.location->graph, node, oracle_, oracle_options_);
}

Result<std::vector<Value>> CapturedSide::replay(const NodeInstance& instance, const Node& node,
                                                std::span<const Value> values) const {
  if (&node == &instance.definition()) return replay_of(instance).run(values);
  return NodeReplay(model_, *instance.location->graph, node, oracle_, oracle_options_).run(values);
}

}  // namespace parallax::diff
