// SPDX-License-Identifier: Apache-2.0
// Activations by the library of a GPU: they are used where they are ours, and only there.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "inspector/tensor/elements.h"
#include "runtime/device/gpu/epilogue_settings.h"
#include "runtime/device/gpu/library_epilogue.h"
#include "runtime/device/gpu/library_product.h"
#include "tests/runtime/emulated/emulated_executor.h"
#include "tests/runtime/emulated/queue_emulated.h"
#include "tests/runtime/model_text.h"
#include "tests/runtime/session_values.h"

namespace parallax::runtime::epilogue_test {
namespace {

constexpr DType kTypes[] = {DType::float32, DType::float16, DType::bfloat16};

// The results that a library with that activation stores for the sums of the probe.
Tensor results_of(const EpilogueKind& kind, float (*activate)(Epilogue, float)) {
  std::vector<double> values;
  for (const float sum : epilogue_probe(kind).sums) values.push_back(static_cast<double>(activate(kind.epilogue, sum)));
  Tensor tensor = Tensor::allocate(kind.dtype, Shape{static_cast<int64_t>(values.size())}).take();
  store_doubles(tensor, 0, values);
  return tensor;
}

bool is_taken(const EpilogueKind& kind, float (*activate)(Epilogue, float)) {
  return is_as_ours(kind, epilogue_probe(kind).sums, results_of(kind, activate));
}

float loses_nan(Epilogue, float sum) { return sum > 0 ? sum : 0.0F; }
float gives_minus_zero(Epilogue, float sum) { return sum < 0 ? -0.0F : sum; }
float clips(Epilogue, float sum) { return sum < 0 ? 0.0F : std::min(sum, 65504.0F); }
float by_erf(Epilogue, float sum) { return 0.5F * sum * (1.0F + std::erf(sum * 0.70710678F)); }
float in_double(Epilogue, float sum) {
  const double x = static_cast<double>(sum);
  return static_cast<float>(0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))));
}
float in_float(Epilogue, float sum) {  // 1 + tanh rounds to steps of 2^-24
  return 0.5F * sum * (1.0F + std::tanh(0.79788456F * (sum + 0.044715F * sum * sum * sum)));
}
float by_coarse_tanh(Epilogue, float sum) {  // as far off as PTX lets tanh.approx.f32 be
  return in_double(Epilogue::tanh_gelu, sum) * (1.0F + 0.00048828125F);
}

TEST(LibraryEpilogue, IsTakenWhereItIsOurs) {
  for (const DType dtype : kTypes) {
    for (const bool has_bias : {false, true}) {
      EXPECT_TRUE(is_taken({Epilogue::relu, dtype, has_bias}, activated)) << name_of(dtype);
      EXPECT_TRUE(is_taken({Epilogue::tanh_gelu, dtype, has_bias}, activated)) << name_of(dtype);
      EXPECT_FALSE(is_taken({Epilogue::relu, dtype, has_bias}, loses_nan)) << name_of(dtype);
      EXPECT_FALSE(is_taken({Epilogue::relu, dtype, has_bias}, gives_minus_zero)) << name_of(dtype);
      EXPECT_FALSE(is_taken({Epilogue::relu, dtype, has_bias}, clips)) << name_of(dtype);
      EXPECT_FALSE(is_taken({Epilogue::tanh_gelu, dtype, has_bias}, by_erf)) << name_of(dtype);
      EXPECT_FALSE(is_taken({Epilogue::tanh_gelu, dtype, has_bias}, loses_nan)) << name_of(dtype);
    }
  }
}

TEST(LibraryEpilogue, GeluMayBeFourUnitsOffInItsType) {
  EXPECT_TRUE(is_taken({Epilogue::tanh_gelu, DType::bfloat16, true}, in_double));
  EXPECT_TRUE(is_taken({Epilogue::tanh_gelu, DType::float32, true}, in_double));
  EXPECT_TRUE(is_taken({Epilogue::tanh_gelu, DType::float32, true}, in_float));
  EXPECT_TRUE(is_taken({Epilogue::tanh_gelu, DType::bfloat16, true}, by_coarse_tanh));
  EXPECT_TRUE(is_taken({Epilogue::tanh_gelu, DType::float16, true}, by_coarse_tanh));
  EXPECT_FALSE(is_taken({Epilogue::tanh_gelu, DType::float32, true}, by_coarse_tanh));
}

TEST(LibraryEpilogue, ProbeHasTheSumsThatDecide) {
  for (const DType dtype : kTypes) {
    const std::vector<float> sums = epilogue_probe({Epilogue::relu, dtype, true}).sums;
    ASSERT_EQ(sums.size(), static_cast<size_t>(EpilogueProbe::kRows * EpilogueProbe::kColumns));
    const auto has = [&](auto predicate) { return std::any_of(sums.begin(), sums.end(), predicate); };
    EXPECT_TRUE(has([](float sum) { return std::isnan(sum); }));
    EXPECT_TRUE(has([](float sum) { return sum == std::numeric_limits<float>::infinity(); }));
    EXPECT_TRUE(has([](float sum) { return sum == -std::numeric_limits<float>::infinity(); }));
    EXPECT_TRUE(has([](float sum) { return sum == 0; }));
    EXPECT_TRUE(has([](float sum) { return sum < -10000 && std::isfinite(sum); }));
    EXPECT_TRUE(has([](float sum) { return sum < 0 && sum > -0.001F; }));
  }
}

// ---- The wiring, with the emulated device's library ----

class LibraryWithActivation {
 public:
  explicit LibraryWithActivation(float (*activate)(Epilogue, float)) {
    emulated_library().activate = activate;
    before_ = emulated_library().activated_products;
  }
  ~LibraryWithActivation() { emulated_library().activate = activated; }
  int64_t products() const { return emulated_library().activated_products - before_; }

 private:
  int64_t before_ = 0;
};

Tensor input(const Shape& shape, uint32_t seed) { return session_values::filled(shape, seed).tensor(); }

// Relu or GELU of a product with its bias, in `runs` runs of one session; x has a NaN.
Result<std::vector<float>> run(const std::string& activation, int runs) {
  using model_text::node;
  using model_text::value;
  const std::string name = "attribute { name: \"activation\" type: STRING s: \"Relu\" } ";
  const std::string product = activation == "relu"
                                  ? node("FusedGemm", {"x", "w"}, {"y"}, "domain: \"com.microsoft\" " + name)
                                  : node("GemmFastGelu", {"x", "w", "b"}, {"y"}, "domain: \"com.microsoft\" ");
  const std::string text =
      "ir_version: 8 opset_import { version: 17 } opset_import { domain: \"com.microsoft\" version: 1 } "
      "graph { name: \"g\" " +
      product + value("input", "x") + value("input", "w") + value("input", "b") + value("output", "y") + "}";
  const std::shared_ptr<const Model> model = PX_TRY(import_model(std::as_bytes(std::span(text)), "", "test"));
  const auto executor = tests::make_emulated_executor();
  const auto session = PX_TRY(executor->prepare(model, {}));
  Tensor x = input({5, 16}, 1);
  x.mutable_as<float>()[20] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Value> inputs{x, input({16, 7}, 2), input({7}, 3)};
  NullObserver nobody;
  std::vector<Value> outputs;
  for (int i = 0; i < runs; ++i) outputs = PX_TRY(session->run(inputs, nobody));
  const auto y = outputs[0].tensor().as<float>();
  return std::vector<float>(y.begin(), y.end());
}

void expect_near(const std::vector<float>& got, const std::vector<float>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(wanted[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << "element " << i;
    } else {
      EXPECT_NEAR(got[i], wanted[i], 1e-6) << "element " << i;
    }
  }
}

TEST(LibraryEpilogue, IsAskedForOnceAndThenDoesTheWork) {
  for (const std::string activation : {"relu", "gelu"}) {
    const LibraryWithActivation right(activated);
    const auto got = run(activation, 2);
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(right.products(), 1 + 2) << activation << ": a probe, and the product of each run";
    const LibraryWithActivation wrong(loses_nan);
    const auto ours = run(activation, 2);
    ASSERT_TRUE(ours.ok()) << ours.error().message;
    EXPECT_EQ(wrong.products(), 1) << activation << ": a probe, and our own kernels from then on";
    EXPECT_EQ(std::count_if(ours->begin(), ours->end(), [](float y) { return std::isnan(y); }), 7);
    expect_near(*got, *ours);
  }
}

TEST(LibraryEpilogue, IsKnownToItsQueueByTypeAndBias) {
  const LibraryWithActivation wrong(loses_nan);
  Queue<Emulated> queue;
  EXPECT_FALSE(has_epilogue(queue, {Epilogue::relu, DType::float16, true}).take());
  EXPECT_FALSE(has_epilogue(queue, {Epilogue::relu, DType::float16, true}).take());
  EXPECT_EQ(wrong.products(), 1);
  EXPECT_TRUE(has_epilogue(queue, {Epilogue::none, DType::float16, true}).take());
  emulated_library().activate = activated;
  EXPECT_TRUE(has_epilogue(queue, {Epilogue::relu, DType::float16, false}).take());
  EXPECT_FALSE(has_epilogue(queue, {Epilogue::relu, DType::float64, false}).take()) << "a type without such products";
  const KnownEpilogues wanted{{{Epilogue::relu, DType::float16, true}, false},
                              {{Epilogue::relu, DType::float16, false}, true},
                              {{Epilogue::relu, DType::float64, false}, false}};
  EXPECT_EQ(queue.known_epilogues(), wanted);
}

// In the settings that the dump of a run keeps.
TEST(LibraryEpilogue, IsRecordedInTheSettings) {
  const std::string all = "float32, float32 with a bias, float16, float16 with a bias, bfloat16, bfloat16 with a bias";
  const std::vector<std::pair<float (*)(Epilogue, float), std::string>> libraries{
      {activated, "relu: " + all + "; tanh gelu: " + all},
      {loses_nan, "relu: none; tanh gelu: none"},
      {by_coarse_tanh, "relu: none; tanh gelu: float16, float16 with a bias, bfloat16, bfloat16 with a bias"}};
  for (const auto& [activate, expected] : libraries) {
    const LibraryWithActivation given(activate);
    const auto executor = tests::make_emulated_executor();
    const auto model = model_text::model_of(model_text::node("Relu", {"x"}, {"y"}) + model_text::value("input", "x") +
                                            model_text::value("output", "y"));
    const RunInfo info = describe_run(*executor, {}, model);
    EXPECT_EQ(info.settings.at("activations of products"), expected);
  }
}

// An epilogue that was refused, or not yet asked for, is not reported as the library's.
TEST(LibraryEpilogue, TheWordsAreOfTheAcceptedAlone) {
  EXPECT_EQ(accepted_text({}), "relu: none; tanh gelu: none");
  EXPECT_EQ(
      accepted_text({{{Epilogue::relu, DType::bfloat16, true}, true}, {{Epilogue::relu, DType::float16, true}, false}}),
      "relu: bfloat16 with a bias; tanh gelu: none");
}

TEST(LibraryEpilogue, IsNotAskedForWhileTheQueueRecords) {
  Queue<Emulated> queue;
  ASSERT_TRUE(queue.begin_recording().ok());
  EXPECT_FALSE(has_epilogue(queue, {Epilogue::relu, DType::float32, true}).take());
  ASSERT_TRUE(queue.end_recording().ok());
  EXPECT_TRUE(queue.known_epilogues().empty());
  EXPECT_TRUE(has_epilogue(queue, {Epilogue::relu, DType::float32, true}).take());
}

}  // namespace
}  // namespace parallax::runtime::epilogue_test
