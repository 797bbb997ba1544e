// SPDX-License-Identifier: Apache-2.0
// Profiles of a model with a loop: every node is there, in its place, as often as it ran.
#include "inspector/workbench/profile.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "inspector/executors/make_executor.h"

namespace parallax {
namespace {

using nlohmann::json;

Result<ProfileResult> profile_decoder(const std::string& executor, int64_t iterations) {
  RunRequest request;
  request.model = std::string(PX_SOURCE_DIR) + "/samples/greedy_decoder/model.onnx";
  request.executors = {executor};
  request.inputs.source = std::string(PX_SOURCE_DIR) + "/samples/greedy_decoder/test_data_set_0";
  return profile_model(request, iterations, [](const std::string& name) { return make_executor(name); });
}

class Profile : public testing::TestWithParam<const char*> {};

TEST_P(Profile, CountsEveryIterationOfABody) {
  const auto result = profile_decoder(GetParam(), 3);
  ASSERT_TRUE(result.ok()) << result.error().message;
  std::map<std::string, const NodeProfile*> nodes;
  for (const NodeProfile& node : result->nodes) nodes[node.scope + node.node] = &node;
  ASSERT_TRUE(nodes.contains("decode"));
  ASSERT_TRUE(nodes.contains("decode.body[*]//move"));
  EXPECT_EQ(nodes["decode"]->calls, 1);
  const NodeProfile& inner = *nodes["decode.body[*]//move"];
  EXPECT_GT(inner.calls, 1);
  EXPECT_EQ(inner.op, "MatMul");
  EXPECT_EQ(inner.flops % inner.calls, 0);
  EXPECT_GT(inner.flops, 0);
  EXPECT_GT(inner.ms, 0);
  double of_nodes = 0;
  double share = 0;
  for (const NodeProfile& node : result->nodes) of_nodes += node.ms;
  for (const OperatorProfile& op : result->ops) share += op.share;
  EXPECT_LE(of_nodes, result->total_ms);
  EXPECT_NEAR(share, 1, 1e-9);
}

TEST_P(Profile, TraceHoldsTheLastRun) {
  const auto result = profile_decoder(GetParam(), 2);
  ASSERT_TRUE(result.ok()) << result.error().message;
  int64_t calls = 0;
  for (const NodeProfile& node : result->nodes) calls += node.calls;
  const json events = json::parse(result->trace)["traceEvents"];
  EXPECT_EQ(static_cast<int64_t>(events.size()), calls);
  std::map<std::string, json> by_name;
  for (const json& event : events) by_name[event["name"]] = event;
  const json& loop = by_name.at("decode");
  const json& inside = by_name.at("decode.body[*]//move");
  EXPECT_LE(loop["ts"].get<double>(), inside["ts"].get<double>());
  EXPECT_GE(loop["ts"].get<double>() + loop["dur"].get<double>(),
            inside["ts"].get<double>() + inside["dur"].get<double>());
}

// A fused node is named by its parts and has all their work; nothing is counted twice.
TEST(ProfileOfFusedNodes, NamesAndCountsTheirParts) {
  const auto profile = [](const std::string& executor) {
    RunRequest request;
    request.model = std::string(PX_SOURCE_DIR) + "/samples/cnn/model.onnx";
    request.executors = {executor};
    return profile_model(request, 1, [](const std::string& name) { return make_executor(name); });
  };
  const auto fused = profile("cpu");
  const auto unfused = profile("reference");
  ASSERT_TRUE(fused.ok()) << fused.error().message;
  ASSERT_TRUE(unfused.ok()) << unfused.error().message;
  const auto flops_of = [](const ProfileResult& result) {
    int64_t sum = 0;
    for (const NodeProfile& node : result.nodes) sum += node.flops;
    return sum;
  };
  EXPECT_LT(fused->nodes.size(), unfused->nodes.size());
  EXPECT_EQ(flops_of(*fused), flops_of(*unfused));
  const auto joined = std::ranges::find_if(fused->nodes, [](const NodeProfile& node) { return !node.sources.empty(); });
  ASSERT_NE(joined, fused->nodes.end());
  EXPECT_GT(joined->sources.size(), 1U);
  EXPECT_EQ(joined->sources.back(), joined->node);
  EXPECT_NE(joined->op.find("Conv+"), std::string::npos) << joined->op;
  EXPECT_GT(joined->bytes, 0);
  EXPECT_NE(profile_to_json(*fused).find("\"sources\""), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Executors, Profile, testing::Values("reference", "cpu"));

}  // namespace
}  // namespace parallax
