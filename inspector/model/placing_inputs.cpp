// SPDX-License-Identifier: Apache-2.0
// The table of placing inputs, and uses of a value in bodies.
#include "inspector/model/placing_inputs.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "inspector/model/link.h"
#include "inspector/model/opset/opset_registry.h"

namespace parallax {
namespace {

constexpr std::string_view kStandard = "ai.onnx";
constexpr std::string_view kMicrosoft = "com.microsoft";
constexpr int kDeepest = 64;  // bodies and calls within one another

struct PlacingInput {
  std::string_view op;
  size_t input;
  Placing placing;
  std::string_view domain = kStandard;
};

constexpr std::array kPlacingInputs = {
    PlacingInput{"CenterCropPad", 1, Placing::by_shape},
    PlacingInput{"ConstantOfShape", 0, Placing::by_shape},
    PlacingInput{"Expand", 1, Placing::by_shape},
    PlacingInput{"MaxUnpool", 2, Placing::by_shape},
    PlacingInput{"Reshape", 1, Placing::by_shape},
    PlacingInput{"Resize", 3, Placing::by_shape},
    PlacingInput{"Split", 1, Placing::by_shape},
    PlacingInput{"Squeeze", 1, Placing::by_shape},
    PlacingInput{"Tile", 1, Placing::by_shape},
    PlacingInput{"Unsqueeze", 1, Placing::by_shape},
    PlacingInput{"ExpandDims", 1, Placing::by_shape, kMicrosoft},
    PlacingInput{"AffineGrid", 1, Placing::by_location},
    PlacingInput{"Col2Im", 1, Placing::by_location},
    PlacingInput{"Col2Im", 2, Placing::by_location},
    PlacingInput{"CumProd", 1, Placing::by_location},
    PlacingInput{"CumSum", 1, Placing::by_location},
    PlacingInput{"DFT", 1, Placing::by_location},
    PlacingInput{"DFT", 2, Placing::by_location},
    PlacingInput{"Pad", 1, Placing::by_location},
    PlacingInput{"Pad", 3, Placing::by_location},
    PlacingInput{"ReduceL1", 1, Placing::by_location},
    PlacingInput{"ReduceL2", 1, Placing::by_location},
    PlacingInput{"ReduceLogSum", 1, Placing::by_location},
    PlacingInput{"ReduceLogSumExp", 1, Placing::by_location},
    PlacingInput{"ReduceMax", 1, Placing::by_location},
    PlacingInput{"ReduceMean", 1, Placing::by_location},
    PlacingInput{"ReduceMin", 1, Placing::by_location},
    PlacingInput{"ReduceProd", 1, Placing::by_location},
    PlacingInput{"ReduceSum", 1, Placing::by_location},
    PlacingInput{"ReduceSumSquare", 1, Placing::by_location},
    PlacingInput{"Slice", 1, Placing::by_location},
    PlacingInput{"Slice", 2, Placing::by_location},
    PlacingInput{"Slice", 3, Placing::by_location},
    PlacingInput{"Slice", 4, Placing::by_location},
    PlacingInput{"SplitToSequence", 1, Placing::by_location},
    PlacingInput{"Tile", 2, Placing::by_location},
    PlacingInput{"Pad", 1, Placing::by_location, kMicrosoft},
};

bool has_placing_inputs(const Node& node) {
  const std::string_view domain = canonical_domain(node.domain);
  return std::ranges::any_of(kPlacingInputs,
                             [&](const PlacingInput& row) { return row.op == node.op_type && row.domain == domain; });
}

Placing placing_at(const Node& node, size_t input) {
  const std::string_view domain = canonical_domain(node.domain);
  const auto is_it = [&](const PlacingInput& row) {
    return row.op == node.op_type && row.input == input && row.domain == domain;
  };
  const auto* const row = std::ranges::find_if(kPlacingInputs, is_it);
  return row == kPlacingInputs.end() ? Placing::none : row->placing;
}

// The least of all uses; nothing where there is none.
std::optional<Placing> least_of(const Graph& graph, const Node& node, ValueId value, int depth);

// The use of a value in a body. The shape of its node's output says nothing about shapes within.
std::optional<Placing> least_in_body(const Graph& body, ValueId value, int depth) {
  if (value == kNoValue) return std::nullopt;
  const ValueDef& definition = value_at(body, value);
  std::optional<Placing> least;
  if (definition.is_graph_output) least = Placing::none;
  for (const NodeId reader : definition.readers) {
    const Placing placing =
        least_of(body, body.nodes[static_cast<size_t>(reader)], value, depth + 1).value_or(Placing::none);
    least = std::min({least.value_or(placing), placing, Placing::by_location});
  }
  return least;
}

std::optional<Placing> least_of(const Graph& graph, const Node& node, ValueId value, int depth) {
  if (depth > kDeepest) return Placing::none;
  std::optional<Placing> least;
  const auto add = [&](std::optional<Placing> placing) {
    if (placing.has_value()) least = std::min(least.value_or(*placing), *placing);
  };
  const Graph* const called = node.function == nullptr ? nullptr : &node.function->body;
  const std::vector<const Graph*> bodies = bodies_of(node);
  // A Sum may have thousands of inputs, of which none is looked for.
  if (called == nullptr && bodies.empty() && !has_placing_inputs(node)) return Placing::none;
  for (size_t input = 0; input < node.inputs.size(); ++input) {
    if (node.inputs[input] != value) continue;
    if (called == nullptr) {
      add(placing_at(node, input));
    } else if (input < called->inputs.size()) {
      add(least_in_body(*called, called->inputs[input], depth));
    }
  }
  for (const Graph* body : bodies) {
    const ValueId inner = body->find_value(value_at(graph, value).name);
    if (inner != kNoValue && value_at(*body, inner).is_outer) add(least_in_body(*body, inner, depth));
  }
  return least;
}

}  // namespace

Placing placing_of(const Graph& graph, const Node& node, ValueId value) {
  return least_of(graph, node, value, 0).value_or(Placing::none);
}

}  // namespace parallax
