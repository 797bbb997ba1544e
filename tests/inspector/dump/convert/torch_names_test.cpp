// SPDX-License-Identifier: Apache-2.0
// Names that torch's modules and nodes have lead to the values of an exported graph, and what does not is said.
#include "inspector/dump/convert/torch_names.h"

#include "inspector/dump/convert/convert.h"
#include "inspector/dump/tensor_files/npy.h"
#include "inspector/model/io/export.h"
#include "inspector/model/link.h"
#include "tests/inspector/dump/support.h"
#include "tests/inspector/model/graph_builder.h"

namespace parallax::test {
namespace {

using dump::ForeignName;
using dump::match_torch_names;
using dump::TorchMatches;
using Names = std::map<std::string, std::string>;
using testing::GraphBuilder;
using testing::type_from_text;

// A graph as torch exports one: each node with its FX node and the modules around it.
class Exported {
 public:
  Exported() : builder_(21) { builder_.input("x", kType); }

  Exported& node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                 const std::string& modules, const std::string& fx_name, const std::string& type = kType) {
    builder_.node(op, inputs, {output}).declare(output, type);
    std::string scopes = "['";
    for (const char character : modules) scopes += character == ' ' ? std::string("', '") : std::string(1, character);
    builder_.last_node().metadata = {
        {"pkg.torch.onnx.name_scopes", scopes + "', '" + fx_name + "']"},
        {"pkg.torch.onnx.fx_node",
         "%" + fx_name + " : [num_users=1] = call_function[target=torch.ops.aten." + op + ".default](args = ())"}};
    return *this;
  }
  Exported& output(const std::string& name) { return builder_.output(name), *this; }

  Graph graph() const {
    Graph graph = builder_.graph();
    link_graph(graph);
    return graph;
  }

  static constexpr const char* kType = "float32[2,3]";

 private:
  GraphBuilder builder_;
};

TorchMatches matched(const Exported& exported, const std::vector<std::pair<std::string, std::string>>& names,
                     const std::vector<std::string>& taken = {}) {
  std::vector<ForeignName> foreign;
  for (const auto& [name, type] : names) foreign.push_back({name, type_from_text(type)});
  return match_torch_names(exported.graph(), foreign, taken);
}

constexpr const char* kType = Exported::kType;

TEST(TorchNames, AModuleIsTheValueThatLeavesItsLastNode) {
  Exported exported;
  exported.node("MatMul", {"x"}, "val_1", " encoder encoder.fc", "linear");
  exported.node("Add", {"val_1"}, "linear", " encoder encoder.fc", "linear");
  exported.node("Relu", {"linear"}, "relu", " encoder", "relu");
  exported.node("Reshape", {"relu"}, "view", " encoder", "view");
  exported.node("Tanh", {"view"}, "tanh", "", "tanh").output("tanh");
  EXPECT_EQ(matched(exported, {{"encoder.fc", kType}, {"encoder", kType}}).value_of,
            (Names{{"encoder.fc", "linear"}, {"encoder", "view"}}));
  const TorchMatches captured = matched(exported, {{"module(encoder.fc).call[0]//out", kType},
                                                   {"module(encoder).call[0]//out", kType},
                                                   {"module().call[0]//out", kType},
                                                   {"module().call[0]//in/args/0", kType}});
  EXPECT_EQ(captured.value_of, (Names{{"module(encoder.fc).call[0]//out", "linear"},
                                      {"module(encoder).call[0]//out", "view"},
                                      {"module().call[0]//out", "tanh"},
                                      {"module().call[0]//in/args/0", "x"}}));
  EXPECT_TRUE(captured.notes.empty());
}

TEST(TorchNames, PrefixesOfEitherSideAreTakenAway) {
  Exported exported;
  exported.node("Exp", {"x"}, "exp", " layers.0 layers.0.q", "exp").node("Tanh", {"exp"}, "tanh", " layers.0", "tanh");
  exported.output("tanh");
  EXPECT_EQ(matched(exported, {{"model.layers.0.q", kType}, {"model.layers.0", kType}}).value_of,
            (Names{{"model.layers.0.q", "exp"}, {"model.layers.0", "tanh"}}));
  EXPECT_EQ(matched(exported, {{"0.q", kType}, {"0", kType}}).value_of, (Names{{"0.q", "exp"}, {"0", "tanh"}}));
}

TEST(TorchNames, CallsOfAModuleAreToldApart) {
  Exported exported;
  exported.node("Exp", {"x"}, "exp", " act", "exp").node("Neg", {"exp"}, "neg", "", "neg");
  exported.node("Exp", {"neg"}, "exp_1", " act", "exp_1").node("Exp", {"exp_1"}, "exp_2", " twice", "exp_2");
  exported.node("Exp", {"exp_2"}, "exp_3", " twice", "exp_3").output("exp_3");
  EXPECT_EQ(matched(exported, {{"module(act).call[0]//out", kType},
                               {"module(act).call[1]//out", kType},
                               {"module(twice).call[0]//out", kType},
                               {"module(twice).call[1]//out", kType}})
                .value_of,
            (Names{{"module(act).call[0]//out", "exp"},
                   {"module(act).call[1]//out", "exp_1"},
                   {"module(twice).call[0]//out", "exp_2"},
                   {"module(twice).call[1]//out", "exp_3"}}));
  const TorchMatches plain = matched(exported, {{"act", kType}});
  EXPECT_TRUE(plain.value_of.empty());
  ASSERT_EQ(plain.notes.size(), 1U);
  EXPECT_NE(plain.notes[0].find("2 calls"), std::string::npos) << plain.notes[0];
}

TEST(TorchNames, SeveralOutputsAreFoundByTheirTypes) {
  Exported exported;
  exported.node("Exp", {"x"}, "keys", " attention", "exp")
      .node("Neg", {"keys"}, "mask", " attention", "neg", "bool[2]");
  exported.node("Tanh", {"keys"}, "states", " attention", "tanh", "float32[2,batch]");
  exported.node("Abs", {"states"}, "y", "", "abs")
      .node("Abs", {"mask"}, "z", "", "abs_1")
      .node("Abs", {"keys"}, "w", "", "abs_2");
  exported.output("y").output("z").output("w");
  const TorchMatches two = matched(exported, {{"module(attention).call[0]//out/0", "float32[2,7]"},
                                              {"module(attention).call[0]//out/1", "bool[2]"}});
  EXPECT_EQ(two.value_of,
            (Names{{"module(attention).call[0]//out/0", "states"}, {"module(attention).call[0]//out/1", "mask"}}));
  const TorchMatches alike =
      matched(exported, {{"module(attention).call[0]//out/0", kType}, {"module(attention).call[0]//out/1", kType}});
  EXPECT_TRUE(alike.value_of.empty());
  ASSERT_EQ(alike.notes.size(), 1U);
  EXPECT_NE(alike.notes[0].find("2 outputs of the module have its type"), std::string::npos) << alike.notes[0];
}

TEST(TorchNames, OutputsOfTheWholeModelGoByPosition) {
  Exported exported;
  exported.node("Exp", {"x"}, "exp", "", "exp").node("Tanh", {"x"}, "tanh", " act", "tanh");
  exported.output("tanh").output("exp");
  EXPECT_EQ(matched(exported, {{"module(net).call[0]//in/args/0", kType},
                               {"module(net).call[0]//out/0", kType},
                               {"module(net).call[0]//out/1", kType}})
                .value_of,
            (Names{{"module(net).call[0]//in/args/0", "x"},
                   {"module(net).call[0]//out/0", "tanh"},
                   {"module(net).call[0]//out/1", "exp"}}));
  EXPECT_TRUE(matched(exported, {{"module(net).call[0]//out", kType}}).value_of.empty())
      << "nothing says it is the whole";
}

TEST(TorchNames, NodesOfTheExportedProgramAreFoundWhereTheirValueWasRenamed) {
  Exported exported;
  exported.node("MatMul", {"x"}, "val_1", " fc", "linear_3").node("Add", {"val_1"}, "logits", " fc", "linear_3");
  exported.output("logits");
  EXPECT_EQ(matched(exported, {{"linear_3", kType}}).value_of, (Names{{"linear_3", "logits"}}));
  EXPECT_TRUE(matched(exported, {{"linear_3", "int64[4]"}}).value_of.empty()) << "of another type it is another value";
}

TEST(TorchNames, NoValueGetsTwoNames) {
  Exported exported;
  exported.node("Exp", {"x"}, "exp", " outer outer.inner", "exp").output("exp");
  const TorchMatches both = matched(exported, {{"outer", kType}, {"outer.inner", kType}});
  EXPECT_EQ(both.value_of, (Names{{"outer.inner", "exp"}}));
  EXPECT_EQ(both.notes.size(), 1U);
  EXPECT_TRUE(matched(exported, {{"outer.inner", kType}}, {"exp"}).value_of.empty());
}

TEST(TorchNames, WhatIsUnknownIsSaid) {
  Exported exported;
  exported.node("Exp", {"x"}, "exp", " outer", "exp").output("exp");
  const TorchMatches none = matched(exported, {{"module(dropout).call[0]//out", kType}, {"stranger", kType}});
  ASSERT_EQ(none.notes.size(), 1U);
  EXPECT_NE(none.notes[0].find("'module(dropout).call[0]//out' (no node of the graph belongs to this module"),
            std::string::npos)
      << none.notes[0];
  EXPECT_NE(none.notes[0].find("'stranger'"), std::string::npos) << none.notes[0];
  EXPECT_TRUE(matched(Exported(), {{"stranger", kType}}).notes.empty()) << "a graph without torch's metadata";
}

// From a tensor file, and from a dump of captured modules.
TEST(TorchNames, AnImportLocatesWhatHooksSaw) {
  const TemporaryFolder folder;
  GraphBuilder builder(21);
  builder.input("x", kType).node("Exp", {"x"}, {"exp"}).declare("exp", kType).output("exp");
  builder.last_node().name = "node_exp";
  builder.last_node().metadata = {{"pkg.torch.onnx.name_scopes", "['', 'act', 'exp']"}};
  ASSERT_OK(export_model(builder.model(), folder / "m.onnx"));
  const Tensor seen = random_tensor(DType::float32, {2, 3}, 3);
  ASSERT_OK(write_npz(folder / "hooks.npz", std::vector<NamedValue>{{"net.act", Value(seen)}}));
  const auto report = import_dump({folder / "hooks.npz", folder / "m.onnx", ""}, folder / "hooks.plx");
  ASSERT_OK(report);
  EXPECT_EQ(report->matched_by_metadata, 1);
  EXPECT_TRUE(report->notes.empty());
  const auto dump = open_dump(folder / "hooks.plx");
  const DumpEntry& entry = dump->entries()[static_cast<size_t>(dump->find("exp"))];
  EXPECT_EQ(entry.node, "node_exp");
  EXPECT_TRUE(entry.is_graph_output);

  ASSERT_OK(write_npz(folder / "captured.npz", std::vector<NamedValue>{{"module(net.act).call[0]//out", Value(seen)}}));
  ASSERT_OK(import_dump({folder / "captured.npz", "", ""}, folder / "captured.plx"));
  const auto again = import_dump({folder / "captured.plx", folder / "m.onnx", ""}, folder / "placed.plx");
  ASSERT_OK(again);
  EXPECT_EQ(again->matched_by_metadata, 1);
  EXPECT_GE(open_dump(folder / "placed.plx")->find("exp"), 0);
}

}  // namespace
}  // namespace parallax::test
