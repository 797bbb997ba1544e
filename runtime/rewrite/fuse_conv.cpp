// SPDX-License-Identifier: Apache-2.0
// Convolutions with what follows them: BatchNormalization in inference, whose factors go into the filters; a sum with a
// residual; an activation.
#include <array>
#include <cmath>

#include "inspector/tensor/elements.h"
#include "runtime/rewrite/epilogue.h"
#include "runtime/rewrite/fused_ops.h"
#include "runtime/rewrite/fuser.h"
#include "runtime/rewrite/patterns.h"

namespace parallax::runtime {
namespace {

std::vector<double> doubles_of(const Tensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.element_count()));
  load_doubles(tensor.view(), 0, values);
  return values;
}

std::optional<Tensor> tensor_of(DType dtype, const Shape& shape, const std::vector<double>& values) {
  auto tensor = Tensor::allocate(dtype, shape);
  if (!tensor.ok()) return std::nullopt;
  Tensor made = tensor.take();
  store_doubles(made, 0, values);
  return made;
}

// BatchNormalization that uses the running statistics, all of them constant vectors of `channels`.
std::optional<std::array<std::vector<double>, 4>> constant_statistics(const Fuser& fuser, const GraphEdit& edit,
                                                                      const Node& norm, int64_t channels) {
  if (int_of(norm, "training_mode", 0) != 0 || norm.opset_version < 7) return std::nullopt;
  if (const auto spatial = find_attribute(norm, "spatial"); spatial != nullptr && int_of(norm, "spatial", 1) != 1)
    return std::nullopt;
  std::array<std::vector<double>, 4> statistics;
  for (size_t index = 0; index < 4; ++index) {
    const Tensor* constant = edit.constant(fuser.input(norm, index + 1));
    if (constant == nullptr || constant->element_count() != channels) return std::nullopt;
    statistics[index] = doubles_of(*constant);
  }
  return statistics;
}

// y = (conv(x, W) + B - mean) * g + beta, g = scale / sqrt(var + epsilon): filters W * g and bias (B - mean) * g +
// beta, rounded once from double.
void fold_norm(Fuser& fuser, GraphEdit& edit, size_t position) {
  const Node* conv = fuser.at(position, "Conv");
  if (conv == nullptr) return;
  const size_t after = fuser.only_reader(conv->outputs[0]);
  const Node* norm = after == Fuser::kNowhere ? nullptr : fuser.at(after, "BatchNormalization");
  const Tensor* filters = edit.constant(fuser.input(*conv, 1));
  const ValueId bias_value = fuser.input(*conv, 2);
  const Tensor* bias = edit.constant(bias_value);
  if (norm == nullptr || fuser.input(*norm, 0) != conv->outputs[0] || filters == nullptr ||
      filters->shape().rank() < 3 || (bias_value != kNoValue && bias == nullptr))
    return;
  const int64_t channels = filters->shape()[0];
  const auto statistics = constant_statistics(fuser, edit, *norm, channels);
  if (!statistics.has_value() || channels == 0 || (bias != nullptr && bias->element_count() != channels)) return;
  const auto& [scale, beta, mean, variance] = *statistics;
  const double epsilon = float_of(*norm, "epsilon", 1e-5);
  std::vector<double> weights = doubles_of(*filters);
  std::vector<double> shifts = bias == nullptr ? std::vector<double>(static_cast<size_t>(channels)) : doubles_of(*bias);
  const size_t taps = weights.size() / static_cast<size_t>(channels);
  for (size_t channel = 0; channel < shifts.size(); ++channel) {
    const double factor = scale[channel] / std::sqrt(variance[channel] + epsilon);
    for (size_t tap = 0; tap < taps; ++tap) weights[channel * taps + tap] *= factor;
    shifts[channel] = (shifts[channel] - mean[channel]) * factor + beta[channel];
  }
  auto folded = tensor_of(filters->dtype(), filters->shape(), weights);
  auto shifted = tensor_of(filters->dtype(), Shape{channels}, shifts);
  if (!folded.has_value() || !shifted.has_value()) return;
  Node made = *conv;
  made.name = made.display_name = norm->display_name;
  made.outputs = {norm->outputs[0]};
  made.inputs = {fuser.input(*conv, 0), edit.add_constant(std::move(*folded)), edit.add_constant(std::move(*shifted))};
  const std::array<size_t, 2> members{position, after};
  fuser.replace(members, after, std::move(made));
}

// BatchNormalization with constant statistics that follows no Conv, and its activation: x * factor + offset.
void fuse_affine(Fuser& fuser, GraphEdit& edit, size_t position) {
  const Node* norm = fuser.at(position, "BatchNormalization");
  if (norm == nullptr || fuser.dtype_of(norm->outputs[0]) != DType::float32) return;
  const size_t after = fuser.only_reader(norm->outputs[0]);
  const auto activation = activation_at(fuser, after);
  const Tensor* scale = edit.constant(fuser.input(*norm, 1));
  if (!activation.has_value() || fuser.input(*fuser.at(after), 0) != norm->outputs[0] || scale == nullptr) return;
  const int64_t channels = scale->element_count();
  const auto statistics = constant_statistics(fuser, edit, *norm, channels);
  if (!statistics.has_value() || channels == 0) return;
  const auto& [scales, beta, mean, variance] = *statistics;
  const double epsilon = float_of(*norm, "epsilon", 1e-5);
  std::vector<double> factors, offsets;
  for (size_t channel = 0; channel < scales.size(); ++channel) {
    factors.push_back(scales[channel] / std::sqrt(variance[channel] + epsilon));
    offsets.push_back(beta[channel] - mean[channel] * factors.back());
  }
  auto factor = tensor_of(DType::float32, Shape{channels}, factors);
  auto offset = tensor_of(DType::float32, Shape{channels}, offsets);
  if (!factor.has_value() || !offset.has_value()) return;
  const ValueId x = fuser.input(*norm, 0);
  Node made = fuser.make(kFusedDomain, "ChannelAffine", after,
                         {x, edit.add_constant(std::move(*factor)), edit.add_constant(std::move(*offset))},
                         fuser.at(after)->outputs);
  made.attributes.push_back(string_attribute("activation", activation->name));
  if (!activation->parameters.empty())
    made.attributes.push_back(floats_attribute("activation_params", activation->parameters));
  const std::array<size_t, 2> members{position, after};
  fuser.replace(members, after, std::move(made));
}

bool is_conv(const Node& node) {
  return (is_standard(node) && node.op_type == "Conv") || (node.op_type == "FusedConv" && node.domain == kMicrosoft) ||
         (node.op_type == "Conv" && node.domain == kFusedDomain);
}

bool is_float32(const Fuser& fuser, const Node& conv) { return fuser.dtype_of(conv.outputs[0]) == DType::float32; }

std::vector<ValueId> inputs_of(const Fuser& fuser, const Node& node) {
  std::vector<ValueId> inputs;
  for (size_t index = 0; index < node.inputs.size(); ++index) inputs.push_back(fuser.input(node, index));
  return inputs;
}

void add_residual(Fuser& fuser, size_t position) {
  const Node* conv = fuser.at(position);
  if (conv == nullptr || !is_conv(*conv) || find_attribute(*conv, "activation") != nullptr || conv->inputs.size() > 3 ||
      !is_float32(fuser, *conv))
    return;
  const ValueId y = conv->outputs[0];
  const size_t after = fuser.only_reader(y);
  const Node* add = after == Fuser::kNowhere ? nullptr : fuser.at(after, "Add");
  if (add == nullptr) return;
  const ValueId other = fuser.input(*add, fuser.input(*add, 0) == y ? 1 : 0);
  const auto dims = fuser.dims_of(y);
  if (other == y || !dims.has_value() || dims != fuser.dims_of(other)) return;
  for (const Dim& dim : *dims) {
    if (!dim.is_known() && dim.name.empty()) return;
  }
  std::vector<ValueId> inputs = inputs_of(fuser, *conv);
  inputs.resize(3, kNoValue);
  inputs.push_back(other);
  Node made = fuser.make(kMicrosoft, "FusedConv", after, std::move(inputs), add->outputs);
  made.attributes = conv->attributes;
  const std::array<size_t, 2> members{position, after};
  fuser.replace(members, after, std::move(made));
}

void add_activation(Fuser& fuser, size_t position) {
  const Node* conv = fuser.at(position);
  if (conv == nullptr || !is_conv(*conv) || find_attribute(*conv, "activation") != nullptr || !is_float32(fuser, *conv))
    return;
  const size_t after = fuser.only_reader(conv->outputs[0]);
  const auto activation = activation_at(fuser, after);
  if (!activation.has_value() || fuser.input(*fuser.at(after), 0) != conv->outputs[0]) return;
  Node made = activation->is_published
                  ? fuser.make(kMicrosoft, "FusedConv", after, inputs_of(fuser, *conv), fuser.at(after)->outputs)
                  : fuser.make(kFusedDomain, "Conv", after, inputs_of(fuser, *conv), fuser.at(after)->outputs);
  made.attributes = conv->attributes;
  made.attributes.push_back(string_attribute("activation", activation->name));
  if (!activation->parameters.empty())
    made.attributes.push_back(floats_attribute("activation_params", activation->parameters));
  const std::array<size_t, 2> members{position, after};
  fuser.replace(members, after, std::move(made));
}

}  // namespace

void fold_conv_norms(GraphEdit& edit, const RewriteContext&) {
  Fuser fuser(edit);
  for (size_t position = 0; position < fuser.count(); ++position) fold_norm(fuser, edit, position);
}

void fuse_channel_affines(GraphEdit& edit, const RewriteContext&) {
  Fuser fuser(edit);
  for (size_t position = 0; position < fuser.count(); ++position) fuse_affine(fuser, edit, position);
}

void fuse_conv_residuals(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, add_residual); }
void fuse_conv_activations(GraphEdit& edit, const RewriteContext&) { fuse_each(edit, add_activation); }

}  // namespace parallax::runtime
