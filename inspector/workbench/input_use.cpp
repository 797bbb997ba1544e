// Follows an input through operators that keep its elements what they are, to the operator that gives them their
// meaning.
#include "inspector/workbench/input_use.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "inspector/base/text.h"

namespace parallax {
namespace {

constexpr int kMaxSteps = 12;
constexpr std::array<std::string_view, 12> kTransparentOps = {"Identity",  "Cast",    "Reshape", "Unsqueeze",
                                                              "Squeeze",   "Flatten", "Expand",  "Concat",
                                                              "Transpose", "Slice",   "Tile",    "Clip"};

bool is_transparent(const Node& node) {
  return std::find(kTransparentOps.begin(), kTransparentOps.end(), node.op_type) != kTransparentOps.end();
}

int64_t int_attribute(const Node& node, std::string_view name, int64_t fallback) {
  const Attribute* attribute = find_attribute(node, name);
  const auto* value = attribute == nullptr ? nullptr : std::get_if<int64_t>(&attribute->value);
  return value == nullptr ? fallback : *value;
}

std::optional<int64_t> known_dim(const Graph& graph, ValueId id, int64_t axis) {
  if (id == kNoValue) return std::nullopt;
  const ValueDef& value = graph.values[static_cast<size_t>(id)];
  if (value.initializer_index >= 0) {
    const Shape& shape = graph.initializers[static_cast<size_t>(value.initializer_index)].tensor.shape();
    const int64_t at = axis < 0 ? axis + static_cast<int64_t>(shape.rank()) : axis;
    return at >= 0 && at < static_cast<int64_t>(shape.rank()) ? std::optional(shape[static_cast<size_t>(at)])
                                                              : std::nullopt;
  }
  if (!value.type.dims.has_value()) return std::nullopt;
  const auto rank = static_cast<int64_t>(value.type.dims->size());
  const int64_t at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank || !(*value.type.dims)[static_cast<size_t>(at)].is_known()) return std::nullopt;
  return (*value.type.dims)[static_cast<size_t>(at)].value;
}

InputUse indices_of(const Graph& graph, ValueId table, int64_t axis) {
  const auto rows = known_dim(graph, table, axis);
  const std::string& name = graph.values[static_cast<size_t>(table)].name;
  if (!rows.has_value()) return {InputUse::Kind::indices, 1, fmt::format("indices of '{}'", name)};
  return {InputUse::Kind::indices, *rows, fmt::format("indices of '{}' ({} rows)", name, *rows)};
}

// The meaning that `node` gives to what it reads as input number `slot`; nothing when it gives none.
std::optional<InputUse> meaning_at(const Graph& graph, const Node& node, size_t slot) {
  const std::string& op = node.op_type;
  const bool is_gather = op == "Gather" || op == "GatherElements";
  if (is_gather && slot == 1 && node.inputs[0] != kNoValue)
    return indices_of(graph, node.inputs[0], int_attribute(node, "axis", 0));
  if (op == "GatherND" && slot == 1 && node.inputs[0] != kNoValue) {
    return indices_of(graph, node.inputs[0], int_attribute(node, "batch_dims", 0));
  }
  if (op == "EmbedLayerNormalization" && slot == 0 && node.inputs.size() > 2)
    return indices_of(graph, node.inputs[2], 0);
  if (op == "If" || (op == "Loop" && slot == 1)) return InputUse{InputUse::Kind::condition, -1, "a condition"};
  if (op == "Loop" && slot == 0) return InputUse{InputUse::Kind::trip_count, -1, "a trip count"};
  const bool is_recurrent = op == "LSTM" || op == "GRU" || op == "RNN";
  if (is_recurrent && slot == 4) return InputUse{InputUse::Kind::lengths, -1, "sequence lengths"};
  const bool takes_shape = op == "Reshape" || op == "Expand" || op == "Tile";
  if (takes_shape && slot == 1) return InputUse{InputUse::Kind::shape, op == "Reshape" ? 1 : 0, "a shape"};
  if (op == "ConstantOfShape") return InputUse{InputUse::Kind::shape, 0, "a shape"};
  if (op == "TopK" && slot == 1) return InputUse{InputUse::Kind::lengths, 1, "a count"};
  return std::nullopt;
}

bool casts_to_bool(const Node& node) {
  return node.op_type == "Cast" && int_attribute(node, "to", 0) == static_cast<int>(DType::bool_);
}

std::optional<InputUse> follow(const Graph& graph, ValueId value, int steps, std::set<ValueId>& seen) {
  if (steps > kMaxSteps || !seen.insert(value).second) return std::nullopt;
  for (NodeId reader : graph.values[static_cast<size_t>(value)].readers) {
    const Node& node = graph.nodes[static_cast<size_t>(reader)];
    for (size_t slot = 0; slot < node.inputs.size(); ++slot) {
      if (node.inputs[slot] != value) continue;
      if (auto use = meaning_at(graph, node, slot)) return use;
      if (casts_to_bool(node)) return InputUse{InputUse::Kind::mask, -1, "a mask"};
      const bool goes_on = is_transparent(node) && (slot == 0 || node.op_type == "Concat") && !node.outputs.empty();
      if (!goes_on || node.outputs[0] == kNoValue) continue;
      if (auto use = follow(graph, node.outputs[0], steps + 1, seen)) return use;
    }
  }
  return std::nullopt;
}

}  // namespace

InputUse find_input_use(const Graph& graph, ValueId input) {
  const ValueDef& value = graph.values[static_cast<size_t>(input)];
  const std::string name = lower_case(value.name);
  const auto named = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (named("mask")) return {InputUse::Kind::mask, -1, "a mask, by its name"};
  const bool is_whole = is_integer(value.type.dtype) || value.type.dtype == DType::bool_;
  if (!is_whole) return {};
  std::set<ValueId> seen;
  auto use = follow(graph, input, 0, seen);
  if (is_integer(value.type.dtype) && named("position")) {
    return {InputUse::Kind::positions, use.has_value() && use->kind == InputUse::Kind::indices ? use->limit : -1,
            "positions, by its name"};
  }
  if (use.has_value()) return *use;
  if (is_integer(value.type.dtype) && named("len")) return {InputUse::Kind::lengths, -1, "lengths, by its name"};
  return {};
}

}  // namespace parallax
