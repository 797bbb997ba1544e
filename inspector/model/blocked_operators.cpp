// SPDX-License-Identifier: Apache-2.0
// Layouts as onnxruntime's mlas has them (MlasReorderInputNchw, MlasReorderFilterOIHWBo, MlasReorderFilterOIHWBiBo) and
// as its optimizer's nchwc_transformer.cc chooses them.
#include "inspector/model/blocked_operators.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inspector/base/cpu_features.h"
#include "inspector/model/link.h"
#include "inspector/model/make_attribute.h"
#include "inspector/model/stored_int.h"

namespace parallax {
namespace {

constexpr std::string_view kBlockEntry = "parallax.channel_block";
constexpr int64_t kSmallBlock = 8, kLargeBlock = 16;

bool is_blocked(const Node& node, std::string_view op_type) {
  return node.domain == kBlockedDomain && node.op_type == op_type;
}

template <class T>
T stored(const Node& node, std::string_view name) {
  const Attribute* attribute = find_attribute(node, name);
  const auto* value = attribute == nullptr ? nullptr : std::get_if<T>(&attribute->value);
  return value == nullptr ? T() : *value;
}

// [O, I, kH, kW] as declared, O and I padded; nothing for a filter that the graph does not store.
std::optional<std::array<int64_t, 4>> filter_of(const Graph& graph, const Node& node) {
  if (node.inputs.size() < 2 || node.inputs[1] == kNoValue) return std::nullopt;
  const int32_t index = value_at(graph, node.inputs[1]).initializer_index;
  if (index < 0) return std::nullopt;
  const Shape& shape = graph.initializers[static_cast<size_t>(index)].tensor.shape();
  if (shape.rank() != 4) return std::nullopt;
  return std::array{shape[0], shape[1], shape[2], shape[3]};
}

// ---- The block -----------------------------------------------------------------------------------------------------

// The padded channels of a blocked value: as declared, or as the convolution before it and the pools in between tell.
int64_t channels_of(const Graph& graph, ValueId id) {
  for (size_t steps = 0; id != kNoValue && steps <= graph.nodes.size(); ++steps) {
    const ValueDef& value = value_at(graph, id);
    if (value.type.dims.has_value() && value.type.dims->size() == 4 && (*value.type.dims)[1].value > 0)
      return (*value.type.dims)[1].value;
    if (value.producer == kNoNode) return 0;
    const Node& producer = graph.nodes[static_cast<size_t>(value.producer)];
    if (is_blocked(producer, "Conv")) {
      const auto filter = filter_of(graph, producer);
      return filter.has_value() ? (*filter)[0] : 0;
    }
    if (producer.inputs.size() != 1) return 0;
    id = producer.inputs.front();
  }
  return 0;
}

int64_t padded(int64_t channels, int64_t block) { return (channels + block - 1) / block * block; }

// The only block that the shapes at a node admit; 0 where they admit both.
int64_t block_at(const Graph& graph, const Node& node) {
  if (is_blocked(node, "ReorderOutput") && !node.inputs.empty()) {
    const int64_t channels = stored_int(node, "channels", 0), held = channels_of(graph, node.inputs.front());
    if (channels <= 0 || held <= 0 || padded(channels, kSmallBlock) == padded(channels, kLargeBlock)) return 0;
    return held == padded(channels, kLargeBlock) ? kLargeBlock : kSmallBlock;
  }
  const auto filter = is_blocked(node, "Conv") ? filter_of(graph, node) : std::nullopt;
  if (!filter.has_value()) return 0;
  const auto [out, in, height, width] = *filter;
  if (out % kLargeBlock != 0) return kSmallBlock;
  if (stored_int(node, "group", 1) != 1) return in > 1 && in % kLargeBlock != 0 ? kSmallBlock : 0;
  if (in <= kSmallBlock) return 0;
  // Fewer channels than a block are read as they are, others in blocks.
  if (in % kSmallBlock != 0) return kLargeBlock;
  return in % kLargeBlock != 0 ? kSmallBlock : 0;
}

int64_t block_in(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (const int64_t block = block_at(graph, node); block != 0) return block;
    for (const Graph* body : bodies_of(node)) {
      if (const int64_t block = block_in(*body); block != 0) return block;
    }
  }
  return 0;
}

// mlas: MLAS_PLATFORM::NchwcBlockSize.
int64_t block_of_processor() {
#if defined(__aarch64__)
  return kLargeBlock;
#else
  return vector_level() == VectorLevel::avx512 ? kLargeBlock : kSmallBlock;
#endif
}

// ---- Functions -----------------------------------------------------------------------------------------------------

class FunctionBody {
 public:
  explicit FunctionBody(int64_t block) : block_(block) {}

  ValueId input(std::string name) {
    graph_.inputs.push_back(value(std::move(name)));
    return graph_.inputs.back();
  }

  ValueId node(std::string op_type, std::vector<ValueId> inputs, std::vector<Attribute> attributes = {}) {
    Node& made = graph_.nodes.emplace_back();
    const ValueId output = value(op_type + "_" + std::to_string(graph_.nodes.size()));
    made.op_type = std::move(op_type);
    made.inputs = std::move(inputs);
    made.outputs = {output};
    made.attributes = std::move(attributes);
    return output;
  }

  ValueId ints(std::vector<int64_t> values) {
    return node("Constant", {}, {ints_attribute("value_ints", std::move(values))});
  }
  ValueId number(float value) { return node("Constant", {}, {float_attribute("value_float", value)}); }
  // 0 and -1 in `shape` are as Reshape has them.
  ValueId reshape(ValueId x, std::vector<int64_t> shape) { return node("Reshape", {x, ints(std::move(shape))}); }
  ValueId transpose(ValueId x, std::vector<int64_t> perm) {
    return node("Transpose", {x}, {ints_attribute("perm", std::move(perm))});
  }

  // From [N, C / block, H, W, block] to [N, C, H, W], both declared as the latter, and back.
  ValueId unblocked(ValueId x) {
    const ValueId blocks = reshape(x, {0, -1, 0, 0, block_});
    return transpose(reshape(transpose(blocks, {0, 2, 3, 1, 4}), {0, 0, 0, -1}), {0, 3, 1, 2});
  }
  ValueId blocked(ValueId x) {
    const ValueId blocks = reshape(transpose(x, {0, 2, 3, 1}), {0, 0, 0, -1, block_});
    return reshape(transpose(blocks, {0, 3, 1, 2, 4}), {0, -1, 0, 0});
  }

  int64_t block() const { return block_; }
  Graph finish(ValueId output) {
    graph_.outputs = {output};
    link_graph(graph_);
    return std::move(graph_);
  }

 private:
  ValueId value(std::string name) {
    graph_.values.emplace_back().name = std::move(name);
    return static_cast<ValueId>(graph_.values.size()) - 1;
  }

  Graph graph_;
  int64_t block_;
};

std::vector<Attribute> attributes_but(const Node& node, std::initializer_list<std::string_view> left_out) {
  std::vector<Attribute> kept;
  std::ranges::copy_if(node.attributes, std::back_inserter(kept), [&](const Attribute& attribute) {
    return std::ranges::find(left_out, attribute.name) == left_out.end();
  });
  return kept;
}

// A node's body: its output, from its inputs; nothing where the node is not as onnxruntime writes it.
using Compute = std::optional<ValueId> (*)(FunctionBody&, const Graph&, const Node&, const std::vector<ValueId>&);

std::optional<ValueId> reorder_input(FunctionBody& body, const Graph&, const Node& node,
                                     const std::vector<ValueId>& inputs) {
  ValueId x = inputs[0];
  if (stored_int(node, "channels_last", 0) != 0) x = body.transpose(x, {0, 3, 1, 2});
  const ValueId channels = body.node("Shape", {x}, {int_attribute("start", 1), int_attribute("end", 2)});
  const ValueId lacking = body.node("Mod", {body.node("Neg", {channels}), body.ints({body.block()})});
  const ValueId pads = body.node("Concat", {body.ints({0}), lacking}, {int_attribute("axis", 0)});
  return body.blocked(body.node("Pad", {x, pads, kNoValue, body.ints({1})}));
}

std::optional<ValueId> reorder_output(FunctionBody& body, const Graph&, const Node& node,
                                      const std::vector<ValueId>& inputs) {
  const int64_t channels = stored_int(node, "channels", 0);
  if (channels <= 0) return std::nullopt;
  const ValueId all = body.unblocked(inputs[0]);
  const ValueId y = body.node("Slice", {all, body.ints({0}), body.ints({channels}), body.ints({1})});
  return stored_int(node, "channels_last", 0) != 0 ? body.transpose(y, {0, 2, 3, 1}) : y;
}

// GetFusedActivationAttr of onnxruntime's providers/common.h.
std::optional<ValueId> activated(FunctionBody& body, const Node& node, ValueId x) {
  const auto name = stored<std::string>(node, "activation");
  const auto params = stored<std::vector<float>>(node, "activation_params");
  if (name.empty()) return x;
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid" || name == "HardSwish") return body.node(name, {x});
  if (name == "LeakyRelu" && params.size() == 1) return body.node(name, {x}, {float_attribute("alpha", params[0])});
  if (params.size() != 2) return std::nullopt;
  if (name == "Clip") return body.node(name, {x, body.number(params[0]), body.number(params[1])});
  if (name != "HardSigmoid") return std::nullopt;
  return body.node(name, {x}, {float_attribute("alpha", params[0]), float_attribute("beta", params[1])});
}

// A filter is stored as [O / block, I, kH, kW, block] where each group reads one channel or the input is not blocked,
// else as [O / block, I / block, kH, kW, block of I, block of O].
std::optional<ValueId> convolution(FunctionBody& body, const Graph& graph, const Node& node,
                                   const std::vector<ValueId>& inputs) {
  const auto filter = filter_of(graph, node);
  if (!filter.has_value() || inputs.size() > 4) return std::nullopt;
  const auto [out, in, height, width] = *filter;
  const int64_t block = body.block();
  const bool is_grouped = stored_int(node, "group", 1) > 1;
  const bool reads_plain = !is_grouped && in < block, in_blocks = !reads_plain && !(is_grouped && in == 1);
  if (out % block != 0 || (in_blocks && in % block != 0)) return std::nullopt;
  const ValueId w =
      in_blocks ? body.transpose(body.reshape(inputs[1], {out / block, in / block, height, width, block, block}),
                                 {0, 5, 1, 4, 2, 3})
                : body.transpose(body.reshape(inputs[1], {out / block, in, height, width, block}), {0, 4, 1, 2, 3});
  std::vector<ValueId> reads = {reads_plain ? inputs[0] : body.unblocked(inputs[0]),
                                body.reshape(w, {out, in, height, width})};
  const auto is_given = [&](size_t index) { return index < inputs.size() && node.inputs[index] != kNoValue; };
  if (is_given(2)) reads.push_back(inputs[2]);
  ValueId y = body.node("Conv", std::move(reads), attributes_but(node, {"activation", "activation_params"}));
  if (is_given(3)) y = body.node("Add", {y, body.unblocked(inputs[3])});
  const auto result = activated(body, node, y);
  return result.has_value() ? std::optional(body.blocked(*result)) : std::nullopt;
}

std::optional<ValueId> pool(FunctionBody& body, const Graph&, const Node& node, const std::vector<ValueId>& inputs) {
  return body.blocked(body.node(node.op_type, {body.unblocked(inputs[0])}, attributes_but(node, {"storage_order"})));
}

std::optional<ValueId> upsample(FunctionBody& body, const Graph&, const Node& node,
                                const std::vector<ValueId>& inputs) {
  const auto scales = stored<std::vector<int64_t>>(node, "scales");
  if (scales.size() != 4) return std::nullopt;
  const ValueId factors =
      body.node("Constant", {}, {floats_attribute("value_floats", std::vector<float>(scales.begin(), scales.end()))});
  std::vector<Attribute> attributes = attributes_but(node, {"scales"});
  if (find_attribute(node, "coordinate_transformation_mode") == nullptr)
    attributes.push_back(string_attribute("coordinate_transformation_mode", "asymmetric"));
  attributes.push_back(string_attribute("nearest_mode", "floor"));
  return body.blocked(body.node("Resize", {body.unblocked(inputs[0]), kNoValue, factors}, std::move(attributes)));
}

struct Row {
  std::string_view op_type;
  Compute compute;
};
constexpr Row kRows[] = {
    {"AveragePool", pool}, {"Conv", convolution},           {"GlobalAveragePool", pool},       {"GlobalMaxPool", pool},
    {"MaxPool", pool},     {"ReorderInput", reorder_input}, {"ReorderOutput", reorder_output}, {"Upsample", upsample},
};

// The names of ContribOperators' inputs.
constexpr std::string_view kInputs[] = {"X", "W", "B", "Sum"};

std::shared_ptr<Function> function_of(const Graph& graph, const Node& node, int64_t block) {
  const auto* row = std::ranges::find(kRows, std::string_view(node.op_type), &Row::op_type);
  const bool fits = row != std::end(kRows) && !node.inputs.empty() && node.inputs.size() <= std::size(kInputs) &&
                    node.outputs.size() == 1;
  if (!fits) return nullptr;
  FunctionBody body(block);
  std::vector<ValueId> inputs;
  for (size_t index = 0; index < node.inputs.size(); ++index) inputs.push_back(body.input(std::string(kInputs[index])));
  const auto output = row->compute(body, graph, node, inputs);
  if (!output.has_value()) return nullptr;
  constexpr int64_t kOpset = 19;  // the first that has AveragePool with dilations
  auto function = std::make_shared<Function>();
  function->domain = kBlockedDomain;
  function->name = node.op_type;
  for (const Attribute& attribute : node.attributes) function->attribute_names.push_back(attribute.name);
  function->opset_imports = {{"", kOpset}};
  function->body = body.finish(*output);
  return function;
}

}  // namespace

int64_t channel_block_of(const Model& model) {
  const std::string_view kept = find_metadata(model.graph.metadata, kBlockEntry);
  for (const int64_t block : {kSmallBlock, kLargeBlock}) {
    if (kept == std::to_string(block)) return block;
  }
  const int64_t block = block_in(model.graph);
  return block != 0 ? block : block_of_processor();
}

void define_blocked_operators(Model& model) {
  std::vector<std::pair<const Graph*, Node*>> nodes;
  const std::function<void(Graph&)> collect = [&](Graph& graph) {
    for (Node& node : graph.nodes) {
      if (node.domain == kBlockedDomain && node.overload.empty()) nodes.emplace_back(&graph, &node);
      for (const Graph* body : bodies_of(node)) collect(const_cast<Graph&>(*body));
    }
  };
  collect(model.graph);
  if (nodes.empty()) return;
  const int64_t block = channel_block_of(model);
  if (find_metadata(model.graph.metadata, kBlockEntry).empty())
    model.graph.metadata.emplace_back(kBlockEntry, std::to_string(block));
  for (const auto& [graph, node] : nodes) {
    auto function = function_of(*graph, *node, block);
    if (function == nullptr) continue;
    const std::string number = std::to_string(model.functions.size());
    node->overload = function->overload = "block" + std::to_string(block) + "_" + number;
    model.functions.push_back(std::move(function));
  }
}

}  // namespace parallax
