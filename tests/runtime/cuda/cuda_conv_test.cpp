// SPDX-License-Identifier: Apache-2.0
// Convolutions of the executor "cuda", by cuDNN where it is there, against the host's: plain runs and replayed ones.
#include "inspector/model/io/import.h"
#include "tests/runtime/against_host.h"
#include "tests/runtime/device/products/conv_cases.h"
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

std::vector<Value> inputs_of(const ConvCase& given, DType dtype, int64_t turn) {
  const runtime::ConvShapes shapes = runtime::shapes_of(given);
  std::vector<Value> inputs{against_host::sixteenths(dtype, shapes.x, turn),
                            against_host::sixteenths(dtype, shapes.filters, turn + 1)};
  if (given.has_bias) inputs.emplace_back(against_host::sixteenths(dtype, Shape{given.out_channels}, turn + 2));
  return inputs;
}

class CudaConv : public testing::TestWithParam<ConvCase> {};

TEST_P(CudaConv, GivesWhatTheHostDoes) {
  const auto cuda = make_cuda_executor();
  if (!cuda.ok()) GTEST_SKIP() << cuda.error().message;
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    const double step = dtype == DType::float32 ? 1e-5 : dtype == DType::float16 ? 1e-3 : 8e-3;
    against_host::expect_what_the_host_gives(
        **cuda, model_of(GetParam(), dtype), step, [&](int64_t turn) { return inputs_of(GetParam(), dtype, turn); },
        std::string(name_of(dtype)));
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaConv, testing::ValuesIn(runtime::kConvCases),
                         [](const auto& given) { return std::string(given.param.name); });

}  // namespace
}  // namespace parallax
