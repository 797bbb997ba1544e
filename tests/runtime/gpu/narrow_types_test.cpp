// SPDX-License-Identifier: Apache-2.0
// Quantizing to 8-bit floats and packed elements and back on a GPU: the same bytes as on the host.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "inspector/model/io/import.h"
#include "inspector/tensor/elements.h"
#include "runtime/plan/runtime.h"
#include "tests/runtime/device/random_values.h"
#include "tests/runtime/emulated/emulated_executor.h"

namespace parallax::narrow_types_test {
namespace {

struct Case {
  DType narrow;
  DType wide;
  Shape x, scale;
  std::string attributes;
  bool has_zero_point;
};

std::string attribute(const std::string& name, int64_t value) {
  return "attribute { name: \"" + name + "\" i: " + std::to_string(value) + " type: INT } ";
}

// x -> q -> y: both are outputs.
std::shared_ptr<const Model> model_of(const Case& test) {
  const std::string zero = test.has_zero_point ? "input: \"z\" " : "";
  const auto value = [](const std::string& role, const std::string& name, DType dtype) {
    return role + " { name: \"" + name +
           "\" type { tensor_type { elem_type: " + std::to_string(static_cast<int>(dtype)) + " } } } ";
  };
  const std::string to = test.has_zero_point ? "" : attribute("output_dtype", static_cast<int64_t>(test.narrow));
  const std::string back = test.attributes.find("saturate") == std::string::npos ? test.attributes : "";
  const std::string text =
      "ir_version: 12\nopset_import { version: 25 }\ngraph { name: \"g\" node { op_type: \"QuantizeLinear\" "
      "input: \"x\" input: \"s\" " +
      zero + "output: \"q\" " + test.attributes + to +
      "} node { op_type: \"DequantizeLinear\" input: \"q\" input: \"s\" " + zero + "output: \"y\" " + back + "} " +
      value("input", "x", test.wide) + value("input", "s", test.wide) +
      (test.has_zero_point ? value("input", "z", test.narrow) : "") + value("output", "q", test.narrow) +
      value("output", "y", test.wide) + "}";
  auto model = import_model(std::as_bytes(std::span(text)), "", "test");
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.ok() ? model.take() : nullptr;
}

Tensor filled(DType dtype, const Shape& shape, uint32_t seed, double low, double high) {
  std::vector<double> values = runtime::random_values<double>(shape.element_count(), seed, low, high);
  if (!is_floating(dtype))
    std::transform(values.begin(), values.end(), values.begin(), [](double x) { return std::floor(x); });
  Tensor tensor = Tensor::allocate(dtype, shape).take();
  store_doubles(tensor, 0, values);
  return tensor;
}

Result<std::vector<Value>> run(Executor& executor, const Case& test) {
  const auto model = model_of(test);
  if (model == nullptr) return usage_error("no model");
  const auto session = PX_TRY(executor.prepare(model, {}));
  std::vector<Value> inputs{filled(test.wide, test.x, 1, -300, 300), filled(test.wide, test.scale, 2, 0.25, 8)};
  if (test.has_zero_point) {
    const bool is_float = is_floating(test.narrow);
    inputs.emplace_back(filled(test.narrow, test.scale, 3, 0, is_float ? 0.0 : 2.0));
  }
  NullObserver nobody;
  return session->run(inputs, nobody);
}

TEST(GpuNarrowTypes, TheSameBytesAsOnTheHost) {
  std::vector<Case> cases;
  for (const DType narrow : {DType::float8e4m3fn, DType::float8e4m3fnuz, DType::float8e5m2, DType::float8e5m2fnuz,
                             DType::float4e2m1, DType::int4, DType::uint4, DType::int2, DType::uint2}) {
    cases.push_back({narrow, DType::float32, {7, 9}, {}, "", true});
    cases.push_back({narrow, DType::float32, {7, 9}, {}, "", false});
    cases.push_back({narrow, DType::float32, {7, 9}, {9}, attribute("axis", 1), true});
    cases.push_back({narrow, DType::float16, {3, 10}, {3, 3}, attribute("axis", 1) + attribute("block_size", 4), true});
    if (is_floating(narrow) && bits_of(narrow) == 8)
      cases.push_back({narrow, DType::float32, {5, 11}, {}, attribute("saturate", 0), true});
  }
  const auto host = make_cpu_executor();
  const auto device = tests::make_emulated_executor();
  for (const Case& test : cases) {
    const std::string what = std::string(name_of(test.narrow)) + " " + test.x.to_string() + test.attributes;
    const auto wanted = run(*host, test);
    const auto got = run(*device, test);
    ASSERT_TRUE(wanted.ok()) << what << ": " << wanted.error().message;
    ASSERT_TRUE(got.ok()) << what << ": " << got.error().message;
    for (size_t output = 0; output < 2; ++output) {
      const Tensor& a = (*wanted)[output].tensor();
      const Tensor& b = (*got)[output].tensor();
      ASSERT_EQ(a.dtype(), b.dtype()) << what;
      ASSERT_EQ(a.size_bytes(), b.size_bytes()) << what;
      EXPECT_EQ(std::memcmp(a.view().data, b.view().data, a.size_bytes()), 0) << what << " output " << output;
    }
  }
}

}  // namespace
}  // namespace parallax::narrow_types_test
