// SPDX-License-Identifier: Apache-2.0
// Building of plans, from the main graph down.
#include "runtime/plan/plan.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "inspector/base/checked_math.h"
#include "inspector/tensor/elements.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/rewrite/fused_ops.h"

namespace parallax::runtime {
namespace {

// The dense tensor of a sparse initializer.
Result<Tensor> densify(const SparseTensor& sparse) {
  const Shape shape = PX_TRY(Shape::create(sparse.dims));
  const Tensor& values = sparse.values.tensor;
  Tensor dense = PX_TRY(Tensor::zeros(values.dtype(), shape));
  if (bits_of(values.dtype()) < 8)
    return unsupported(fmt::format("a sparse initializer is of type {}; only types of whole bytes have a kernel here",
                                   name_of(values.dtype())));
  const size_t bytes = static_cast<size_t>(bits_of(values.dtype()) / 8);
  const Ints indices(to_int64s(sparse.indices.tensor));
  const int64_t count = values.element_count();
  const bool is_linear = sparse.indices.tensor.shape().rank() == 1;
  const Ints strides = row_major_strides(shape);
  if (indices.size() != count * (is_linear ? 1 : strides.size()))
    return invalid_model(fmt::format("a sparse initializer has {} indices; it must have {} for {} values",
                                     indices.size(), count * (is_linear ? 1 : strides.size()), count));
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = is_linear ? indices[i] : 0;
    for (int64_t axis = 0; !is_linear && axis < strides.size(); ++axis) {
      const int64_t index = indices[i * strides.size() + axis];
      if (index < 0 || index >= dim_of(shape, axis))
        return invalid_model(fmt::format("a sparse initializer's index is {} along axis {}; it must be in [0, {})",
                                         index, axis, dim_of(shape, axis)));
      offset += index * strides[axis];
    }
    if (offset < 0 || offset >= shape.element_count())
      return invalid_model(fmt::format("a sparse initializer's index is {}; it must be in [0, {}), its elements",
                                       offset, shape.element_count()));
    std::memcpy(dense.mutable_data() + static_cast<size_t>(offset) * bytes,
                values.view().data + static_cast<size_t>(i) * bytes, bytes);
  }
  return dense;
}

std::optional<OperatorSet> set_of(RewriteChoice::Base base) {
  if (base == RewriteChoice::Base::standard) return OperatorSet::standard;
  if (base == RewriteChoice::Base::microsoft) return OperatorSet::microsoft;
  return std::nullopt;
}

class Builder {
 public:
  Builder(const GraphValues& value_infos, PlanRequest& request)
      : value_infos_(value_infos), graph_(*value_infos.graph), request_(request) {}

  Result<std::unique_ptr<GraphPlan>> build() {
    plan_->graph = &graph_;
    plan_->value_infos = &value_infos_;
    plan_->edit = begin_edit(graph_);
    PX_TRY(add_constants());
    pin_overridden();
    for (const ChosenPattern& pattern : request_.patterns) apply_pattern(pattern, plan_->edit, {request_.evaluate});
    note_constants();
    for (const PlannedNode& planned : plan_->edit.nodes) PX_TRY(add_step(planned));
    find_last_readers();
    assign_slots();
    for (Step& step : plan_->steps) settle_slots(step);
    for (ValueId output : graph_.outputs) plan_->outputs.push_back(location_of(plan_->edit.resolve(output)).slot);
    return std::move(plan_);
  }

 private:
  Status add_constants() {
    plan_->constants.resize(graph_.values.size());
    for (size_t index = 0; index < graph_.initializers.size(); ++index) {
      const auto value = static_cast<size_t>(graph_.initializer_values[index]);
      plan_->constants[value] = graph_.initializers[index].tensor;
      request_.weight_bytes += static_cast<int64_t>(graph_.initializers[index].tensor.size_bytes());
    }
    for (size_t index = 0; index < graph_.sparse_initializers.size(); ++index) {
      const auto value = static_cast<size_t>(graph_.sparse_initializer_values[index]);
      Tensor dense = PX_TRY(densify(graph_.sparse_initializers[index]));
      request_.weight_bytes += static_cast<int64_t>(dense.size_bytes());
      if (graph_.values[value].input_index < 0) plan_->edit.constants[value] = dense;
      plan_->constants[value] = std::move(dense);
    }
    for (const auto& [value, constant] : outer_constants_) plan_->edit.constants[static_cast<size_t>(value)] = constant;
    return {};
  }

  // Values of that name, wherever the path leads: a rewrite must not lose what the user replaces.
  void pin_overridden() {
    for (const auto& [text, value] : request_.options->overrides) {
      const auto path = parse_value_path(text);
      const ValueId id = path.ok() ? graph_.find_value(path->name) : kNoValue;
      if (id == kNoValue) continue;
      plan_->edit.pinned[static_cast<size_t>(id)] = true;
      plan_->edit.constants[static_cast<size_t>(id)] = Value();
    }
  }

  void note_constants() {
    GraphEdit& edit = plan_->edit;
    plan_->constants.resize(edit.constants.size());
    plan_->is_constant.resize(edit.constants.size(), 0);
    for (size_t value = 0; value < edit.constants.size(); ++value) {
      plan_->is_constant[value] = edit.constants[value].is_absent() ? 0 : 1;
      if (!edit.is_added(static_cast<ValueId>(value))) continue;
      plan_->constants[value] = edit.constants[value];
      request_.weight_bytes += static_cast<int64_t>(payload_bytes(edit.constants[value]));
    }
    for (const ValueAbsence& absence : edit.absences) {
      const auto value = static_cast<size_t>(absence.value);
      if (absence.kind == ValueAbsence::Kind::folded) plan_->constants[value] = edit.constants[value];
    }
  }

  DType known_dtype(ValueId value) const {
    if (value == kNoValue) return DType::undefined;
    if (plan_->edit.is_added(value)) return plan_->constants[static_cast<size_t>(value)].tensor().dtype();
    const TypeInfo& type = graph_.values[static_cast<size_t>(value)].type;
    return type.kind == TypeInfo::Kind::tensor ? type.dtype : DType::undefined;
  }

  Status choose_function(Step& step) {
    const Node& node = *step.node;
    if (node.function != nullptr) return {};
    step.control = find_control(node);
    if (step.control != nullptr) return {};
    std::vector<DType> dtypes;
    for (const StepInput& input : step.inputs) dtypes.push_back(input.dtype);
    auto kernel = request_.platform->choose(node, dtypes);
    if (kernel.ok()) return step.kernel = *kernel, Status{};
    if (request_.options->fallback == nullptr) return lacks_kernel(std::move(kernel).error(), *request_.platform);
    step.fallback = PX_TRY(FallbackNode::create(node, request_.options->fallback, *request_.options));
    request_.fallback_nodes.push_back(value_infos_.scope + node.display_name);
    return {};
  }

  Status add_step(const PlannedNode& planned) {
    Step step;
    step.id = planned.id;
    step.node = planned.node;
    step.value_info = {planned.node->display_name, versioned_op_name(*planned.node), &graph_, planned.id,
                       planned.sources};
    const OpSchema* schema = planned.node->schema;
    for (ValueId input : planned.node->inputs) {
      const FormalParameter* parameter = schema == nullptr ? nullptr : schema->input(step.inputs.size());
      const bool optional = parameter != nullptr && parameter->option == ParameterOption::optional;
      const ValueId value = plan_->edit.resolve(input);
      step.inputs.push_back({{value}, false, optional, known_dtype(value)});
    }
    step.has_too_few_inputs = schema != nullptr && step.inputs.size() < schema->min_inputs;
    Status chosen = choose_function(step);
    if (!chosen.ok())
      return at_location(std::move(chosen).error(), value_infos_.scope, step.value_info, request_.platform->name());
    for (const GraphValues::Child& child : value_infos_.children_of(planned.id))
      step.bodies.push_back(PX_TRY(plan_body(child)));
    plan_->steps.push_back(std::move(step));
    return {};
  }

  Result<BodyPlan> plan_body(const GraphValues::Child& child) {
    BodyPlan body;
    body.attribute = child.attribute;
    body.outer = PX_TRY(child.value_infos->outer_values());
    for (auto& [value, source] : body.outer) source = plan_->edit.resolve(source);
    Builder builder(*child.value_infos, request_);
    for (const auto& [value, source] : body.outer)
      builder.outer_constants_.emplace_back(value, plan_->edit.constants[static_cast<size_t>(source)]);
    body.plan = PX_TRY(builder.build());
    for (const auto& [value, source] : body.outer)
      body.plan->is_constant[static_cast<size_t>(value)] = plan_->is_constant[static_cast<size_t>(source)];
    return body;
  }

  // Walks backwards: the first node met that reads a value is its last reader. Graph outputs stay.
  void find_last_readers() {
    std::vector<bool> needed(plan_->constants.size(), false);
    for (ValueId output : graph_.outputs) needed[static_cast<size_t>(plan_->edit.resolve(output))] = true;
    for (auto step = plan_->steps.rbegin(); step != plan_->steps.rend(); ++step) {
      const auto touch = [&](ValueId value) {
        if (value == kNoValue || needed[static_cast<size_t>(value)]) return;
        needed[static_cast<size_t>(value)] = true;
        step->last_read.push_back(value);
      };
      for (ValueId value : step->node->outputs) touch(value);
      for (const StepInput& input : step->inputs) touch(input.location.value);
      for (const BodyPlan& body : step->bodies) {
        for (const auto& [inner, enclosing] : body.outer) touch(enclosing);
      }
    }
  }

  // Sources, constants, and what is read from outside, keep a slot of their own: a run's frame is used again, and finds
  // its constants there; what is prepared from a constant is kept. What nodes make shares slots, so that those in use
  // stay in the cache.
  void assign_slots() {
    const size_t count = plan_->constants.size();
    plan_->locations.resize(count);
    std::vector<bool> is_shared(count, false);
    for (const Step& step : plan_->steps) {
      for (ValueId output : step.node->outputs) {
        if (output == kNoValue) continue;
        is_shared[static_cast<size_t>(output)] = plan_->is_constant[static_cast<size_t>(output)] == 0;
      }
    }
    for (size_t id = 0; id < count; ++id) {
      plan_->locations[id].value = static_cast<ValueId>(id);
      if (id < value_infos_.values.size()) plan_->locations[id].value_info = value_infos_.values[id];
      if (!is_shared[id]) plan_->locations[id].slot = plan_->slot_count++;
    }
    std::vector<int32_t> free;
    for (const Step& step : plan_->steps) {
      for (ValueId output : step.node->outputs) {
        if (output == kNoValue || !is_shared[static_cast<size_t>(output)]) continue;
        int32_t& slot = plan_->locations[static_cast<size_t>(output)].slot;
        if (free.empty()) free.push_back(plan_->slot_count++);
        slot = free.back();
        free.pop_back();
      }
      for (ValueId value : step.last_read) {
        if (is_shared[static_cast<size_t>(value)]) free.push_back(plan_->locations[static_cast<size_t>(value)].slot);
      }
    }
  }

  BufferSlot location_of(ValueId value) const {
    return value == kNoValue ? BufferSlot{} : plan_->locations[static_cast<size_t>(value)];
  }

  void settle_slots(Step& step) {
    const std::unordered_set<ValueId> last_read(step.last_read.begin(), step.last_read.end());
    for (StepInput& input : step.inputs) {
      input.is_last_read = last_read.contains(input.location.value);
      input.location = location_of(input.location.value);
    }
    for (ValueId output : step.node->outputs) step.outputs.push_back(location_of(output));
    const auto node_in_source = [&](size_t index) {
      const ValueInfo* value_info = step.outputs[index].value_info;
      return value_info == nullptr ? -1 : value_info->node_index;
    };
    for (size_t index = 0; index < step.outputs.size(); ++index) step.store_order.push_back(index);
    std::ranges::stable_sort(step.store_order, {}, node_in_source);
    const bool is_fused = step.node->domain == kFusedDomain;
    for (size_t index = 1; is_fused && index < std::min<size_t>(64, step.outputs.size()); ++index) {
      if (last_read.contains(step.node->outputs[index])) step.only_to_observe |= uint64_t{1} << index;
    }
    for (ValueId value : step.last_read) {
      if (plan_->is_constant[static_cast<size_t>(value)] == 0) step.freed_slots.push_back(location_of(value).slot);
    }
  }

  const GraphValues& value_infos_;
  const Graph& graph_;
  PlanRequest& request_;
  // The values of enclosing graphs that a body reads, by their ids in the body. Patterns see them as constants; they
  // are stored outside.
  std::vector<std::pair<ValueId, Value>> outer_constants_;
  std::unique_ptr<GraphPlan> plan_ = std::make_unique<GraphPlan>();
};

}  // namespace

const BodyPlan* Step::body(std::string_view attribute) const {
  const auto found = std::find_if(bodies.begin(), bodies.end(),
                                  [&](const BodyPlan& candidate) { return candidate.attribute == attribute; });
  return found == bodies.end() ? nullptr : &*found;
}

Error lacks_kernel(Error error, const Platform& platform) {
  return unsupported(fmt::format("{} in executor '{}'; --fallback=reference runs it in the reference", error.message,
                                 platform.name()));
}

void number_steps(GraphPlan& plan, int32_t& next) {
  for (Step& step : plan.steps) {
    step.memory_step = next++;
    for (BodyPlan& body : step.bodies) {
      if (body.attribute.empty()) number_steps(*body.plan, next);
    }
  }
}

Result<std::unique_ptr<GraphPlan>> plan_graph(const GraphValues& value_infos, PlanRequest& request) {
  return Builder(value_infos, request).build();
}

Result<std::vector<ChosenPattern>> chosen_patterns(const RunOptions& options, bool on_host) {
  std::vector<ChosenPattern> chosen;
  const RewriteChoice& choice = options.rewrite;
  for (const auto& [name, on] : choice.changes) {
    const Pattern* pattern = find_pattern(name);
    if (pattern == nullptr)
      return usage_error(fmt::format("there is no rewrite pattern '{}'; 'parallax rewrite --list' names them", name));
    if (on && !on_host && pattern->host_only) {
      return usage_error(fmt::format("rewrite pattern '{}' makes operators that only executor 'cpu' has", name));
    }
  }
  if (options.observe_all) return chosen;
  for (const Pattern& pattern : rewrite_patterns()) {
    const std::optional<OperatorSet> set = set_of(choice.base);
    const bool is_in_base =
        choice.base == RewriteChoice::Base::all ||
        (choice.base != RewriteChoice::Base::none && pattern.on_by_default && !(on_host && pattern.gains_on_gpus));
    bool on = is_in_base && (!set.has_value() || pattern.target <= *set);
    OperatorSet limit = set.value_or(OperatorSet::own);
    for (const auto& [name, wanted] : choice.changes) {
      if (name != pattern.name) continue;
      on = wanted;
      limit = OperatorSet::own;
    }
    if (on && (on_host || !pattern.host_only)) chosen.push_back({&pattern, limit});
  }
  return chosen;
}

}  // namespace parallax::runtime
