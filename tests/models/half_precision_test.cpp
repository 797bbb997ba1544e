// SPDX-License-Identifier: Apache-2.0
// A network in half precision, its norms in float, against the same in float: what `cpu` fuses on the one side it does
// not on the other, and the differences are rounding all the same.
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "inspector/tensor/float_formats.h"
#include "tests/models/network_text.h"
#include "tests/models/program.h"

namespace parallax::end_to_end {
namespace {

std::string norms_in_float(bool is_half) {
  NetworkText network(is_half);
  network.node("Relu", {network.in_half("x")}, "r");
  network.node("Add", {"r", "r"}, "a");
  network.in_float("LayerNormalization", {"a", "scale", "bias"}, "l");
  network.node("Gemm", {"l", "w", "b"}, "m");
  network.node("Tanh", {"m"}, "t");
  network.node("Sub", {"l", "b"}, "s");
  network.node("Max", {"t", "s"}, "k");
  network.node("Tanh", {"k"}, "u");
  network.node("Mul", {"s", "u"}, "q");
  network.node("Tanh", {"q"}, "q2");
  network.node("Softsign", {"q2"}, "q3");
  network.node("Tanh", {"q3"}, "q4");
  network.in_float("Softmax", {"t"}, "e");
  network.node("Mul", {"e", "q4"}, "g");
  network.result("MatMul", {"g", "v"}, "y");
  network.weight("w", {8, 8}, 1);
  network.weight("v", {8, 8}, 2);
  network.weight("b", {8}, 3);
  network.float_weight("scale", {8}, 4);
  network.float_weight("bias", {8}, 5);
  return network.text();
}

TEST(HalfPrecision, IsRoundingWhereFusionDiffers) {
  const ScratchFolder scratch;
  std::ofstream(scratch.file("float.textproto")) << norms_in_float(false);
  std::ofstream(scratch.file("half.textproto")) << norms_in_float(true);
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

// Values of `reference:double` are not rounded, whatever their declared type; statistics alone do not show that.
TEST(HalfPrecision, ABaselineInDoubleKnowsWhatOthersRound) {
  const ScratchFolder scratch;
  const std::string shape = " shape { dim { dim_value: 5 } dim { dim_value: 3 } } } } } ";
  const auto model = [&](int type) {
    return fmt::format(
               "ir_version: 10 opset_import {{ version: 21 }} graph {{ name: \"g\" "
               "node {{ op_type: \"Cast\" name: \"down\" input: \"x\" output: \"c\" "
               "attribute {{ name: \"to\" type: INT i: {} }} }} "
               "node {{ op_type: \"Cast\" name: \"up\" input: \"c\" output: \"y\" "
               "attribute {{ name: \"to\" type: INT i: 1 }} }} ",
               type) +
           "input { name: \"x\" type { tensor_type { elem_type: 1" + shape +
           "output { name: \"y\" type { tensor_type { elem_type: 1" + shape + "}";
  };
  for (const int type : {10, 16, 17, 19}) {  // float16, bfloat16, float8e4m3fn, float8e5m2
    std::ofstream(scratch.file("model.textproto")) << model(type);
    const std::string network = scratch.file("model.textproto"), baseline = scratch.file("baseline.plx");
    const Answer saved =
        run_json({"run", network, "--with", "reference:double", "--save-baseline", baseline, "--observe-all"});
    ASSERT_EQ(saved.exit_code, 0) << saved.command << saved.messages;
    const Answer answer = run_json({"run", network, "--with", "cpu", "--baseline", baseline, "--observe-all"});
    EXPECT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.document.dump();
  }
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

// The answer for a float network and the same in half precision with a fault.
Answer run_pair(const std::string& in_float, const std::string& in_half) {
  const ScratchFolder scratch;
  std::ofstream(scratch.file("float.textproto")) << in_float;
  std::ofstream(scratch.file("half.textproto")) << in_half;
  return run_json({"run", scratch.file("float.textproto"), "--against", scratch.file("half.textproto")});
}

std::string cause_text(const Answer& answer) {
  const auto& causes = answer.document.at("causes");
  return causes.empty() ? ""
                        : causes.at(0).at("node").get<std::string>() + ": " + causes.at(0).at("why").get<std::string>();
}

// A constant that is kept in half and read in float: the norm's, in which the converter left a cast.
std::string norm_with_cast_bias(bool is_half, double factor) {
  NetworkText network(is_half);
  network.node("Relu", {network.in_half("x")}, "r");
  network.node("Tanh", {"r"}, "t");
  network.node("Mul", {"t", "bias"}, "m");
  network.in_float("LayerNormalization", {"m", "scale", is_half ? network.cast("bias", "bias_cast", 1) : "bias"}, "l");
  network.result("Sigmoid", {"l"}, "y");
  network.float_weight("scale", {8}, 4);
  network.weight("bias", {8}, 5, [&](int, double number) { return number * factor; });
  return network.text();
}

TEST(HalfPrecision, AConstantThatIsCastBackIsRounded) {
  const Answer answer = run_pair(norm_with_cast_bias(false, 1), norm_with_cast_bias(true, 1));
  EXPECT_EQ(answer.exit_code, 0) << answer.document.dump();
  const Answer faulty = run_pair(norm_with_cast_bias(false, 1), norm_with_cast_bias(true, 1.1));
  EXPECT_EQ(faulty.exit_code, 1);
  EXPECT_NE(cause_text(faulty).find("another constant 'bias'"), std::string::npos) << cause_text(faulty);
}

// A bias that is added to a product of thousands: half precision rounds by more than that.
std::string sum_with_large(bool is_half, double bias) {
  NetworkText network(is_half);
  network.node("Mul", {network.in_half("x"), "gain"}, "m");
  network.node("Conv", {"m4", "w", "b"}, "c4");
  network.add("node { op_type: \"Reshape\" name: \"Reshape_m4\" input: \"m\" input: \"dims\" output: \"m4\" } ");
  network.add("node { op_type: \"Reshape\" name: \"Reshape_c\" input: \"c4\" input: \"back\" output: \"c\" } ");
  network.result("Softsign", {"c"}, "y");
  network.weight("gain", {8}, 1, [](int, double) { return 4000; });
  network.weight("w", {2, 2, 1, 1}, 2);
  network.weight("b", {2}, 3, [&](int, double) { return bias; });
  network.add("initializer { name: \"dims\" data_type: 7 dims: 4 int64_data: [1, 2, 4, 4] } ");
  network.add("initializer { name: \"back\" data_type: 7 dims: 2 int64_data: [4, 8] } ");
  return network.text();
}

TEST(HalfPrecision, AnotherConstantIsNoRoundingThoughItsEffectIsHidden) {
  EXPECT_EQ(run_pair(sum_with_large(false, 0.1), sum_with_large(true, 0.1)).exit_code, 0);
  const Answer faulty = run_pair(sum_with_large(false, 0.1), sum_with_large(true, 0.2));
  EXPECT_EQ(faulty.exit_code, 1);
  EXPECT_EQ(faulty.document.at("first_divergence").at("path"), "b");
  // Among the constants that it reads, all of them rounded.
  EXPECT_NE(cause_text(faulty).find("Conv_c4: it reads another constant 'b'"), std::string::npos) << cause_text(faulty);
}

// Weights that are put together before they are used, as exporters write recurrent cells.
std::string joined_weights(bool is_half, double factor) {
  NetworkText network(is_half);
  network.node("Concat", {"upper", "lower"}, "w", "attribute { name: \"axis\" type: INT i: 0 } ");
  network.result("MatMul", {network.in_half("x"), "w"}, "y");
  network.weight("upper", {4, 8}, 1);
  network.weight("lower", {4, 8}, 2, [&](int, double number) { return number * factor; });
  return network.text();
}

TEST(HalfPrecision, OfConstantsPutTogetherTheChangedOneIsNamed) {
  EXPECT_EQ(run_pair(joined_weights(false, 1), joined_weights(true, 1)).exit_code, 0);
  const Answer faulty = run_pair(joined_weights(false, 1), joined_weights(true, 1.1));
  EXPECT_EQ(faulty.exit_code, 1);
  EXPECT_NE(cause_text(faulty).find("another constant 'lower'"), std::string::npos) << cause_text(faulty);
}

// A state that goes round; casts around the loop are no cause of what is wrong in its body.
std::string loop(bool is_half, const std::string& last) {
  NetworkText network(is_half);
  const std::string type = is_half ? "10" : "1";
  const auto value = [](const std::string& kind, const std::string& name, const std::string& elements) {
    return kind + " { name: \"" + name + "\" type { tensor_type { elem_type: " + elements + " } } } ";
  };
  const std::string given = network.in_half("x");
  network.add("node { op_type: \"Loop\" name: \"loop\" input: \"n\" input: \"\" input: \"" + given +
              "\" output: \"state" + (is_half ? "_half" : "") +
              "\" attribute { name: \"body\" type: GRAPH g { name: \"body\" " + value("input", "i", "7") +
              value("input", "go", "9") + value("input", "h", type) +
              "node { op_type: \"Identity\" input: \"go\" output: \"on\" } "
              "node { op_type: \"Mul\" name: \"mul\" input: \"h\" input: \"k\" output: \"hk\" } "
              "node { op_type: \"" +
              last + "\" name: \"last\" input: \"hk\" output: \"next\" } " + value("output", "on", "9") +
              value("output", "next", type) + "} } } ");
  if (is_half) network.cast("state_half", "state", 1);
  network.node("Sigmoid", {"state"}, "y");
  network.add("initializer { name: \"n\" data_type: 7 int64_data: 3 } ");
  network.weight("k", {8}, 2);
  return network.text();
}

TEST(HalfPrecision, CastsAroundALoopAreNoCause) {
  EXPECT_EQ(run_pair(loop(false, "Tanh"), loop(true, "Tanh")).exit_code, 0);
  const Answer faulty = run_pair(loop(false, "Tanh"), loop(true, "Softsign"));
  EXPECT_EQ(faulty.exit_code, 1);
  EXPECT_EQ(cause_text(faulty).substr(0, 6), "last: ") << cause_text(faulty);
  for (const auto& cause : faulty.document.at("causes")) EXPECT_NE(cause.at("node"), "loop") << cause.dump();
}

}  // namespace
}  // namespace parallax::end_to_end
