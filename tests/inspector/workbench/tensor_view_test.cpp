// SPDX-License-Identifier: Apache-2.0
// The output of `tensor` for a value: samples, histograms.
#include "inspector/workbench/tensor_view.h"

#include <complex>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "inspector/dump/dump_writer.h"

namespace parallax::test {
namespace {

// A dump of samples of at most 1024 elements: "large" has more, "small" has fewer.
class SampledValues : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = std::filesystem::temp_directory_path().string() + "/parallax-tensor-view-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    DumpWriterOptions options;
    options.level = CaptureLevel::sample;
    const auto writer = DumpWriter::create(folder_ + "/s.plx", options).take();
    ASSERT_TRUE(writer->begin_run({"test", "none", {}, nullptr, ""}).ok());
    show(*writer, 0, "large", {100, 100});
    show(*writer, 1, "small", {8, 16});
    ASSERT_TRUE(writer->end_run(true).ok());
    ASSERT_TRUE(writer->finish().ok());
    dump_ = DumpReader::open(folder_ + "/s.plx").take();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static void show(DumpWriter& writer, int32_t id, const std::string& name, const Shape& shape) {
    Tensor tensor = Tensor::zeros(DType::float32, shape).take();
    std::iota(tensor.mutable_as<float>().begin(), tensor.mutable_as<float>().end(), 0.0F);
    ValueInfo value_info;
    value_info.id = id;
    value_info.name = name;
    value_info.escaped_name = name;
    const FrameStack frames;
    ASSERT_TRUE(writer.observe({value_info, frames, Value(tensor), nullptr, nullptr}).ok());
  }

  std::string folder_;
  std::shared_ptr<const DumpReader> dump_;
};

TEST_F(SampledValues, ASliceOfAPartIsRefused) {
  for (const std::string slice : {"3", "3,3", "5000"}) {
    const auto refused = tensor_to_json(*dump_, 0, {slice, false, false});
    ASSERT_FALSE(refused.ok()) << slice;
    EXPECT_EQ(refused.error().code, ErrorCode::usage);
    EXPECT_NE(refused.error().message.find("a sample of 1024 elements was kept"), std::string::npos);
    EXPECT_FALSE(tensor_to_text(*dump_, 0, {slice, false, false}).ok());
  }
  EXPECT_FALSE(selected_tensor(*dump_, 0, "").ok());
  const auto text = tensor_to_text(*dump_, 0, {"", true, true});
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("the histogram is of the sample"), std::string::npos) << *text;
}

TEST_F(SampledValues, ASampleOfAllElementsIsTheTensor) {
  const auto json = nlohmann::json::parse(*tensor_to_json(*dump_, 1, {"3,:2", false, false}));
  EXPECT_EQ(json["values"], nlohmann::json({48.0, 49.0}));
  EXPECT_FALSE(json.contains("level"));
  const auto whole = selected_tensor(*dump_, 1, "");
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  EXPECT_EQ(whole->shape(), (Shape{8, 16}));
}

TEST(Histogram, HoldsTheWholeRangeOfNumbers) {
  const auto wide = make_histogram(Tensor::vector<double>(std::vector<double>{1e308, -1e308, 1e308}), 4);
  EXPECT_EQ(wide.counts, (std::vector<int64_t>{1, 0, 0, 2}));
  const auto narrow = make_histogram(Tensor::vector<double>(std::vector<double>{0, 5e-324, 0}), 2);
  EXPECT_EQ(narrow.counts, (std::vector<int64_t>{2, 1}));
  const auto equal = make_histogram(Tensor::vector<double>(std::vector<double>{3, 3}), 2);
  EXPECT_EQ(equal.counts, (std::vector<int64_t>{2, 0}));
}

TEST(Histogram, CountsBothPartsOfComplexNumbers) {
  Tensor tensor = Tensor::zeros(DType::complex64, {2}).take();
  const auto parts = tensor.mutable_as<std::complex<float>>();
  parts[0] = {0, 3};
  parts[1] = {1, 4};
  const auto histogram = make_histogram(tensor, 4);
  EXPECT_EQ(histogram.high, 4);
  EXPECT_EQ(histogram.counts, (std::vector<int64_t>{1, 1, 0, 2}));
}

}  // namespace
}  // namespace parallax::test
