// SPDX-License-Identifier: Apache-2.0
// The report of `run` for a run that had to wait for the copies of its values: the counts with their execution, in
// JSON, and a sentence.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "inspector/render/report_json.h"
#include "inspector/workbench/reports.h"
#include "inspector/workbench/run.h"
#include "reference/reference.h"
#include "tests/runtime/emulated/emulated_executor.h"

namespace parallax {
namespace {

using nlohmann::json;

constexpr runtime::HostCopySizes kLargeCopies{size_t{1} << 20, size_t{64} << 10};

class CaptureReport : public ::testing::Test {
 protected:
  CaptureReport()
      : folder_(std::filesystem::temp_directory_path() /
                ("parallax_capture_report_test-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "chain.textproto") << model_of_20_nodes();
    request_.model = (folder_ / "chain.textproto").string();
    request_.options.rewrite.base = RewriteChoice::Base::none;
  }
  ~CaptureReport() override { std::filesystem::remove_all(folder_); }

  // 20 values of 1200 bytes, one after the other.
  static std::string model_of_20_nodes() {
    const std::string type = " type { tensor_type { elem_type: 1 shape { dim { dim_value: 300 } } } } } ";
    std::string text = "ir_version: 8 opset_import { version: 17 } graph { name: \"g\" ";
    for (int i = 0; i < 20; ++i) {
      text +=
          "node { op_type: \"Neg\" input: \"v" + std::to_string(i) + "\" output: \"v" + std::to_string(i + 1) + "\" } ";
    }
    return text + "input { name: \"v0\"" + type + "output { name: \"v20\"" + type + "}";
  }

  Result<RunResult> run(const runtime::HostCopySizes& sizes) const {
    return run_models(request_, [&](const std::string& name) -> Result<std::shared_ptr<Executor>> {
      if (name == "emulated") return std::shared_ptr<Executor>(tests::make_emulated_executor(sizes));
      return std::shared_ptr<Executor>(make_reference_executor(ReferencePrecision::declared));
    });
  }

  static bool has_note(const RunResult& result) {
    return std::ranges::any_of(result.notes,
                               [](const std::string& note) { return note.starts_with("emulated: the run waited "); });
  }

  std::filesystem::path folder_;
  RunRequest request_;
};

// Three values fill the ring: the run is soon ahead of the copies.
TEST_F(CaptureReport, SaysHowOftenARunWaited) {
  request_.executors = {"reference", "emulated"};
  const auto result = run(tests::kSmallCopies);
  ASSERT_TRUE(result.ok()) << result.error().message;
  const json executions = json::parse(comparison_to_json(*result->comparison))["executions"];
  ASSERT_EQ(executions.size(), 2U);
  EXPECT_FALSE(executions[0].contains("capture")) << "values of the reference are on the host";
  const json& capture = executions[1]["capture"];
  EXPECT_GT(capture["waits"], 0);
  EXPECT_GE(capture["copies"], 20);
  EXPECT_GE(capture["bytes"], 20 * 1200);
  EXPECT_EQ(capture["bytes_in_pieces"], 0);
  EXPECT_TRUE(capture["waited_ms"].is_number());
  EXPECT_TRUE(has_note(*result));
}

TEST_F(CaptureReport, IsPartOfARunWithOneSide) {
  request_.executors = {"emulated"};
  request_.dump_directory = folder_.string();
  const auto result = run(tests::kSmallCopies);
  ASSERT_TRUE(result.ok()) << result.error().message;
  const json execution = json::parse(single_run_to_json(*result))["execution"];
  EXPECT_GT(execution["capture"]["waits"], 0);
  EXPECT_EQ(execution["capture"]["waits"], result->execution.capture->waits);
}

// A kept run as the other side: the counts are those of today's run.
TEST_F(CaptureReport, IsPartOfARunNextToAKeptOne) {
  request_.executors = {"emulated"};
  request_.save_baseline = (folder_ / "kept.plx").string();
  ASSERT_TRUE(run(tests::kSmallCopies).ok());
  request_.baseline = std::exchange(request_.save_baseline, "");
  const auto result = run(tests::kSmallCopies);
  ASSERT_TRUE(result.ok()) << result.error().message;
  const json executions = json::parse(comparison_to_json(*result->comparison))["executions"];
  EXPECT_FALSE(executions[0].contains("capture"));
  EXPECT_GE(executions[1]["capture"]["copies"], 20) << "statistics of 20 values";
}

// Nothing waits where nothing is captured, and only the last copy is waited for where all copies have room.
TEST_F(CaptureReport, CountsNothingWhereNothingTravels) {
  request_.executors = {"emulated"};
  const auto uncaptured = run(tests::kSmallCopies);
  ASSERT_TRUE(uncaptured.ok()) << uncaptured.error().message;
  EXPECT_EQ(json::parse(single_run_to_json(*uncaptured))["execution"]["capture"]["waits"], 0);
  EXPECT_FALSE(has_note(*uncaptured));
  request_.dump_directory = folder_.string();
  const auto roomy = run(kLargeCopies);
  ASSERT_TRUE(roomy.ok()) << roomy.error().message;
  EXPECT_GE(roomy->execution.capture->copies, 20);
  EXPECT_EQ(roomy->execution.capture->bytes_in_pieces, 0);
}

}  // namespace
}  // namespace parallax
