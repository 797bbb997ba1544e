// SPDX-License-Identifier: Apache-2.0
// Scan: states go from step to step, slices of the inputs in, slices of the outputs out.
#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/plan/stack.h"

namespace parallax::runtime {
namespace {

struct ScanAxis {
  int64_t axis = 0;
  bool reversed = false;
};

// One entry for each scan input or output; attributes left out mean axis 0, forward.
Result<std::vector<ScanAxis>> scan_axes(const OpCall& op, std::string_view axes_name, std::string_view directions_name,
                                        int64_t count) {
  const Ints axes = op.find_integers(axes_name).value_or(Ints(count));
  const Ints directions = op.find_integers(directions_name).value_or(Ints(count));
  if (axes.size() != count || directions.size() != count)
    return execution_error(fmt::format("{} has {} entries and {} has {}; they must have {}, one for each scanned value",
                                       axes_name, axes.size(), directions_name, directions.size(), count));
  std::vector<ScanAxis> result;
  for (int64_t index = 0; index < count; ++index) result.push_back({axes[index], directions[index] != 0});
  return result;
}

struct ScanInput {
  Slices slices;
  bool reversed = false;
};

struct ScanInputs {
  std::vector<ScanInput> each;
  int64_t length = 0;
};

Result<ScanInputs> scan_inputs(ControlCall& call, int64_t state_count) {
  const OpCall& op = call.op;
  const int64_t count = op.input_count() - state_count;
  const std::vector<ScanAxis> axes = PX_TRY(scan_axes(op, "scan_input_axes", "scan_input_directions", count));
  ScanInputs inputs;
  for (int64_t index = 0; index < count; ++index) {
    if (!op.value(state_count + index).is_tensor())
      return wrong_input(op, state_count + index, "be a tensor, as it is scanned");
    const Tensor& tensor = op.input(state_count + index);
    const ScanAxis& given = axes[static_cast<size_t>(index)];
    const int64_t axis = PX_TRY(OpCall::resolve_axis(given.axis, rank_of(tensor.shape())));
    const int64_t length = dim_of(tensor.shape(), axis);
    if (index > 0 && length != inputs.length)
      return wrong_input(op, state_count + index, "have {} elements along its scanned axis {}, as the first one",
                         inputs.length, axis);
    inputs.length = length;
    inputs.each.push_back({PX_TRY(Slices::of(call, tensor, axis)), given.reversed});
  }
  return inputs;
}

}  // namespace

Status run_scan(ControlCall& call) {
  OpCall& op = call.op;
  const Graph* body = body_of(op, "body");
  const int64_t input_count = op.integer("num_scan_inputs");
  if (body == nullptr) return invalid_model("attribute 'body' is missing; it must be a graph");
  if (input_count < 1 || input_count > op.input_count())
    return wrong_attribute("num_scan_inputs", input_count, "be in [1, {}], the number of inputs", op.input_count());
  const int64_t state_count = op.input_count() - input_count;
  if (op.output_count() < state_count)
    return wrong_value("the number of outputs", op.output_count(), "be {} or more, one for each state", state_count);
  const ScanInputs inputs = PX_TRY(scan_inputs(call, state_count));
  const int64_t length = inputs.length;
  const auto scanned_count = static_cast<size_t>(op.output_count() - state_count);
  std::vector<Value> states;
  for (int64_t index = 0; index < state_count; ++index) states.push_back(op.value(index));
  std::vector<Stack> scanned(scanned_count, Stack(length));
  for (int64_t step = 0; step < length; ++step) {
    std::vector<Value> arguments = std::move(states);
    for (const ScanInput& input : inputs.each)
      arguments.emplace_back(PX_TRY(input.slices.at(call, input.reversed ? length - 1 - step : step)));
    std::vector<Value> results = PX_TRY(call.run_body("body", Frame::Kind::body, step, std::move(arguments)));
    PX_TRY(expect_count(results.size(), static_cast<size_t>(state_count) + scanned_count, "body"));
    for (size_t index = 0; index < scanned_count; ++index)
      PX_TRY(scanned[index].add(call, results[static_cast<size_t>(state_count) + index]));
    results.resize(static_cast<size_t>(state_count));
    states = std::move(results);
  }
  for (int64_t index = 0; index < state_count; ++index)
    op.set_output(index, std::move(states[static_cast<size_t>(index)]));
  const auto axes =
      PX_TRY(scan_axes(op, "scan_output_axes", "scan_output_directions", static_cast<int64_t>(scanned_count)));
  for (size_t index = 0; index < scanned_count; ++index) {
    const size_t output = static_cast<size_t>(state_count) + index;
    op.set_output(static_cast<int64_t>(output),
                  PX_TRY(scanned[index].take(call, *body, output, axes[index].axis, axes[index].reversed)));
  }
  return {};
}

}  // namespace parallax::runtime
