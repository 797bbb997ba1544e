// SPDX-License-Identifier: Apache-2.0
// Bookkeeping of a graph while patterns change it.
#include "runtime/rewrite/fuser.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "inspector/model/opset/opset_registry.h"
#include "inspector/tensor/elements.h"
#include "runtime/rewrite/fused_ops.h"

namespace parallax::runtime {
namespace {

template <class T>
const T* stored(const Node& node, std::string_view name) {
  const Attribute* found = find_attribute(node, name);
  return found == nullptr ? nullptr : std::get_if<T>(&found->value);
}

template <class T>
const T* by_default(const Node& node, std::string_view name) {
  const AttributeSchema* found = node.schema == nullptr ? nullptr : node.schema->attribute(name);
  return found == nullptr ? nullptr : std::get_if<T>(&found->default_value);
}

OperatorSet target_of(const Node& made) {
  if (made.domain == kFusedDomain) return OperatorSet::own;
  return is_standard(made) && !made.schema->extension ? OperatorSet::standard : OperatorSet::microsoft;
}

bool contains(std::span<const size_t> positions, size_t position) {
  return std::find(positions.begin(), positions.end(), position) != positions.end();
}

}  // namespace

Fuser::Fuser(GraphEdit& edit)
    : edit_(edit),
      nodes_(edit.nodes),
      producers_(edit.constants.size(), kNowhere),
      first_read_(edit.constants.size(), -1),
      reads_of_node_(edit.nodes.size(), -1) {
  size_t count = 0;
  for (const PlannedNode& planned : nodes_) count += planned.node->inputs.size();
  reads_.reserve(count);
  for (size_t position = 0; position < nodes_.size(); ++position) note(position);
}

Fuser::~Fuser() {
  std::erase_if(nodes_, [](const PlannedNode& planned) { return planned.node == nullptr; });
}

const Node* Fuser::at(size_t position, std::string_view op) const {
  const Node* node = position == kNowhere ? nullptr : nodes_[position].node;
  if (node == nullptr || node->op_type != op || !is_standard(*node) || node->function != nullptr) return nullptr;
  const auto used =
      std::count_if(node->outputs.begin(), node->outputs.end(), [](ValueId output) { return output != kNoValue; });
  return used == 1 && node->outputs[0] != kNoValue ? node : nullptr;
}

ValueId Fuser::input(const Node& node, size_t index) const {
  return index < node.inputs.size() && node.inputs[index] != kNoValue ? edit_.resolve(node.inputs[index]) : kNoValue;
}

size_t Fuser::producer(ValueId value) const {
  return value == kNoValue || static_cast<size_t>(value) >= producers_.size() ? kNowhere
                                                                              : producers_[static_cast<size_t>(value)];
}

size_t Fuser::producer(ValueId value, std::string_view op) const {
  const size_t position = producer(value);
  return at(position, op) != nullptr ? position : kNowhere;
}

size_t Fuser::only_reader(ValueId value) const {
  const auto index = static_cast<size_t>(value);
  if (index >= first_read_.size() || first_read_[index] < 0 || edit_.pinned[index] || edit_.captured[index])
    return kNowhere;
  const Readers::Read& first = reads_[static_cast<size_t>(first_read_[index])];
  return first.next < 0 ? first.position : kNowhere;
}

std::optional<double> Fuser::scalar(ValueId value) const {
  const Tensor* tensor = edit_.constant(value);
  if (tensor == nullptr || tensor->element_count() != 1 || !is_floating(tensor->dtype())) return std::nullopt;
  return element_as_double(tensor->view(), 0);
}

DType Fuser::dtype_of(ValueId value) const {
  if (const Tensor* tensor = edit_.constant(value)) return tensor->dtype();
  if (value == kNoValue || edit_.is_added(value)) return DType::undefined;
  const TypeInfo& type = edit_.source->values[static_cast<size_t>(value)].type;
  return type.kind == TypeInfo::Kind::tensor ? type.dtype : DType::undefined;
}

std::optional<std::vector<Dim>> Fuser::dims_of(ValueId value) const {
  if (const Tensor* tensor = edit_.constant(value)) {
    std::vector<Dim> dims;
    for (int64_t dim : tensor->shape()) dims.push_back({dim, ""});
    return dims;
  }
  if (value == kNoValue || edit_.is_added(value)) return std::nullopt;
  const TypeInfo& type = edit_.source->values[static_cast<size_t>(value)].type;
  return type.kind == TypeInfo::Kind::tensor ? type.dims : std::nullopt;
}

Node Fuser::make(std::string_view domain, std::string_view op, size_t location, std::vector<ValueId> inputs,
                 std::vector<ValueId> outputs) const {
  const Node& root = *nodes_[location].node;
  Node made;
  made.name = root.display_name;
  made.display_name = root.display_name;
  made.op_type = std::string(op);
  made.domain = domain == "ai.onnx" ? "" : std::string(domain);
  made.inputs = std::move(inputs);
  made.outputs = std::move(outputs);
  made.opset_version = domain == "ai.onnx" ? root.opset_version : 1;
  made.schema = domain == kFusedDomain
                    ? fused_schema(op)
                    : OpsetRegistry::standard().find(domain, op, std::max<int64_t>(1, made.opset_version));
  return made;
}

bool Fuser::is_free(ValueId value, std::span<const size_t> members) const {
  const auto index = static_cast<size_t>(value);
  if (edit_.pinned[index] || edit_.captured[index]) return false;
  const Readers all = readers(value);
  return std::all_of(all.begin(), all.end(), [&](size_t reader) { return contains(members, reader); });
}

const std::vector<size_t>& Fuser::fused_absences(NodeId maker) {
  absences_.resize(edit_.source->nodes.size());
  for (; indexed_absences_ < edit_.absences.size(); ++indexed_absences_) {
    const ValueAbsence& absence = edit_.absences[indexed_absences_];
    if (absence.kind != ValueAbsence::Kind::fused || edit_.is_added(absence.value)) continue;
    const NodeId producer = edit_.source->values[static_cast<size_t>(absence.value)].producer;
    if (producer != kNoNode) absences_[static_cast<size_t>(producer)].push_back(indexed_absences_);
  }
  return absences_[static_cast<size_t>(maker)];
}

bool Fuser::replace(std::span<const size_t> given, size_t location, Node made) {
  if (made.schema == nullptr || target_of(made) > edit_.limit) return false;
  const std::set<size_t> unique(given.begin(), given.end());
  const std::vector<size_t> members(unique.begin(), unique.end());
  std::vector<ValueId> lost;
  for (size_t member : members) {
    for (ValueId output : nodes_[member].node->outputs) {
      const bool kept = std::find(made.outputs.begin(), made.outputs.end(), output) != made.outputs.end();
      if (output == kNoValue || kept) continue;
      if (!is_free(output, members)) return false;
      lost.push_back(output);
    }
  }
  for (ValueId needed : made.inputs) {
    const size_t from = producer(needed);
    if (from != kNowhere && (from >= location || contains(members, from))) return false;
  }
  for (ValueId output : made.outputs) {  // what it makes earlier or later than before must suit the readers
    if (output == kNoValue) continue;
    for (const size_t reader : readers(output)) {
      if (reader <= location && !contains(members, reader)) return false;
    }
  }
  std::set<NodeId> sources;
  for (size_t member : members) {
    const PlannedNode& planned = nodes_[member];
    if (planned.sources.empty()) sources.insert(planned.id);
    sources.insert(planned.sources.begin(), planned.sources.end());
  }
  for (size_t member : members) forget(member);
  for (ValueId value : lost) edit_.absences.push_back({value, ValueAbsence::Kind::fused, made.display_name});
  for (const NodeId source : sources) {  // fused earlier into a node that is itself taken up now
    for (const size_t index : fused_absences(source)) edit_.absences[index].into = made.display_name;
  }
  edit_.made.push_back(std::move(made));
  ++edit_.changes;
  nodes_[location].node = &edit_.made.back();
  nodes_[location].sources.assign(sources.begin(), sources.end());
  note(location);
  return true;
}

void Fuser::remove(size_t position, ValueAbsence::Kind kind) {
  for (ValueId output : nodes_[position].node->outputs) {
    if (output != kNoValue) edit_.absences.push_back({output, kind, ""});
  }
  ++edit_.changes;
  forget(position);
}

bool Fuser::alias(size_t position, ValueId target) {
  const ValueId value = nodes_[position].node->outputs[0];
  if (edit_.pinned[static_cast<size_t>(value)]) return false;
  edit_.alias(value, target);
  forget(position);
  const ValueId to = edit_.resolve(value);
  for (int32_t read = first_read_[static_cast<size_t>(value)]; read >= 0;) {
    const int32_t next = reads_[static_cast<size_t>(read)].next;
    link(read, to);
    read = next;
  }
  first_read_[static_cast<size_t>(value)] = -1;
  return true;
}

void Fuser::forget(size_t position) {
  const auto count = static_cast<int32_t>(nodes_[position].node->inputs.size());
  for (int32_t index = 0; index < count; ++index) unlink(reads_of_node_[position] + index);
  for (ValueId output : nodes_[position].node->outputs) {
    if (output != kNoValue) producers_[static_cast<size_t>(output)] = kNowhere;
  }
  nodes_[position].node = nullptr;
}

void Fuser::link(int32_t read, ValueId value) {
  Readers::Read& linked = reads_[static_cast<size_t>(read)];
  int32_t& first = first_read_[static_cast<size_t>(value)];
  linked.value = value;
  linked.previous = -1;
  linked.next = first;
  if (first >= 0) reads_[static_cast<size_t>(first)].previous = read;
  first = read;
}

// An omitted input is linked nowhere.
void Fuser::unlink(int32_t read) {
  const Readers::Read& linked = reads_[static_cast<size_t>(read)];
  if (linked.value == kNoValue) return;
  if (linked.next >= 0) reads_[static_cast<size_t>(linked.next)].previous = linked.previous;
  int32_t& before = linked.previous >= 0 ? reads_[static_cast<size_t>(linked.previous)].next
                                         : first_read_[static_cast<size_t>(linked.value)];
  before = linked.next;
}

void Fuser::note(size_t position) {
  producers_.resize(edit_.constants.size(), kNowhere);
  first_read_.resize(edit_.constants.size(), -1);
  reads_of_node_[position] = static_cast<int32_t>(reads_.size());
  for (const ValueId value : nodes_[position].node->inputs) {
    reads_.push_back({position});
    if (value != kNoValue) link(static_cast<int32_t>(reads_.size()) - 1, edit_.resolve(value));
  }
  for (ValueId output : nodes_[position].node->outputs) {
    if (output != kNoValue) producers_[static_cast<size_t>(output)] = position;
  }
}

int64_t int_of(const Node& node, std::string_view name, int64_t otherwise) {
  if (const auto* value = stored<int64_t>(node, name)) return *value;
  if (const auto* value = by_default<int64_t>(node, name)) return *value;
  return otherwise;
}

double float_of(const Node& node, std::string_view name, double otherwise) {
  if (const auto* value = stored<float>(node, name)) return static_cast<double>(*value);
  if (const auto* value = by_default<float>(node, name)) return static_cast<double>(*value);
  return otherwise;
}

std::string text_of(const Node& node, std::string_view name, std::string otherwise) {
  if (const auto* value = stored<std::string>(node, name)) return *value;
  if (const auto* value = by_default<std::string_view>(node, name)) return std::string(*value);
  return otherwise;
}

std::optional<std::vector<int64_t>> ints_of(const Node& node, std::string_view name) {
  const auto* value = stored<std::vector<int64_t>>(node, name);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

bool is_standard(const Node& node) { return node.domain.empty() || node.domain == "ai.onnx"; }

bool is_near(double value, double wanted, DType dtype) {
  const double tolerance = dtype == DType::float16 ? 1e-3 : dtype == DType::bfloat16 ? 8e-3 : 1e-6;
  return std::fabs(value - wanted) <= tolerance * std::fabs(wanted);
}

}  // namespace parallax::runtime
