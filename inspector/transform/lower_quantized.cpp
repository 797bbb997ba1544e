// SPDX-License-Identifier: Apache-2.0
// Replaces operators on quantized values one by one, by a table of their inputs.
#include "inspector/transform/lower_quantized.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "inspector/diff/tolerance/quantization.h"
#include "inspector/model/link.h"
#include "inspector/model/make_attribute.h"
#include "inspector/model/opset/opset_registry.h"
#include "inspector/model/shape_inference/infer_types.h"
#include "inspector/model/stored_int.h"
#include "inspector/transform/blocked_table.h"
#include "inspector/transform/graph_building.h"

namespace parallax::transform {
namespace {

// An input of the operator on floats, by the ports of the quantized one. Without a scale it is passed on.
struct Operand {
  int data = -1;
  int scale = -1;
  int zero_point = -1;
  int axis = -1;  // of a scale that is a vector
};
const diff::DynamicProduct kNoProduct;
constexpr int64_t kAxisOfDequantize = 13;  // the operator set from which on DequantizeLinear has an axis
constexpr int kProduct = 100;              // scale of a bias: the product of the two before it

struct QuantizedOperator {
  std::string_view op_type;
  std::string_view on_floats;
  std::vector<Operand> operands;
  int y_scale = -1;  // followed by the zero point; -1: the output is a float
  int added = -1;    // a float that is added to the result
};

const std::vector<QuantizedOperator>& table() {
  static const std::vector<QuantizedOperator> rows = {
      {"MatMulIntegerToFloat", "MatMul", {{0, 2, 4, -2}, {1, 3, 5}}, -1, 6},
      {"QAttention", "Attention", {{0, 3, 6}, {1, 4, 7}, {2}, {5}, {8}}},
      {"QEmbedLayerNormalization",
       "EmbedLayerNormalization",
       {{0}, {1}, {2, 8, 13}, {3, 9, 14}, {4, 10, 15}, {5, 11, 16}, {6, 12, 17}, {7}}},
      {"QGemm", "Gemm", {{0, 1, 2}, {3, 4, 5, 1}, {6, kProduct, -1, 0}}, 7},
      {"QLinearAdd", "Add", {{0, 1, 2}, {3, 4, 5}}, 6},
      {"QLinearAveragePool", "AveragePool", {{0, 1, 2}}, 3},
      {"QLinearConcat", "Concat", {}, 0},
      {"QLinearConv", "Conv", {{0, 1, 2}, {3, 4, 5, 0}, {8, kProduct, -1, 0}}, 6},
      {"QLinearGlobalAveragePool", "GlobalAveragePool", {{0, 1, 2}}, 3},
      {"QLinearLeakyRelu", "LeakyRelu", {{0, 1, 2}}, 3},
      {"QLinearMatMul", "MatMul", {{0, 1, 2, -2}, {3, 4, 5}}, 6},
      {"QLinearMul", "Mul", {{0, 1, 2}, {3, 4, 5}}, 6},
      {"QLinearReduceMean", "ReduceMean", {{0, 1, 2}}, 3},
      {"QLinearSigmoid", "Sigmoid", {{0, 1, 2}}, 3},
      {"QLinearSoftmax", "Softmax", {{0, 1, 2}}, 3},
      {"QLinearWhere", "Where", {{0}, {1, 2, 3}, {4, 5, 6}}, 7},
  };
  return rows;
}

const QuantizedOperator* row_of(const Node& node) {
  const std::string_view domain = canonical_domain(node.domain);
  if (node.function != nullptr || (domain != "ai.onnx" && domain != "com.microsoft")) return nullptr;
  const auto row = std::ranges::find(table(), node.op_type, &QuantizedOperator::op_type);
  return row == table().end() ? nullptr : &*row;
}

// The number of scales, 0 where it is not known.
int64_t count_of_scales(const Graph& graph, ValueId id) {
  if (const Tensor* held = diff::constant_tensor(graph, id); held != nullptr)
    return held->shape().rank() > 1 ? 0 : held->element_count();
  const auto& dims = value_at(graph, id).type.dims;
  if (!dims.has_value() || dims->size() > 1) return 0;
  return dims->empty() ? 1 : std::max<int64_t>(0, dims->front().value);
}

class GraphLowering {
 public:
  GraphLowering(Graph& graph, FreshNames& names, int64_t opset) : graph_(graph), names_(names), opset_(opset) {}

  void run() {
    const std::vector<Node> nodes = graph_.nodes;
    std::vector<diff::DynamicProduct> products;
    for (const Node& node : nodes) products.push_back(diff::dynamic_product_of(graph_, node).value_or(kNoProduct));
    graph_.nodes.clear();
    for (size_t index = 0; index < nodes.size(); ++index) {
      const Node& node = nodes[index];
      const QuantizedOperator* row = row_of(node);
      const auto operands = row == nullptr ? std::nullopt : operands_of(node, *row);
      if (operands.has_value()) {
        replace(node, *row, *operands);
      } else if (const auto table = opset_ >= kAxisOfDequantize ? blocked_table_of(graph_, node) : std::nullopt) {
        replace(node, *table);
      } else if (products[index].integers == kNoNode || !replace(node, nodes, products[index])) {
        add(node, nullptr);
      }
    }
    link_graph(graph_);
    while (drop_unread()) link_graph(graph_);
  }

  void add_origins(NodeOrigins& origins) const {
    for (size_t index = 0; index < graph_.nodes.size(); ++index) {
      if (!origins_[index].name.empty()) origins[graph_.nodes[index].display_name] = origins_[index];
    }
  }

 private:
  void add(Node node, const Node* origin) {
    graph_.nodes.push_back(std::move(node));
    origins_.push_back(origin == nullptr ? LoweredNode{} : LoweredNode{origin->display_name, origin->op_type, "", ""});
  }

  // Drops the parts of products of integers that are left without readers.
  bool drop_unread() {
    std::vector<Node> kept;
    std::vector<LoweredNode> origins;
    for (size_t index = 0; index < graph_.nodes.size(); ++index) {
      Node& node = graph_.nodes[index];
      const auto is_unread = [&](ValueId id) {
        return id == kNoValue || (value_at(graph_, id).readers.empty() && !value_at(graph_, id).is_graph_output);
      };
      if (replaced_.contains(node.display_name) && std::ranges::all_of(node.outputs, is_unread)) continue;
      kept.push_back(std::move(node));
      origins.push_back(std::move(origins_[index]));
    }
    const bool is_any_dropped = kept.size() < graph_.nodes.size();
    graph_.nodes = std::move(kept);
    origins_ = std::move(origins);
    return is_any_dropped;
  }

  static ValueId input_of(const Node& node, int port) {
    return port >= 0 && static_cast<size_t>(port) < node.inputs.size() ? node.inputs[static_cast<size_t>(port)]
                                                                       : kNoValue;
  }

  // Those that are given; nothing where the node cannot be replaced.
  std::optional<std::vector<Operand>> operands_of(const Node& node, const QuantizedOperator& row) const {
    std::vector<Operand> operands = row.operands;
    if (row.op_type == "QLinearConcat") {
      for (int port = 2; port + 2 < static_cast<int>(node.inputs.size()); port += 3)
        operands.push_back({port, port + 1, port + 2});
    }
    if (row.op_type == "QGemm" && stored_int(node, "transB", 0) != 0) operands[1].axis = 0;
    while (!operands.empty() && input_of(node, operands.back().data) == kNoValue) operands.pop_back();
    if (operands.empty() || stored_int(node, "channels_last", 0) != 0) return std::nullopt;
    if (row.op_type == "QLinearSoftmax" && (stored_int(node, "opset", 13) < 13) != (opset_ < 13)) return std::nullopt;
    const auto fits = [&](const Operand& operand) { return may_dequantize(node, operand); };
    if (!std::ranges::all_of(operands, fits) || !may_quantize(node, row)) return std::nullopt;
    return operands;
  }

  bool may_dequantize(const Node& node, const Operand& operand) const {
    if (operand.scale < 0) return true;
    if (operand.scale == kProduct) return product_of_scales(node).defined();
    const ValueId scale = input_of(node, operand.scale);
    if (input_of(node, operand.data) == kNoValue) return true;  // an optional one
    if (scale == kNoValue) return false;
    const int64_t count = count_of_scales(graph_, scale);
    return count == 1 || (count > 1 && opset_ >= kAxisOfDequantize);
  }

  bool may_quantize(const Node& node, const QuantizedOperator& row) const {
    if (row.y_scale < 0 || input_of(node, row.y_scale) == kNoValue) return true;
    const bool has_type = input_of(node, row.y_scale + 1) != kNoValue ||
                          value_at(graph_, node.outputs.front()).type.dtype == DType::uint8;
    return has_type && count_of_scales(graph_, input_of(node, row.y_scale)) == 1;
  }

  // The scales of the first two operands and a QGemm's alpha, multiplied; undefined where the graph does not hold both.
  Tensor product_of_scales(const Node& node) const {
    const Tensor* first = diff::constant_tensor(graph_, input_of(node, 1));
    const Tensor* second = diff::constant_tensor(graph_, input_of(node, 4));
    const auto is_float = [](const Tensor* scale) { return scale != nullptr && scale->dtype() == DType::float32; };
    if (!is_float(first) || !is_float(second) || first->element_count() != 1) return {};
    auto product = Tensor::allocate(DType::float32, second->shape());
    if (!product.ok()) return {};
    const Attribute* const alpha = find_attribute(node, "alpha");
    const auto* factor = alpha == nullptr ? nullptr : std::get_if<float>(&alpha->value);
    const float of_first = first->as<float>().front() * (factor == nullptr ? 1 : *factor);
    std::ranges::transform(second->as<float>(), product->mutable_as<float>().begin(),
                           [&](float scale) { return of_first * scale; });
    return product.take();
  }

  ValueId add_initializer(const std::string& name, Tensor tensor) {
    TypeInfo type = TypeInfo::tensor(tensor.dtype());
    type.dims.emplace();
    for (const int64_t dim : tensor.shape().dims()) type.dims->push_back({dim, {}});
    StoredTensor stored;
    stored.name = names_.take(name);
    stored.tensor = std::move(tensor);
    const ValueId id = add_value(graph_, stored.name, std::move(type));
    graph_.initializers.push_back(std::move(stored));
    graph_.initializer_values.push_back(id);
    return id;
  }

  ValueId dequantized(const Node& node, const Operand& operand) {
    const ValueId data = input_of(node, operand.data);
    if (operand.scale < 0 || data == kNoValue) return data;
    const ValueId scale = operand.scale == kProduct
                              ? add_initializer(value_at(graph_, data).name + "_scale", product_of_scales(node))
                              : input_of(node, operand.scale);
    return dequantized(node, data, scale, input_of(node, operand.zero_point), operand.axis);
  }

  ValueId dequantized(const Node& node, ValueId data, ValueId scale, ValueId zero_point, int axis) {
    const std::string name = value_at(graph_, data).name;
    const auto [known, is_new] = dequantized_.try_emplace({data, scale, zero_point, axis}, kNoValue);
    if (!is_new) return known->second;
    TypeInfo type = value_at(graph_, data).type;
    type.dtype = value_at(graph_, scale).type.dtype;
    const bool is_held = value_at(graph_, data).initializer_index >= 0;
    const std::string base(diff::name_of_floats(name));
    const ValueId made =
        add_value(graph_, names_.take(is_held && base != name ? base : base + "_dequantized"), std::move(type));
    std::vector<ValueId> inputs = {data, scale};
    if (zero_point != kNoValue) inputs.push_back(zero_point);
    std::vector<Attribute> attributes;
    if (count_of_scales(graph_, scale) > 1) attributes.push_back(int_attribute("axis", axis));
    add(make_node(node.display_name + "/DequantizeLinear", "DequantizeLinear", std::move(inputs), {made},
                  std::move(attributes)),
        &node);
    return known->second = made;
  }

  // False where the scales are not those of one dequantization.
  bool replace(const Node& node, const std::vector<Node>& nodes, const diff::DynamicProduct& product) {
    const Node& integers = nodes[static_cast<size_t>(product.integers)];
    const Node& scales = nodes[static_cast<size_t>(product.scales)];
    const bool is_conv = integers.op_type == "ConvInteger";
    const int64_t count = count_of_scales(graph_, product.weight_scale);
    const ValueId zero_point = input_of(integers, 3);
    if (count == 0 || (count > 1 && (is_conv || opset_ < kAxisOfDequantize))) return false;
    if (zero_point != kNoValue && count_of_scales(graph_, zero_point) != count) return false;
    Node on_floats = integers;
    on_floats.op_type = is_conv ? "Conv" : "MatMul";
    const ValueId floats = dequantized(integers, input_of(integers, 0), product.scale, input_of(integers, 2), -1);
    const size_t added = origins_.size();
    on_floats.inputs = {floats, dequantized(scales, input_of(integers, 1), product.weight_scale, zero_point, -1)};
    if (origins_.size() > added) {
      origins_.back().reader = integers.display_name;
      origins_.back().reader_op = integers.op_type;
    }
    on_floats.outputs = node.outputs;
    on_floats.name = on_floats.display_name;
    for (const NodeId id : {value_at(graph_, node.inputs[0]).producer, value_at(graph_, node.inputs[1]).producer})
      replaced_.insert(nodes[static_cast<size_t>(id)].display_name);
    replaced_.insert(integers.display_name);
    add(std::move(on_floats), nullptr);
    return true;
  }

  // A node that is put in for `node`; its one output has the given name.
  ValueId put_in(const Node& node, const std::string& op_type, std::vector<ValueId> inputs, const std::string& name,
                 std::vector<Attribute> attributes = {}) {
    const ValueId made = add_value(graph_, names_.take(name), TypeInfo::tensor(DType::float32));
    add(make_node(node.display_name + "/" + op_type, op_type, std::move(inputs), {made}, std::move(attributes)), &node);
    return made;
  }

  ValueId add_numbers(const std::string& name, const std::vector<int64_t>& numbers) {
    return add_initializer(name, Tensor::vector(std::span<const int64_t>(numbers)));
  }

  void replace(const Node& node, const BlockedTable& table) {
    const bool is_product = node.op_type == "MatMulNBits";
    const std::string name = value_at(graph_, node.inputs[is_product ? 1 : 0]).name;
    ValueId floats = dequantized(node, add_initializer(name + "_quantized", table.numbers),
                                 add_initializer(name + "_scales", table.scales),
                                 add_initializer(name + "_zero_points", table.zero_points), 0);
    const ValueId rows = add_numbers(name + "_shape", {table.rows, table.blocks * table.block});
    floats = put_in(node, "Reshape", {floats, rows}, name + "_rows");
    if (table.columns < table.blocks * table.block) {
      const ValueId begin = add_numbers(name + "_begin", {0}), end = add_numbers(name + "_end", {table.columns});
      floats = put_in(node, "Slice", {floats, begin, end, add_numbers(name + "_axes", {1})}, name + "_columns");
    }
    Node on_floats = node;
    on_floats.domain.clear();
    on_floats.attributes.clear();
    if (!is_product) {
      on_floats.op_type = "Gather";
      on_floats.inputs = {floats, node.inputs[1]};
      return add(std::move(on_floats), nullptr);
    }
    floats = put_in(node, "Transpose", {floats}, name + "_transposed", {ints_attribute("perm", {1, 0})});
    on_floats.op_type = "MatMul";
    on_floats.inputs = {node.inputs[0], floats};
    const ValueId bias = input_of(node, 5), given = node.outputs.front();
    if (bias != kNoValue) {
      on_floats.outputs.front() =
          add_value(graph_, names_.take(value_at(graph_, given).name + "_product"), value_at(graph_, given).type);
      add(make_node(node.display_name + "/Add", "Add", {on_floats.outputs.front(), bias}, {given}), &node);
    }
    add(std::move(on_floats), nullptr);
  }

  void replace(const Node& node, const QuantizedOperator& row, const std::vector<Operand>& operands) {
    Node on_floats = node;
    on_floats.op_type = row.on_floats;
    const bool is_contrib = row.on_floats == "Attention" || row.on_floats == "EmbedLayerNormalization";
    on_floats.domain = is_contrib ? node.domain : "";
    on_floats.inputs.clear();
    for (const Operand& operand : operands) on_floats.inputs.push_back(dequantized(node, operand));
    std::erase_if(on_floats.attributes, [](const Attribute& attribute) {
      return attribute.name == "channels_last" || attribute.name == "opset";
    });
    constexpr int64_t kAxesAreAnInput = 18;
    if (const Attribute* axes = find_attribute(on_floats, "axes"); axes != nullptr && opset_ >= kAxesAreAnInput) {
      on_floats.inputs.push_back(
          add_initializer(node.display_name + "_axes",
                          Tensor::vector(std::span<const int64_t>(std::get<std::vector<int64_t>>(axes->value)))));
      std::erase_if(on_floats.attributes, [](const Attribute& attribute) { return attribute.name == "axes"; });
    }
    const ValueId given = node.outputs.front(), y_scale = input_of(node, row.y_scale);
    const ValueId added = input_of(node, row.added);
    const auto make_float = [&](std::string_view suffix) {
      TypeInfo type = value_at(graph_, given).type;
      if (y_scale != kNoValue) type.dtype = value_at(graph_, y_scale).type.dtype;
      const std::string name = value_at(graph_, given).name, base(diff::name_of_floats(name));
      return add_value(graph_, names_.take(base == name ? name + std::string(suffix) : base), std::move(type));
    };
    if (y_scale != kNoValue) {
      const ValueId made = on_floats.outputs.front() = make_float("_float");
      std::vector<ValueId> inputs = {made, y_scale};
      if (const ValueId zero = input_of(node, row.y_scale + 1); zero != kNoValue) inputs.push_back(zero);
      add(std::move(on_floats), nullptr);
      add(make_node(node.display_name + "/QuantizeLinear", "QuantizeLinear", std::move(inputs), {given}), &node);
    } else if (added != kNoValue) {
      const ValueId made = on_floats.outputs.front() = make_float("_product");
      add(std::move(on_floats), nullptr);
      add(make_node(node.display_name + "/Add", "Add", {made, added}, {given}), &node);
    } else {
      add(std::move(on_floats), nullptr);
    }
  }

  Graph& graph_;
  FreshNames& names_;
  int64_t opset_;
  std::map<std::tuple<ValueId, ValueId, ValueId, int>, ValueId> dequantized_;
  std::vector<LoweredNode> origins_;  // by node; empty for those that were there
  std::set<std::string> replaced_;    // nodes of products of integers, by name
};

template <class Visit>
void each_graph(Graph& graph, const Visit& visit) {
  for (Node& node : graph.nodes) {
    node.name = node.display_name;
    for (const Graph* body : bodies_of(node)) each_graph(const_cast<Graph&>(*body), visit);
  }
  visit(graph);
}

size_t count_in(const Graph& graph) {
  size_t count = 0;
  for (const Node& node : graph.nodes) {
    const bool is_one =
        row_of(node) != nullptr || reads_blocked_table(node) || diff::dynamic_product_of(graph, node).has_value();
    count += is_one ? 1 : 0;
    for (const Graph* body : bodies_of(node)) count += count_in(*body);
  }
  return count;
}

}  // namespace

size_t count_quantized_operators(const Model& model) { return count_in(model.graph); }

Result<LoweredQuantized> lower_quantized(const Model& model) {
  LoweredQuantized result;
  result.model = copy_model(model);
  FreshNames names(*result.model);
  each_graph(result.model->graph, [&](Graph& graph) {
    GraphLowering lowering(graph, names, model.opset_version(""));
    lowering.run();
    lowering.add_origins(result.origins);
  });
  resolve_operators(*result.model);
  fill_types(*result.model, infer_types(*result.model));
  return result;
}

}  // namespace parallax::transform
