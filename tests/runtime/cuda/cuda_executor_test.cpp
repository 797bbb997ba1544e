// SPDX-License-Identifier: Apache-2.0
// The executor "cuda" on a GPU; without one, that it says so.
#include <gtest/gtest.h>

#include "inspector/model/io/import.h"
#include "runtime/plan/runtime.h"

namespace parallax {
namespace {

constexpr const char* kModel = R"(
ir_version: 8 opset_import { version: 17 } graph { name: "g"
  node { op_type: "MatMul" input: "x" input: "x" output: "a" }
  node { op_type: "Relu" input: "a" output: "y" }
  input { name: "x" type { tensor_type { elem_type: 1 } } }
  output { name: "y" type { tensor_type { elem_type: 1 } } }
})";

TEST(CudaExecutor, RunsOrSaysWhyNot) {
  const auto executor = make_cuda_executor();
  if (!executor.ok()) {
    EXPECT_EQ(executor.error().code, ErrorCode::usage);
    EXPECT_EQ(executor.error().message.rfind("cuda: ", 0), 0U) << executor.error().message;
    GTEST_SKIP() << executor.error().message;
  }
  const std::string text = kModel;
  const std::shared_ptr<const Model> model = import_model(std::as_bytes(std::span(text)), "", "test").take();
  const auto session = (*executor)->prepare(model, {});
  ASSERT_TRUE(session.ok()) << session.error().message;
  NullObserver nobody;
  const float x[] = {1, 2, -3, 0};
  const Value inputs[] = {Tensor::from<float>(Shape{2, 2}, x)};
  const auto outputs = (*session)->run(inputs, nobody);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  const auto y = (*outputs)[0].tensor().as<float>();
  EXPECT_EQ((std::vector<float>{y.begin(), y.end()}), (std::vector<float>{0, 2, 0, 0}));
}

}  // namespace
}  // namespace parallax
