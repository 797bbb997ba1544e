// SPDX-License-Identifier: Apache-2.0
// Capture and products in float16 on a GPU, where there is one: the values of every level belong together, and are
// those of the host.
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "inspector/dump/statistics/statistics.h"
#include "inspector/exec/capture_traffic.h"
#include "inspector/model/io/import.h"
#include "inspector/tensor/elements.h"
#include "runtime/plan/runtime.h"

namespace parallax {
namespace {

constexpr int64_t kSide = 300;  // statistics of six chunks, the last of them ragged

std::shared_ptr<const Model> model_of(DType dtype) {
  const std::string type = "type { tensor_type { elem_type: " + std::to_string(static_cast<int>(dtype)) + " } } } ";
  const std::string text =
      "ir_version: 8 opset_import { version: 17 } graph { name: \"g\" "
      "node { op_type: \"MatMul\" input: \"x\" input: \"x\" output: \"a\" } "
      "node { op_type: \"Gemm\" input: \"a\" input: \"x\" input: \"c\" output: \"b\" } "
      "node { op_type: \"Relu\" input: \"b\" output: \"d\" } node { op_type: \"Neg\" input: \"d\" output: \"y\" } "
      "input { name: \"x\" " +
      type + "input { name: \"c\" " + type + "output { name: \"y\" " + type + "}";
  return import_model(std::as_bytes(std::span(text)), "", "test").take();
}

std::vector<Value> inputs_of(DType dtype) {
  std::vector<Value> inputs;
  for (const Shape& shape : {Shape{kSide, kSide}, Shape{kSide}}) {
    std::vector<double> values(static_cast<size_t>(shape.element_count()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = (static_cast<double>(i * 7919 % 1009) - 504) / 8192;
    Tensor tensor = Tensor::allocate(dtype, shape).take();
    store_doubles(tensor, 0, values);
    inputs.emplace_back(std::move(tensor));
  }
  return inputs;
}

class Recorder final : public Observer {
 public:
  explicit Recorder(CaptureLevel level) : level_(level) {}
  CaptureLevel wants(const ValueInfo& value_info) override {
    return value_info.role == ValueInfo::Role::node_output ? level_ : CaptureLevel::none;
  }
  Status observe(const Observation& seen) override {
    const std::string path = seen.path();
    if (seen.statistics != nullptr) {
      statistics.emplace(path, *seen.statistics);
    } else {
      statistics.emplace(path, compute_statistics(seen.value.tensor()));
      std::vector<double> elements(static_cast<size_t>(seen.value.tensor().element_count()));
      load_doubles(seen.value.tensor(), 0, elements);
      values.emplace(path, std::move(elements));
    }
    return {};
  }
  std::map<std::string, TensorStatistics> statistics;
  std::map<std::string, std::vector<double>> values;

 private:
  CaptureLevel level_;
};

Status run(Executor& executor, DType dtype, RewriteChoice::Base base, Recorder& recorder, int64_t& copies) {
  RunOptions options;
  options.rewrite.base = base;
  const auto session = PX_TRY(executor.prepare(model_of(dtype), options));
  const std::vector<Value> inputs = inputs_of(dtype);
  PX_TRY(session->run(inputs, recorder));
  if (const auto* traffic = dynamic_cast<const CaptureTraffic*>(session.get()))
    copies = traffic->capture_counts().value_or(CaptureCounts{}).copies;
  return {};
}

void expect_levels_to_agree(const Recorder& whole, const Recorder& summed, const Recorder& host, DType dtype) {
  const double tolerance = dtype == DType::bfloat16 ? 0.02 : dtype == DType::float16 ? 0.003 : 1e-4;
  for (const auto& [path, wanted] : whole.statistics) {
    const std::string which = std::string(name_of(dtype)) + ' ' + path;
    const TensorStatistics& got = summed.statistics.at(path);
    EXPECT_EQ(got.mean, wanted.mean) << which;
    EXPECT_EQ(got.std, wanted.std) << which;
    EXPECT_EQ(got.min, wanted.min) << which;
    EXPECT_EQ(got.zeros, wanted.zeros) << which;
    EXPECT_EQ(got.projections, wanted.projections) << which;
    const std::vector<double>& from_device = whole.values.at(path);
    const std::vector<double>& from_host = host.values.at(path);
    for (size_t i = 0; i < from_host.size(); i += 101)
      ASSERT_NEAR(from_device[i], from_host[i], tolerance * (1 + std::fabs(from_host[i]))) << which;
  }
}

struct Case {
  DType dtype;
  RewriteChoice::Base base;
  int64_t copies;
};
// A Gemm and its Relu are one node after rewriting, FusedGemm, whose inner value is announced as fused and not
// captured.
constexpr Case kCases[] = {{DType::float32, RewriteChoice::Base::none, 4},
                           {DType::float64, RewriteChoice::Base::none, 4},
                           {DType::float16, RewriteChoice::Base::none, 4},
                           {DType::bfloat16, RewriteChoice::Base::none, 4},
                           {DType::float32, RewriteChoice::Base::default_, 3}};

TEST(CudaCapture, EveryLevelTellsOfTheSameValues) {
  const auto cuda = make_cuda_executor();
  if (!cuda.ok()) GTEST_SKIP() << cuda.error().message;
  for (const auto& [dtype, base, expected_copies] : kCases) {
    int64_t copies = 0;
    Recorder whole(CaptureLevel::all), summed(CaptureLevel::stats), host(CaptureLevel::all);
    ASSERT_TRUE(run(**cuda, dtype, base, whole, copies).ok());
    EXPECT_EQ(copies, expected_copies) << name_of(dtype);
    ASSERT_TRUE(run(**cuda, dtype, base, summed, copies).ok());
    ASSERT_TRUE(run(*make_cpu_executor(), dtype, base, host, copies).ok());
    EXPECT_TRUE(summed.values.empty()) << "nothing but statistics was wanted";
    expect_levels_to_agree(whole, summed, host, dtype);
  }
}

}  // namespace
}  // namespace parallax
