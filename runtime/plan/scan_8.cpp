// SPDX-License-Identifier: Apache-2.0
// Scan of operator set 8: a batch axis 0 everywhere, the sequence on axis 1. Samples run one after the other, their
// steps numbered on. A shorter sequence is scanned within its own length, also backwards; the specification leaves open
// the rest of the outputs: zeros.
#include "inspector/model/rule_errors.h"
#include "runtime/plan/stack.h"

namespace parallax::runtime {
namespace {

struct Batches {
  int64_t count = 0, length = 0;
  int64_t state_count = 0;
  Ints lengths;  // of each sample's sequence
  Ints reversed;
};

Result<Batches> batches_of(const OpCall& op) {
  Batches batches;
  const int64_t scanned = op.integer("num_scan_inputs");
  if (scanned < 1 || scanned >= op.input_count())
    return wrong_attribute("num_scan_inputs", scanned, "be in [1, {}), the number of inputs", op.input_count());
  batches.state_count = op.input_count() - 1 - scanned;
  if (op.output_count() < batches.state_count)
    return wrong_value("the number of outputs", op.output_count(), "be {} or more, one for each state",
                       batches.state_count);
  batches.reversed = op.find_integers("directions").value_or(Ints(scanned));
  if (batches.reversed.size() != scanned)
    return wrong_length("attribute 'directions'", batches.reversed.size(), "have {}, one for each scanned input",
                        scanned);
  for (int64_t index = 1; index < op.input_count(); ++index) {
    if (!op.value(index).is_tensor()) return wrong_input(op, index, "be a tensor");
    const Ints dims(op.input(index).shape());
    const bool is_state = index <= batches.state_count;
    if (dims.size() < (is_state ? 1 : 2))
      return wrong_input(op, index, "have rank {} or more: {}", is_state ? 1 : 2,
                         is_state ? "a batch axis" : "a batch axis and one to scan");
    if (index == 1) batches.count = dims[0];
    if (index == batches.state_count + 1) batches.length = dims[1];
    if (dims[0] != batches.count || (!is_state && dims[1] != batches.length))
      return wrong_input(op, index, "have a batch of {} and, where it is scanned, a length of {}", batches.count,
                         batches.length);
  }
  batches.lengths = op.has_input(0) ? PX_TRY(op.integers_of_input(0)) : Ints(batches.count, batches.length);
  if (batches.lengths.size() != batches.count)
    return wrong_input(op, 0, "have {} elements, one length for each batch entry", batches.count);
  for (int64_t length : batches.lengths) {
    if (length < 0 || length > batches.length)
      return wrong_value("a length in sequence_lens", length, "be in [0, {}], the length of the scanned inputs",
                         batches.length);
  }
  if (batches.count == 0)
    return unsupported("the batch of a Scan of operator set 8 is empty; only 1 or more has a kernel here");
  return batches;
}

// The results of one sample: its last states, then the slices of each scanned output, and the last of each.
struct Sample {
  std::vector<Value> states;
  std::vector<Stack> scanned;
  std::vector<Value> last;
};

Result<Tensor> slice_at(ControlCall& call, const Tensor& tensor, int64_t position) {
  const Slices slices = PX_TRY(Slices::of(call, tensor, 0));
  return slices.at(call, position);
}

Result<Sample> run_sample(ControlCall& call, const Batches& batches, int64_t batch, size_t scanned_count) {
  OpCall& op = call.op;
  Sample sample;
  sample.scanned.assign(scanned_count, Stack(batches.length));
  for (int64_t index = 1; index <= batches.state_count; ++index)
    sample.states.emplace_back(PX_TRY(slice_at(call, op.input(index), batch)));
  std::vector<Slices> sequences;
  for (int64_t index = batches.state_count + 1; index < op.input_count(); ++index) {
    const Tensor sequence = PX_TRY(slice_at(call, op.input(index), batch));
    sequences.push_back(PX_TRY(Slices::of(call, sequence, 0)));
  }
  const int64_t length = batches.lengths[batch];
  for (int64_t step = 0; step < length; ++step) {
    std::vector<Value> arguments = std::move(sample.states);
    for (size_t input = 0; input < sequences.size(); ++input) {
      const bool reversed = batches.reversed[static_cast<int64_t>(input)] != 0;
      arguments.emplace_back(PX_TRY(sequences[input].at(call, reversed ? length - 1 - step : step)));
    }
    const int64_t number = batch * batches.length + step;
    std::vector<Value> results = PX_TRY(call.run_body("body", Frame::Kind::body, number, std::move(arguments)));
    PX_TRY(expect_count(results.size(), static_cast<size_t>(batches.state_count) + scanned_count, "body"));
    sample.last.assign(results.begin() + batches.state_count, results.end());
    for (size_t output = 0; output < scanned_count; ++output)
      PX_TRY(sample.scanned[output].add(call, sample.last[output]));
    results.resize(static_cast<size_t>(batches.state_count));
    sample.states = std::move(results);
  }
  return sample;
}

// Zeros of the shape of `like`, for the steps after a sequence's end.
Result<Value> zeros_like(ControlCall& call, const Tensor& like) {
  return call.platform.to_device(PX_TRY(Tensor::zeros(like.dtype(), like.shape())));
}

}  // namespace

Status run_scan_8(ControlCall& call) {
  OpCall& op = call.op;
  const Graph* body = body_of(op, "body");
  if (body == nullptr) return invalid_model("attribute 'body' is missing; it must be a graph");
  const Batches batches = PX_TRY(batches_of(op));
  const auto scanned_count = static_cast<size_t>(op.output_count() - batches.state_count);
  std::vector<Stack> results(static_cast<size_t>(batches.state_count) + scanned_count, Stack(batches.count));
  for (int64_t batch = 0; batch < batches.count; ++batch) {
    Sample sample = PX_TRY(run_sample(call, batches, batch, scanned_count));
    for (size_t index = 0; index < sample.states.size(); ++index)
      PX_TRY(results[index].add(call, sample.states[index]));
    for (size_t output = 0; output < scanned_count; ++output) {
      Stack& steps = sample.scanned[output];
      for (int64_t step = batches.lengths[batch]; step < batches.length && !sample.last.empty(); ++step) {
        const Value zeros = PX_TRY(zeros_like(call, sample.last[output].tensor()));
        PX_TRY(steps.add(call, zeros));
      }
      const size_t body_output = static_cast<size_t>(batches.state_count) + output;
      const Value sequence(PX_TRY(steps.take(call, *body, body_output, 0)));
      PX_TRY(results[body_output].add(call, sequence));
    }
  }
  for (size_t index = 0; index < results.size(); ++index)
    op.set_output(static_cast<int64_t>(index), PX_TRY(results[index].take(call, *body, index, 0)));
  return {};
}

}  // namespace parallax::runtime
