// SPDX-License-Identifier: Apache-2.0
// Subnormal numbers that one side flushes to zero: the verdict is the limit's, the value and the cause say what it is.
// And functions that lose digits far below 0 are given room for that.
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "inspector/diff/compare/compare.h"
#include "inspector/diff/diagnose/find_causes.h"
#include "inspector/diff/tolerance/judge.h"
#include "inspector/diff/tolerance/value_compare.h"
#include "inspector/executors/make_executor.h"
#include "tests/inspector/diff/dump_fixture.h"

namespace parallax {
namespace {

using testing::finished_model;
using testing::GraphBuilder;

constexpr float kSubnormal = 1e-40F;

Tensor steps_of(float step) {
  Tensor tensor = Tensor::allocate(DType::float32, Shape{4, 8}).take();
  int64_t index = 0;
  for (float& value : tensor.mutable_as<float>()) value = step * static_cast<float>(++index);
  return tensor;
}

class Subnormals : public testing::DumpTest {
 protected:
  // A run on the reference, in which `y` may be replaced.
  std::shared_ptr<const DumpReader> run(const std::string& file, const Tensor& x, const Tensor* y) {
    RunOptions options;
    if (y != nullptr) options.overrides["y"] = *y;
    const std::string path = (folder_ / file).string();
    const auto executor = make_executor("reference").take();
    const auto session = executor->prepare(model_, options).take();
    const auto writer = DumpWriter::create(path, {}).take();
    RunInfo info = describe_run(*executor, options, model_);
    info.model_sha256 = "one";
    EXPECT_TRUE(writer->begin_run(info).ok());
    EXPECT_TRUE(session->run(std::vector<Value>{x}, *writer).ok());
    EXPECT_TRUE(writer->end_run(true).ok());
    EXPECT_TRUE(writer->finish().ok());
    return DumpReader::open(path).take();
  }

  // x * factor compared with B's replacement of it.
  Comparison compare(const Tensor& x, float factor, const Tensor& y_of_b, const Policy& policy = {}) {
    GraphBuilder builder(17);
    builder.input("x", "float32[4,8]").initializer("factor", Tensor::scalar(factor));
    builder.node("Mul", {"x", "factor"}, {"y"}).output("y");
    model_ = finished_model(builder);
    BlameRequest request;
    request.a.model = request.b.model = model_;
    request.a.dump = run("a.plx", x, nullptr);
    request.b.dump = run("b.plx", x, &y_of_b);
    request.oracle = make_executor("reference:double").take();
    Comparison comparison = compare_dumps(*request.a.dump, *request.b.dump, policy, {}).take();
    EXPECT_TRUE(testing::diagnose(request, comparison).ok());
    return comparison;
  }

  static const ValueComparison& y_of(const Comparison& comparison) {
    for (const ValueComparison& value : comparison.values) {
      if (value.path == "y") return value;
    }
    return comparison.values.front();
  }

  std::shared_ptr<const Model> model_;
};

TEST_F(Subnormals, ThatAreFlushedAreSaidToBe) {
  const Tensor zeros = Tensor::zeros(DType::float32, Shape{4, 8}).take();
  const Comparison comparison = compare(steps_of(1), kSubnormal, zeros);
  EXPECT_EQ(y_of(comparison).verdict, Verdict::diverged);
  EXPECT_EQ(y_of(comparison).reason, "flushed to zero in B");
  ASSERT_FALSE(comparison.causes.empty());
  EXPECT_EQ(
      comparison.causes.front().why,
      "flushed to zero: 32 of 32 elements are 0 where subnormal numbers are right, up to 3.2e-39 (first at [0,0])");
}

TEST_F(Subnormals, ThatAreFlushedPassWhereTheToleranceIsLarger) {
  const Tensor zeros = Tensor::zeros(DType::float32, Shape{4, 8}).take();
  const Comparison comparison = compare(steps_of(1), kSubnormal, zeros, {Tolerance{0, 1e-30}, {}});
  EXPECT_EQ(y_of(comparison).verdict, Verdict::pass);
  EXPECT_EQ(y_of(comparison).reason, "flushed to zero in B");
  EXPECT_EQ(comparison.verdict, OverallVerdict::pass);
}

// Some are normal numbers: that is more than a flush.
TEST_F(Subnormals, AreNotSaidToBeFlushedWhereMoreIsLost) {
  const Tensor zeros = Tensor::zeros(DType::float32, Shape{4, 8}).take();
  const Comparison comparison = compare(steps_of(1), 2e-39F, zeros);
  EXPECT_EQ(y_of(comparison).verdict, Verdict::diverged);
  EXPECT_EQ(y_of(comparison).reason, "");
  ASSERT_FALSE(comparison.causes.empty());
  EXPECT_EQ(comparison.causes.front().why.find("flushed"), std::string::npos) << comparison.causes.front().why;
}

TEST_F(Subnormals, ThatAreTakenAsZeroAreNamedWithTheInput) {
  const Tensor x = steps_of(1e-39F);  // of which the last are normal
  Tensor y = Tensor::zeros(DType::float32, Shape{4, 8}).take();
  for (size_t index = 0; index < 32; ++index) {
    const float element = x.as<float>()[index];
    y.mutable_as<float>()[index] = element < std::numeric_limits<float>::min() ? 0 : element * 1e30F;
  }
  const Comparison comparison = compare(x, 1e30F, y);
  EXPECT_EQ(y_of(comparison).verdict, Verdict::diverged);
  ASSERT_FALSE(comparison.causes.empty());
  EXPECT_EQ(comparison.causes.front().why,
            "subnormal numbers of 'x' are taken as zero: its result is what it gives without them");
}

// Float16 has subnormal numbers of its own; compared with a double, float16 decides.
TEST(SubnormalsOfFloat16, AreFlushedInTheirOwnRange) {
  Tensor float16s = Tensor::allocate(DType::float16, Shape{2}).take();
  float16s.mutable_as<Float16>()[0] = Float16{float16_from_double(3e-5)};
  float16s.mutable_as<Float16>()[1] = Float16{float16_from_double(-1e-6)};
  const Tensor zeros = Tensor::zeros(DType::float16, Shape{2}).take();
  const diff::CompareContext context{{0, 1e-3, LimitSource::user}, false, true};
  ValueComparison result;
  diff::judge_values(zeros, float16s, context, result);
  EXPECT_EQ(result.verdict, Verdict::pass);
  EXPECT_EQ(result.reason, "flushed to zero in A");
  const std::vector<double> wide{3e-5, -1e-6};
  ValueComparison next_to_double;
  diff::judge_values(Tensor::vector<double>(wide), zeros, context, next_to_double);
  EXPECT_EQ(next_to_double.reason, "flushed to zero in B");
}

// 1 + erf(x) keeps no digits far below 0: whoever computes Gelu so has zeros there.
TEST_F(Subnormals, GeluMayBeZeroFarBelowZero) {
  for (const std::string approximate : {"none", "tanh"}) {
    GraphBuilder builder(20);
    builder.input("x", "float32[4,8]");
    builder.node("Gelu", {"x"}, {"y"}, {{"approximate", approximate}}).output("y");
    model_ = finished_model(builder);
    Tensor x = steps_of(-0.05F);
    for (float& element : x.mutable_as<float>()) element -= 7;
    const Tensor zeros = Tensor::zeros(DType::float32, Shape{4, 8}).take();
    const auto a = run("a.plx", x, nullptr), b = run("b.plx", x, &zeros);
    const Comparison comparison = compare_dumps(*a, *b, {}, {}).take();
    EXPECT_EQ(y_of(comparison).verdict, Verdict::pass) << approximate;
    EXPECT_GT(y_of(comparison).metrics->max_abs, 1e-16) << approximate;  // the reference keeps them
  }
}

}  // namespace
}  // namespace parallax
