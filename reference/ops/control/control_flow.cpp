// SPDX-License-Identifier: Apache-2.0
// If, Loop, Scan: the bodies run as frames of the interpreter; here is only what goes in and what comes out.
#include <limits>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "inspector/tensor/elements.h"
#include "reference/ops/control/stack.h"
#include "reference/ops/families.h"
#include "reference/ops/indexing.h"
#include "reference/ops/move.h"

namespace parallax::reference {
namespace {

Result<bool> truth(const Value& value, std::string_view what) {
  if (!value.is_tensor() || value.tensor().dtype() != DType::bool_ || value.tensor().element_count() != 1)
    return wrong_value(what, to_string(type_of(value)), "be one bool");
  return element_as_int64(value.tensor(), 0) != 0;
}

Status expect_outputs(size_t count, size_t expected, std::string_view body) {
  if (count == expected) return {};
  return wrong_value(fmt::format("the number of values that '{}' gives", body), count, "be {}", expected);
}

// The scan output of a loop without iterations: length 0 before the dimensions that the body would give, 0 where they
// are not known before a run.
Result<Tensor> empty_scan(const OpContext& op, const Graph& body, size_t output, size_t axis) {
  const TypeInfo type = body.output_type(output);
  if (type.kind != TypeInfo::Kind::tensor || type.dtype == DType::undefined)
    return execution_error(
        fmt::format("no iteration ran and output {} of the body has no known type; the body must declare it", output));
  std::vector<int64_t> dims;
  for (const Dim& dim : type.dims.value_or(std::vector<Dim>{})) dims.push_back(dim.is_known() ? dim.value : 0);
  dims.insert(dims.begin() + static_cast<ptrdiff_t>(std::min(axis, dims.size())), 0);
  const Shape shape = PX_TRY(Shape::create(dims));
  return op.allocate(type.dtype, shape);
}

Status op_if(OpContext& op) {
  const bool condition = PX_TRY(truth(op.value(0), "cond"));
  const std::string_view branch = condition ? "then_branch" : "else_branch";
  const Frame::Kind kind = condition ? Frame::Kind::then_branch : Frame::Kind::else_branch;
  std::vector<Value> results = PX_TRY(op.run_body(branch, kind, -1, {}));
  PX_TRY(expect_outputs(results.size(), op.output_count(), branch));
  for (size_t index = 0; index < results.size(); ++index) PX_TRY(op.set_output(index, std::move(results[index])));
  return {};
}

// for (i = 0; i < M && cond; ++i) cond, carried..., scanned... = body(i, cond, carried...). An absent M means no limit,
// an absent cond means true.
Status op_loop(OpContext& op) {
  const Graph& body = op.body("body");
  const size_t carried_count = op.input_count() - std::min<size_t>(2, op.input_count());
  if (op.output_count() < carried_count)
    return wrong_value("the number of outputs", op.output_count(), "be {} or more, one for each loop-carried value",
                       carried_count);
  const size_t scan_count = op.output_count() - carried_count;
  PX_TRY(expect_outputs(body.inputs.size(), 2 + carried_count, "body's input list"));
  const int64_t limit = op.has_input(0) ? PX_TRY(op.int64_of_input(0)) : std::numeric_limits<int64_t>::max();
  bool condition = op.has_input(1) ? PX_TRY(truth(op.value(1), "cond")) : true;
  std::vector<Value> carried;
  for (size_t index = 0; index < carried_count; ++index) carried.push_back(op.value(index + 2));
  std::vector<std::vector<Value>> scanned(scan_count);
  for (int64_t iteration = 0; iteration < limit && condition; ++iteration) {
    std::vector<Value> arguments{Tensor::scalar<int64_t>(iteration), Tensor::scalar<bool>(condition)};
    for (Value& value : carried) arguments.push_back(std::move(value));
    std::vector<Value> results = PX_TRY(op.run_body("body", Frame::Kind::body, iteration, std::move(arguments)));
    PX_TRY(expect_outputs(results.size(), 1 + carried_count + scan_count, "body"));
    condition = PX_TRY(truth(results[0], "the body's condition"));
    for (size_t index = 0; index < carried_count; ++index) carried[index] = std::move(results[1 + index]);
    for (size_t index = 0; index < scan_count; ++index)
      scanned[index].push_back(std::move(results[1 + carried_count + index]));
  }
  for (size_t index = 0; index < carried_count; ++index) PX_TRY(op.set_output(index, std::move(carried[index])));
  for (size_t index = 0; index < scan_count; ++index) {
    if (!op.wants_output(carried_count + index)) continue;
    Tensor all = scanned[index].empty() ? PX_TRY(empty_scan(op, body, 1 + carried_count + index, 0))
                                        : PX_TRY(stack(op, scanned[index], 0));
    PX_TRY(op.set_output(carried_count + index, std::move(all)));
  }
  return {};
}

struct ScanAxis {
  size_t axis = 0;
  bool reversed = false;
};

// One entry for each scan input or output, from the attributes `axes` and `directions` (empty: axis 0, forward). An
// axis of an output counts in the output, which has one more than what the body gives: its rank is known only then.
Result<std::vector<ScanAxis>> scan_axes(const OpContext& op, std::string_view axes_name,
                                        std::string_view directions_name, const std::vector<size_t>& ranks) {
  const auto axes = op.find_ints(axes_name);
  const auto directions = op.find_ints(directions_name);
  if ((axes.has_value() && axes->size() != ranks.size()) ||
      (directions.has_value() && directions->size() != ranks.size()))
    return execution_error(fmt::format("{} has {} entries and {} has {}; they must have {}, one for each scanned value",
                                       axes_name, axes.has_value() ? axes->size() : ranks.size(), directions_name,
                                       directions.has_value() ? directions->size() : ranks.size(), ranks.size()));
  std::vector<ScanAxis> result(ranks.size());
  for (size_t index = 0; index < ranks.size(); ++index) {
    if (axes.has_value()) result[index].axis = PX_TRY(normalize_axis((*axes)[index], ranks[index]));
    result[index].reversed = directions.has_value() && (*directions)[index] != 0;
  }
  return result;
}

// One run over the sequence: states go from step to step, slices in, slices out. Steps are numbered from `first_frame`.
struct ScanRun {
  std::vector<Value> states;
  std::vector<std::vector<Value>> outputs;
};

Result<ScanRun> run_scan(const OpContext& op, std::vector<Value> states, const std::vector<Tensor>& inputs,
                         const std::vector<ScanAxis>& axes, int64_t length, size_t output_count, int64_t first_frame) {
  ScanRun run{std::move(states), std::vector<std::vector<Value>>(output_count)};
  const size_t state_count = run.states.size();
  for (int64_t step = 0; step < length; ++step) {
    std::vector<Value> arguments = std::move(run.states);
    for (size_t index = 0; index < inputs.size(); ++index) {
      const int64_t position = axes[index].reversed ? length - 1 - step : step;
      arguments.push_back(PX_TRY(slice_at(op, inputs[index], axes[index].axis, position)));
    }
    std::vector<Value> results =
        PX_TRY(op.run_body("body", Frame::Kind::body, first_frame + step, std::move(arguments)));
    PX_TRY(expect_outputs(results.size(), state_count + output_count, "body"));
    run.states.assign(results.begin(), results.begin() + static_cast<ptrdiff_t>(state_count));
    for (size_t index = 0; index < output_count; ++index)
      run.outputs[index].push_back(std::move(results[state_count + index]));
  }
  return run;
}

Result<Tensor> stack_scanned(const OpContext& op, std::vector<Value> items, size_t body_output, int64_t axis,
                             bool reversed) {
  const Graph& body = op.body("body");
  if (items.empty()) return empty_scan(op, body, body_output, static_cast<size_t>(std::max<int64_t>(0, axis)));
  if (reversed) std::reverse(items.begin(), items.end());
  if (!items[0].is_tensor())
    return wrong_value("a value for a scan output", to_string(type_of(items[0])), "be a tensor");
  return stack(op, items, PX_TRY(normalize_axis(axis, items[0].tensor().shape().rank() + 1)));
}

Status op_scan(OpContext& op) {
  const int64_t scan_input_count = op.int_attribute("num_scan_inputs");
  if (scan_input_count < 1 || scan_input_count > static_cast<int64_t>(op.input_count()))
    return wrong_attribute("num_scan_inputs", scan_input_count, "be in [1, {}], the number of inputs",
                           op.input_count());
  const size_t state_count = op.input_count() - static_cast<size_t>(scan_input_count);
  if (op.output_count() < state_count)
    return wrong_value("the number of outputs", op.output_count(), "be {} or more, one for each state", state_count);
  std::vector<Value> states;
  for (size_t index = 0; index < state_count; ++index) states.push_back(op.value(index));
  std::vector<Tensor> inputs;
  std::vector<size_t> ranks;
  for (size_t index = state_count; index < op.input_count(); ++index) {
    inputs.push_back(op.input(index));
    ranks.push_back(op.input(index).shape().rank());
  }
  const auto axes = PX_TRY(scan_axes(op, "scan_input_axes", "scan_input_directions", ranks));
  const int64_t length = inputs[0].shape()[axes[0].axis];
  for (size_t index = 0; index < inputs.size(); ++index) {
    if (inputs[index].shape()[axes[index].axis] != length)
      return wrong_input(op, state_count + index, "have {} elements along its scanned axis {}, as the first one",
                         length, axes[index].axis);
  }
  const size_t output_count = op.output_count() - state_count;
  ScanRun run = PX_TRY(run_scan(op, std::move(states), inputs, axes, length, output_count, 0));
  for (size_t index = 0; index < state_count; ++index) PX_TRY(op.set_output(index, std::move(run.states[index])));
  const auto output_axes = op.find_ints("scan_output_axes").value_or(std::vector<int64_t>(output_count, 0));
  const auto directions = op.find_ints("scan_output_directions").value_or(std::vector<int64_t>(output_count, 0));
  if (output_axes.size() != output_count || directions.size() != output_count)
    return execution_error(fmt::format(
        "scan_output_axes has {} entries and scan_output_directions {}; they must have {}, one for each scan output",
        output_axes.size(), directions.size(), output_count));
  for (size_t index = 0; index < output_count; ++index) {
    Tensor all = PX_TRY(stack_scanned(op, std::move(run.outputs[index]), state_count + index, output_axes[index],
                                      directions[index] != 0));
    PX_TRY(op.set_output(state_count + index, std::move(all)));
  }
  return {};
}

// sequence_lens: how many steps each sample of a Scan-8 takes; all of them where it is not given.
Result<std::vector<int64_t>> scan_lengths(const OpContext& op, int64_t batch_count, int64_t longest) {
  if (!op.has_input(0)) return std::vector<int64_t>(static_cast<size_t>(batch_count), longest);
  std::vector<int64_t> lengths = PX_TRY(op.int64s_of_input(0));
  if (static_cast<int64_t>(lengths.size()) != batch_count)
    return wrong_input(op, 0, "have {} elements, one length for each batch entry", batch_count);
  for (int64_t length : lengths) {
    if (length < 0 || length > longest)
      return wrong_value("a length in sequence_lens", length, "be in [0, {}], the length of the scanned inputs",
                         longest);
  }
  return lengths;
}

// Zeros after a sequence, so that it has `length` elements along axis 0.
Result<Tensor> pad_sequence(const OpContext& op, const Tensor& sequence, int64_t length) {
  if (sequence.shape()[0] == length) return sequence;
  const Shape shape = PX_TRY(with_dim(sequence.shape(), 0, length));
  Tensor padded = PX_TRY(Tensor::zeros(sequence.dtype(), shape));
  PX_TRY(op.reserve(padded));
  copy_run(sequence, 0, padded, 0, sequence.element_count());
  return padded;
}

// Scan-8 has a batch axis 0 everywhere and the sequence on axis 1; batches run one after the other, their steps
// numbered on. A shorter sequence is scanned within its own length, also backwards; the text leaves open the rest of
// the outputs: zeros.
Status op_scan_8(OpContext& op) {
  const int64_t scan_input_count = op.int_attribute("num_scan_inputs");
  if (scan_input_count < 1 || scan_input_count >= static_cast<int64_t>(op.input_count()))
    return wrong_attribute("num_scan_inputs", scan_input_count, "be in [1, {}), the number of inputs",
                           op.input_count());
  const size_t state_count = op.input_count() - 1 - static_cast<size_t>(scan_input_count);
  const size_t output_count = op.output_count() - std::min(op.output_count(), state_count);
  const Tensor& first = op.input(1 + state_count);
  if (first.shape().rank() < 2) return wrong_input(op, 1 + state_count, "have rank 2 or more: [batch,sequence,...]");
  const int64_t batch_count = first.shape()[0];
  const int64_t length = first.shape()[1];
  const std::vector<int64_t> lengths = PX_TRY(scan_lengths(op, batch_count, length));
  const auto directions =
      op.find_ints("directions").value_or(std::vector<int64_t>(static_cast<size_t>(scan_input_count), 0));
  if (directions.size() != static_cast<size_t>(scan_input_count))
    return wrong_length("attribute 'directions'", directions.size(), "have {}, one for each scanned input",
                        scan_input_count);
  std::vector<ScanAxis> axes;
  for (int64_t direction : directions) axes.push_back({0, direction != 0});
  std::vector<std::vector<Value>> results(op.output_count());
  for (int64_t batch = 0; batch < batch_count; ++batch) {
    std::vector<Value> states;
    std::vector<Tensor> inputs;
    for (size_t index = 1; index < op.input_count(); ++index) {
      const Shape& shape = op.input(index).shape();
      const bool is_state = index <= state_count;
      if (shape.rank() < 1 || shape[0] != batch_count || (!is_state && (shape.rank() < 2 || shape[1] != length)))
        return wrong_input(op, index, "have a batch of {} and, where it is scanned, a length of {}", batch_count,
                           length);
      Tensor slice = PX_TRY(slice_at(op, op.input(index), 0, batch));
      if (is_state)
        states.emplace_back(std::move(slice));
      else
        inputs.push_back(std::move(slice));
    }
    ScanRun run = PX_TRY(run_scan(op, std::move(states), inputs, axes, lengths[static_cast<size_t>(batch)],
                                  output_count, batch * length));
    for (size_t index = 0; index < state_count; ++index) results[index].push_back(std::move(run.states[index]));
    for (size_t index = 0; index < output_count; ++index) {
      const Tensor scanned = PX_TRY(stack_scanned(op, std::move(run.outputs[index]), state_count + index, 0, false));
      results[state_count + index].push_back(PX_TRY(pad_sequence(op, scanned, length)));
    }
  }
  if (batch_count == 0)
    return unsupported("the batch of a Scan of operator set 8 is empty; only 1 or more has a function here");
  for (size_t index = 0; index < results.size(); ++index) {
    Tensor all = PX_TRY(stack(op, results[index], 0));
    PX_TRY(op.set_output(index, std::move(all)));
  }
  return {};
}

constexpr OpRow kControlFlowRows[] = {
    {"If", kOnnx, 1, 25, op_if},
    {"Loop", kOnnx, 1, 25, op_loop},
    {"Scan", kOnnx, 8, 8, op_scan_8},
    {"Scan", kOnnx, 9, 25, op_scan},
};

}  // namespace

OpRows control_flow_rows() { return kControlFlowRows; }

}  // namespace parallax::reference
