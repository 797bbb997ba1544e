// Convolutions of the executor "cuda", by cuDNN where it is there, against the host's: plain runs and replayed ones.
#include <cmath>

#include <gtest/gtest.h>

#include "inspector/model/import.h"
#include "inspector/tensor/elements.h"
#include "runtime/plan/runtime.h"
#include "tests/runtime/device/conv_cases.h"
#include "tests/runtime/model_text.h"

namespace parallax {
namespace {

using runtime::ConvCase;

std::string integers(const char* name, const std::vector<int64_t>& values) {
  std::string text = std::string("attribute { name: \"") + name + "\" type: INTS ";
  for (const int64_t value : values) text += "ints: " + std::to_string(value) + " ";
  return text + "} ";
}

std::shared_ptr<const Model> model_of(const ConvCase& given, DType dtype) {
  using model_text::node, model_text::value;
  std::vector<int64_t> pads = given.pads_begin;
  pads.insert(pads.end(), given.pads_end.begin(), given.pads_end.end());
  std::string how = integers("strides", given.strides) + integers("dilations", given.dilations) +
                    integers("pads", pads) +
                    "attribute { name: \"group\" type: INT i: " + std::to_string(given.groups) + " } ";
  if (given.is_transposed) how += integers("output_padding", given.output_padding);
  std::vector<std::string> names{"x", "w"};
  if (given.has_bias) names.emplace_back("b");
  const int type = static_cast<int>(dtype);
  std::string graph = node(given.is_transposed ? "ConvTranspose" : "Conv", names, {"y"}, how);
  for (const std::string& name : names) graph += value("input", name, type);
  return model_text::model_of(graph + value("output", "y", type), dtype == DType::bfloat16 ? 22 : 17);
}

// Multiples of 1/16: they are what they are in all three types.
Tensor values_of(DType dtype, const Shape& shape, int64_t seed) {
  std::vector<double> values(static_cast<size_t>(shape.element_count()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>((static_cast<int64_t>(i) * 7919 + seed * 104729) % 61 - 30) / 16;
  }
  Tensor tensor = Tensor::allocate(dtype, shape).take();
  store_doubles(tensor, 0, values);
  return tensor;
}

std::vector<Value> inputs_of(const ConvCase& given, DType dtype, int64_t turn) {
  const runtime::ConvShapes shapes = runtime::shapes_of(given);
  std::vector<Value> inputs{values_of(dtype, shapes.x, turn), values_of(dtype, shapes.filters, turn + 1)};
  if (given.has_bias) inputs.emplace_back(values_of(dtype, Shape{given.out_channels}, turn + 2));
  return inputs;
}

std::vector<double> run(Session& session, const std::vector<Value>& inputs) {
  NullObserver nobody;
  const auto outputs = session.run(inputs, nobody);
  EXPECT_TRUE(outputs.ok()) << (outputs.ok() ? "" : outputs.error().message);
  if (!outputs.ok()) return {};
  std::vector<double> values(static_cast<size_t>((*outputs)[0].tensor().element_count()));
  load_doubles((*outputs)[0].tensor(), 0, values);
  return values;
}

class CudaConv : public testing::TestWithParam<ConvCase> {};

TEST_P(CudaConv, GivesWhatTheHostDoes) {
  constexpr int64_t kRuns = 6;  // the last ones are replays
  const auto cuda = make_cuda_executor();
  if (!cuda.ok()) GTEST_SKIP() << cuda.error().message;
  const auto host = make_cpu_executor();
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    const auto model = model_of(GetParam(), dtype);
    ASSERT_NE(model, nullptr);
    const auto on_gpu = (*cuda)->prepare(model, {});
    const auto on_host = host->prepare(model, {});
    ASSERT_TRUE(on_gpu.ok()) << on_gpu.error().message;
    ASSERT_TRUE(on_host.ok()) << on_host.error().message;
    const double step = dtype == DType::float32 ? 1e-5 : dtype == DType::float16 ? 1e-3 : 8e-3;
    for (int64_t turn = 0; turn < kRuns; ++turn) {
      const auto inputs = inputs_of(GetParam(), dtype, turn);
      const std::vector<double> found = run(**on_gpu, inputs), expected = run(**on_host, inputs);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_NEAR(found[i], expected[i], step * (1 + std::abs(expected[i]))) << "run " << turn << ", element " << i;
      }
      EXPECT_EQ(run(**on_gpu, inputs), found) << "run " << turn << " was not repeated to the bit";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaConv, testing::ValuesIn(runtime::kConvCases),
                         [](const auto& given) { return std::string(given.param.name); });

}  // namespace
}  // namespace parallax
