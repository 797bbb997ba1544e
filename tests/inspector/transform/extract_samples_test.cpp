// SPDX-License-Identifier: Apache-2.0
// Parts of the sample models must pass as backend tests on their own, wherever they are cut.
#include <gtest/gtest.h>

#include "inspector/transform/part.h"
#include "inspector/workbench/backend_test.h"
#include "inspector/workbench/transforms/extract.h"
#include "tests/inspector/executors/recording_observer.h"
#include "tests/inspector/transform/models.h"

namespace parallax {
namespace {

using testing::executors;
using testing::Folder;

// The paths of all that nodes compute, as one run computes it.
std::vector<std::string> computed_paths(const std::string& sample) {
  const auto model = import_model(testing::sample(sample) + "/model.onnx").take();
  const auto executor = make_executor("reference").take();
  InputRequest request;
  request.source = testing::sample(sample) + "/test_data_set_0";
  const InputSet inputs = make_inputs(*model, request).take();
  RecordingObserver seen;
  const auto session = executor->prepare(model, {}).take();
  EXPECT_TRUE(session->run(inputs.values, seen).ok());
  std::vector<std::string> paths;
  for (const auto& [path, value] : seen.values) {
    const auto located = transform::locate_value(model, path);
    EXPECT_TRUE(located.ok()) << path;
    if (located.ok() && located->location.graph().values[static_cast<size_t>(located->id)].producer != kNoNode)
      paths.push_back(path);
  }
  return paths;
}

ExtractRequest request_for(const std::string& sample, std::vector<std::string> from, const std::string& to,
                           const Folder& folder) {
  ExtractRequest request;
  request.run.model = testing::sample(sample) + "/model.onnx";
  request.run.executors = {"reference"};
  request.run.inputs.source = testing::sample(sample) + "/test_data_set_0";
  request.from = std::move(from);
  request.to = {to};
  request.directory = folder.file("part");
  return request;
}

void expect_passes(const Folder& folder, const std::string& what) {
  for (const char* executor : {"reference", "cpu"}) {
    BackendTestRequest test;
    test.folders = {folder.file("part")};
    test.executor = executor;
    test.strict = test.executor != "reference";  // which computed the values; another one rounds in its own way
    const auto result = run_backend_tests(test, executors());
    ASSERT_TRUE(result.ok()) << what << ": " << result.error().message;
    ASSERT_EQ(result->cases.size(), 1U);
    EXPECT_EQ(result->cases[0].status, CaseStatus::passed)
        << what << " on " << executor << ": " << result->cases[0].reason;
  }
}

class ExtractSamples : public ::testing::TestWithParam<const char*> {};

TEST_P(ExtractSamples, PassOnTheirOwn) {
  constexpr size_t kCuts = 6;
  const std::string sample = GetParam();
  const std::vector<std::string> paths = computed_paths(sample);
  ASSERT_GE(paths.size(), kCuts);
  const auto model = import_model(testing::sample(sample) + "/model.onnx").take();
  for (size_t cut = 0; cut < kCuts; ++cut) {
    const std::string& to = paths[cut * (paths.size() - 1) / (kCuts - 1)];
    const Folder folder("samples");
    const auto whole = extract_part(request_for(sample, {}, to, folder), executors());
    ASSERT_TRUE(whole.ok()) << to << ": " << whole.error().message;
    expect_passes(folder, to);
    // The node that makes it, alone.
    const auto located = transform::locate_value(model, to).take();
    const Graph& graph = located.location.graph();
    const NodeId producer = graph.values[static_cast<size_t>(located.id)].producer;
    std::vector<std::string> from;
    for (const auto& input : transform::part_of_nodes(located.location, {producer}).inputs) from.push_back(input.path);
    if (from.empty()) continue;
    const auto alone = extract_part(request_for(sample, from, to, folder), executors());
    ASSERT_TRUE(alone.ok()) << to << ": " << alone.error().message;
    EXPECT_EQ(alone->part.nodes.size(), 1U) << to;
    expect_passes(folder, to + " alone");
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExtractSamples,
                         ::testing::Values("cnn", "greedy_decoder", "llama_layer", "mobilenet", "recurrent", "resnet",
                                           "scan_filter"));

TEST(ExtractPart, TellsHowOftenABodyRan) {
  const Folder folder("iterations");
  const auto result = extract_part(request_for("greedy_decoder", {}, "decode.body[99]//scaled", folder), executors());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::usage);
  EXPECT_NE(result.error().message.find("node 'decode' ran"), std::string::npos) << result.error().message;
}

TEST(ExtractPart, RoundsWhatIsCarriedWider) {
  const Folder folder("double");
  ExtractRequest request = request_for("cnn", {}, computed_paths("cnn").front(), folder);
  request.run.executors = {"reference:double"};
  const auto result = extract_part(request, executors());
  ASSERT_TRUE(result.ok()) << result.error().message;
  expect_passes(folder, "computed in double");
}

}  // namespace
}  // namespace parallax
