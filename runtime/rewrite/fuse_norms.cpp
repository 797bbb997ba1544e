// SPDX-License-Identifier: Apache-2.0
// LayerNormalization and RMSNormalization from their parts, as PyTorch exports write them, and the sum with a residual
// before them.
#include <array>
#include <cmath>

#include "inspector/tensor/elements.h"
#include "runtime/rewrite/fuser.h"
#include "runtime/rewrite/patterns.h"
#include "runtime/rewrite/product.h"

namespace parallax::runtime {
namespace {

// A mean over the last axis that keeps it: its input and position.
std::optional<Step1> mean_of(const Fuser& fuser, const GraphEdit& edit, ValueId value) {
  const auto step = step_of(fuser, value, "ReduceMean");
  if (!step.has_value()) return std::nullopt;
  const Node& node = *fuser.at(step->member);
  std::vector<int64_t> axes = ints_of(node, "axes").value_or(std::vector<int64_t>{});
  if (node.inputs.size() > 1) {
    const Tensor* given = edit.constant(fuser.input(node, 1));
    if (given == nullptr) return std::nullopt;
    axes = to_int64s(given->view());
  }
  const auto dims = fuser.dims_of(step->input);
  const bool is_last =
      axes.size() == 1 && (axes[0] == -1 || (dims.has_value() && axes[0] == static_cast<int64_t>(dims->size()) - 1));
  if (!is_last || int_of(node, "keepdims", 1) != 1) return std::nullopt;
  return step;
}

// value = d * d: d and the node.
std::optional<Step1> square_of(const Fuser& fuser, ValueId value) {
  if (const size_t power = fuser.producer(value, "Pow"); power != Fuser::kNowhere) {
    const Node& node = *fuser.at(power);
    if (fuser.scalar(fuser.input(node, 1)) == 2.0) return Step1{fuser.input(node, 0), power};
  }
  if (const size_t product = fuser.producer(value, "Mul"); product != Fuser::kNowhere) {
    const Node& node = *fuser.at(product);
    if (fuser.input(node, 0) == fuser.input(node, 1)) return Step1{fuser.input(node, 0), product};
  }
  return std::nullopt;
}

struct Deviation {  // sqrt(mean(d^2) + epsilon)
  ValueId of = kNoValue;
  double epsilon = 0;
  std::vector<size_t> members;
};

std::optional<Deviation> deviation_of(const Fuser& fuser, const GraphEdit& edit, ValueId value) {
  const auto root = step_of(fuser, value, "Sqrt");
  if (!root.has_value()) return std::nullopt;
  const auto sum = sum_of(fuser, root->input);
  if (!sum.has_value() || sum->number < 0) return std::nullopt;
  const auto mean = mean_of(fuser, edit, sum->other);
  if (!mean.has_value()) return std::nullopt;
  const auto square = square_of(fuser, mean->input);
  if (!square.has_value()) return std::nullopt;
  return Deviation{square->input, sum->number, {root->member, sum->member, mean->member, square->member}};
}

// d over its own deviation, written as d / s, d * (1 / s) or d * Reciprocal(s), at `position`.
std::optional<Deviation> normalized(const Fuser& fuser, const GraphEdit& edit, size_t position) {
  if (const Node* div = fuser.at(position, "Div")) {
    auto deviation = deviation_of(fuser, edit, fuser.input(*div, 1));
    if (!deviation.has_value() || deviation->of != fuser.input(*div, 0)) return std::nullopt;
    return deviation;
  }
  const Node* mul = fuser.at(position, "Mul");
  for (size_t index = 0; mul != nullptr && index < 2; ++index) {
    const ValueId factor = fuser.input(*mul, index);
    std::optional<Step1> inverse = step_of(fuser, factor, "Reciprocal");
    const size_t div = fuser.producer(factor, "Div");
    if (div != Fuser::kNowhere && fuser.scalar(fuser.input(*fuser.at(div), 0)) == 1.0)
      inverse = Step1{fuser.input(*fuser.at(div), 1), div};
    if (!inverse.has_value()) continue;
    auto deviation = deviation_of(fuser, edit, inverse->input);
    if (!deviation.has_value() || deviation->of != fuser.input(*mul, 1 - index)) continue;
    deviation->members.push_back(inverse->member);
    return deviation;
  }
  return std::nullopt;
}

// True where a constant holds a number for each element of the last axis of `x`.
bool fits_last_axis(const Fuser& fuser, const Tensor& tensor, ValueId x) {
  if (tensor.shape().rank() != 1) return false;
  const auto dims = fuser.dims_of(x);
  const bool is_known = dims.has_value() && !dims->empty() && dims->back().is_known();
  return is_known ? dims->back().value == tensor.shape()[0] : tensor.shape()[0] != 1;
}

// The operand of a Mul or Add at `position` besides `value`, when it is a constant vector along the last axis.
std::optional<ValueId> vector_across(const Fuser& fuser, const GraphEdit& edit, size_t position, std::string_view op,
                                     ValueId value) {
  const Node* node = fuser.at(position, op);
  if (node == nullptr) return std::nullopt;
  const size_t other = fuser.input(*node, 0) == value ? 1 : 0;
  const Tensor* tensor = edit.constant(fuser.input(*node, other));
  const bool is_next_to = tensor != nullptr && fuser.input(*node, 1 - other) == value;
  if (!is_next_to || !fits_last_axis(fuser, *tensor, value)) return std::nullopt;
  return fuser.input(*node, other);
}

// The fused nodes: from x to `output`.
struct Norm {
  ValueId x = kNoValue;
  ValueId scale = kNoValue;
  ValueId bias = kNoValue;
  ValueId output = kNoValue;
  double epsilon = 0;
  size_t location = 0;
  std::vector<size_t> members;
};

// The normalized value at `position` and the scale (and bias) after it.
std::optional<Norm> norm_at(const Fuser& fuser, const GraphEdit& edit, size_t position, bool with_bias) {
  auto deviation = normalized(fuser, edit, position);
  if (!deviation.has_value()) return std::nullopt;
  Norm norm;
  norm.epsilon = deviation->epsilon;
  norm.members = std::move(deviation->members);
  norm.members.push_back(position);
  norm.x = deviation->of;
  const ValueId whitened = fuser.at(position)->outputs[0];
  const size_t scaled = fuser.only_reader(whitened);
  if (scaled == Fuser::kNowhere) return std::nullopt;
  const auto scale = vector_across(fuser, edit, scaled, "Mul", whitened);
  if (!scale.has_value()) return std::nullopt;
  norm.scale = *scale;
  norm.members.push_back(scaled);
  norm.location = scaled;
  norm.output = fuser.at(scaled)->outputs[0];
  const size_t shifted = with_bias ? fuser.only_reader(norm.output) : Fuser::kNowhere;
  if (shifted == Fuser::kNowhere) return norm;
  if (const auto bias = vector_across(fuser, edit, shifted, "Add", norm.output)) {
    norm.bias = *bias;
    norm.members.push_back(shifted);
    norm.location = shifted;
    norm.output = fuser.at(shifted)->outputs[0];
  }
  return norm;
}

// Extensions and older models: onnxruntime's LayerNormalization-1 stands in for what came with version 17.
void fuse_layer_norm(Fuser& fuser, size_t position) {
  const GraphEdit& edit = fuser.edit();
  auto norm = norm_at(fuser, edit, position, true);
  if (!norm.has_value()) return;
  const size_t centered = fuser.producer(norm->x, "Sub");
  if (centered == Fuser::kNowhere) return;
  const Node& sub = *fuser.at(centered);
  const auto mean = mean_of(fuser, edit, fuser.input(sub, 1));
  if (!mean.has_value() || mean->input != fuser.input(sub, 0)) return;
  norm->members.insert(norm->members.end(), {centered, mean->member});
  std::vector<ValueId> inputs{mean->input, norm->scale};
  if (norm->bias != kNoValue) inputs.push_back(norm->bias);
  Node made = fuser.make("ai.onnx", "LayerNormalization", norm->location, std::move(inputs), {norm->output});
  made.attributes = {int_attribute("axis", -1), float_attribute("epsilon", norm->epsilon)};
  fuser.replace(norm->members, norm->location, std::move(made));
}

void fuse_rms_norm(Fuser& fuser, size_t position) {
  const GraphEdit& edit = fuser.edit();
  auto norm = norm_at(fuser, edit, position, false);
  if (!norm.has_value()) return;
  // ai.onnx has RMSNormalization since version 23; onnxruntime's extension is there for every version.
  const std::string_view op = edit.limit == OperatorSet::standard ? "RMSNormalization" : "SimplifiedLayerNormalization";
  Node made = fuser.make("ai.onnx", op, norm->location, {norm->x, norm->scale}, {norm->output});
  made.attributes = {int_attribute("axis", -1), float_attribute("epsilon", norm->epsilon)};
  fuser.replace(norm->members, norm->location, std::move(made));
}

// ---- The sum before a norm ----

bool has_same_shape(const Fuser& fuser, ValueId a, ValueId b) {
  const auto first = fuser.dims_of(a);
  const auto second = fuser.dims_of(b);
  if (!first.has_value() || !second.has_value() || first->size() < 2 || *first != *second) return false;
  for (const Dim& dim : *first) {
    if (!dim.is_known() && dim.name.empty()) return false;
  }
  return true;
}

bool is_last_axis(const Fuser& fuser, const Node& norm) {
  const int64_t axis = int_of(norm, "axis", -1);
  const auto dims = fuser.dims_of(fuser.input(norm, 0));
  return axis == -1 || (dims.has_value() && axis == static_cast<int64_t>(dims->size()) - 1);
}

void fuse_skip(Fuser& fuser, size_t position) {
  const GraphEdit& edit = fuser.edit();
  const Node* centered = fuser.at(position, "LayerNormalization");
  const Node* plain = fuser.at(position, "SimplifiedLayerNormalization");
  if (plain == nullptr) plain = fuser.at(position, "RMSNormalization");
  const Node* norm = centered != nullptr ? centered : plain;
  if (norm == nullptr || !is_last_axis(fuser, *norm)) return;
  const ValueId sum = fuser.input(*norm, 0);
  const size_t add = fuser.producer(sum, "Add");
  if (add == Fuser::kNowhere) return;
  const ValueId a = fuser.input(*fuser.at(add), 0);
  const ValueId b = fuser.input(*fuser.at(add), 1);
  const Tensor* scale = edit.constant(fuser.input(*norm, 1));
  const Tensor* bias = edit.constant(fuser.input(*norm, 2));
  const bool has_bias = fuser.input(*norm, 2) != kNoValue;
  if (!has_same_shape(fuser, a, b) || scale == nullptr || !fits_last_axis(fuser, *scale, sum) ||
      scale->dtype() == DType::float64 || (has_bias && (bias == nullptr || !fits_last_axis(fuser, *bias, sum))))
    return;
  std::vector<ValueId> inputs{a, b, fuser.input(*norm, 1)};
  if (has_bias) inputs.push_back(fuser.input(*norm, 2));
  std::vector<ValueId> outputs{norm->outputs[0]};
  if (!fuser.is_private(sum)) outputs.insert(outputs.end(), {kNoValue, kNoValue, sum});
  const std::string_view op = centered != nullptr ? "SkipLayerNormalization" : "SkipSimplifiedLayerNormalization";
  // The sum has readers before the norm in some orders: the fused node then stands where the sum did.
  const std::array<size_t, 2> members{add, position};
  for (const size_t location : {position, add}) {
    Node made = fuser.make(kMicrosoft, op, location, inputs, outputs);
    made.attributes = {float_attribute("epsilon", float_of(*norm, "epsilon", 1e-5))};
    if (fuser.replace(members, location, std::move(made))) return;
  }
}

}  // namespace

void fuse_layer_norms(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, fuse_layer_norm); }
void fuse_rms_norms(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, fuse_rms_norm); }
void fuse_skip_norms(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, fuse_skip); }

}  // namespace parallax::runtime
