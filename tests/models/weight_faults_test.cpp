// SPDX-License-Identifier: Apache-2.0
// One element of one weight is changed; `run A --against B` must end with exit code 1 and name the node that reads the
// weight.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"
#include "tests/models/program.h"

namespace parallax::end_to_end {
namespace {

struct Weight {
  std::string name;
  std::string reader;             // display name of the first node that reads it
  std::vector<std::string> made;  // that node's outputs
};

const Graph* body_of(const Attribute& attribute) {
  const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
  return graph != nullptr ? graph->get() : nullptr;
}

// The first node that computes with the value: an If or Loop whose body reads it hands on to the node in there.
const Node* reader_of(const Graph& graph, const std::string& name, const Graph** where) {
  for (const NodeId id : graph.order) {
    const Node& node = graph.nodes[static_cast<size_t>(id)];
    for (const ValueId input : node.inputs) {
      if (input != kNoValue && graph.values[static_cast<size_t>(input)].name == name) {
        *where = &graph;
        return &node;
      }
    }
    for (const Attribute& attribute : node.attributes) {
      const Graph* body = body_of(attribute);
      const Node* inner = body != nullptr ? reader_of(*body, name, where) : nullptr;
      if (inner != nullptr) return inner;
    }
  }
  return nullptr;
}

// Float weights whose every element has an effect. A row of a table that no index picks does not: Gather is left out.
std::vector<Weight> weights_of(const Model& model) {
  std::vector<Weight> weights;
  for (const StoredTensor& stored : model.graph.initializers) {
    if (stored.tensor.dtype() != DType::float32 || stored.tensor.element_count() < 2) continue;
    const Graph* where = nullptr;
    const Node* reader = reader_of(model.graph, stored.name, &where);
    if (reader == nullptr || reader->op_type == "Gather") continue;
    Weight weight{stored.name, reader->display_name, {}};
    for (const ValueId output : reader->outputs) {
      if (output != kNoValue) weight.made.push_back(where->values[static_cast<size_t>(output)].name);
    }
    weights.push_back(weight);
  }
  return weights;
}

// A copy of the model with one element of the weight, about `part` quarters into it, moved by the size of the largest.
Status write_changed(const Model& model, const std::string& weight_name, size_t part, const std::string& path) {
  Model changed = model;
  for (StoredTensor& stored : changed.graph.initializers) {
    if (stored.name != weight_name) continue;
    Tensor tensor = PX_TRY(stored.tensor.clone());
    const std::span<float> values = tensor.mutable_as<float>();
    float largest = 0.25F;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    values[(part * values.size() / 4 + part) % values.size()] += largest;
    stored.tensor = tensor;
  }
  return export_model(changed, path);
}

// True where one of the values that the consumer computes is off as well, in some iteration when it is in a body.
bool diverges(const nlohmann::json& document, const std::vector<std::string>& names) {
  for (const nlohmann::json& value : document.at("values")) {
    const std::string path = value.at("path");
    const size_t frames = path.rfind("//");
    const std::string name = frames == std::string::npos ? path : path.substr(frames + 2);
    if (value.at("verdict") == "diverged" && std::find(names.begin(), names.end(), name) != names.end()) return true;
  }
  return false;
}

class WeightFaults : public testing::TestWithParam<const char*> {};

TEST_P(WeightFaults, AreFoundAtTheirReader) {
  constexpr size_t kTried = 5;
  const std::string name = GetParam();
  const std::string original = sample(name + "/model.onnx");
  const auto model = import_model(original);
  ASSERT_TRUE(model.ok());
  const std::vector<Weight> weights = weights_of(*model.value());
  ASSERT_FALSE(weights.empty());
  const ScratchFolder scratch;
  for (size_t i = 0; i < std::min(kTried, weights.size()); ++i) {
    const Weight& weight = weights[i * weights.size() / std::min(kTried, weights.size())];
    // One element may meet nothing but zeros (a hidden unit that Relu switched off); three in other rows and columns do
    // not.
    bool led_astray = false;
    for (size_t part = 1; part <= 3; ++part) {
      const std::string changed = scratch.file("changed.onnx");
      ASSERT_TRUE(write_changed(*model.value(), weight.name, part, changed).ok());
      const Answer answer =
          run_json({"run", original, "--against", changed, "--inputs", sample(name + "/test_data_set_0")});
      ASSERT_EQ(answer.exit_code, 1) << weight.name << "\n" << answer.command << "\n" << answer.messages;
      const bool is_observable = diverges(answer.document, weight.made);
      led_astray = led_astray || is_observable;
      const nlohmann::json& first = answer.document.at("first_divergence");
      EXPECT_EQ(first.at("path"), weight.name) << answer.command;
      if (is_observable) {
        EXPECT_EQ(first.at("node"), weight.reader) << weight.name << "\n" << answer.command;
      }
    }
    EXPECT_TRUE(led_astray) << weight.name << " of " << original;
  }
}

INSTANTIATE_TEST_SUITE_P(All, WeightFaults,
                         testing::Values("llama_layer", "cnn", "resnet", "mobilenet", "recurrent", "greedy_decoder",
                                         "scan_filter"),
                         [](const testing::TestParamInfo<const char*>& parameter) { return parameter.param; });

TEST(FaultPair, PartsWhereTheConverterWentWrong) {
  for (const std::string executors : {"reference", "cpu", "reference,cpu"}) {
    const Answer answer =
        run_json({"run", sample("fault_pair/A.onnx"), "--against", sample("fault_pair/B.onnx"), "--with", executors,
                  "--inputs", sample("fault_pair/test_data_set_0"), "--observe-all"});
    ASSERT_EQ(answer.exit_code, 1) << answer.command << "\n" << answer.messages;
    const nlohmann::json& first = answer.document.at("first_divergence");
    EXPECT_EQ(first.at("node"), "block1/depthwise_bn") << answer.command;
    EXPECT_EQ(first.at("op"), "BatchNormalization");
    EXPECT_EQ(first.at("path"), "block1/depthwise_bn_output");
    EXPECT_EQ(value_at(answer.document, "block1/depthwise_output").at("verdict"), "pass") << answer.command;
  }
}

// By default the node at fault is fused into its neighbors, and its value does not exist: the cause names it all the
// same.
TEST(FaultPair, TheCauseIsNamedInsideAFusedNode) {
  for (const std::string executors : {"reference", "cpu", "reference,cpu"}) {
    const Answer answer = run_json({"run", sample("fault_pair/A.onnx"), "--against", sample("fault_pair/B.onnx"),
                                    "--with", executors, "--inputs", sample("fault_pair/test_data_set_0")});
    ASSERT_EQ(answer.exit_code, 1) << answer.command << "\n" << answer.messages;
    const nlohmann::json& causes = answer.document.at("causes");
    ASSERT_FALSE(causes.empty()) << answer.command;
    EXPECT_EQ(causes[0].at("node"), "block1/depthwise_bn") << answer.command;
    EXPECT_NE(causes[0].at("why").get<std::string>().find("epsilon"), std::string::npos) << causes[0];
  }
}

TEST(FaultPair, AModelAgainstItselfPasses) {
  const Answer answer = run_json({"run", sample("fault_pair/A.onnx"), "--against", sample("fault_pair/A.onnx"),
                                  "--inputs", sample("fault_pair/test_data_set_0")});
  EXPECT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.messages;
  EXPECT_TRUE(answer.document.at("first_divergence").is_null());
}

}  // namespace
}  // namespace parallax::end_to_end
