// SPDX-License-Identifier: Apache-2.0
// Value table, captured values and single nodes of one of two models.
#include "inspector/diff/localize_models/blame_models_side.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "inspector/diff/compare/captured_weights.h"
#include "inspector/diff/compare/model_differences.h"
#include "inspector/diff/matching/matching_attributes.h"
#include "inspector/diff/tolerance/paths.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/exec/value_path.h"
#include "inspector/model/link.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

constexpr int kMostConstantNodes = 64;           // a chain of nodes that make a constant
constexpr size_t kSmallBytes = size_t{1} << 20;  // constants that are computed once

Result<std::shared_ptr<const Model>> model_of(const BlameSide& side) {
  if (side.model != nullptr) return side.model;
  for (size_t graph = 0; side.dump != nullptr && graph < side.dump->graphs().size(); ++graph) {
    if (side.dump->graphs()[graph].is_executed) continue;
    return with_captured_weights(*side.dump, PX_TRY(side.dump->model(static_cast<int32_t>(graph))));
  }
  return usage_error("a dump holds no graph, and blame between two models needs both");
}

}  // namespace

Instance instance_of(std::string_view path) {
  Instance instance;
  const auto parsed = parse_value_path(path);
  if (!parsed.ok()) return instance;
  for (const Frame& frame : parsed->frames) {
    if (frame.kind == Frame::Kind::graph || frame.kind == Frame::Kind::step) instance.outer += to_string(frame) + "//";
    if (frame.kind == Frame::Kind::body) instance.iterations.push_back(frame.index);
  }
  return instance;
}

std::string path_in(const Instance& instance, std::string_view static_text) {
  std::string path = instance.outer;
  size_t used = 0;
  for (size_t at = static_text.find(kAnyIteration); at != std::string_view::npos;
       at = static_text.find(kAnyIteration)) {
    if (used == instance.iterations.size()) return {};
    path += fmt::format("{}[{}]", static_text.substr(0, at), instance.iterations[used++]);
    static_text.remove_prefix(at + kAnyIteration.size());
  }
  return path.append(static_text);
}

bool is_same_operation(const LocatedNode& x, const LocatedNode& y) {
  return hash_operator(x.node()) == hash_operator(y.node()) &&
         hash_attributes(*x.location->graph, x.node()) == hash_attributes(*y.location->graph, y.node());
}

Result<std::unique_ptr<ModelSide>> ModelSide::create(const BlameSide& side, std::shared_ptr<Executor> oracle) {
  auto model = PX_TRY(model_of(side));
  ValueTable value_infos = PX_TRY(ValueTable::build(model));
  return std::unique_ptr<ModelSide>(new ModelSide(side, std::move(model), std::move(value_infos), std::move(oracle)));
}

ModelSide::ModelSide(const BlameSide& side, std::shared_ptr<const Model> model, ValueTable value_infos,
                     std::shared_ptr<Executor> oracle)
    : dump_(side.dump), model_(std::move(model)), value_infos_(std::move(value_infos)), oracle_(std::move(oracle)) {
  options_.keep_casts = true;
  locations_.resize(value_infos_.value_infos().size());
  add_locations(value_infos_.main());
  find_constants();
  const auto entries = dump_->entries();
  for (size_t index = 0; index < entries.size(); ++index) {
    const DumpEntry& entry = entries[index];
    if (entry.execution > 0 || entry.absence.has_value() || entry.level != CaptureLevel::all) continue;
    if (side.damaged.contains(entry.path)) continue;
    const bool is_new = entries_.emplace(entry.path, static_cast<int32_t>(index)).second;
    if (!is_new) continue;
    paths_[diff::static_path(entry.path)].push_back(entry.path);
    const std::string prefix(prefix_of(entry.path));
    std::vector<std::string>& known = prefixes_[diff::static_path(prefix)];
    if (known.empty() || known.back() != prefix) known.push_back(prefix);  // a body's values come one after another
  }
}

namespace {

// The values that nodes compute in each type of floats.
std::map<DType, int64_t> computed_types(const ValueTable& value_infos) {
  std::map<DType, int64_t> counts;
  for (const ValueInfo& value_info : value_infos.value_infos()) {
    if (value_info.role != ValueInfo::Role::node_output || value_info.is_constant_like || value_info.op == "Cast")
      continue;
    const DType dtype = value_info.graph->values[static_cast<size_t>(value_info.value)].type.dtype;
    if (is_floating(dtype)) ++counts[dtype];
  }
  return counts;
}

}  // namespace

bool ModelSide::computes_in_half() const {
  std::map<DType, int64_t> counts = computed_types(value_infos_);
  return counts[DType::float16] + counts[DType::bfloat16] >= thresholds::kFewestOfMixed;
}

bool are_of_two_types(const ModelSide& a, const ModelSide& b) {
  return a.main_type() != b.main_type() || a.computes_in_half() != b.computes_in_half();
}

DType ModelSide::main_type() const {
  const std::map<DType, int64_t> counts = computed_types(value_infos_);
  const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  // A node or two in another type are a part of a model that was cast, and no model of that type, unless they are all
  // there is.
  constexpr int64_t kLeast = 4;
  if (most != counts.end() && most->second >= kLeast) return most->first;
  const DType between = type_between_casts(*value_infos_.main().graph);
  return between == DType::undefined ? DType::float32 : between;
}

void ModelSide::add_locations(const GraphValues& location) {
  for (const ValueInfo* value_info : location.values) {
    if (value_info != nullptr) locations_[static_cast<size_t>(value_info->id)] = &location;
  }
  for (const auto& child : location.children) add_locations(*child.value_infos);
}

void ModelSide::find_constants() {
  from_constants_.assign(value_infos_.value_infos().size(), false);
  for (const ValueInfo& value : value_infos_.value_infos()) {  // a node's inputs come before its outputs
    bool from_constants = is_constant(value.id);
    if (!from_constants && value.role == ValueInfo::Role::node_output) {
      const LocatedNode placed = producer(value.id);
      const std::vector<ValueId>& inputs = placed.node().inputs;
      const auto is_from_constants = [&](ValueId input) {
        const int32_t id = value_info_read(*placed.location, input);
        return input == kNoValue || (id >= 0 && from_constants_[static_cast<size_t>(id)]);
      };
      const bool holds_graph = !bodies_of(placed.node()).empty() || placed.node().function != nullptr;
      from_constants = !inputs.empty() && !holds_graph && std::ranges::all_of(inputs, is_from_constants);
    }
    from_constants_[static_cast<size_t>(value.id)] = from_constants;
  }
}

LocatedNode ModelSide::producer(int32_t id) const {
  const ValueInfo& value = value_info(id);
  return {&location_of(id), value.graph->values[static_cast<size_t>(value.value)].producer};
}

int32_t ModelSide::value_info_read(const GraphValues& location, ValueId value) {
  if (value == kNoValue) return -1;
  if (const ValueInfo* value_info = location.values[static_cast<size_t>(value)]; value_info != nullptr)
    return value_info->id;
  const auto outer = location.outer.find(value);
  if (outer != location.outer.end() && outer->second != nullptr) return outer->second->id;
  // Read by a body of a node of this graph, and defined further out.
  const std::string& name = location.graph->values[static_cast<size_t>(value)].name;
  for (const GraphValues* around = location.parent; around != nullptr; around = around->parent) {
    const ValueId found = around->find_value(name);
    if (found == kNoValue || around->values[static_cast<size_t>(found)] == nullptr) continue;
    return around->values[static_cast<size_t>(found)]->id;
  }
  return -1;
}

bool ModelSide::reads_constant(const LocatedNode& node, size_t port) const {
  const int32_t read = value_info_read(*node.location, node.node().inputs[port]);
  return read >= 0 && follows_from_constants(read);
}

int32_t ModelSide::given_to_call(int32_t id) const {
  const GraphValues& location = location_of(id);
  if (value_info(id).role != ValueInfo::Role::input || location.parent == nullptr) return -1;
  const auto is_this = [&](const GraphValues::Child& child) { return child.value_infos.get() == &location; };
  const auto call = std::ranges::find_if(location.parent->children, is_this);
  if (call == location.parent->children.end() || !call->attribute.empty()) return -1;
  const std::vector<ValueId>& given = location.parent->graph->nodes[static_cast<size_t>(call->node)].inputs;
  const std::vector<ValueId>& formal = location.graph->inputs;
  const auto position = static_cast<size_t>(std::ranges::find(formal, value_info(id).value) - formal.begin());
  return position < given.size() ? value_info_read(*location.parent, given[position]) : -1;
}

int32_t ModelSide::returned_by_call(int32_t id) const {
  const LocatedNode call = producer(id);
  if (call.id == kNoNode || call.node().function == nullptr) return -1;
  const GraphValues* body = call.location->child(call.id, "");
  const auto position = static_cast<size_t>(value_info(id).output_index);
  if (body == nullptr || position >= body->graph->outputs.size()) return -1;
  return value_info_read(*body, body->graph->outputs[position]);
}

bool ModelSide::is_constant(int32_t id) const {
  const ValueInfo& value = value_info(id);
  return value.role == ValueInfo::Role::initializer || (value.op == "Constant" && value.domain.empty());
}

const std::vector<std::string>& ModelSide::captured_paths(int32_t id) const {
  static const std::vector<std::string> kNone;
  const auto found = paths_.find(static_path(id));
  return found == paths_.end() ? kNone : found->second;
}

std::vector<std::string> ModelSide::instance_paths(int32_t id) const {
  std::vector<std::string> paths = captured_paths(id);
  const auto prefixes = prefixes_.find(value_info(id).scope);
  if (!paths.empty() || prefixes == prefixes_.end()) return paths;
  for (const std::string& prefix : prefixes->second) {
    std::string path = prefix + value_info(id).escaped_name;
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(std::move(path));
  }
  return paths;
}

Result<Value> ModelSide::captured(const std::string& path) const {
  const auto found = entries_.find(path);
  return found == entries_.end() ? Value() : dump_->load(found->second);
}

Value ModelSide::stored(int32_t id) const {
  const ValueInfo& value = value_info(id);
  const ValueDef& definition = value.graph->values[static_cast<size_t>(value.value)];
  if (definition.initializer_index < 0) return {};
  const StoredTensor& stored = value.graph->initializers[static_cast<size_t>(definition.initializer_index)];
  return !stored.absence.empty() ? Value() : Value(stored.tensor);
}

Value ModelSide::constant(int32_t id, int depth) const {
  if (Value value = stored(id); !value.is_absent()) return value;
  const std::vector<std::string>& paths = captured_paths(id);
  if (!paths.empty()) {
    auto value = captured(paths.front());
    if (value.ok() && !value->is_absent()) return value.take();
  }
  return follows_from_constants(id) ? compute_constant(id, depth) : Value();
}

// Folded away by both executors: as the oracle makes it, in the type the graph gives it.
Value ModelSide::compute_constant(int32_t id, int depth) const {
  const auto known = computed_constants_.find(id);
  if (known != computed_constants_.end()) return known->second;
  const LocatedNode made_by = producer(id);
  if (made_by.id == kNoNode || depth > kMostConstantNodes) return {};
  auto outputs = replay(made_by, [&](int32_t read) { return Result<Value>(constant(read, depth + 1)); });
  if (!outputs.ok()) return {};
  Value value = (*outputs)[static_cast<size_t>(value_info(id).output_index)];
  const DType declared = value_info(id).graph->values[static_cast<size_t>(value_info(id).value)].type.dtype;
  if (value.is_tensor() && value.tensor().dtype() == DType::float64 && is_floating(declared)) {
    auto rounded = Tensor::allocate(declared, value.tensor().shape());
    if (!rounded.ok()) return {};
    store_doubles(*rounded, 0, value.tensor().as<double>());
    value = Value(rounded.take());
  }
  if (value.is_tensor() && value.tensor().size_bytes() <= kSmallBytes) computed_constants_.emplace(id, value);
  return value;
}

Result<std::vector<Value>> ModelSide::replay(const LocatedNode& placed, const ValueOf& value_of) const {
  const Node& node = placed.node();
  std::unique_ptr<NodeReplay>& replay = replays_[&node];
  if (replay == nullptr)
    replay = std::make_unique<NodeReplay>(model_, *placed.location->graph, node, oracle_, options_);
  return run_replay(*replay, *placed.location, value_of);
}

Result<std::vector<Value>> ModelSide::replay_changed(const LocatedNode& placed, const Node& changed,
                                                     const ValueOf& value_of) const {
  NodeReplay replay(model_, *placed.location->graph, changed, oracle_, options_);
  return run_replay(replay, *placed.location, value_of);
}

Result<std::vector<Value>> ModelSide::run_replay(NodeReplay& replay, const GraphValues& location,
                                                 const ValueOf& value_of) const {
  std::vector<Value> values;
  for (const ValueId read : replay.reads()) {
    const int32_t id = value_info_read(location, read);
    if (id < 0)
      return usage_error(fmt::format("node '{}' reads a value that is not to be had", replay.node().display_name));
    values.push_back(PX_TRY(value_of(id)));
    if (values.back().is_absent()) return usage_error(fmt::format("value '{}' was not captured", value_info(id).name));
  }
  return replay.run(values);
}

}  // namespace parallax::diff
