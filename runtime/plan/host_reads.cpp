// SPDX-License-Identifier: Apache-2.0
// From the inputs that are read on the host back to those of the graph.
#include "runtime/plan/host_reads.h"

#include <algorithm>

namespace parallax::runtime {
namespace {

using Read = std::vector<uint8_t>;  // by ValueId

bool reads_content(const Node& node) { return node.op_type != "Shape" && node.op_type != "Size"; }

bool reads_on_host(const Step& step, size_t input) {
  if (step.control != nullptr) return step.control->reads_on_host(input);
  return input < 32 && ((step.kernel.host_inputs >> input) & 1U) != 0;
}

// `outputs`, by output: the host reads it.
Read read_in(const GraphPlan& plan, const std::vector<uint8_t>& outputs) {
  Read read(plan.locations.size(), 0);
  const auto mark = [&](ValueId id) {
    if (id != kNoValue) read[static_cast<size_t>(id)] = 1;
  };
  for (size_t index = 0; index < outputs.size() && index < plan.graph->outputs.size(); ++index)
    if (outputs[index] != 0) mark(plan.edit.resolve(plan.graph->outputs[index]));
  for (auto step = plan.steps.rbegin(); step != plan.steps.rend(); ++step) {
    std::vector<uint8_t> made;
    bool any = false;
    for (const BufferSlot& output : step->outputs) {
      made.push_back(output.value == kNoValue ? 0 : read[static_cast<size_t>(output.value)]);
      any = any || made.back() != 0;
    }
    const bool is_call = !step->kernel && step->control == nullptr && step->fallback == nullptr;
    const bool follows = any && step->kernel && reads_content(*step->node);
    for (size_t input = 0; input < step->inputs.size(); ++input)
      if (follows || reads_on_host(*step, input)) mark(step->inputs[input].location.value);
    for (const BodyPlan& body : step->bodies) {
      const Read inner = read_in(*body.plan, is_call ? made : std::vector<uint8_t>());
      for (const auto& [inside, outside] : body.outer)
        if (inner[static_cast<size_t>(inside)] != 0) mark(outside);
      const size_t arguments = is_call ? std::min(step->inputs.size(), body.plan->graph->inputs.size()) : 0;
      for (size_t input = 0; input < arguments; ++input)
        if (inner[static_cast<size_t>(body.plan->graph->inputs[input])] != 0) mark(step->inputs[input].location.value);
    }
  }
  return read;
}

}  // namespace

void mark_read_on_host(GraphPlan& plan) {
  const Read read = read_in(plan, {});
  for (ValueId id : plan.graph->inputs) plan.read_on_host.push_back(read[static_cast<size_t>(id)]);
}

bool stays_on_host(const GraphPlan& plan, size_t input, const Value& value) {
  if (input >= plan.read_on_host.size() || plan.read_on_host[input] == 0 || !value.is_tensor()) return false;
  const Tensor& tensor = value.tensor();
  return tensor.device().is_host() && tensor.element_count() <= kMostHostElements &&
         (is_integer(tensor.dtype()) || tensor.dtype() == DType::bool_);
}

std::vector<uint8_t> inputs_on_host(const GraphPlan& plan, std::span<const Value> inputs) {
  std::vector<uint8_t> stay;
  for (size_t input = 0; input < inputs.size(); ++input)
    stay.push_back(stays_on_host(plan, input, inputs[input]) ? 1 : 0);
  return stay;
}

}  // namespace parallax::runtime
