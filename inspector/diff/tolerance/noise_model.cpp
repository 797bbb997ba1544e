// SPDX-License-Identifier: Apache-2.0
// Carrying error estimates through the graph.
#include "inspector/diff/tolerance/noise_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "inspector/diff/tolerance/noise_foreign.h"
#include "inspector/diff/tolerance/noise_inputs.h"
#include "inspector/diff/tolerance/noise_table.h"
#include "inspector/diff/tolerance/noise_unseen.h"
#include "inspector/diff/tolerance/paths.h"
#include "inspector/diff/tolerance/quantization.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/exec/value_path.h"
#include "inspector/model/blocked_operators.h"

namespace parallax::diff {
namespace {

bool has_bodies(const Node& node) {
  constexpr std::array kWithBodies = {"If", "Loop", "Scan", "SequenceMap"};
  if (node.function != nullptr) return node.domain != kBlockedDomain;
  return std::ranges::find(kWithBodies, node.op_type) != kWithBodies.end();
}

}  // namespace

const NoiseModel::State* NoiseModel::find(std::string prefix, const std::string& escaped_name) const {
  do {
    const auto found = states_.find(prefix + escaped_name);
    if (found != states_.end()) return &found->second;
  } while (leave_frame(prefix));
  return nullptr;
}

void NoiseModel::add_inputs(const std::string& prefix, const Graph& graph, const Node& node, Added& value) const {
  for (size_t position = 0; position < node.inputs.size(); ++position) {
    if (node.inputs[position] == kNoValue) continue;
    const ValueId id = node.inputs[position];
    const std::string& name = value_at(graph, id).name;
    const bool is_rounded = value.kind == Kind::computed && may_have_rounded(graph, id, prefix.empty());
    const auto is_observed = [&](const ValueDef& earlier) { return is_known(prefix, escape_name(earlier.name)); };
    const DType coarsest = is_rounded ? coarsest_unseen(graph, id, is_observed) : DType::undefined;
    value.sources.push_back(
        {prefix, escape_name(name), "", position, is_rounded, has_unknown_size(graph, id), coarsest});
  }
}

// Output `position` of a body at `location` (static).
void NoiseModel::add_body_output(const Graph& body, size_t position, const std::string& location, Added& value) const {
  if (position >= body.outputs.size()) return;
  const std::string name = escape_name(body.values[static_cast<size_t>(body.outputs[position])].name);
  value.sources.push_back({value.prefix, name, location + name, position});
}

bool NoiseModel::is_known(std::string prefix, const std::string& escaped_name) const {
  do {
    if (states_.contains(prefix + escaped_name) || unresolved_.contains(prefix + escaped_name)) return true;
  } while (leave_frame(prefix));
  return false;
}

// An input that was not observed, since it was fused away, has rounded nevertheless: its error is estimated from its
// own inputs, as far back as those were not observed either.
void NoiseModel::add_unseen(const Added& reader, const Graph& graph, const Node& node, int depth) {
  constexpr int kLongestChain = 32;  // more than any kernel fuses
  if (depth >= kLongestChain) return;
  std::vector<ValueId> made_of = node.inputs;
  if (is_dequantize(node)) made_of.push_back(float_before_quantization(graph, node));
  for (const ValueId id : made_of) {
    if (id == kNoValue) continue;
    const ValueDef& definition = value_at(graph, id);
    const std::string name = escape_name(definition.name);
    if (definition.producer == kNoNode || !is_counted(definition.type.dtype) || is_known(reader.prefix, name)) continue;
    const Node& producer = graph.nodes[static_cast<size_t>(definition.producer)];
    if (has_bodies(producer)) continue;
    Added unseen;
    unseen.prefix = reader.prefix;
    unseen.escaped_name = name;
    unseen.magnitude = unseen_magnitude(definition.type);
    unseen.is_estimated = true;
    unseen.is_product = producer.op_type == "Mul";
    describe_node(graph, producer, unseen);
    add_unseen(unseen, graph, producer, depth + 1);
    unresolved_[unseen.prefix + name] = next_number_;
    added_.emplace(next_number_++, std::move(unseen));
  }
}

// The outputs of a node with bodies are those of its bodies.
void NoiseModel::add_body_outputs(const Node& node, size_t output_index, Added& value) const {
  const std::string location = static_path(value.prefix) + escape_name(node.display_name);
  const size_t position = output_index + (node.op_type == "Loop" ? 1 : 0);  // a Loop's body gives its condition first
  if (node.function != nullptr) add_body_output(node.function->body, position, location + ".call//", value);
  for (const Attribute& attribute : node.attributes) {
    const auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
    if (body == nullptr || *body == nullptr) continue;
    const bool is_branch = attribute.name == "then_branch" || attribute.name == "else_branch";
    add_body_output(**body, position, location + (is_branch ? "." + attribute.name.substr(0, 4) + "//" : ".body[*]//"),
                    value);
  }
}

// An input of a body: what enters by the node that has the body, or what an earlier iteration gave.
void NoiseModel::add_what_enters(const Graph& body, Added& value) const {
  std::string outside = value.prefix;
  if (!leave_frame(outside)) return;
  const auto graph = graphs_.find(static_path(outside));
  if (graph == graphs_.end()) return;
  const std::string frame = value.prefix.substr(outside.size());
  const NodeId id = graph->second->find_node(unescape_name(std::string_view(frame).substr(0, frame.rfind('.'))));
  if (id == kNoNode) return;
  add_inputs(outside, *graph->second, graph->second->nodes[static_cast<size_t>(id)], value);
  for (size_t position = 0; position < body.outputs.size(); ++position) {
    add_body_output(body, position, static_path(value.prefix), value);
  }
}

void NoiseModel::describe_node(const Graph& graph, const Node& node, Added& value) const {
  value.kind = has_bodies(node) ? Kind::passed_on : Kind::computed;
  value.row = &noise_row_of(node.op_type, node.domain);
  value.is_convolution = node.op_type == "Conv" || node.op_type == "ConvTranspose";
  value.interpolates = interpolates(node);
  value.int8_block = int8_block_of(node);
  add_inputs(value.prefix, graph, node, value);
  if (const auto product = dynamic_product_of(graph, node); product.has_value()) {
    const auto source = [&](ValueId id) { return Source{value.prefix, escape_name(value_at(graph, id).name), "", 0}; };
    value.dynamic = {source(product->floats), source(product->scale), product->weight_rms, product->weight_step,
                     product->terms};
  }
  if (!is_dequantize(node)) return;
  value.is_taken_from_quantized = true;
  value.is_of_held_quantized = !node.inputs.empty() && value_at(graph, node.inputs[0]).producer == kNoNode;
  if (const std::optional<QuantizedRange> range = quantized_range_of(graph, node); range.has_value()) {
    value.step = range->step;
    value.typical_step = range->typical_step;
  } else if (node.inputs.size() > 1 && node.inputs[1] != kNoValue) {
    value.scale = {value.prefix, escape_name(value_at(graph, node.inputs[1]).name), "", 0};
  }
  if (value.is_estimated) value.held_size = size_of_held_quantized(graph, node);
  if (const ValueId before = float_before_quantization(graph, node); before != kNoValue)
    value.before_quantization = {value.prefix, escape_name(value_at(graph, before).name), "", 0};
}

void NoiseModel::describe(const ValueInfo& value_info, Added& value) {
  const Graph& graph = *value_info.graph;
  graphs_[static_path(value.prefix)] = &graph;
  if (value_info.role == ValueInfo::Role::node_output && value_info.node_index >= 0) {
    const Node& node = graph.nodes[static_cast<size_t>(graph.order[static_cast<size_t>(value_info.node_index)])];
    describe_node(graph, node, value);
    if (has_bodies(node)) {
      add_body_outputs(node, static_cast<size_t>(value_info.output_index), value);
    } else {
      add_unseen(value, graph, node, 0);
    }
  } else if (value_info.role == ValueInfo::Role::input && !value.prefix.empty()) {
    value.kind = Kind::passed_on;
    add_what_enters(graph, value);
  } else {
    value.kind = Kind::data;
  }
}

NoiseModel::Inputs NoiseModel::inputs_of(const Added& value) const {
  Inputs inputs;
  for (const Source& source : value.sources) {
    const auto in_body = source.in_body.empty() ? in_bodies_.end() : in_bodies_.find(source.in_body);
    const State* state = in_body != in_bodies_.end() ? &in_body->second : find(source.prefix, source.escaped_name);
    if (state == nullptr) {
      inputs.any_rounded_unseen = inputs.any_rounded_unseen || source.is_rounded;
      inputs.coarsest_unseen = coarser(inputs.coarsest_unseen, source.coarsest);
      inputs.any_size_unseen = inputs.any_size_unseen || source.has_size;
    }
    if (state == nullptr || state->is_zero) continue;
    inputs.add(*state, source.position);
    if (value.is_convolution && source.position == 1) {
      inputs.terms = state->magnitude.count / std::max(1.0, state->magnitude.first_dim);
    }
  }
  return inputs;
}

NoiseModel::State NoiseModel::state_of(const Added& value) const {
  State state;
  state.magnitude = value.magnitude;
  double rms = value.magnitude.rms;
  const DType own_type = real_part(value.magnitude.dtype);
  const double epsilon = epsilon_of(own_type);
  const auto expected = expected_.find(value.prefix + value.escaped_name);
  const double inherited = expected == expected_.end() ? 0 : expected->second;
  if (value.kind == Kind::data) {
    const bool is_narrowed = counts_casts_ && epsilon > epsilon_of(DType::float32);
    const double stored = is_narrowed ? thresholds::kStoringError * epsilon * rms : 0;
    if (inherited == 0 && stored == 0) return state;
    state.coarsest = own_type;
    state.carried = state.error = std::max(inherited, stored);
    return state;
  }
  const auto unknown_history_of = [rms](DType type) {
    return noise_margin_of(type).unknown_history * epsilon_of(type) * rms;
  };
  if (value.kind == Kind::unknown) {
    state.coarsest = own_type;
    state.carried = state.error = std::max(unknown_history_of(own_type), inherited);
    return state;
  }
  if (counts_quantization_ && value.dynamic.has_value()) {
    if (const auto dynamic = state_of_dynamic(value); dynamic.has_value()) return *dynamic;
  }
  const Inputs inputs = inputs_of(value);
  state.is_quantized = inputs.any_quantized;
  state.step_share = inputs.step_share;
  if (value.is_taken_from_quantized && counts_quantization_) return state_of_quantized(state, value, inputs);
  // True for inputs that were not observed, and for exact ones where the operator itself rounds differently.
  const bool has_unseen_history =
      inputs.any_rounded_unseen || (inputs.any_size_unseen && value.row != nullptr && value.row->own_rounding > 0);
  if (value.is_estimated && inputs.any_size_unseen) return state;
  if (value.is_estimated) state.magnitude.rms = rms = inputs.rms_of_result(value.row->propagation, value.is_product);
  const DType type_of_unseen = coarser(own_type, inputs.coarsest_unseen);
  const double unknown_history = unknown_history_of(type_of_unseen);
  state.coarsest = coarser(inputs.coarsest, has_unseen_history ? type_of_unseen : own_type);
  if (!inputs.any_known || value.kind == Kind::passed_on) {  // made of integers or nothing; into and out of bodies
    state.error = std::sqrt(squared(thresholds::kStoringError * epsilon) + squared(inputs.relative_max)) * rms;
    if (has_unseen_history) state.error = std::max(state.error, unknown_history);
    state.error = std::max(state.error, inherited);
    state.carried = inputs.any_known || has_unseen_history || inherited > 0 ? state.error : 0;
    return state;
  }
  state.error = error_of(*value.row, inputs, state, epsilon);
  if (counts_foreign_kernels_) add_foreign_kernels(value, inputs, state);
  const bool is_narrowed = counts_casts_ && value.row->own_rounding == 0 && epsilon > epsilon_of(inputs.held);
  if (has_unseen_history) state.error = std::max(state.error, unknown_history);
  state.is_estimated = value.is_estimated;
  if (inputs.any_estimated && !inputs.any_quantized && !value.is_estimated && rms > 0)
    state.error = std::min(state.error, thresholds::kEstimatedMagnitudeRoom * most_believed(state.coarsest, rms));
  if (value.row->propagation == ErrorPropagation::copy && state.error == 0) state.coarsest = inputs.coarsest;
  if (value.row->propagation == ErrorPropagation::copy && inputs.number == 1) state.held_step = inputs.held_step;
  // Every executor computes the same correctly rounded result from equal operands: there is no error to propagate,
  // though a fused kernel may round differently here. So a mask built by (1 - m) * -1e9 stays without error.
  const bool has_history = inputs.error_max > 0 || has_unseen_history || value.magnitude.is_unrounded || is_narrowed;
  state.carried = value.row->own_rounding == 0 && !has_history ? 0 : state.error;
  return state;
}

// It is a dot product of floats and weights that are both rounded to steps, each with a uniform error of its step.
std::optional<NoiseModel::State> NoiseModel::state_of_dynamic(const Added& value) const {
  const State* floats = find(value.dynamic->floats.prefix, value.dynamic->floats.escaped_name);
  const State* scale = find(value.dynamic->scale.prefix, value.dynamic->scale.escaped_name);
  if (floats == nullptr || scale == nullptr || !(floats->magnitude.rms > 0)) return std::nullopt;
  Inputs inputs;
  inputs.add(*floats, 0);
  const double weight_rms = value.dynamic->weight_rms;
  const double step = scale->magnitude.rms / (std::sqrt(12.0) * floats->magnitude.rms);
  const double weight_step = weight_rms > 0 ? value.dynamic->weight_step / (std::sqrt(12.0) * weight_rms) : 0;
  State state;
  state.magnitude = value.magnitude;
  state.is_quantized = true;
  state.is_estimated = value.is_estimated;
  state.coarsest = coarser(inputs.coarsest, real_part(value.magnitude.dtype));
  const double terms = value.dynamic->terms > 0 ? value.dynamic->terms : inputs.terms;
  const double product = std::sqrt(terms) * floats->magnitude.rms * weight_rms;
  if (value.is_estimated) state.magnitude.rms = product;
  const double relative = std::sqrt(inputs.relative_squared + squared(step) + squared(weight_step));
  state.error = state.carried = relative * std::max(state.magnitude.rms, product);
  return state;
}

// Rounding to steps is off by a uniform error of one step (Widrow and Kollar, Quantization Noise, section 5.3).
NoiseModel::State NoiseModel::state_of_quantized(State state, const Added& value, const Inputs& inputs) const {
  const State* before = value.before_quantization.has_value()
                            ? find(value.before_quantization->prefix, value.before_quantization->escaped_name)
                            : nullptr;
  if (value.is_estimated) state.magnitude.rms = before != nullptr ? before->magnitude.rms : value.held_size;
  const State* scale = value.scale.has_value() ? find(value.scale->prefix, value.scale->escaped_name) : nullptr;
  const double step = scale != nullptr ? scale->magnitude.rms : value.step, rms = state.magnitude.rms;
  double own = (scale != nullptr ? step : value.typical_step) / std::sqrt(12.0);
  // Steps of stored values are believed: these are compared with the floats that they stand for.
  if (!value.is_of_held_quantized) own = std::min(own, thresholds::kMostQuantizationError * rms);
  state.step_share = std::max(rms > 0 ? own / rms : 0, before != nullptr ? before->step_share : 0);
  double inherited = 0;
  if (before != nullptr) {
    Inputs floats;
    floats.add(*before, 0);
    inherited = floats.error_max;
  } else if (!value.is_of_held_quantized) {
    inherited = thresholds::kUnknownQuantizationError * rms;
  }
  state.is_quantized = true;
  state.is_estimated = value.is_estimated;
  state.held_step = value.is_of_held_quantized ? step : 0;
  state.coarsest = coarser(coarser(inputs.coarsest, real_part(value.magnitude.dtype)),
                           before == nullptr ? DType::undefined : before->coarsest);
  const double of_scale = scale != nullptr ? 0 : inputs.relative_max * rms;  // a computed one has the error of `before`
  state.error = state.carried = std::sqrt(squared(own) + squared(inherited) + squared(of_scale));
  return state;
}

double NoiseModel::most_of_quantization(const State& state) const {
  return std::max(thresholds::kDeepestQuantizationError, thresholds::kDeepestInSteps * state.step_share) *
         state.magnitude.rms;
}

double NoiseModel::error_of(const NoiseRow& row, const Inputs& inputs, const State& output, double epsilon) const {
  const double wide_epsilon = std::min(epsilon, epsilon_of(DType::float32));  // narrow types are computed in float32
  const double own = std::sqrt(squared(thresholds::kStoringError * epsilon) + squared(row.own_rounding * wide_epsilon));
  switch (row.propagation) {
    case ErrorPropagation::copy:
      return inputs.error_max == 0 ? 0 : std::sqrt(squared(inputs.error_max) + squared(own * output.magnitude.rms));
    case ErrorPropagation::relative:
      return std::sqrt(inputs.relative_squared + squared(own)) * output.magnitude.rms;
    case ErrorPropagation::bounded:
      return std::sqrt(squared(thresholds::kLargestActivationSlope * inputs.error_max) +
                       squared(own * output.magnitude.rms));
    case ErrorPropagation::gated:
      return std::sqrt(squared(thresholds::kLargestActivationSlope * inputs.error_max) +
                       squared(own * std::max(output.magnitude.rms, inputs.rms_max)));
    case ErrorPropagation::absolute: {
      const double terms = std::max(inputs.number, inputs.count_max / std::max(1.0, output.magnitude.count));
      const double random = thresholds::kSummingShare * std::sqrt(terms);
      const double summing = wide_epsilon * std::max(random, thresholds::kOneByOneShare * inputs.number);
      // A mask of -1e9 that is added to scores rounds none of those that it leaves.
      const bool is_masked =
          inputs.rms_max > thresholds::kMaskRatio * std::max(output.magnitude.rms, thresholds::kSmallestMaskedRms);
      const double rounded = is_masked ? output.magnitude.rms : std::max(output.magnitude.rms, inputs.rms_max);
      return std::sqrt(inputs.error_squared + squared(std::max(own, summing) * rounded));
    }
    case ErrorPropagation::dot_product: {
      const double scale = std::max(output.magnitude.rms, std::sqrt(inputs.terms) * inputs.rms_product);
      const double summing = thresholds::kSummingShare * row.own_rounding * wide_epsilon * std::sqrt(inputs.terms);
      return std::sqrt(inputs.relative_squared + squared(own) + squared(summing)) * scale;
    }
    case ErrorPropagation::exponential:
      return std::sqrt(squared(thresholds::kExponentialSlope * inputs.error_max) + squared(own)) * output.magnitude.rms;
    case ErrorPropagation::normalizes:
      return std::sqrt(squared(thresholds::kNormalizedError * inputs.relative_max) + squared(own)) *
             output.magnitude.rms;
    case ErrorPropagation::recurrent:
      return (thresholds::kRecurrentError * inputs.relative_max + own) * output.magnitude.rms;
    case ErrorPropagation::unknown:
      return (thresholds::kUnknownError * std::max(inputs.relative_max, inputs.error_max) + own) * output.magnitude.rms;
  }
  return 0;
}

int64_t NoiseModel::add(const std::string& prefix, const std::string& escaped_name, const ValueInfo* value_info,
                        const Magnitude& magnitude) {
  if (!is_counted(magnitude.dtype)) return -1;
  const std::string path = prefix + escaped_name;
  if (const auto earlier = unresolved_.find(path); earlier != unresolved_.end()) resolve(earlier->second);
  Added value;
  value.prefix = prefix;
  value.escaped_name = escaped_name;
  value.magnitude = magnitude;
  if (value_info != nullptr && value_info->graph != nullptr)
    describe(*value_info, value);  // may add what it is made of
  unresolved_[path] = next_number_;
  added_.emplace(next_number_, std::move(value));
  return next_number_++;
}

// A value that is being resolved, and the next of its sources to look at.
struct NoiseModel::Resolving {
  int64_t number;
  Added value;
  std::vector<Source> sources;
  size_t next = 0;
};

std::optional<NoiseModel::Resolving> NoiseModel::take_added(int64_t number) {
  const auto found = added_.find(number);
  if (found == added_.end()) return std::nullopt;
  Resolving taken{number, std::move(found->second), {}};
  added_.erase(found);
  const Added& value = taken.value;
  unresolved_.erase(value.prefix + value.escaped_name);
  taken.sources = value.sources;
  if (value.before_quantization.has_value() && counts_quantization_)
    taken.sources.push_back(*value.before_quantization);
  if (value.dynamic.has_value() && counts_quantization_) {
    taken.sources.push_back(value.dynamic->floats);
    taken.sources.push_back(value.dynamic->scale);
  }
  return taken;
}

// The number of a value to resolve before this one; -1 where there is none.
int64_t NoiseModel::next_unresolved(Resolving& reader) const {
  for (; reader.next < reader.sources.size(); ++reader.next) {
    const Source& source = reader.sources[reader.next];
    const bool is_any_earlier = !added_.empty() && added_.begin()->first < reader.number;
    if (!source.in_body.empty() && is_any_earlier) return added_.begin()->first;
    std::string prefix = source.prefix;
    do {
      const auto waiting = unresolved_.find(prefix + source.escaped_name);
      // A body's input reads results of an earlier iteration, never of its own.
      if (waiting != unresolved_.end() && waiting->second < reader.number) return waiting->second;
    } while (!states_.contains(prefix + source.escaped_name) && leave_frame(prefix));
  }
  return -1;
}

// The values it was made of come first, those that were never compared included; no others, so that estimates do not
// depend on which of two executions is ahead. Chains may be longer than a stack of calls.
void NoiseModel::resolve(int64_t number) {
  std::vector<Resolving> readers;
  for (int64_t next = number; next >= 0 || !readers.empty();) {
    auto taken = next >= 0 ? take_added(next) : std::nullopt;
    if (taken.has_value()) {
      readers.push_back(*std::move(taken));
    } else if (!readers.empty() && next >= 0) {
      ++readers.back().next;
    }
    if (readers.empty()) return;
    next = next_unresolved(readers.back());
    if (next >= 0) continue;
    estimate(readers.back().value);
    readers.pop_back();
  }
}

void NoiseModel::estimate(const Added& value) {
  State state = state_of(value);
  if (value.is_estimated && state.magnitude.rms == 0) {
    const Inputs inputs = inputs_of(value);
    if (!inputs.any_known || inputs.any_size_unseen) return;  // nothing is known of what it is made of
    state.is_zero = true;
  }
  // The differences that were found are those of quantization, and bound no rounding.
  if (counts_quantization_ && !state.is_quantized && state.magnitude.rms > 0) {
    const double most = most_believed(state.coarsest, state.magnitude.rms);
    state.error = std::min(state.error, most);
    state.carried = std::min(state.carried, most);
  }
  states_[value.prefix + value.escaped_name] = state;
  const std::string location = static_path(value.prefix);
  if (location.empty()) return;
  State& largest = in_bodies_[location + value.escaped_name];
  if (state.relative() >= largest.relative()) largest = state;
}

void NoiseModel::rounds_as(int64_t number, DType dtype) {
  const auto found = added_.find(number);
  if (found == added_.end() || found->second.magnitude.dtype != DType::float64 || !is_floating(dtype)) return;
  found->second.magnitude.dtype = dtype;
  found->second.magnitude.is_unrounded = dtype != DType::float64;
}

Limit NoiseModel::limit_of(int64_t number, const std::string& path) {
  if (number < 0) return {};
  resolve(number);
  const State& state = states_.at(path);
  // A constant that is stored quantized is the float that it stands for, rounded to a step.
  if (state.held_step > 0)
    return {thresholds::kFoldedAlike, thresholds::kHeldSteps * state.held_step, LimitSource::table};
  const double margin = state.is_quantized ? thresholds::kQuantizedMargin : noise_margin_of(state.coarsest).margin;
  const double rms = state.magnitude.rms;
  const double error = state.is_quantized ? std::min(state.error, most_of_quantization(state)) : state.error;
  const double rtol = rms > 0 ? std::min(margin * error / rms, thresholds::kLargestRtol) : 0;
  // Below the least normal number a rounding is a step of fixed size, however small the value; narrow types are summed
  // in float32, others in steps of their own.
  const bool rounds = error > 0 && state.coarsest != DType::undefined;
  const FloatLimits limits = float_limits(rounds ? state.coarsest : DType::float32);
  const double steps =
      limits.epsilon > epsilon_of(DType::float32) ? thresholds::kStoringError : 4 * thresholds::kStoringError;
  const double step = rounds ? steps * limits.min_normal * limits.epsilon : 0;
  return {rtol, margin * std::max(error, step), LimitSource::table};
}

void NoiseModel::found_difference(const std::string& path, double rmse) {
  const auto state = states_.find(path);
  if (state == states_.end()) return;
  // The estimate that resolve() has put among those of bodies may be this very value's.
  const auto in_body = in_bodies_.find(static_path(path));
  const bool is_largest = in_body != in_bodies_.end() && in_body->second.error == state->second.error;
  state->second.is_compared = true;
  if (is_largest) in_body->second.is_compared = true;
  // Some elements may differ by a rounding where any do, however few they are.
  const double rounding =
      rmse == 0 ? 0 : thresholds::kStoringError * epsilon_of(state->second.coarsest) * state->second.magnitude.rms;
  const double found = std::min(std::max(thresholds::kFoundDifferenceRoom * rmse, rounding), state->second.error);
  // Nothing was to be carried on, and yet they differ: one of the sides does not round where the other does.
  const bool differs_unexpectedly = state->second.carried == 0 && rmse > 0;
  if (!(found < state->second.carried) && !differs_unexpectedly) return;
  if (is_largest) in_body->second.carried = found;
  state->second.carried = found;
}

}  // namespace parallax::diff
