// SPDX-License-Identifier: Apache-2.0
// A node run alone on the values of a run must repeat that run bit by bit: in the main graph, with its bodies, in a
// body.
#include "inspector/diff/localize/node_replay.h"

#include <cstring>

#include <gtest/gtest.h>

#include "inspector/executors/make_executor.h"
#include "inspector/model/io/import.h"
#include "inspector/workbench/inputs/inputs.h"
#include "tests/inspector/executors/recording_observer.h"

namespace parallax::diff {
namespace {

struct Recorded {
  std::shared_ptr<const Model> model;
  std::shared_ptr<Executor> executor;
  RecordingObserver values;
};

void run_sample(const std::string& sample, const std::string& executor, Recorded& recorded) {
  const std::string folder = std::string(PX_SOURCE_DIR) + "/samples/" + sample;
  recorded.model = import_model(folder + "/model.onnx").take();
  recorded.executor = make_executor(executor).take();
  InputRequest request;
  request.source = folder + "/test_data_set_0";
  const InputSet inputs = make_inputs(*recorded.model, request).take();
  RunOptions options;
  options.observe_all = true;
  const auto session = recorded.executor->prepare(recorded.model, options).take();
  ASSERT_TRUE(session->run(inputs.values, recorded.values).ok());
}

bool same_bits(const Value& a, const Value& b) {
  if (!a.is_tensor() || !b.is_tensor() || a.tensor().dtype() != b.tensor().dtype()) return false;
  if (!(a.tensor().shape() == b.tensor().shape())) return false;
  return a.tensor().size_bytes() == 0 ||
         std::memcmp(a.tensor().view().data, b.tensor().view().data, a.tensor().size_bytes()) == 0;
}

// The value that a graph after `prefix` calls so: its own, or that of a graph around it.
const Value& value_at(const Recorded& recorded, std::string prefix, const std::string& name) {
  static const Value absent;
  for (;;) {
    const auto found = recorded.values.values.find(prefix + escape_name(name));
    if (found != recorded.values.values.end()) return found->second;
    if (prefix.empty()) return absent;
    const size_t end = prefix.size() < 3 ? std::string::npos : prefix.rfind("//", prefix.size() - 3);
    prefix.resize(end == std::string::npos ? 0 : end + 2);
  }
}

// Replays every node of `graph` on the values after `prefix`; returns how many.
int replay_graph(const Recorded& recorded, const Graph& graph, const std::string& prefix, bool weights_stay) {
  int replayed = 0;
  for (const Node& node : graph.nodes) {
    NodeReplay replay(recorded.model, graph, node, recorded.executor);
    std::vector<Value> values;
    std::vector<bool> constants;
    for (const ValueId id : replay.reads()) {
      const ValueDef& definition = graph.values[static_cast<size_t>(id)];
      values.push_back(value_at(recorded, prefix, definition.name));
      constants.push_back(weights_stay && definition.initializer_index >= 0);
    }
    for (int round = 0; round < 2; ++round) {  // the second time in the session of the first
      const auto outputs = replay.run(values, constants);
      EXPECT_TRUE(outputs.ok()) << node.display_name << ": " << outputs.error().message;
      if (!outputs.ok()) return replayed;
      for (size_t index = 0; index < node.outputs.size(); ++index) {
        if (node.outputs[index] == kNoValue) continue;
        const std::string& name = graph.values[static_cast<size_t>(node.outputs[index])].name;
        EXPECT_TRUE(same_bits((*outputs)[index], value_at(recorded, prefix, name))) << prefix << name;
      }
    }
    ++replayed;
  }
  return replayed;
}

class NodeReplayOfSamples : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(NodeReplayOfSamples, RepeatsTheRun) {
  Recorded recorded;
  ASSERT_NO_FATAL_FAILURE(run_sample(GetParam().first, GetParam().second, recorded));
  EXPECT_GT(replay_graph(recorded, recorded.model->graph, "", false), 1);
  EXPECT_GT(replay_graph(recorded, recorded.model->graph, "", true), 1);
}

INSTANTIATE_TEST_SUITE_P(Samples, NodeReplayOfSamples,
                         ::testing::Values(std::pair{"greedy_decoder", "reference"},
                                           std::pair{"scan_filter", "reference"}, std::pair{"recurrent", "reference"},
                                           std::pair{"llama_layer", "cpu"}, std::pair{"greedy_decoder", "cpu"}));

TEST(NodeReplay, RunsNodesOfBodiesWithWhatTheyReadFromOutside) {
  Recorded recorded;
  ASSERT_NO_FATAL_FAILURE(run_sample("greedy_decoder", "reference", recorded));
  int replayed = 0;
  for (const Node& node : recorded.model->graph.nodes) {
    for (const Attribute& attribute : node.attributes) {
      const auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
      if (body == nullptr) continue;
      replayed += replay_graph(recorded, **body, escape_name(node.display_name) + ".body[1]//", false);
    }
  }
  EXPECT_GT(replayed, 3);
}

TEST(NodeReplay, FollowsADoubleOracleAndAChangedNode) {
  Recorded recorded;
  ASSERT_NO_FATAL_FAILURE(run_sample("llama_layer", "reference", recorded));
  const Graph& graph = recorded.model->graph;
  int changed = 0;
  for (const Node& node : graph.nodes) {
    if (node.op_type != "Softmax") continue;
    Node other = node;
    other.attributes.clear();
    other.attributes.push_back({"axis", AttributeType::int_, int64_t{1}, "", "", ""});
    std::shared_ptr<Executor> oracle = make_executor("reference:double").take();
    NodeReplay right(recorded.model, graph, node, oracle), wrong(recorded.model, graph, other, oracle);
    const Value& input = value_at(recorded, "", graph.values[static_cast<size_t>(right.reads().front())].name);
    const Value expected = right.run({&input, 1}).take().front();
    EXPECT_EQ(expected.tensor().dtype(), DType::float64);
    EXPECT_FALSE(same_bits(expected, wrong.run({&input, 1}).take().front()));
    ++changed;
  }
  EXPECT_GT(changed, 0);
}

}  // namespace
}  // namespace parallax::diff
