// SPDX-License-Identifier: Apache-2.0
// The part of a graph around a value: what is near is in it, what is far is not.
#include "inspector/render/focus_svg.h"

#include <gtest/gtest.h>

#include "inspector/model/io/import.h"

namespace parallax {
namespace {

std::shared_ptr<const Model> sample_model(const std::string& name) {
  auto model = import_model(std::string(PX_SOURCE_DIR) + "/samples/" + name);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.take();
}

bool shows(const std::string& svg, const std::string& node) { return svg.find("<title>" + node) != std::string::npos; }

TEST(FocusSvg, HoldsWhatIsNear) {
  const auto model = sample_model("fault_pair/A.onnx");
  const std::string svg = neighborhood_to_svg(model->graph, "block1/depthwise_bn_output", 1, nullptr);
  EXPECT_TRUE(svg.starts_with("<svg"));
  EXPECT_TRUE(shows(svg, "block1/depthwise_bn"));
  EXPECT_TRUE(shows(svg, "block1/depthwise_relu"));
  EXPECT_FALSE(shows(svg, "block1/pointwise"));
  EXPECT_TRUE(shows(neighborhood_to_svg(model->graph, "block1/depthwise_bn_output", 2, nullptr), "block1/pointwise"));
}

TEST(FocusSvg, TakesWeightsInputsAndValuesOfBodies) {
  const auto model = sample_model("fault_pair/A.onnx");
  EXPECT_TRUE(shows(neighborhood_to_svg(model->graph, "stem/conv/kernel", 0, nullptr), "stem/conv"));
  EXPECT_FALSE(neighborhood_to_svg(model->graph, "spectrogram", 1, nullptr).empty());
  const auto decoder = sample_model("greedy_decoder/model.onnx");
  EXPECT_TRUE(shows(neighborhood_to_svg(decoder->graph, "decode.body[3]//moved", 0, nullptr), "decode"));
  EXPECT_TRUE(neighborhood_to_svg(model->graph, "nothing", 3, nullptr).empty());
}

TEST(FocusSvg, OfALargeGraphIsBounded) {
  const auto model = sample_model("resnet/model.onnx");
  const std::string whole =
      neighborhood_to_svg(model->graph, value_at(model->graph, model->graph.outputs[0]).name, 1000, nullptr);
  size_t boxes = 0;
  for (size_t at = whole.find("<title>"); at != std::string::npos; at = whole.find("<title>", at + 1)) ++boxes;
  EXPECT_LE(boxes, 200U);
  EXPECT_GT(boxes, 10U);
}

}  // namespace
}  // namespace parallax
