// SPDX-License-Identifier: Apache-2.0
// The edit's own operations and the list of patterns.
#include "runtime/rewrite/rewrite.h"

#include <algorithm>
#include <utility>

#include "runtime/rewrite/patterns.h"

namespace parallax::runtime {
namespace {

// Clean-up first, so that formulas stand bare; whole formulas before their parts; what uses values up last.
constexpr Pattern kPatterns[] = {
    {"identity", true, OperatorSet::standard, "Identity is dropped; its readers read what it read", drop_identities},
    {"dropout", true, OperatorSet::standard, "Dropout in inference is dropped like Identity", drop_dropouts},
    {"constant-folding", true, OperatorSet::standard,
     "nodes that depend on weights alone are computed once, before the first run", fold_constants},
    {"cast", true, OperatorSet::standard, "a Cast to the type its input has, or back from a wider type, is dropped",
     clean_casts},
    {"reshape", true, OperatorSet::standard,
     "a Reshape that changes nothing is dropped; a Reshape of a Reshape becomes one", clean_reshapes},
    {"transpose", true, OperatorSet::standard, "two Transposes become one, or none", clean_transposes},
    {"duplicate", true, OperatorSet::standard, "a node that computes what an earlier one has computed is dropped",
     drop_duplicates},
    {"gelu", true, OperatorSet::standard, "GELU from its parts, with erf (Gelu) or tanh (FastGelu)", fuse_gelus},
    {"swish", true, OperatorSet::microsoft, "x * Sigmoid(a x) becomes QuickGelu", fuse_swishes},
    {"rotary", true, OperatorSet::own, "rotary embedding (x * cos + rotate_half(x) * sin) becomes one node",
     fuse_rotaries},
    {"attention", true, OperatorSet::own,
     "MatMul, scale, mask, Softmax and MatMul become one node, with what moves their operands about", fuse_attentions},
    {"layer-norm", true, OperatorSet::standard, "LayerNormalization from its parts", fuse_layer_norms},
    {"rms-norm", true, OperatorSet::standard, "SimplifiedLayerNormalization (RMSNorm) from its parts", fuse_rms_norms},
    {"matmul-dequantize", true, OperatorSet::own, "DequantizeLinear of a weight goes into the MatMul that reads it",
     fuse_dequantized_products, true},
    {"matmul-transpose", true, OperatorSet::microsoft,
     "a Transpose of the last two axes goes into the MatMul that reads it (FusedMatMul)", fuse_matmul_transposes},
    {"matmul-scale", true, OperatorSet::microsoft, "a product times or over one number becomes FusedMatMul",
     fuse_matmul_scales},
    {"matmul-bias", true, OperatorSet::own,
     "MatMul with a constant matrix, and Add of a constant vector, become Linear", fuse_matmul_biases},
    {"linear-activation", true, OperatorSet::microsoft, "Linear or Gemm and an activation become one",
     fuse_linear_activations},
    {"conv-batchnorm", true, OperatorSet::standard, "BatchNormalization after Conv goes into its filters and bias",
     fold_conv_norms},
    {"conv-add", true, OperatorSet::microsoft, "Conv and Add of a value of the same shape become FusedConv",
     fuse_conv_residuals, true},
    {"conv-activation", true, OperatorSet::microsoft, "Conv and an activation become one", fuse_conv_activations, true},
    {"batchnorm-activation", true, OperatorSet::own,
     "BatchNormalization with constant statistics and an activation become one", fuse_channel_affines, true},
    {"channel-shuffle", true, OperatorSet::own,
     "Reshape, Transpose and Reshape that deal out the channels of groups become one, with a Concat before and a Split "
     "after them",
     fuse_channel_shuffles, true},
    {"matmul-add", true, OperatorSet::own,
     "on GPUs, MatMul with a constant matrix, or Linear, and Add of a value of the same shape become Linear",
     fuse_product_residuals, false, true},
    {"skip-norm", true, OperatorSet::microsoft,
     "the sum with a residual goes into the norm that reads it (SkipLayerNormalization)", fuse_skip_norms},
    {"linear-add", true, OperatorSet::own, "Linear and Add of a value of the same shape become one",
     fuse_linear_residuals},
    {"swiglu", true, OperatorSet::own, "an activated value times another (SwiGLU, GeGLU, GLU) becomes one node",
     fuse_gates},
    {"pointwise", true, OperatorSet::own, "chains of pointwise nodes become one that walks its tensors once",
     fuse_chains},
    {"dead", true, OperatorSet::standard, "nodes whose results nothing reads are dropped", drop_dead_nodes},
};

// The values that have more readers than nodes with them as inputs: bodies read the rest.
void find_captured(const Graph& graph, std::vector<bool>& captured) {
  std::vector<size_t> direct_readers(graph.values.size(), 0);
  std::vector<NodeId> last_reader(graph.values.size(), kNoNode);
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    for (const ValueId input : graph.nodes[id].inputs) {
      if (input == kNoValue) continue;
      NodeId& last = last_reader[static_cast<size_t>(input)];
      if (std::exchange(last, static_cast<NodeId>(id)) != static_cast<NodeId>(id))
        ++direct_readers[static_cast<size_t>(input)];
    }
  }
  for (size_t value = 0; value < graph.values.size(); ++value)
    captured[value] = graph.values[value].readers.size() > direct_readers[value];
}

}  // namespace

ValueId GraphEdit::resolve(ValueId value) const {
  while (value != kNoValue && stands_for[static_cast<size_t>(value)] != value) {
    value = stands_for[static_cast<size_t>(value)];
  }
  return value;
}

void GraphEdit::alias(ValueId value, ValueId target) {
  target = resolve(target);
  stands_for[static_cast<size_t>(value)] = target;
  if (captured[static_cast<size_t>(value)]) captured[static_cast<size_t>(target)] = true;
  absences.push_back({value, ValueAbsence::Kind::aliased, name_of(target)});
  ++changes;
}

void GraphEdit::fold(ValueId value, Value constant) {
  constants[static_cast<size_t>(value)] = std::move(constant);
  absences.push_back({value, ValueAbsence::Kind::folded, ""});
}

const Tensor* GraphEdit::constant(ValueId value) const {
  if (value == kNoValue) return nullptr;
  const auto index = static_cast<size_t>(resolve(value));
  if (constants[index].is_tensor()) return &constants[index].tensor();
  if (index >= source->values.size() || pinned[index] || source->values[index].producer == kNoNode) return nullptr;
  const Node& node = source->nodes[static_cast<size_t>(source->values[index].producer)];
  if (node.op_type != "Constant" || node.schema == nullptr) return nullptr;
  const Attribute* attribute = find_attribute(node, "value");
  const auto* stored = attribute == nullptr ? nullptr : std::get_if<StoredTensor>(&attribute->value);
  return stored == nullptr ? nullptr : &stored->tensor;
}

ValueId GraphEdit::add_constant(Tensor tensor) {
  const auto id = static_cast<ValueId>(constants.size());
  constants.emplace_back(std::move(tensor));
  stands_for.push_back(id);
  pinned.push_back(false);
  captured.push_back(false);
  return id;
}

std::string GraphEdit::name_of(ValueId value) const {
  if (!is_added(value)) return source->values[static_cast<size_t>(value)].name;
  return constant_prefix + std::to_string(static_cast<size_t>(value) - source->values.size());
}

std::span<const Pattern> rewrite_patterns() { return kPatterns; }

const Pattern* find_pattern(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kPatterns), std::end(kPatterns), [&](const Pattern& each) { return each.name == name; });
  return found == std::end(kPatterns) ? nullptr : found;
}

int64_t apply_pattern(const ChosenPattern& chosen, GraphEdit& edit, const RewriteContext& context) {
  const int64_t before = edit.changes;
  edit.limit = chosen.limit;
  chosen.pattern->apply(edit, context);
  edit.limit = OperatorSet::own;
  return edit.changes - before;
}

GraphEdit begin_edit(const Graph& graph) {
  GraphEdit edit;
  edit.source = &graph;
  for (NodeId id : graph.order) edit.nodes.push_back({id, &graph.nodes[static_cast<size_t>(id)]});
  for (size_t value = 0; value < graph.values.size(); ++value) edit.stands_for.push_back(static_cast<ValueId>(value));
  edit.constants.resize(graph.values.size());
  edit.pinned.resize(graph.values.size(), false);
  edit.captured.resize(graph.values.size(), false);
  for (size_t value = 0; value < graph.values.size(); ++value) {
    while (graph.values[value].name.starts_with(edit.constant_prefix)) edit.constant_prefix += '_';
  }
  find_captured(graph, edit.captured);
  for (size_t index = 0; index < graph.initializers.size(); ++index) {
    const ValueId value = graph.initializer_values[index];
    if (graph.values[static_cast<size_t>(value)].input_index >= 0) continue;  // a caller may give another
    edit.constants[static_cast<size_t>(value)] = graph.initializers[index].tensor;
  }
  for (ValueId output : graph.outputs) edit.pinned[static_cast<size_t>(output)] = true;
  return edit;
}

}  // namespace parallax::runtime
