// SPDX-License-Identifier: Apache-2.0
// Mistakes that kernels, memory planners and fusions make, one a row.
#include "tests/diagnosis/executor_faults/fault_list.h"

#include <limits>

namespace parallax::diagnosis {
namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
constexpr bool kKernel = false, kContext = true;

Attribute axis_attribute(int64_t axis) {
  Attribute attribute;
  attribute.name = "axis";
  attribute.type = AttributeType::int_;
  attribute.value = axis;
  return attribute;
}

void multiply_output(Surgeon& s, float factor) {
  const ValueId right = s.take_output();
  s.give_output(s.emit("Mul", {right, s.number(factor)}));
}

void leave_last_unwritten(Surgeon& s, int64_t axis) {
  const ValueId right = s.take_output();
  const ValueId last = s.emit("Mul", {s.sliced(right, axis, -1, kEnd), s.number(0)});
  s.give_output(s.emit("Concat", {s.sliced(right, axis, 0, -1), last}, {axis_attribute(axis)}));
}

void narrow_input(Surgeon& s, size_t index, DType type) { s.replace_input(index, s.through(type, s.input(index))); }

void narrow_output(Surgeon& s, DType type) {
  const ValueId right = s.take_output();
  s.give_output(s.through(type, right));
}

void roll_input(Surgeon& s, size_t index, int64_t axis) { s.replace_input(index, s.rolled(s.input(index), axis)); }

void zero_input(Surgeon& s, size_t index) { s.replace_input(index, s.emit("Sub", {s.input(index), s.input(index)})); }

constexpr auto swap_operands = [](Surgeon& s) { s.swap_inputs(0, 1); };

const Fault kFaults[] = {
    // ---- attributes read wrongly ----
    {"LogSoftmax over the first axis", "cnn", "cpu", "LogSoftmax", -1, kKernel, "axis=0 gives", [](Surgeon& s) { s.set("axis", int64_t{0}); }},
    {"Softmax over the wrong axis", "llama_layer", "cpu", "Softmax", -1, kKernel, "axis=1 gives", [](Surgeon& s) { s.set("axis", int64_t{1}); }},
    {"Softmax of the last axis but one", "llama_layer", "reference", "Softmax", -1, kKernel, "axis=2 gives", [](Surgeon& s) { s.set("axis", int64_t{2}); }},
    {"LogSoftmax over time", "recurrent", "cpu", "LogSoftmax", -1, kKernel, "axis=0 gives", [](Surgeon& s) { s.set("axis", int64_t{0}); }},
    {"Conv padded on one side only", "resnet", "cpu", "Conv", 4, kKernel, "", [](Surgeon& s) { s.set("pads", std::vector<int64_t>{0, 0, 2, 2}); }},
    {"BatchNormalization with another epsilon", "resnet", "cpu", "BatchNormalization", -1, kKernel, "epsilon=0.01 gives", [](Surgeon& s) { s.set("epsilon", 1e-2F); }},
    {"LayerNormalization with a large epsilon", "greedy_decoder", "cpu", "LayerNormalization", -1, kKernel, "epsilon=0.1 gives", [](Surgeon& s) { s.set("epsilon", 0.1F); }},
    {"LeakyRelu with the default slope", "cnn", "cpu", "LeakyRelu", -1, kKernel, "alpha=0.01 gives", [](Surgeon& s) { s.set("alpha", 0.01F); }},
    {"Gemm scaled by a half", "resnet", "cpu", "Gemm", -1, kKernel, "alpha=0.5 gives", [](Surgeon& s) { s.set("alpha", 0.5F); }},
    {"GRU resets before the product", "recurrent", "cpu", "GRU", -1, kKernel, "linear_before_reset=0 gives", [](Surgeon& s) { s.set("linear_before_reset", int64_t{0}); }},
    {"GRU runs forward", "recurrent", "reference", "GRU", -1, kKernel, "direction=forward gives", [](Surgeon& s) { s.set("direction", std::string("forward")); }},
    {"RNN with tanh", "recurrent", "cpu", "RNN", -1, kKernel, "", [](Surgeon& s) { s.set("activations", std::vector<std::string>{"Tanh"}); }},
    // ---- another operation ----
    {"MaxPool averages", "resnet", "cpu", "MaxPool", -1, kKernel, "AveragePool gives", [](Surgeon& s) { s.rename_operator("AveragePool"); }},
    {"GlobalAveragePool takes the largest", "resnet", "cpu", "GlobalAveragePool", -1, kKernel, "GlobalMaxPool gives", [](Surgeon& s) { s.rename_operator("GlobalMaxPool"); }},
    {"Add subtracts", "resnet", "cpu", "Add", 1, kKernel, "", [](Surgeon& s) { s.rename_operator("Sub"); }},
    {"Relu leaks", "resnet", "cpu", "Relu", 3, kKernel, "LeakyRelu gives", [](Surgeon& s) { s.rename_operator("LeakyRelu"); }},
    {"Sigmoid by straight lines", "cnn", "cpu", "Sigmoid", -1, kKernel, "HardSigmoid gives", [](Surgeon& s) { s.rename_operator("HardSigmoid"); }},
    {"ReduceMean forgets to divide", "cnn", "cpu", "ReduceMean", 0, kKernel, "ReduceSum gives", [](Surgeon& s) { s.rename_operator("ReduceSum"); }},
    {"ReduceSum divides, in a branch", "scan_filter", "cpu", "ReduceSum", -1, kKernel, "ReduceMean gives", [](Surgeon& s) { s.rename_operator("ReduceMean"); }},
    {"Tanh as softsign, in a loop", "greedy_decoder", "cpu", "Tanh", -1, kKernel, "Softsign gives", [](Surgeon& s) { s.rename_operator("Softsign"); }},
    {"ArgMax finds the smallest, in a loop", "greedy_decoder", "cpu", "ArgMax", -1, kKernel, "", [](Surgeon& s) { s.rename_operator("ArgMin"); }},
    {"ReduceMax finds the smallest, so that the other branch runs", "greedy_decoder", "cpu", "ReduceMax", -1, kKernel, "ReduceMin gives", [](Surgeon& s) { s.rename_operator("ReduceMin"); }},
    {"LessOrEqual is strict", "llama_layer", "cpu", "LessOrEqual", -1, kKernel, "", [](Surgeon& s) { s.rename_operator("Less"); }},
    {"Cos is sin", "llama_layer", "cpu", "Cos", -1, kKernel, "Sin gives", [](Surgeon& s) { s.rename_operator("Sin"); }},
    // ---- operands ----
    {"BatchNormalization exchanges bias and mean", "resnet", "cpu", "BatchNormalization", 2, kKernel, "swapped", [](Surgeon& s) { s.swap_inputs(2, 3); }},
    {"Sub with its operands swapped, in a loop", "greedy_decoder", "cpu", "Sub", -1, kKernel, "swapped", swap_operands},
    {"Sub with its operands swapped, in a scan", "scan_filter", "cpu", "Sub", -1, kKernel, "swapped", swap_operands},
    {"Where with its mask inverted", "llama_layer", "cpu", "Where", -1, kKernel, "swapped", [](Surgeon& s) { s.swap_inputs(1, 2); }},
    {"Gemm ignores its bias", "resnet", "cpu", "Gemm", -1, kKernel, "", [](Surgeon& s) { s.drop_input(2); }},
    {"Gather off by one, in a loop", "greedy_decoder", "cpu", "Gather", -1, kKernel, "off by one", [](Surgeon& s) { s.replace_input(1, s.emit("Sub", {s.input(1), s.numbers({1})})); }},
    {"BatchNormalization reads the next channel's scale", "mobilenet", "cpu", "BatchNormalization", 3, kKernel, "off by one slice", [](Surgeon& s) { roll_input(s, 1, 0); }},
    {"LSTM reads its gates in another order", "recurrent", "cpu", "LSTM", -1, kKernel, "off by one slice", [](Surgeon& s) { roll_input(s, 1, 1); }},
    {"MatMul shifted by one row", "llama_layer", "cpu", "MatMul", 3, kKernel, "off by one slice", [](Surgeon& s) { roll_input(s, 1, 2); }},
    {"Clip without its upper bound", "mobilenet", "cpu", "Clip", -1, kKernel, "", [](Surgeon& s) { s.drop_input(2); s.replace_input(1, s.number(-1)); }},
    {"Pow of another exponent", "llama_layer", "cpu", "Pow", 1, kKernel, "", [](Surgeon& s) { s.replace_input(1, s.number(3)); }},
    // ---- precision ----
    {"MatMul in half precision", "llama_layer", "cpu", "MatMul", -1, kKernel, "half precision", [](Surgeon& s) { narrow_input(s, 0, DType::float16); narrow_input(s, 1, DType::float16); }},
    {"Conv in bfloat16", "mobilenet", "cpu", "Conv", 5, kKernel, "bfloat16", [](Surgeon& s) { narrow_input(s, 0, DType::bfloat16); narrow_input(s, 1, DType::bfloat16); }},
    {"a weight rounded to half precision", "resnet", "cpu", "Conv", 7, kKernel, "", [](Surgeon& s) { narrow_input(s, 1, DType::float16); }},
    {"one result stored as float16", "llama_layer", "cpu", "Mul", 9, kKernel, "half precision", [](Surgeon& s) { narrow_output(s, DType::float16); }},
    {"half precision overflow of a mask", "llama_layer", "cpu", "Where", -1, kKernel, "half precision overflow", [](Surgeon& s) { narrow_output(s, DType::float16); }},
    {"Conv off by a thousandth", "resnet", "cpu", "Conv", 6, kKernel, "times 1.001", [](Surgeon& s) { multiply_output(s, 1.001F); }},
    {"Conv off by a ten-thousandth", "resnet", "cpu", "Conv", 8, kKernel, "times 1.0001", [](Surgeon& s) { multiply_output(s, 1.0001F); }},
    {"Sigmoid off by a ten-thousandth, in a scan", "scan_filter", "cpu", "Sigmoid", -1, kKernel, "", [](Surgeon& s) { multiply_output(s, 1.0001F); }},
    {"LayerNormalization with the unbiased variance", "greedy_decoder", "cpu", "LayerNormalization", -1, kKernel, "unbiased variance", [](Surgeon& s) { multiply_output(s, 0.96824584F); }},
    {"Softmax without its temperature, in a loop", "greedy_decoder", "cpu", "Softmax", -1, kKernel, "", [](Surgeon& s) { s.replace_input(0, s.emit("Mul", {s.input(0), s.number(0.5F)})); }},
    // ---- elements ----
    {"Conv leaves its last channel unwritten", "cnn", "cpu", "Conv", 5, kKernel, "never been written", [](Surgeon& s) { leave_last_unwritten(s, 1); }},
    {"MatMul leaves its last column unwritten", "llama_layer", "cpu", "MatMul", 6, kKernel, "never been written", [](Surgeon& s) { leave_last_unwritten(s, -1); }},
    {"Conv writes shifted by one", "cnn", "cpu", "Conv", 0, kKernel, "", [](Surgeon& s) { const ValueId right = s.take_output(); s.give_output(s.rolled(right, 3)); }},
    {"MaxPool writes rows as columns", "cnn", "cpu", "MaxPool", -1, kKernel, "transposed", [](Surgeon& s) { const ValueId right = s.take_output(); s.give_output(s.transposed(right, {0, 1, 3, 2})); }},
    {"Reciprocal gives NaN", "llama_layer", "cpu", "Reciprocal", 1, kKernel, "NaN first appear here", [](Surgeon& s) { s.replace_input(0, s.emit("Sqrt", {s.emit("Neg", {s.input(0)})})); }},
    // ---- control flow ----
    {"Loop ends early", "greedy_decoder", "cpu", "Loop", -1, kKernel, "although its condition held",
     [](Surgeon& s) { s.replace_input(0, s.constant(Tensor::scalar<int64_t>(2))); }},
    {"Loop starts from another state", "greedy_decoder", "cpu", "Loop", -1, kKernel, "enters iteration 0",
     [](Surgeon& s) { s.replace_input(2, s.emit("Mul", {s.input(2), s.number(0.5F)})); }},
    {"If takes the other branch, in a loop", "greedy_decoder", "cpu", "If", -1, kKernel, "took the",
     [](Surgeon& s) { s.replace_input(0, s.emit("Not", {s.input(0)})); }},
    {"Scan stacks its items in reverse", "scan_filter", "cpu", "Scan", -1, kKernel, "",
     [](Surgeon& s) { s.set("scan_output_directions", std::vector<int64_t>{1, 1}); }},
    // ---- planner, in place, layout, fusion, race: the node alone is right ----
    {"Add reads one buffer twice", "resnet", "cpu", "Add", 2, kContext, "", [](Surgeon& s) { s.replace_input(1, s.input(0)); }},
    {"MatMul reads a stale buffer", "llama_layer", "cpu", "MatMul", 5, kContext, "", [](Surgeon& s) { s.read_instead(0, "embedding"); }},
    {"Mul reads what an earlier layer left", "llama_layer", "cpu", "Mul", 12, kContext, "", [](Surgeon& s) { s.read_instead(1, "rsqrt"); }},
    {"Sub reads a buffer before it is written, in a loop", "greedy_decoder", "cpu", "Sub", -1, kContext, "stale", [](Surgeon& s) { s.read_instead(1, "pushed"); }},
    {"Mul overwrites its input while it reads it", "cnn", "cpu", "Mul", 1, kContext, "overwritten", [](Surgeon& s) { s.replace_input(0, s.emit("Mul", {s.input(0), s.input(1)})); }},
    {"Conv reads channels last", "cnn", "cpu", "Conv", 12, kContext, "", [](Surgeon& s) { s.replace_input(0, s.transposed(s.input(0), {0, 1, 3, 2})); }},
    {"BatchNormalization loses its bias in a fusion", "mobilenet", "cpu", "BatchNormalization", 6, kContext, "", [](Surgeon& s) { zero_input(s, 2); }},
    {"Relu is lost in a fusion", "resnet", "cpu", "Relu", 5, kContext, "", [](Surgeon& s) { s.rename_operator("Max"); }},
    {"GRU reads its input shifted by a step", "recurrent", "cpu", "GRU", -1, kContext, "", [](Surgeon& s) { roll_input(s, 0, 0); }},
    {"Mul reads a stale value, in a scan", "scan_filter", "cpu", "Mul", 1, kContext, "", [](Surgeon& s) { s.replace_input(0, s.input(1)); }},
    {"MatMul reads uninitialized memory", "recurrent", "cpu", "MatMul", -1, kKernel, "two runs", [](Surgeon& s) { const ValueId right = s.take_output(); s.give_output(s.emit("Add", {right, s.number(0.25F * static_cast<float>(s.variation()))})); }},
};

}  // namespace

std::span<const Fault> executor_faults() { return kFaults; }

}  // namespace parallax::diagnosis
