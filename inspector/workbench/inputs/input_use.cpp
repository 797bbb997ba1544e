// SPDX-License-Identifier: Apache-2.0
// Follows an input through operators that keep its elements what they are, to the operator that gives them their
// meaning.
#include "inspector/workbench/inputs/input_use.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "inspector/base/text.h"
#include "inspector/model/stored_int.h"

namespace parallax {
namespace {

constexpr int kMaxSteps = 12;
constexpr std::array<std::string_view, 12> kTransparentOps = {"Identity",  "Cast",    "Reshape", "Unsqueeze",
                                                              "Squeeze",   "Flatten", "Expand",  "Concat",
                                                              "Transpose", "Slice",   "Tile",    "Clip"};

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
  InputUse use{InputUse::Kind::indices, *rows, fmt::format("indices of '{}' ({} rows)", name, *rows)};
  use.is_limit_known = true;
  return use;
}

ValueId input_of(const Node& node, size_t slot) { return slot < node.inputs.size() ? node.inputs[slot] : kNoValue; }

int64_t known_rank(const Graph& graph, ValueId id) {  // -1: not known
  if (id == kNoValue) return -1;
  const auto& dims = graph.values[static_cast<size_t>(id)].type.dims;
  return dims.has_value() ? static_cast<int64_t>(dims->size()) : -1;
}

// Rows of GatherND and ScatterND index several axes at once: what is within the shortest is within all of them.
InputUse tuples_of(const Graph& graph, const Node& node, InputUse::Kind kind) {
  const int64_t first = stored_int(node, "batch_dims", 0);
  const int64_t count = std::min<int64_t>(known_dim(graph, input_of(node, 1), -1).value_or(1), 16);
  InputUse use = indices_of(graph, node.inputs[0], first);
  for (int64_t axis = first + 1; axis < first + count; ++axis)
    use.limit = std::min(use.limit, known_dim(graph, node.inputs[0], axis).value_or(1));
  use.kind = kind;
  return use;
}

InputUse axes_of(const Graph& graph, const Node& node) {
  return {InputUse::Kind::positions, known_rank(graph, node.inputs[0]), "axes"};
}

// Only axes of one element can be squeezed.
InputUse squeezed_axes_of(const Graph& graph, const Node& node) {
  InputUse use{InputUse::Kind::listed, -1, "axes of one element"};
  for (int64_t axis = 0; axis < known_rank(graph, node.inputs[0]); ++axis) {
    if (known_dim(graph, node.inputs[0], axis) == 1) use.elements.push_back(axis);
  }
  return use.elements.empty() ? axes_of(graph, node) : use;
}

InputUse locations_of(const Graph& graph, const Node& node) {
  InputUse use = indices_of(graph, node.inputs[0], stored_int(node, "axis", 0));
  use.kind = InputUse::Kind::locations;
  use.axis = stored_int(node, "axis", 0);
  return use;
}

InputUse parts_of(const Graph& graph, const Node& node) {
  const auto total = known_dim(graph, node.inputs[0], stored_int(node, "axis", 0));
  return {InputUse::Kind::parts, total.value_or(-1), "sizes of parts"};
}

// Twice the size, in what looks like batch and channels the same.
InputUse resized_of(const Graph& graph, const Node& node) {
  InputUse use{InputUse::Kind::listed, -1, "sizes"};
  const int64_t rank = known_rank(graph, node.inputs[0]);
  for (int64_t axis = 0; axis < rank; ++axis) {
    const auto dim = known_dim(graph, node.inputs[0], axis);
    use.elements.push_back(std::max<int64_t>(1, dim.value_or(1)) * (axis < 2 && rank > 2 ? 1 : 2));
  }
  if (use.elements.empty()) use.elements = {2};
  return use;
}

// A sequence that is generated has two items, one that is computed has at least one where it is read.
InputUse items_of(const Graph& graph, const Node& node) {
  const bool is_generated = graph.values[static_cast<size_t>(node.inputs[0])].producer == kNoNode;
  return {InputUse::Kind::indices, is_generated ? 2 : 1, "positions in a sequence"};
}

InputUse indices_along_axis(const Graph& graph, const Node& node) {
  return indices_of(graph, node.inputs[0], stored_int(node, "axis", 0));
}
InputUse classes_of(const Graph& graph, const Node& node) { return indices_of(graph, node.inputs[0], 1); }
InputUse gathered_tuples_of(const Graph& graph, const Node& node) {
  return tuples_of(graph, node, InputUse::Kind::indices);
}
InputUse scattered_tuples_of(const Graph& graph, const Node& node) {
  return tuples_of(graph, node, InputUse::Kind::tuples);
}
InputUse words_of(const Graph& graph, const Node& node) {
  const ValueId table = input_of(node, 2);
  return table == kNoValue ? InputUse{} : indices_of(graph, table, 0);
}
InputUse segments_of(const Graph& graph, const Node& node) {
  const ValueId table = input_of(node, 4);
  return table == kNoValue ? InputUse{} : indices_of(graph, table, 0);
}
InputUse features_of(const Graph& graph, const Node& node) { return indices_of(graph, node.inputs[0], -1); }
// A write into a cache must end within it.
InputUse steps_of(const Graph& graph, const Node& node) {
  const int64_t axis = stored_int(node, "axis", -2);
  InputUse use = indices_of(graph, node.inputs[0], axis);
  const auto written = known_dim(graph, input_of(node, 1), axis);
  use.is_limit_known = use.is_limit_known && written.has_value();
  use.limit = use.is_limit_known ? std::max<int64_t>(1, use.limit - *written + 1) : 1;
  return use;
}
InputUse lengths_of(const Graph& graph, const Node& node) {
  const auto longest = known_dim(graph, node.inputs[0], stored_int(node, "time_axis", 0));
  return {InputUse::Kind::lengths, longest.value_or(-1), "sequence lengths"};
}
InputUse scales_of(const Graph&, const Node&) { return {InputUse::Kind::scales, -1, "scales"}; }
// Resize had its scales second before it had a region of interest there.
InputUse old_scales_of(const Graph&, const Node& node) {
  return node.inputs.size() == 2 ? InputUse{InputUse::Kind::scales, -1, "scales"} : InputUse{};
}
InputUse recurrent_lengths(const Graph&, const Node&) { return {InputUse::Kind::lengths, -1, "sequence lengths"}; }
InputUse as_condition(const Graph&, const Node&) { return {InputUse::Kind::condition, -1, "a condition"}; }
InputUse as_trip_count(const Graph&, const Node&) { return {InputUse::Kind::trip_count, -1, "a trip count"}; }
InputUse as_shape_with_rest(const Graph&, const Node&) { return {InputUse::Kind::shape, 1, "a shape"}; }
InputUse as_shape(const Graph&, const Node&) { return {InputUse::Kind::shape, 0, "a shape"}; }
InputUse as_count(const Graph&, const Node&) { return {InputUse::Kind::lengths, 1, "a count"}; }
InputUse as_depth(const Graph&, const Node&) { return {InputUse::Kind::lengths, 8, "a depth"}; }
InputUse as_pads(const Graph&, const Node&) { return {InputUse::Kind::indices, 2, "pads"}; }
InputUse as_steps(const Graph&, const Node&) { return {InputUse::Kind::positive, -1, "a step"}; }
InputUse as_divisors(const Graph&, const Node&) { return {InputUse::Kind::positive, -1, "divisors"}; }
InputUse as_width(const Graph&, const Node&) { return {InputUse::Kind::positive, -1, "a width"}; }

struct SlotMeaning {
  std::string_view op;
  size_t slot;
  InputUse (*use)(const Graph& graph, const Node& node);  // Kind::values: none after all
};
constexpr std::array<SlotMeaning, 61> kMeanings = {{
    {"Gather", 1, indices_along_axis},
    {"GatherElements", 1, indices_along_axis},
    {"GatherND", 1, gathered_tuples_of},
    {"Scatter", 1, locations_of},
    {"ScatterElements", 1, locations_of},
    {"ScatterND", 1, scattered_tuples_of},
    {"GatherBlockQuantized", 1, indices_along_axis},
    {"ArrayFeatureExtractor", 1, features_of},
    {"EmbedLayerNormalization", 0, words_of},
    {"EmbedLayerNormalization", 1, segments_of},
    {"TensorScatter", 2, steps_of},
    {"NegativeLogLikelihoodLoss", 1, classes_of},
    {"SoftmaxCrossEntropyLoss", 1, classes_of},
    {"SequenceAt", 1, items_of},
    {"SequenceErase", 1, items_of},
    {"SequenceInsert", 2, items_of},
    {"If", 0, as_condition},
    {"Loop", 0, as_trip_count},
    {"Loop", 1, as_condition},
    {"LSTM", 4, recurrent_lengths},
    {"GRU", 4, recurrent_lengths},
    {"RNN", 4, recurrent_lengths},
    {"ReverseSequence", 1, lengths_of},
    {"Reshape", 1, as_shape_with_rest},
    {"Expand", 1, as_shape},
    {"Tile", 1, as_shape},
    {"CenterCropPad", 1, as_shape},
    {"ConstantOfShape", 0, as_shape},
    {"TopK", 1, as_count},
    {"OneHot", 1, as_depth},
    {"Pad", 1, as_pads},
    {"Pad", 3, axes_of},
    {"Slice", 3, axes_of},
    {"Slice", 4, as_steps},
    {"Squeeze", 1, squeezed_axes_of},
    {"Unsqueeze", 1, axes_of},
    {"CumSum", 1, axes_of},
    {"DFT", 1, as_width},
    {"DFT", 2, axes_of},
    {"HannWindow", 0, as_width},
    {"HammingWindow", 0, as_width},
    {"BlackmanWindow", 0, as_width},
    {"ReduceL1", 1, axes_of},
    {"ReduceL2", 1, axes_of},
    {"ReduceLogSum", 1, axes_of},
    {"ReduceLogSumExp", 1, axes_of},
    {"ReduceMax", 1, axes_of},
    {"ReduceMean", 1, axes_of},
    {"ReduceMin", 1, axes_of},
    {"ReduceProd", 1, axes_of},
    {"ReduceSum", 1, axes_of},
    {"ReduceSumSquare", 1, axes_of},
    {"Split", 1, parts_of},
    {"SplitToSequence", 1, parts_of},
    {"Upsample", 1, scales_of},
    {"Resize", 1, old_scales_of},
    {"Resize", 2, scales_of},
    {"Resize", 3, resized_of},
    {"Range", 2, as_steps},
    {"Div", 1, as_divisors},
    {"Mod", 1, as_divisors},
}};

}  // namespace

bool is_transparent(const Node& node) {
  return std::find(kTransparentOps.begin(), kTransparentOps.end(), node.op_type) != kTransparentOps.end();
}

std::optional<InputUse> meaning_at(const Graph& graph, const Node& node, size_t slot) {
  const auto* row = std::ranges::find_if(
      kMeanings, [&](const SlotMeaning& meaning) { return meaning.op == node.op_type && meaning.slot == slot; });
  const bool lacks_data = input_of(node, 0) == kNoValue && node.op_type != "Loop";  // a Loop may lack its trip count
  if (row == kMeanings.end() || lacks_data) return std::nullopt;
  InputUse use = row->use(graph, node);
  return use.kind == InputUse::Kind::values ? std::nullopt : std::optional(std::move(use));
}

namespace {

bool casts_to_bool(const Node& node) {
  return node.op_type == "Cast" && stored_int(node, "to", 0) == static_cast<int>(DType::bool_);
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
  if (InputCategories categories = find_categories(graph, input); !categories.columns.empty()) {
    InputUse use{InputUse::Kind::categories, -1, fmt::format("what '{}' knows", categories.reader)};
    use.categories = std::move(categories);
    return use;
  }
  if (named("mask")) return {InputUse::Kind::mask, -1, "a mask, by its name"};
  const bool is_whole = is_integer(value.type.dtype) || value.type.dtype == DType::bool_;
  std::set<ValueId> seen;
  auto use = follow(graph, input, 0, seen);
  if (!is_whole) return use.has_value() && use->kind == InputUse::Kind::scales ? *use : InputUse{};
  if (is_integer(value.type.dtype) && named("position")) {
    return {InputUse::Kind::positions, use.has_value() && use->kind == InputUse::Kind::indices ? use->limit : -1,
            "positions, by its name"};
  }
  if (use.has_value()) return *use;
  if (is_integer(value.type.dtype) && named("len")) return {InputUse::Kind::lengths, -1, "lengths, by its name"};
  return {};
}

}  // namespace parallax
