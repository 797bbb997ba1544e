// SPDX-License-Identifier: Apache-2.0
// Scopes from torch's metadata, from node names, and source lines.
#include "inspector/model/scope_tree.h"

#include <map>
#include <numeric>

#include <gtest/gtest.h>

namespace parallax {
namespace {

Node node_with(std::string name, Metadata metadata = {}) {
  Node node;
  node.name = std::move(name);
  node.metadata = std::move(metadata);
  return node;
}

Graph graph_of(std::vector<Node> nodes) {
  Graph graph;
  graph.nodes = std::move(nodes);
  graph.order.resize(graph.nodes.size());
  std::iota(graph.order.begin(), graph.order.end(), 0);
  return graph;
}

// Path of each scope -> "parent's path|name|class".
std::map<std::string, std::string> described(const ScopeTree& tree) {
  std::map<std::string, std::string> text;
  for (const Scope& scope : tree.scopes) {
    const std::string parent = scope.parent < 0 ? "-" : tree.scopes[static_cast<size_t>(scope.parent)].path;
    text[scope.path] = parent + "|" + scope.name + "|" + scope.class_name;
  }
  return text;
}

using Described = std::map<std::string, std::string>;

constexpr const char* kScopes = "pkg.torch.onnx.name_scopes";
constexpr const char* kClasses = "pkg.torch.onnx.class_hierarchy";

TEST(ScopeTree, ReadsTorchsLists) {
  const Graph graph = graph_of({
      node_with("n0", {{kScopes, "['', 'lm', 'lm.layers.0', 'lm.layers.0.attn', 'linear']"},
                       {kClasses, "['__main__.Step', 'a.b.LM', 'a.b.Layer', 'a.b.Attention', 'aten.linear.default']"}}),
      node_with("n1", {{kScopes, R"(["L['self']", "L['self'].lm", 'add'])"}}),
      node_with("n2", {{kScopes, "['_empty_nn_module_stack_from_metadata_hook', 'sym_size']"}}),
  });
  const ScopeTree tree = build_scope_tree(graph);
  EXPECT_EQ(described(tree), (Described{{"", "-||Step"},
                                        {"lm", "|lm|LM"},
                                        {"lm.layers.0", "lm|layers.0|Layer"},
                                        {"lm.layers.0.attn", "lm.layers.0|attn|Attention"}}));
  EXPECT_EQ(tree.scopes[static_cast<size_t>(tree.scope_of_node[0])].path, "lm.layers.0.attn");
  EXPECT_EQ(tree.scopes[static_cast<size_t>(tree.scope_of_node[1])].path, "lm");
  EXPECT_EQ(tree.scope_of_node[2], 0);
}

TEST(ScopeTree, ReadsTheNamespaceWhereThereAreNoLists) {
  const Graph graph =
      graph_of({node_with("n", {{"namespace", ": m.Net/conv1: torch.nn.Conv2d/convolution: aten.conv2d.default"}})});
  EXPECT_EQ(described(build_scope_tree(graph)), (Described{{"", "-||Net"}, {"conv1", "|conv1|Conv2d"}}));
}

TEST(ScopeTree, ReadsSlashesThenDotsInNames) {
  const Graph graph =
      graph_of({node_with("/lm/layers.0/MatMul_1"), node_with("lm.layers.1.Add"), node_with("plain"), node_with("")});
  EXPECT_EQ(described(build_scope_tree(graph)),
            (Described{{"", "-||"}, {"lm", "|lm|"}, {"lm.layers.0", "lm|layers.0|"}, {"lm.layers.1", "lm|layers.1|"}}));
}

// A module that another one calls (a shared embedding) stands where its own path says.
TEST(ScopeTree, ASharedModuleKeepsItsPosition) {
  const Graph graph = graph_of({node_with("n", {{kScopes, "['', 'decoder', 'shared', 'embedding']"}})});
  EXPECT_EQ(described(build_scope_tree(graph)), (Described{{"", "-||"}, {"shared", "|shared|"}}));
}

TEST(ScopeTree, NodesStandInExecutionOrderAndParentsBeforeChildren) {
  Graph graph = graph_of({node_with("a/b/x"), node_with("a/b/y"), node_with("a/z")});
  graph.order = {2, 1, 0};
  const ScopeTree tree = build_scope_tree(graph);
  for (size_t i = 1; i < tree.scopes.size(); ++i) EXPECT_LT(tree.scopes[i].parent, static_cast<int32_t>(i));
  EXPECT_EQ(tree.scopes[static_cast<size_t>(tree.scope_of_node[0])].nodes, (std::vector<NodeId>{1, 0}));
}

TEST(ScopeTree, DamagedListsFallBackToTheName) {
  for (const char* damaged : {"['a', 'b", "[a, b]", "[", "", "[]", "{'a'}"}) {
    const Graph graph = graph_of({node_with("s/n", {{kScopes, damaged}})});
    EXPECT_EQ(described(build_scope_tree(graph)).count("s"), 1u) << damaged;
  }
}

TEST(SourceOf, GivesTheModuleAndTheInnermostLineOfTheModelsOwnCode) {
  const char* trace =
      "File \"/home/me/model.py\", line 11, in forward\n    return self.k(x)\n"
      "  File \"/usr/lib/python3/site-packages/torch/nn/modules/linear.py\", line 134, in forward\n    return "
      "F.linear(x)";
  const SourceLocation source =
      source_of(node_with("n", {{kScopes, "['', 'encoder.0.k', 'linear']"}, {"pkg.torch.onnx.stack_trace", trace}}));
  EXPECT_EQ(source.module, "encoder.0.k");
  EXPECT_EQ(source.line, "model.py:11");
}

TEST(SourceOf, GivesTheOperatorOfTheExportedProgram) {
  const auto operator_name = [](Metadata metadata) {
    return source_of(node_with("n", std::move(metadata))).operator_name;
  };
  EXPECT_EQ(operator_name({{"namespace", ": m.Net/attn: m.Attention/softmax_1: aten.softmax.int"}}),
            "aten.softmax.int");
  EXPECT_EQ(operator_name({{kClasses, "['m.Net', 'torch.nn.Linear', 'aten.linear.default']"}}), "aten.linear.default");
  EXPECT_EQ(operator_name({{"pkg.torch.onnx.fx_node",
                            "%var : [num_users=1] = call_function[target=torch.ops.prims.var.default](args = (%x,))"}}),
            "prims.var.default");
  EXPECT_EQ(operator_name({{"namespace", ": m.Net/getitem: <built-in function getitem>"}}), "");
  EXPECT_EQ(operator_name({{"namespace", ""}, {kClasses, "[]"}, {"pkg.torch.onnx.fx_node", "%x : placeholder"}}), "");
}

TEST(TorchModulesOf, ListsTheModulesAroundANodeAndNothingForOthers) {
  EXPECT_EQ(torch_modules_of(node_with("n", {{kScopes, "['', 'decoder', 'shared', 'embedding']"}})),
            (std::vector<std::string>{"", "decoder", "shared"}));
  EXPECT_TRUE(torch_modules_of(node_with("a/b/Split_3")).empty());
}

TEST(FxNameOf, ReadsTheNodeOrTheLastScope) {
  EXPECT_EQ(fx_name_of(node_with("n", {{"pkg.torch.onnx.fx_node", "%linear_3 : [num_users=1] = call_function[...]"}})),
            "linear_3");
  EXPECT_EQ(fx_name_of(node_with("n", {{kScopes, "['', 'fc', 'linear_3']"}})), "linear_3");
  EXPECT_EQ(fx_name_of(node_with("plain")), "");
}

TEST(SourceOf, IsEmptyWhereNothingIsKnown) {
  const SourceLocation made_up =
      source_of(node_with("n", {{"pkg.torch.onnx.stack_trace", "File \"<eval_with_key>.4\", line 5, in forward"}}));
  EXPECT_EQ(made_up.line, "");
  EXPECT_EQ(made_up.module, "");
}

}  // namespace
}  // namespace parallax
