// SPDX-License-Identifier: Apache-2.0
// `--focus`: nodes near a value, and not those that merely read the same constant. Graphviz: what is no picture.
#include "inspector/render/dot.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "inspector/model/io/import.h"
#include "inspector/render/graphviz.h"

namespace parallax {
namespace {

// Two chains that share the constants `weight` (an initializer) and `bias` (made by a node).
constexpr std::string_view kTwoChains = R"(
ir_version: 8
opset_import { domain: "" version: 17 }
graph {
  name: "g"
  node { output: "bias" op_type: "Constant" name: "constant" attribute { name: "value_float" type: FLOAT f: 1 } }
  node { input: "x" input: "weight" output: "a" op_type: "Mul" name: "left_mul" }
  node { input: "a" input: "bias" output: "b" op_type: "Add" name: "left_add" }
  node { input: "b" output: "y" op_type: "Relu" name: "left_relu" }
  node { input: "z" input: "weight" output: "c" op_type: "Mul" name: "right_mul" }
  node { input: "c" input: "bias" output: "d" op_type: "Add" name: "right_add" }
  node { input: "d" output: "w" op_type: "Relu" name: "right_relu" }
  initializer { name: "weight" data_type: 1 float_data: 2 }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } } } } }
  input { name: "z" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } } } } }
  output { name: "w" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } } } } }
}
)";

class Focus : public testing::Test {
 protected:
  void SetUp() override {
    auto model = import_model(std::as_bytes(std::span(kTwoChains)), "", "two chains");
    ASSERT_TRUE(model.ok()) << model.error().message;
    model_ = model.take();
  }
  std::string drawn(const std::string& focus) const {
    DotOptions options;
    options.focus = focus;
    const auto dot = graph_to_dot(model_->graph, options);
    EXPECT_TRUE(dot.ok()) << dot.error().message;
    return dot.ok() ? *dot : "";
  }

  std::shared_ptr<const Model> model_;
};

TEST_F(Focus, DoesNotRunThroughSharedConstants) {
  const std::string text = drawn("b");
  for (const char* node : {"left_mul", "left_add", "left_relu"}) EXPECT_NE(text.find(node), std::string::npos) << node;
  for (const char* node : {"right_mul", "right_add", "right_relu"})
    EXPECT_EQ(text.find(node), std::string::npos) << node;
}

TEST_F(Focus, OnAConstantShowsAllItsReaders) {
  for (const char* constant : {"bias", "weight"}) {
    const std::string text = drawn(constant);
    EXPECT_NE(text.find("left_add"), std::string::npos) << constant;
    EXPECT_NE(text.find("right_add"), std::string::npos) << constant;
  }
}

TEST_F(Focus, OnNothingIsAUsageError) {
  DotOptions options;
  options.focus = "nowhere";
  const auto dot = graph_to_dot(model_->graph, options);
  ASSERT_FALSE(dot.ok());
  EXPECT_EQ(dot.error().code, ErrorCode::usage);
  options.focus = "left_ad";
  EXPECT_NE(graph_to_dot(model_->graph, options).error().message.find("did you mean 'left_add'"), std::string::npos);
}

TEST(Graphviz, WithoutDescriptorsThereIsAnErrorAndNoPoorerPicture) {
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const struct rlimit none = {3, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto drawn = run_dot("digraph g {}", "svg");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(drawn.ok());
  EXPECT_EQ(drawn.error().code, ErrorCode::io);
}

}  // namespace
}  // namespace parallax
