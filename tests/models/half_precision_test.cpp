// A network in half precision, its norms in float, against the same in float: what `cpu` fuses on the one side it does
// not on the other, and the differences are rounding all the same.
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "inspector/tensor/float_formats.h"
#include "tests/models/program.h"

namespace parallax::end_to_end {
namespace {

// The network's text, in float or in half precision with casts around what stays in float.
class Network {
 public:
  explicit Network(bool is_half) : is_half_(is_half) {}

  std::string text() {
    const std::string x = is_half_ ? cast("x", "x_half", 10) : "x";
    node("Relu", {x}, "r");
    node("Add", {"r", "r"}, "a");
    in_float("LayerNormalization", {"a", "scale", "bias"}, "l");
    node("Gemm", {"l", "w", "b"}, "m");
    node("Tanh", {"m"}, "t");
    node("Sub", {"l", "b"}, "s");
    node("Max", {"t", "s"}, "k");
    node("Tanh", {"k"}, "u");
    node("Mul", {"s", "u"}, "q");
    node("Tanh", {"q"}, "q2");
    node("Softsign", {"q2"}, "q3");
    node("Tanh", {"q3"}, "q4");
    in_float("Softmax", {"t"}, "e");
    node("Mul", {"e", "q4"}, "g");
    node("MatMul", {"g", "v"}, is_half_ ? "y_half" : "y");
    if (is_half_) cast("y_half", "y", 1);
    weight("w", {8, 8}, 1);
    weight("v", {8, 8}, 2);
    weight("b", {8}, 3);
    is_half_ = false;
    weight("scale", {8}, 4);
    weight("bias", {8}, 5);
    const std::string type =
        " type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } dim { dim_value: 8 } } } } } ";
    return "ir_version: 8 opset_import { version: 17 } graph { name: \"g\" " + text_ + "input { name: \"x\"" + type +
           "output { name: \"y\"" + type + "}";
  }

 private:
  void node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
            const std::string& more = "") {
    text_ += "node { op_type: \"" + op + "\" name: \"" + op + "_" + output + "\" ";
    for (const std::string& input : inputs) text_ += "input: \"" + input + "\" ";
    text_ += "output: \"" + output + "\" " + more + "} ";
  }
  std::string cast(const std::string& input, const std::string& output, int type) {
    node("Cast", {input}, output, "attribute { name: \"to\" type: INT i: " + std::to_string(type) + " } ");
    return output;
  }
  void in_float(const std::string& op, std::vector<std::string> inputs, const std::string& output) {
    if (!is_half_) return node(op, inputs, output);
    inputs.front() = cast(inputs.front(), output + "_in", 1);
    node(op, inputs, output + "_float");
    cast(output + "_float", output, 10);
  }
  // Numbers below 1, rounded where the network is in half precision.
  void weight(const std::string& name, const std::vector<int>& dims, int phase) {
    text_ += "initializer { name: \"" + name + "\" data_type: " + (is_half_ ? "10" : "1");
    int count = 1;
    for (const int dim : dims) {
      text_ += " dims: " + std::to_string(dim);
      count *= dim;
    }
    for (int i = 0; i < count; ++i) {
      const double number = 0.8 * std::sin(7.0 * i + phase);
      text_ += is_half_ ? fmt::format(" int32_data: {}", float16_from_double(number))
                        : fmt::format(" float_data: {}", number);
    }
    text_ += " } ";
  }

  bool is_half_;
  std::string text_;
};

TEST(HalfPrecision, IsRoundingWhereItIsFusedOtherwise) {
  const ScratchFolder scratch;
  std::ofstream(scratch.file("float.textproto")) << Network(false).text();
  std::ofstream(scratch.file("half.textproto")) << Network(true).text();
  const Answer answer = run_json(
      {"blame", scratch.file("float.textproto"), "--against", scratch.file("half.textproto"), "--with", "cpu"});
  EXPECT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.document.dump();
  EXPECT_EQ(answer.document.at("causes").size(), 0U) << answer.document.at("causes").dump();
}

// A model that was converted with its inputs and outputs; `bias` is what it adds.
std::string scaled_sum(int type, double bias) {
  const std::string shape = " shape { dim { dim_value: 2 } dim { dim_value: 3 } } } } } ";
  const std::string kind = fmt::format(" type {{ tensor_type {{ elem_type: {}", type);
  const std::string number =
      type == 10 ? fmt::format("int32_data: {}", float16_from_double(bias)) : fmt::format("float_data: {}", bias);
  return "ir_version: 8 opset_import { version: 17 } graph { name: \"g\" "
         "node { op_type: \"Add\" name: \"sum\" input: \"x\" input: \"b\" output: \"s\" } "
         "node { op_type: \"Tanh\" name: \"squash\" input: \"s\" output: \"y\" } " +
         fmt::format("initializer {{ name: \"b\" data_type: {} {} }} ", type, number) + "input { name: \"x\"" + kind +
         shape + "output { name: \"y\"" + kind + shape + "}";
}

TEST(HalfPrecision, InputsAreConvertedToTheOtherModelsType) {
  const ScratchFolder scratch;
  std::ofstream(scratch.file("float.textproto")) << scaled_sum(1, 0.1);
  std::ofstream(scratch.file("half.textproto")) << scaled_sum(10, 0.1);
  std::ofstream(scratch.file("faulty.textproto")) << scaled_sum(10, 0.2);
  for (const auto& [a, b] : {std::pair("float.textproto", "half.textproto"), {"half.textproto", "float.textproto"}}) {
    const Answer answer = run_json({"run", scratch.file(a), "--against", scratch.file(b)});
    EXPECT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.document.dump();
    EXPECT_EQ(answer.document.at("summary").at("passed"), 4) << answer.document.dump();
  }
  const Answer faulty =
      run_json({"run", scratch.file("float.textproto"), "--against", scratch.file("faulty.textproto")});
  EXPECT_EQ(faulty.exit_code, 1);
  EXPECT_EQ(faulty.document.at("causes").at(0).at("node"), "sum") << faulty.document.dump();
}

}  // namespace
}  // namespace parallax::end_to_end
