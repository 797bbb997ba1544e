// SPDX-License-Identifier: Apache-2.0
// Ranges of weights, and weights in another type.
#include "inspector/transform/half_precision/narrow_weights.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "inspector/base/mapped_ranges.h"
#include "inspector/model/make_attribute.h"
#include "inspector/tensor/narrow_floats.h"
#include "inspector/transform/half_precision/precision_rules.h"

namespace parallax::transform {
namespace {

constexpr size_t kBlockElements = size_t{1} << 20;
constexpr size_t kDeferredBytes = size_t{1} << 20;  // initializers larger than this wait for the export

Attribute* attribute_of(Node& node, std::string_view name) {
  const auto found = std::ranges::find(node.attributes, name, &Attribute::name);
  return found == node.attributes.end() ? nullptr : &*found;
}

// The elements of a weight that is in a file pass through memory once.
FiniteRange range_of(std::span<const float> values) {
  FiniteRange range;
  for (size_t begin = 0; begin < values.size(); begin += kBlockElements) {
    const auto block = values.subspan(begin, std::min(kBlockElements, values.size() - begin));
    const FiniteRange part = finite_range(block);
    if (std::abs(part.largest) > std::abs(range.largest)) range.largest = part.largest;
    if (range.smallest == 0 || (part.smallest > 0 && part.smallest < range.smallest)) range.smallest = part.smallest;
    release_if_mapped(reinterpret_cast<const std::byte*>(block.data()), block.size_bytes());
  }
  return range;
}

const Tensor* initializer_of(const FloatValue& value) {
  const ValueDef& definition = value_at(*value.graph, value.id);
  if (value.source == FloatValue::Source::constant || definition.initializer_index < 0) return nullptr;
  return &value.graph->initializers[static_cast<size_t>(definition.initializer_index)].tensor;
}

// The numbers that a Constant or ConstantOfShape holds as float32.
std::vector<float> numbers_of(const Node& node) {
  for (const Attribute& attribute : node.attributes) {
    if (const auto* tensor = std::get_if<StoredTensor>(&attribute.value)) {
      if (attribute.name != "value" || tensor->tensor.dtype() != DType::float32) continue;
      const auto values = tensor->tensor.as<float>();
      return {values.begin(), values.end()};
    }
    if (attribute.name == "value_float") return {std::get<float>(attribute.value)};
    if (attribute.name == "value_floats") return std::get<std::vector<float>>(attribute.value);
  }
  return {0.0F};  // what ConstantOfShape fills with where it names nothing
}

bool has_numbers(const FloatValue& value) {
  return value.source == FloatValue::Source::constant || value.source == FloatValue::Source::fill;
}

FiniteRange stored_range(const FloatValue& value) {
  if (const Tensor* tensor = initializer_of(value)) return range_of(tensor->as<float>());
  if (!has_numbers(value)) return {};
  return finite_range(numbers_of(value.graph->nodes[static_cast<size_t>(value.producer)]));
}

bool is_scale_of_quantizing(const FloatReader& reader) {
  if (reader.node == kNoNode || reader.index == 0) return false;
  return precision_rule_of(reader.graph->nodes[static_cast<size_t>(reader.node)]) == PrecisionRule::quantizes;
}

// No reader computes with the value. A cast after the moves would make infinities of what is beyond the range; the same
// infinities in its place are no clamp, and save the cast.
bool is_only_moved(const FloatValue& value, const PrecisionGroups& groups) {
  return std::ranges::all_of(value.readers, [&](const FloatReader& reader) {
    if (reader.group == kAnyType || reader.node == kNoNode) return true;
    return groups.demands[static_cast<size_t>(reader.group)] == Demand::any;
  });
}

// Keeps a node in float32 with all its inputs and outputs.
class NodeHolder {
 public:
  explicit NodeHolder(PrecisionGroups& groups) : groups_(groups) {
    for (size_t index = 0; index < groups.nodes.size(); ++index)
      nodes_[{groups.nodes[index].graph, groups.nodes[index].node}] = index;
  }
  void hold(const FloatReader& reader) {
    if (reader.group == kAnyType) return;
    demand(reader.group);
    const auto found = nodes_.find({reader.graph, reader.node});
    if (reader.node == kNoNode || found == nodes_.end()) return;
    FloatNode& node = groups_.nodes[found->second];
    node.is_kept = true;
    for (const GroupId group : node.groups) demand(group);
  }
  void demand(GroupId group) {
    if (group > kFloat32) groups_.demands[static_cast<size_t>(group)] = Demand::float32;
  }

 private:
  PrecisionGroups& groups_;
  std::map<NodeKey, size_t> nodes_;
};

}  // namespace

UnfitWeights hold_unfit_weights(PrecisionGroups& groups, DType to) {
  UnfitWeights unfit;
  NodeHolder holder(groups);
  const float threshold = overflow_threshold(to);
  for (size_t index = 0; index < groups.values.size(); ++index) {
    FloatValue& value = groups.values[index];
    const FiniteRange range = stored_range(value);
    if (std::abs(range.largest) >= threshold) {
      const bool moved = is_only_moved(value, groups);
      (moved ? unfit.moved : unfit.held)[index] = fmt::format("holds {:.4g}, and the largest {} is {:.6g}",
                                                              range.largest, name_of(to), float_limits(to).max_finite);
      if (moved) continue;
      if (value.group == kNarrow) value.group = kFloat32;
      holder.demand(value.group);
      for (const FloatReader& reader : value.readers) holder.hold(reader);
    } else if (range.smallest > 0 && range.smallest < float_limits(to).min_normal) {
      for (const FloatReader& reader : value.readers) {
        if (!is_scale_of_quantizing(reader)) continue;
        holder.hold(reader);
        unfit.held[index] = fmt::format("is a scale of {:.4g}, and the smallest {} with all its bits is {:.4g}",
                                        range.smallest, name_of(to), float_limits(to).min_normal);
      }
    }
  }
  return unfit;
}

namespace {

Status convert_initializer(StoredTensor& stored, const HalfRequest& request, DeferredTensors& deferred) {
  stored.is_typed = false;
  if (request.defer_weights && stored.tensor.size_bytes() > kDeferredBytes) {
    const std::shared_ptr<std::byte>& storage = stored.tensor.storage();
    const Tensor narrow = Tensor::wrap(request.to, stored.tensor.shape(), storage);  // the type and shape alone
    deferred.emplace(&stored, stored.tensor);
    stored.tensor = narrow;
    return {};
  }
  stored.tensor = PX_TRY(narrow_tensor(stored.tensor, request.to));
  return {};
}

Status convert_numbers(Node& node, DType to) {
  for (Attribute& attribute : node.attributes) {
    auto* stored = std::get_if<StoredTensor>(&attribute.value);
    if (stored == nullptr || attribute.name != "value") continue;
    stored->is_typed = false;
    stored->tensor = PX_TRY(narrow_tensor(stored->tensor, to));
    return {};
  }
  const std::vector<float> numbers = numbers_of(node);
  const bool is_scalar = find_attribute(node, "value_float") != nullptr;
  StoredTensor stored;
  stored.tensor = PX_TRY(
      narrow_tensor(is_scalar ? Tensor::scalar(numbers.front()) : Tensor::vector(std::span<const float>(numbers)), to));
  std::erase_if(node.attributes, [](const Attribute& attribute) { return attribute.name.starts_with("value_"); });
  node.attributes.push_back(make_attribute("value", AttributeType::tensor, std::move(stored)));
  return {};
}

void convert_type_attribute(Node& node, DType to) {
  Attribute* attribute = attribute_of(node, type_attribute_of(node));
  if (attribute == nullptr) return;
  if (auto* number = std::get_if<int64_t>(&attribute->value)) {
    if (*number == static_cast<int64_t>(DType::float32)) *number = static_cast<int64_t>(to);
  } else if (auto* text = std::get_if<std::string>(&attribute->value)) {  // before opset 6
    if (*text == "FLOAT") *text = "FLOAT16";
  }
}

}  // namespace

std::vector<KeptWeight> infinite_weights(const PrecisionGroups& groups, const std::vector<bool>& is_narrow,
                                         const UnfitWeights& unfit) {
  std::vector<KeptWeight> infinite;
  for (const auto& [index, reason] : unfit.moved) {
    const FloatValue& value = groups.values[index];
    if (is_narrow[static_cast<size_t>(value.group)])
      infinite.push_back({value_at(*value.graph, value.id).name, reason + "; its readers only move it to a cast"});
  }
  return infinite;
}

Status convert_stored(const PrecisionGroups& groups, const std::vector<bool>& is_narrow, const HalfRequest& request,
                      DeferredTensors& deferred) {
  for (const FloatValue& value : groups.values) {
    if (!is_narrow[static_cast<size_t>(value.group)]) continue;
    ValueDef& definition = value.graph->values[static_cast<size_t>(value.id)];
    definition.type.kind = TypeInfo::Kind::tensor;
    definition.type.dtype = request.to;
    if (definition.initializer_index >= 0) {
      StoredTensor& stored = value.graph->initializers[static_cast<size_t>(definition.initializer_index)];
      PX_TRY(convert_initializer(stored, request, deferred));
    }
    if (value.producer == kNoNode) continue;
    Node& node = value.graph->nodes[static_cast<size_t>(value.producer)];
    if (has_numbers(value)) {
      PX_TRY(convert_numbers(node, request.to));
    } else {
      convert_type_attribute(node, request.to);
    }
  }
  return {};
}

std::vector<KeptWeight> kept_weights(const PrecisionGroups& groups, const std::vector<bool>& is_narrow,
                                     const UnfitWeights& unfit) {
  std::map<NodeKey, const FloatNode*> nodes;
  for (const FloatNode& node : groups.nodes) nodes[{node.graph, node.node}] = &node;
  std::vector<KeptWeight> kept;
  for (size_t index = 0; index < groups.values.size(); ++index) {
    const FloatValue& value = groups.values[index];
    const auto reason = unfit.held.find(index);
    const bool is_weight = value.is_stored() || initializer_of(value) != nullptr || reason != unfit.held.end();
    if (!is_weight || is_narrow[static_cast<size_t>(value.group)]) continue;
    const std::string& name = value_at(*value.graph, value.id).name;
    if (reason != unfit.held.end()) {
      kept.push_back({name, reason->second});
      continue;
    }
    const auto reader = std::ranges::find_if(value.readers, [&](const FloatReader& item) {
      return item.group != kAnyType && !is_narrow[static_cast<size_t>(item.group)];
    });
    const auto node = reader == value.readers.end() ? nodes.end() : nodes.find({reader->graph, reader->node});
    kept.push_back({name, node == nodes.end()
                              ? "is an input or output that stays float32"
                              : fmt::format("is read by '{}', which computes in float32", node->second->path)});
  }
  return kept;
}

}  // namespace parallax::transform
