// SPDX-License-Identifier: Apache-2.0
// The audit for half precision: classes of nodes, the first set that gives them, and nodes to keep that are verified.
#include "inspector/workbench/half_precision/audit.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "inspector/executors/make_executor.h"
#include "inspector/model/io/import.h"
#include "inspector/tensor/elements.h"
#include "inspector/transform/half_precision/to_half.h"

namespace parallax {
namespace {

std::shared_ptr<const Model> audited_model(const std::string& text) {
  auto model = import_model(std::as_bytes(std::span(text)), "", "model.textproto");
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.ok() ? *model : nullptr;
}

ExecutorFactory audit_executors() {
  return [](const std::string& name) { return make_executor(name); };
}

std::string node(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                 const std::string& output, const std::string& more = "") {
  std::string text = "node { name: '" + name + "' op_type: '" + op + "' ";
  for (const std::string& input : inputs) text += "input: '" + input + "' ";
  return text + "output: '" + output + "' " + more + "} ";
}

std::string tensor_io(const std::string& kind, const std::string& name, const std::string& dims, int type = 1) {
  return kind + " { name: '" + name + "' type { tensor_type { elem_type: " + std::to_string(type) + " shape { " + dims +
         " } } } } ";
}

std::string weight(const std::string& name, int rows, int columns) {
  std::string text = "initializer { name: '" + name + "' data_type: 1 dims: " + std::to_string(rows) +
                     " dims: " + std::to_string(columns) + " ";
  for (int i = 0; i < rows * columns; ++i)
    text += "float_data: " + std::to_string(0.125 * ((i * 7 + 3) % 11 - 5)) + " ";
  return text + "} ";
}

constexpr const char* kTwoByFour = "dim { dim_value: 2 } dim { dim_value: 4 }";

// Blocks as T5 has them: a norm by the root of the mean square, two products, and the residual. Squares of the residual
// leave float16's range where the input is large.
std::string residual_blocks(int count) {
  std::string nodes, h = "x";
  const auto norm = [&](const std::string& id, const std::string& input) {
    nodes += node("pow" + id, "Pow", {input, "two"}, "p" + id) +
             node("mean" + id, "ReduceMean", {"p" + id, "axes"}, "m" + id) +
             node("eps" + id, "Add", {"m" + id, "epsilon"}, "e" + id) +
             node("sqrt" + id, "Sqrt", {"e" + id}, "s" + id) + node("div" + id, "Div", {input, "s" + id}, "n" + id);
    return "n" + id;
  };
  for (int block = 0; block < count; ++block) {
    const std::string id = std::to_string(block);
    const std::string normed = norm(id, h);
    nodes += node("up" + id, "MatMul", {normed, "w1"}, "u" + id) + node("relu" + id, "Relu", {"u" + id}, "r" + id) +
             node("down" + id, "MatMul", {"r" + id, "w2"}, "d" + id) + node("add" + id, "Add", {h, "d" + id}, "h" + id);
    h = "h" + id;
  }
  const std::string last = norm("L", h);
  return "ir_version: 9 opset_import { version: 18 } graph { name: 'g' " + nodes +
         node("out", "Identity", {last}, "y") + weight("w1", 4, 8) + weight("w2", 8, 4) +
         "initializer { name: 'two' data_type: 1 float_data: 2 } initializer { name: 'epsilon' data_type: 1 "
         "float_data: "
         "0.0001 } initializer { name: 'axes' data_type: 7 dims: 1 int64_data: -1 } " +
         tensor_io("input", "x", kTwoByFour) + tensor_io("output", "y", kTwoByFour) + "}";
}

Value numbers(const Shape& shape, double scale) {
  Tensor tensor = Tensor::allocate(DType::float32, shape).take();
  for (size_t i = 0; i < tensor.mutable_as<float>().size(); ++i)
    tensor.mutable_as<float>()[i] = static_cast<float>(scale * (static_cast<double>(i % 5) - 1.5));
  return Value(std::move(tensor));
}

// Sets of one input: `scales` gives the size of its numbers set by set.
AuditRequest request_of(const std::shared_ptr<const Model>& model, const Shape& shape, std::vector<double> scales) {
  AuditRequest request;
  request.model_in_memory = model;
  request.next_inputs = [=](int64_t index) -> Result<std::optional<InputRequest>> {
    if (index >= static_cast<int64_t>(scales.size())) return std::optional<InputRequest>();
    InputRequest next;
    next.values["x"] = numbers(shape, scales[static_cast<size_t>(index)]);
    return std::optional(next);
  };
  return request;
}

HalfAudit audited(const AuditRequest& request) {
  auto audit = audit_half(request, audit_executors());
  EXPECT_TRUE(audit.ok()) << (audit.ok() ? "" : audit.error().message);
  return std::move(audit).take();
}

std::set<std::string> nodes_of(const HalfAudit& audit, HalfClass half_class) {
  std::set<std::string> names;
  for (const NodeAudit& item : audit.nodes) {
    if (item.half_class == half_class) names.insert(item.path);
  }
  return names;
}

std::vector<double> twenty_scales() {
  std::vector<double> scales(20, 1.0);
  scales[2] = 300;
  return scales;
}

const std::set<std::string> kOverflowing = {"pow0", "mean0", "eps0", "sqrt0", "pow1", "mean1",
                                            "eps1", "sqrt1", "powL", "meanL", "epsL", "sqrtL"};

TEST(AuditHalf, FindsEveryNodeThatOverflowsInTheThirdOfTwentySets) {
  const auto model = audited_model(residual_blocks(2));
  for (const std::string executor : {"cpu", "reference"}) {
    AuditRequest request = request_of(model, Shape{2, 4}, twenty_scales());
    request.executor = executor;
    const HalfAudit audit = audited(request);
    EXPECT_EQ(audit.inputs, 20);
    EXPECT_EQ(nodes_of(audit, HalfClass::must), kOverflowing);
    EXPECT_EQ(std::set<std::string>(audit.keep.begin(), audit.keep.end()), kOverflowing);
    for (const NodeAudit& item : audit.nodes) {
      if (item.half_class != HalfClass::must) continue;
      EXPECT_EQ(item.first_input, 2) << item.path;
      EXPECT_NE(item.why.find("at input set 2"), std::string::npos) << item.why;
    }
    EXPECT_TRUE(audit.kept.passed) << audit.kept.rel_l2;
    EXPECT_GT(audit.nothing_kept.rel_l2, 0.5);
    EXPECT_FALSE(audit.keep_io);
  }
}

TEST(AuditHalf, EndsWhereFurtherSetsAddNothing) {
  AuditRequest request = request_of(audited_model(residual_blocks(1)), Shape{2, 4}, twenty_scales());
  request.until_stable = 4;
  const HalfAudit audit = audited(request);
  EXPECT_EQ(audit.inputs, 7);
  EXPECT_EQ(audit.stable_after, 3);
}

TEST(AuditHalf, MinimizesToFewerNodesThatAreStillVerified) {
  const auto model = audited_model(residual_blocks(2));
  AuditRequest request = request_of(model, Shape{2, 4}, {1, 1, 300});
  request.minimize = true;
  const HalfAudit audit = audited(request);
  EXPECT_LE(audit.keep.size(), kOverflowing.size());
  EXPECT_TRUE(audit.kept.passed);
  EXPECT_LE(audit.kept.rel_l2, request.tolerance);
  transform::HalfRequest half;
  half.keep = audit.keep;
  EXPECT_TRUE(transform::to_half(*model, half).ok());
}

TEST(AuditHalf, Bfloat16KeepsNothingOfWhatOverflowsFloat16) {
  AuditRequest request = request_of(audited_model(residual_blocks(2)), Shape{2, 4}, {1, 1, 300});
  request.to = DType::bfloat16;
  request.tolerance = 0.05;
  const HalfAudit audit = audited(request);
  EXPECT_EQ(audit.count(HalfClass::must), 0);
  EXPECT_TRUE(audit.keep.empty());
  EXPECT_TRUE(audit.kept.passed) << audit.kept.rel_l2;
}

TEST(AuditHalf, TellsWhatNoSetOfNodesReaches) {
  AuditRequest request = request_of(audited_model(residual_blocks(1)), Shape{2, 4}, {1});
  request.tolerance = 1e-9;
  const HalfAudit audit = audited(request);
  EXPECT_FALSE(audit.kept.passed);
  EXPECT_GT(audit.kept.rel_l2, 1e-9);
}

TEST(AuditHalf, KnowsMasksInfinitiesSmallNumbersAndIntegers) {
  const auto model = audited_model(
      "ir_version: 9 opset_import { version: 18 } graph { name: 'g' " +
      node("condition", "Greater", {"x", "zero"}, "c") + node("hide", "Where", {"c", "x", "lowest"}, "h") +
      node("softmax", "Softmax", {"h"}, "s") + node("log", "Log", {"zero"}, "l") +
      node("small", "Mul", {"x", "tiny"}, "t") + node("shape", "Shape", {"x"}, "dims") +
      node("position", "Cast", {"five"}, "position_f", "attribute { name: 'to' type: INT i: 1 } ") +
      node("cos", "Cos", {"position_f"}, "w") + node("sum", "Sum", {"s", "l", "t", "w"}, "y") +
      "initializer { name: 'zero' data_type: 1 float_data: 0 } "
      "initializer { name: 'lowest' data_type: 1 float_data: -3.4028234663852886e38 } "
      "initializer { name: 'tiny' data_type: 1 float_data: 1e-5 } "
      "initializer { name: 'five' data_type: 7 int64_data: 5001 } " +
      tensor_io("input", "x", kTwoByFour) + tensor_io("output", "y", kTwoByFour) +
      tensor_io("output", "dims", "dim { dim_value: 2 }", 7) + "}");
  const HalfAudit audit = audited(request_of(model, Shape{2, 4}, {1}));
  const auto class_of = [&](const std::string& path) {
    return std::string(name_of(std::ranges::find(audit.nodes, path, &NodeAudit::path)->half_class));
  };
  EXPECT_EQ(class_of("hide"), "mask");
  EXPECT_EQ(class_of("softmax"), "mask");
  EXPECT_EQ(class_of("log"), "infinite");
  EXPECT_EQ(class_of("small"), "inexact");
  EXPECT_EQ(class_of("position"), "must");
  EXPECT_EQ(class_of("cos"), "must");
  EXPECT_EQ(class_of("condition"), "free");
}

TEST(AuditHalf, CountsSumsThatLeaveTheRangeThoughTheirEndsDoNot) {
  const auto model =
      audited_model("ir_version: 9 opset_import { version: 18 } graph { name: 'g' " +
                    node("sum", "ReduceSum", {"x"}, "y", "attribute { name: 'keepdims' type: INT i: 0 } ") +
                    tensor_io("input", "x", kTwoByFour) + tensor_io("output", "y", "") + "}");
  AuditRequest request;
  request.model_in_memory = model;
  request.next_inputs = [](int64_t index) -> Result<std::optional<InputRequest>> {
    if (index > 0) return std::optional<InputRequest>();
    InputRequest next;
    Tensor tensor = Tensor::allocate(DType::float32, Shape{2, 4}).take();
    for (size_t i = 0; i < 8; ++i) tensor.mutable_as<float>()[i] = i < 4 ? 40000.0F : -40000.0F;
    next.values["x"] = Value(std::move(tensor));
    return std::optional(next);
  };
  const HalfAudit audit = audited(request);
  EXPECT_EQ(nodes_of(audit, HalfClass::wide_sum), (std::set<std::string>{"sum"}));
  EXPECT_EQ(audit.nodes.front().accumulated_max, 320000.0);
  EXPECT_TRUE(audit.keep.empty());
  request.half_sums = true;
  EXPECT_EQ(audited(request).keep, (std::vector<std::string>{"sum"}));
}

TEST(AuditHalf, SeesBranchesAndInputsThatLeaveTheRange) {
  const std::string branch = "input: 'c' output: 'y' attribute { name: 'then_branch' type: GRAPH g { name: 't' " +
                             node("square", "Mul", {"x", "x"}, "q") + node("root", "Sqrt", {"q"}, "r") +
                             tensor_io("output", "r", kTwoByFour) +
                             "} } attribute { name: 'else_branch' type: GRAPH g { name: 'e' " +
                             node("same", "Identity", {"x"}, "i") + tensor_io("output", "i", kTwoByFour) + "} } ";
  const auto model = audited_model(
      "ir_version: 9 opset_import { version: 18 } graph { name: 'g' node { name: 'if' op_type: "
      "'If' " +
      branch + "} initializer { name: 'c' data_type: 9 int32_data: 1 } " + tensor_io("input", "x", kTwoByFour) +
      tensor_io("output", "y", kTwoByFour) + "}");
  const HalfAudit audit = audited(request_of(model, Shape{2, 4}, {300}));
  EXPECT_EQ(nodes_of(audit, HalfClass::must), (std::set<std::string>{"if.then//square", "if.then//root"}));
  EXPECT_TRUE(audit.kept.passed);
  const HalfAudit beyond = audited(request_of(model, Shape{2, 4}, {1e5}));
  EXPECT_TRUE(beyond.keep_io);
  EXPECT_TRUE(beyond.kept.passed);
}

TEST(AuditHalf, RefusesWhatItCannotWatch) {
  AuditRequest request = request_of(audited_model(residual_blocks(1)), Shape{2, 4}, {});
  EXPECT_EQ(audit_half(request, audit_executors()).error().code, ErrorCode::usage);
  request.executor = "cuda";
  EXPECT_EQ(audit_half(request, audit_executors()).error().code, ErrorCode::usage);
  EXPECT_FALSE(parse_feed("encoder.onnx").ok());
  EXPECT_FALSE(parse_feed("encoder.onnx:a=").ok());
  const auto feed = parse_feed("C:/t5/encoder.onnx:last=first,b=c");
  ASSERT_TRUE(feed.ok());
  EXPECT_EQ(feed->model, "C:/t5/encoder.onnx");
  EXPECT_EQ(feed->edges.size(), 2U);
}

TEST(AuditHalf, WritesReports) {
  const HalfAudit audit = audited(request_of(audited_model(residual_blocks(1)), Shape{2, 4}, {300}));
  const std::string page = audit_to_html(audit, "<model>");
  EXPECT_NE(page.find("&lt;model&gt;"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos);
  const std::string table = audit_to_csv(audit);
  EXPECT_EQ(static_cast<size_t>(std::ranges::count(table, '\n')), audit.nodes.size() + 1);
  EXPECT_NE(audit_to_json(audit).find("\"nothing_kept\""), std::string::npos);
}

}  // namespace
}  // namespace parallax
