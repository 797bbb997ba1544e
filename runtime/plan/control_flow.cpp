// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs of the bodies of If, Loop and SequenceMap; Scan has a file of its own.
#include "runtime/plan/control_flow.h"

#include <limits>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/plan/stack.h"

namespace parallax::runtime {
namespace {

Result<bool> truth(ControlCall& call, const Value& given, std::string_view what) {
  const Value value = PX_TRY(call.platform.to_host(given));
  if (!value.is_tensor() || value.tensor().dtype() != DType::bool_ || value.tensor().element_count() != 1)
    return wrong_value(what, to_string(type_of(value)), "be one bool");
  return value.tensor().as<bool>()[0];
}

Status run_if(ControlCall& call) {
  const bool condition = PX_TRY(truth(call, call.op.value(0), "cond"));
  const std::string_view branch = condition ? "then_branch" : "else_branch";
  std::vector<Value> results =
      PX_TRY(call.run_body(branch, condition ? Frame::Kind::then_branch : Frame::Kind::else_branch, -1, {}));
  PX_TRY(expect_count(results.size(), static_cast<size_t>(call.op.output_count()), branch));
  for (size_t index = 0; index < results.size(); ++index) {
    call.op.set_output(static_cast<int64_t>(index), std::move(results[index]));
  }
  return {};
}

// for (i = 0; i < M && cond; ++i) cond, carried..., scanned... = body(i, cond, carried...)
struct LoopState {
  bool condition = true;
  std::vector<Value> carried;
  std::vector<Stack> scanned;
};

Status run_iteration(ControlCall& call, int64_t iteration, LoopState& state) {
  std::vector<Value> arguments{Tensor::scalar<int64_t>(iteration), Tensor::scalar<bool>(state.condition)};
  for (Value& value : state.carried) arguments.push_back(std::move(value));
  std::vector<Value> results = PX_TRY(call.run_body("body", Frame::Kind::body, iteration, std::move(arguments)));
  PX_TRY(expect_count(results.size(), 1 + state.carried.size() + state.scanned.size(), "body"));
  state.condition = PX_TRY(truth(call, results[0], "the body's condition"));
  size_t next = 1;
  for (Value& value : state.carried) value = std::move(results[next++]);
  for (Stack& items : state.scanned) PX_TRY(items.add(call, results[next++]));
  return {};
}

Status run_loop(ControlCall& call) {
  OpCall& op = call.op;
  const Graph* body = body_of(op, "body");
  const int64_t carried_count = std::max<int64_t>(0, op.input_count() - 2);
  if (body == nullptr || op.output_count() < carried_count)
    return invalid_model(fmt::format(
        "it has {} inputs and {} outputs; it must have a body and an output for each of the inputs from the third on",
        op.input_count(), op.output_count()));
  PX_TRY(expect_count(body->inputs.size(), static_cast<size_t>(2 + carried_count), "body's input list"));
  const int64_t limit = op.has_input(0) ? PX_TRY(op.integer_of_input(0)) : std::numeric_limits<int64_t>::max();
  LoopState state;
  if (op.has_input(1)) state.condition = PX_TRY(truth(call, op.value(1), "cond"));
  for (int64_t index = 0; index < carried_count; ++index) state.carried.push_back(op.value(index + 2));
  state.scanned.assign(static_cast<size_t>(op.output_count() - carried_count), Stack(limit));
  for (int64_t iteration = 0; iteration < limit && state.condition; ++iteration) {
    PX_TRY(run_iteration(call, iteration, state));
  }
  for (int64_t index = 0; index < carried_count; ++index) {
    op.set_output(index, std::move(state.carried[static_cast<size_t>(index)]));
  }
  for (size_t index = 0; index < state.scanned.size(); ++index) {
    const int64_t output = carried_count + static_cast<int64_t>(index);
    if (!op.wants_output(output)) continue;
    const size_t body_output = static_cast<size_t>(1 + output);
    op.set_output(output, PX_TRY(state.scanned[index].take(call, *body, body_output, 0)));
  }
  return {};
}

// The body once for each element; inputs that are no sequences are the same each time.
Status run_sequence_map(ControlCall& call) {
  OpCall& op = call.op;
  const Graph* body = body_of(op, "body");
  if (body == nullptr || !op.value(0).is_sequence())
    return wrong_input(op, 0, "be a sequence, and the node have a body");
  const size_t length = op.value(0).sequence().items.size();
  std::vector<SequenceValue> results(static_cast<size_t>(op.output_count()));
  for (size_t output = 0; output < results.size() && output < body->outputs.size(); ++output) {
    results[output].element_type = body->output_type(output);
  }
  for (size_t item = 0; item < length; ++item) {
    std::vector<Value> arguments;
    for (int64_t index = 0; index < op.input_count(); ++index) {
      const Value& value = op.value(index);
      if (value.is_sequence() && value.sequence().items.size() != length)
        return wrong_length(input_name(op, index), value.sequence().items.size(), "have {}, as the first one", length);
      arguments.push_back(value.is_sequence() ? value.sequence().items[item] : value);
    }
    std::vector<Value> outputs =
        PX_TRY(call.run_body("body", Frame::Kind::body, static_cast<int64_t>(item), std::move(arguments)));
    PX_TRY(expect_count(outputs.size(), results.size(), "body"));
    for (size_t output = 0; output < outputs.size(); ++output)
      results[output].items.push_back(std::move(outputs[output]));
  }
  for (size_t output = 0; output < results.size(); ++output) {
    op.set_output(static_cast<int64_t>(output), std::move(results[output]));
  }
  return {};
}

constexpr ControlRow kRows[] = {
    {"If", run_if, 1, 1},
    {"Loop", run_loop, 1, 2},
    {"Scan", run_scan_8, 8, 1, 8},
    {"Scan", run_scan, 9},
    {"SequenceMap", run_sequence_map},
    {"FlexAttention", run_flex_attention, 1, 0, INT64_MAX, "ai.onnx.preview"},
};

}  // namespace

const ControlRow* find_control(const Node& node) {
  if (node.schema == nullptr) return nullptr;
  for (const ControlRow& row : kRows) {
    const int64_t version = node.schema->since_version;
    if (row.op == node.op_type && row.domain == node.schema->domain && version >= row.since_first &&
        version <= row.since_last)
      return &row;
  }
  return nullptr;
}

}  // namespace parallax::runtime
