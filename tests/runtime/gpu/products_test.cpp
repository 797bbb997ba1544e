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

namespace parallax::products_test {
namespace {

struct Case {
  std::string op;  // with its attributes
  Shape a, b;
  std::vector<Shape> c;  // none or one
  std::string domain = "";
};

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

}  // namespace
}  // namespace parallax::products_test
