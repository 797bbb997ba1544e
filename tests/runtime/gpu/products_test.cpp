// SPDX-License-Identifier: Apache-2.0
// Which products go to the library of a GPU, with what operands: against the host's, over types, transpositions,
// batches with an even stride and others, and what may stand in for a bias.
#include <cmath>

#include <gtest/gtest.h>

#include "inspector/model/io/import.h"
#include "inspector/tensor/elements.h"
#include "runtime/plan/runtime.h"
#include "tests/runtime/device/random_values.h"
#include "tests/runtime/emulated/emulated_executor.h"
#include "tests/runtime/emulated/queue_emulated.h"
#include "tests/runtime/model_text.h"
#include "tests/runtime/rewrite/graph_text.h"
#include "tests/runtime/session_values.h"

namespace parallax::products_test {
namespace {

struct Case {
  std::string op;  // with its attributes
  Shape a, b;
  std::vector<Shape> c;  // none or one
  std::string domain = "";
};

using runtime::graph_input;
using runtime::graph_node;
using runtime::graph_output;
using runtime::weight_of;

std::string attribute(const std::string& name, const std::string& value) {
  return " attribute { name: \"" + name + "\" " + value + " } ";
}

std::shared_ptr<const Model> model_of(const Case& test, DType dtype) {
  const std::vector<std::string> names{"a", "b", "c"};
  const size_t count = 2 + test.c.size();
  std::string text =
      "ir_version: 10\nopset_import { version: 21 } opset_import { domain: \"com.microsoft\" version: 1 } ";
  text += "graph { name: \"g\" node { domain: \"" + test.domain + "\" op_type: " + test.op;
  for (size_t i = 0; i < count; ++i) text += " input: \"" + names[i] + "\"";
  text += " output: \"y\" } ";
  const std::string type = std::to_string(static_cast<int>(dtype));
  const auto value = [&](const std::string& role, const std::string& name) {
    text += role + " { name: \"" + name + "\" type { tensor_type { elem_type: " + type + " } } } ";
  };
  for (size_t i = 0; i < count; ++i) value("input", names[i]);
  value("output", "y");
  text += "}";
  auto model = import_model(std::as_bytes(std::span(text)), "", "test");
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.ok() ? model.take() : nullptr;
}

Tensor filled(DType dtype, const Shape& shape, uint32_t seed) {
  const std::vector<double> values = runtime::random_values<double>(shape.element_count(), seed);
  Tensor tensor = Tensor::allocate(dtype, shape).take();
  store_doubles(tensor, 0, values);
  return tensor;
}

Result<std::vector<double>> run(Executor& executor, const Case& test, DType dtype) {
  const auto model = model_of(test, dtype);
  if (model == nullptr) return usage_error("no model");
  auto session = PX_TRY(executor.prepare(model, {}));
  std::vector<Value> inputs{filled(dtype, test.a, 1), filled(dtype, test.b, 2)};
  for (const Shape& shape : test.c) inputs.emplace_back(filled(dtype, shape, 3));
  NullObserver nobody;
  const auto outputs = PX_TRY(session->run(inputs, nobody));
  std::vector<double> values(static_cast<size_t>(outputs[0].tensor().element_count()));
  load_doubles(outputs[0].tensor(), 0, values);
  return values;
}

TEST(GpuProducts, AsTheHosts) {
  const std::string permuted = attribute("transA", "i: 1 type: INT") + attribute("transB", "i: 1 type: INT");
  const std::string halved = attribute("alpha", "f: 0.5 type: FLOAT") + attribute("beta", "f: 0.25 type: FLOAT");
  const std::vector<Case> cases{
      {"\"MatMul\"", {3, 5}, {5, 7}, {}},
      {"\"MatMul\"", {2, 3, 4, 5}, {5, 7}, {}},
      {"\"MatMul\"", {2, 3, 4, 5}, {2, 3, 5, 7}, {}},
      {"\"MatMul\"", {2, 1, 4, 5}, {1, 3, 5, 2}, {}},  // neither operand's matrices have an even stride
      {"\"MatMul\"", {5}, {5, 7}, {}},
      {"\"MatMul\"", {3, 0}, {0, 4}, {}},
      {"\"Gemm\"", {3, 5}, {5, 7}, {}},
      {"\"Gemm\"", {3, 5}, {5, 7}, {{7}}},
      {"\"Gemm\"", {3, 5}, {5, 7}, {{3, 1}}},
      {"\"Gemm\"", {3, 5}, {5, 7}, {{1, 7}}},
      {"\"Gemm\"", {3, 5}, {5, 1}, {{1}}},
      {"\"Gemm\"" + halved, {3, 5}, {5, 7}, {{7}}},
      {"\"Gemm\"" + permuted, {5, 3}, {7, 5}, {{7}}},
      {"\"FusedMatMul\"" + permuted + attribute("alpha", "f: 0.125 type: FLOAT"), {5, 3}, {7, 5}, {}, "com.microsoft"},
      {"\"FusedGemm\"" + attribute("activation", "s: \"Relu\" type: STRING"), {3, 5}, {5, 7}, {{7}}, "com.microsoft"},
  };
  const auto host = make_cpu_executor();
  const auto device = tests::make_emulated_executor();
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16, DType::float64}) {
    const double tolerance = dtype == DType::bfloat16 ? 0.008 : dtype == DType::float16 ? 0.001 : 1e-6;
    for (const Case& test : cases) {
      if (dtype == DType::bfloat16 && test.domain == "com.microsoft") continue;  // not in these operators' lists
      const std::string what =
          test.op + " " + test.a.to_string() + test.b.to_string() + " " + std::string(name_of(dtype));
      const auto wanted = run(*host, test, dtype);
      const auto got = run(*device, test, dtype);
      ASSERT_TRUE(wanted.ok()) << what << ": " << wanted.error().message;
      ASSERT_TRUE(got.ok()) << what << ": " << got.error().message;
      ASSERT_EQ(wanted->size(), got->size()) << what;
      for (size_t i = 0; i < got->size(); ++i) {
        EXPECT_NEAR((*got)[i], (*wanted)[i], tolerance * (1 + std::fabs((*wanted)[i]))) << what << " element " << i;
      }
    }
  }
}

// y = x w + b + r, with b or without it, in float16 between casts; its parts' own nodes have more roundings.
std::shared_ptr<const Model> with_residual(bool has_bias, bool in_half_precision) {
  const auto cast = [](const std::string& name, int to) {
    return graph_node("Cast", {name}, name + "c", model_text::integer_attribute("to", to));
  };
  const int type = in_half_precision ? 10 : 1;
  std::vector<double> w(16 * 8);
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<double>((i * 7 + 3) % 17) / 8 - 1;
  std::string graph = weight_of("w", {16, 8}, w) + weight_of("b", {8}, {0, 1, -1, 2, -2, 3, -3, 0.5}) +
                      graph_input("x", {5, 16}) + graph_input("r", {5, 8}) + cast("x", type) + cast("r", type) +
                      cast("w", type) + cast("b", type) + graph_node("MatMul", {"xc", "wc"}, "p");
  if (has_bias) graph += graph_node("Add", {"p", "bc"}, "q");
  graph += graph_node("Add", {"rc", has_bias ? "q" : "p"}, "s") + cast("s", 1) + graph_output("sc", {5, 8});
  return model_text::model_of(graph);
}

// One pass stores the sums with the residual; whoever looks at the values changes none.
TEST(GpuProducts, LibraryAddsTheResidual) {
  for (const bool has_bias : {false, true}) {
    for (const bool in_half_precision : {false, true}) {
      const auto model = with_residual(has_bias, in_half_precision);
      ASSERT_NE(model, nullptr);
      const std::vector<Value> inputs{session_values::filled({5, 16}, 1), session_values::filled({5, 8}, 2)};
      const auto run = [&](const RunOptions& options, Observer& observer) {
        return tests::make_emulated_executor()->prepare(model, options).take()->run(inputs, observer).take().front();
      };
      RunOptions parts;
      parts.observe_all = true;
      NullObserver nobody;
      session_values::Recorder observed, every;
      const int64_t before = runtime::emulated_library().residual_products;
      const Value plain = run({}, nobody);
      EXPECT_EQ(runtime::emulated_library().residual_products, before + 1);
      EXPECT_TRUE(session_values::same(run({}, observed), plain));
      EXPECT_EQ(runtime::emulated_library().residual_products, before + 2);
      EXPECT_TRUE(observed.values.contains("s") && !observed.values.contains("p"));
      const Tensor wanted = run(parts, every).tensor();
      EXPECT_EQ(runtime::emulated_library().residual_products, before + 2);
      EXPECT_TRUE(every.values.contains("p"));
      for (int64_t i = 0; i < wanted.element_count(); ++i) {
        EXPECT_NEAR(element_as_double(plain.tensor().view(), i), element_as_double(wanted.view(), i),
                    in_half_precision ? 1e-2 : 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace parallax::products_test
