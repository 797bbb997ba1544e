// SPDX-License-Identifier: Apache-2.0
// A model alone: its weights and their figures, the borders of its blocks, its properties, and search in them.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "gui/viewmodel/viewer.h"
#include "inspector/base/mapped_file.h"
#include "inspector/dump/model_weights.h"
#include "inspector/executors/make_executor.h"
#include "inspector/workbench/operator_help.h"
#include "inspector/workbench/tensor_view.h"
#include "tests/gui/viewmodel/view_fixture.h"

namespace parallax {
namespace {

constexpr const char* kModelAlone = R"(ir_version: 8
producer_name: "maker"
producer_version: "2.1"
domain: "org.example"
model_version: 7
doc_string: "A small network."
metadata_props { key: "license" value: "Apache-2.0" }
opset_import { version: 17 }
opset_import { domain: "my" version: 1 }
functions {
  name: "Twice" domain: "my" input: "v" output: "w"
  opset_import { version: 17 }
  node { name: "sum" op_type: "Add" input: "v" input: "v" output: "inner" }
  node { name: "pass" op_type: "Identity" input: "inner" output: "w" }
}
graph {
  name: "main"
  node { name: "/enc/first" op_type: "Gemm" input: "x" input: "W" input: "bias" output: "h" doc_string: "From line 12."
         attribute { name: "alpha" type: FLOAT f: 0.5 } metadata_props { key: "origin" value: "layer 1" } }
  node { name: "/enc/second" op_type: "Relu" input: "h" output: "r" }
  node { name: "/enc/third" op_type: "Add" input: "r" input: "sparse" output: "e" }
  node { name: "offset" op_type: "Constant" output: "c"
         attribute { name: "value" type: TENSOR t { dims: 2 data_type: 1 float_data: 4 float_data: 6 } } }
  node { name: "shifted" op_type: "Add" input: "e" input: "c" output: "s" }
  node { name: "branch" op_type: "If" input: "flag" output: "b"
    attribute { name: "then_branch" type: GRAPH g { name: "then" output { name: "t" }
      node { name: "scale" op_type: "Mul" input: "s" input: "factor" output: "u" }
      node { name: "add" op_type: "Add" input: "u" input: "bias" output: "t" }
      initializer { name: "factor" data_type: 1 float_data: 3 } } }
    attribute { name: "else_branch" type: GRAPH g { name: "else" output { name: "f" }
      node { name: "keep" op_type: "Identity" input: "s" output: "f" } } } }
  node { name: "twice" op_type: "Twice" domain: "my" input: "b" output: "d" }
  node { name: "soft" op_type: "Softmax" input: "d" output: "y" }
  initializer { name: "W" dims: 3 dims: 2 data_type: 1 float_data: [1, 2, 3, 4, 5, 6] }
  initializer { name: "bias" dims: 2 data_type: 1 float_data: [1, -1] }
  sparse_initializer { dims: 2
    values { name: "sparse" dims: 1 data_type: 1 float_data: 9 }
    indices { dims: 1 data_type: 7 int64_data: 1 } }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "max" } dim { dim_value: 3 } } } } }
  input { name: "flag" type { tensor_type { elem_type: 9 shape { } } } }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_param: "max" } dim { dim_value: 2 } } } } }
}
)";

std::string written_model(const std::string& name, const std::string& text) {
  const std::string path = view_test::scratch(name);
  EXPECT_TRUE(write_file(path, text).ok());
  return path;
}

class ViewModel : public testing::Test {
 protected:
  explicit ViewModel(const std::string& file = written_model("model_alone.textproto", kModelAlone))
      : viewer_(make_executor) {
    viewer_.open({file});
    viewer_.wait_idle();
    EXPECT_TRUE(viewer_.messages.empty()) << viewer_.messages.front();
  }
  std::string path() const { return viewer_.row() < 0 ? "" : row().path; }
  const ValueRow& row() const { return viewer_.document()->rows[static_cast<size_t>(viewer_.row())]; }
  const InspectorSection* section(std::string_view title) const {
    const auto& sections = viewer_.inspector().sections;
    const auto found = std::ranges::find(sections, title, &InspectorSection::title);
    return found == sections.end() ? nullptr : &*found;
  }
  std::string line(std::string_view title, std::string_view key) const {
    if (section(title) == nullptr) return "no section";
    const auto& lines = section(title)->lines;
    const auto found = std::ranges::find(lines, key, key_text);
    return found == lines.end() ? "no line" : found->a;
  }
  std::vector<std::string> links(std::string_view title) const {
    std::vector<std::string> links;
    if (section(title) == nullptr) return links;
    for (const InspectorLine& line : section(title)->lines) links.push_back(line.link);
    return links;
  }
  std::vector<std::string> found(std::string_view words) const {
    std::vector<std::string> paths;
    for (const int32_t row : find_rows(*viewer_.document(), SearchQuery::parse(words).take()))
      paths.push_back(viewer_.document()->rows[static_cast<size_t>(row)].path);
    return paths;
  }
  int32_t node(const std::string& scope, const std::string& name) const {
    return viewer_.document()->items->find_node(scope, name);
  }
  using Texts = std::vector<std::string>;

  Viewer viewer_;
};

TEST_F(ViewModel, EveryStoredWeightIsARowWithItsElements) {
  const auto weights = weights_of(viewer_.document()->model).take();
  ASSERT_EQ(weights->entries().size(), 5U);  // W, bias, sparse, factor, and c of the Constant
  for (const DumpEntry& entry : weights->entries()) {
    ASSERT_TRUE(viewer_.select_path(entry.path)) << entry.path;
    ASSERT_TRUE(viewer_.tensor().model.has_value()) << entry.path;
    EXPECT_EQ(viewer_.tensor().model->type_text(), to_string(entry.type));
    const Tensor expected = selected_tensor(*weights, weights->find(entry.path, 0), "").take();
    for (int64_t element = 0; element < expected.element_count(); ++element)
      EXPECT_EQ(viewer_.tensor().model->number(TensorMode::a, element),
                expected.as<float>()[static_cast<size_t>(element)]);
    EXPECT_EQ(viewer_.inspector().command, "parallax tensor " + weights->path() + " " + shell_word(entry.path));
  }
  EXPECT_EQ(found("is:weight").size(), 5U);
}

TEST_F(ViewModel, AWeightHasStatisticsAHistogramAndSlices) {
  ASSERT_TRUE(viewer_.select_path("W"));
  EXPECT_EQ(line("Statistics", "count"), "6");
  EXPECT_EQ(line("Statistics", "min"), "1");
  EXPECT_EQ(line("Statistics", "max"), "6");
  EXPECT_EQ(line("Statistics", "mean"), "3.5");
  EXPECT_EQ(viewer_.inspector().sections[1].title, "Statistics");  // before the node that reads it
  const SliceHistogram histogram = viewer_.tensor().model->histogram(TensorMode::a, 6);
  EXPECT_EQ(histogram.a, std::vector<int64_t>(6, 1));
  EXPECT_EQ(viewer_.tensor().model->slice_text(), ":,:");
  ASSERT_TRUE(viewer_.go_to_index("2,0").ok());
  EXPECT_EQ(viewer_.tensor().model->describe(viewer_.tensor().element).a, "5");
  ASSERT_TRUE(viewer_.select_path("y"));
  EXPECT_EQ(section("Statistics"), nullptr);
  EXPECT_FALSE(viewer_.tensor().model.has_value());
}

TEST_F(ViewModel, AWeightIsOpenedFromTheNodeThatReadsItAlsoFromABody) {
  ASSERT_TRUE(viewer_.select_item(node("", "/enc/first")));
  EXPECT_EQ(links("Inputs"), (Texts{"x", "W", "bias"}));
  ASSERT_TRUE(viewer_.select_path("bias"));
  EXPECT_EQ(viewer_.item(), node("", "/enc/first"));  // it stays in sight
  ASSERT_TRUE(viewer_.select_item(node("branch.then//", "add")));
  EXPECT_EQ(links("Inputs"), (Texts{"branch.then//u", "bias"}));  // of the graph around it
  ASSERT_TRUE(viewer_.select_item(node("branch.then//", "scale")));
  EXPECT_EQ(links("Inputs"), (Texts{"s", "branch.then//factor"}));
  ASSERT_TRUE(viewer_.select_path("branch.then//factor"));
  EXPECT_EQ(viewer_.tensor().model->number(TensorMode::a, 0), 3);
}

TEST(ViewModelLoop, TheWeightOfABodyIsOneRowUnderBothOfItsPaths) {
  std::string text = R"(ir_version: 8 opset_import { version: 17 } graph { name: "g"
    node { name: "loop" op_type: "Loop" input: "n" input: "" input: "x" output: "y"
      attribute { name: "body" type: GRAPH g { name: "body"
        node { name: "again" op_type: "Identity" input: "c" output: "d" }
        node { name: "plus" op_type: "Add" input: "a" input: "w" output: "b" }
        initializer { name: "w" data_type: 1 float_data: 2 }
        input { name: "i" type { tensor_type { elem_type: 7 shape { } } } }
        input { name: "c" type { tensor_type { elem_type: 9 shape { } } } }
        input { name: "a" type { tensor_type { elem_type: 1 shape { } } } }
        output { name: "d" type { tensor_type { elem_type: 9 shape { } } } }
        output { name: "b" type { tensor_type { elem_type: 1 shape { } } } } } } }
    input { name: "n" type { tensor_type { elem_type: 7 shape { } } } }
    input { name: "x" type { tensor_type { elem_type: 1 shape { } } } }
    output { name: "y" type { tensor_type { elem_type: 1 shape { } } } } })";
  Viewer viewer;
  viewer.open({written_model("loop_weight.textproto", text)});
  viewer.wait_idle();
  ASSERT_TRUE(viewer.select_path("loop.body[*]//w"));
  const int32_t row = viewer.row();
  EXPECT_TRUE(viewer.tensor().model.has_value());
  EXPECT_NE(viewer.inspector().command.find("loop.body[0]//w"), std::string::npos);  // as the command knows it
  ASSERT_TRUE(viewer.select_path("loop.body[0]//w"));
  EXPECT_EQ(viewer.row(), row);
}

TEST(ViewModelMissing, AWeightWithoutItsFileSaysWhyAndHasItsType) {
  std::string text = kModelAlone;
  const std::string inline_data = R"(name: "bias" dims: 2 data_type: 1 float_data: [1, -1])";
  text.replace(text.find(inline_data), inline_data.size(),
               R"(name: "bias" dims: 2 data_type: 1 data_location: EXTERNAL
                  external_data { key: "location" value: "gone.data" })");
  Viewer viewer;
  viewer.open({written_model("missing.textproto", text)});
  viewer.wait_idle();
  ASSERT_TRUE(viewer.select_path("bias")) << viewer.messages.front();
  EXPECT_FALSE(viewer.tensor().model.has_value());
  EXPECT_NE(viewer.tensor().problem.find("gone.data"), std::string::npos) << viewer.tensor().problem;
  const InspectorSection& value = viewer.inspector().sections.front();
  EXPECT_EQ(value.lines[1].a, "float32 2");
  EXPECT_EQ(value.lines.back().a, viewer.tensor().problem);
  EXPECT_EQ(value.lines.back().kind, InspectorLine::Kind::bad);
  ASSERT_TRUE(viewer.select_path("W"));
  EXPECT_TRUE(viewer.tensor().model.has_value());
}

TEST_F(ViewModel, ABlockHasTheValuesThatCrossItsBorder) {
  const int32_t block = viewer_.document()->items->item(node("", "/enc/first")).parent;
  ASSERT_GT(block, 0);
  ASSERT_TRUE(viewer_.select_item(block));
  EXPECT_EQ(links("Inputs"), Texts{"x"});
  EXPECT_EQ(links("Outputs"), Texts{"e"});
  auto weights = links("Weights");
  std::ranges::sort(weights);
  EXPECT_EQ(weights, (Texts{"W", "bias", "sparse"}));
  EXPECT_EQ(path(), "e");
  EXPECT_EQ(viewer_.item(), block);
}

TEST_F(ViewModel, AnIfAndACallHaveTheirOwnOutputs) {
  ASSERT_TRUE(viewer_.select_item(node("", "branch")));
  EXPECT_EQ(path(), "b");
  EXPECT_EQ(links("Inputs"), Texts{"flag"});
  auto outer = links("Read by its bodies");
  std::ranges::sort(outer);
  EXPECT_EQ(outer, (Texts{"bias", "s"}));
  EXPECT_EQ(links("Outputs"), Texts{"b"});
  ASSERT_TRUE(viewer_.select_item(node("", "twice")));
  EXPECT_EQ(path(), "d");
  EXPECT_EQ(links("Inputs"), Texts{"b"});
  EXPECT_EQ(links("Outputs"), Texts{"d"});
  const int32_t body = viewer_.document()->items->item(node("", "branch")).children.front();
  ASSERT_TRUE(viewer_.select_item(body));
  EXPECT_EQ(path(), "branch.then//t");
  EXPECT_EQ(links("Outputs"), Texts{"branch.then//t"});
}

TEST(ViewModelDump, ALoopAndItsBodyShowTheirOutputsInTheChosenIteration) {
  Viewer viewer(make_executor);
  viewer.open({view_test::loop_fault().a});
  viewer.wait_idle();
  const auto path = [&] { return viewer.document()->rows[static_cast<size_t>(viewer.row())].path; };
  const int32_t loop = viewer.graph.items().find_node("", "decode");
  ASSERT_TRUE(viewer.select_item(loop));
  const GraphItem& item = viewer.graph.items().item(loop);
  EXPECT_EQ(path(), value_at(*item.graph, item.graph->nodes[static_cast<size_t>(item.node)].outputs[0]).name);
  viewer.set_iteration(1);
  ASSERT_TRUE(viewer.select_item(item.children.front()));
  EXPECT_TRUE(path().starts_with("decode.body[1]//")) << path();
}

TEST_F(ViewModel, WithNothingSelectedTheModelsPropertiesAreShown) {
  EXPECT_EQ(line("Model", "producer"), "maker 2.1");
  EXPECT_EQ(line("Model", "IR version"), "8");
  EXPECT_EQ(line("Model", "opset"), "ai.onnx 17");
  EXPECT_EQ(line("Model", "domain"), "org.example");
  EXPECT_EQ(line("Model", "version"), "7");
  EXPECT_EQ(line("Model", "nodes"), "8, 13 with bodies and calls");
  EXPECT_EQ(line("Model", "parameters"), "10");  // 6 + 2, one stored of the sparse, one in a body
  EXPECT_EQ(line("Metadata", "license"), "Apache-2.0");
  EXPECT_EQ(line("Documentation", ""), "A small network.");
  EXPECT_EQ(line("Inputs", "0"), "x  float32[max,3]");
  EXPECT_EQ(line("Outputs", "0"), "y  float32[max,2]");
  const std::string title = viewer_.inspector().title;
  ASSERT_TRUE(viewer_.select_path("y"));
  EXPECT_EQ(section("Model"), nullptr);
  ASSERT_TRUE(find_command("graph.up")->run(viewer_));  // the graph around everything
  EXPECT_EQ(viewer_.inspector().title, title);
  EXPECT_EQ(line("Model", "IR version"), "8");
}

TEST_F(ViewModel, ANodeHasSchemaNamesDefaultsDocumentationAndHelp) {
  ASSERT_TRUE(viewer_.select_item(node("", "/enc/first")));
  EXPECT_EQ(line("Inputs", "0 A"), "x  float32[max,3]");
  EXPECT_EQ(line("Inputs", "2 C"), "[1,-1]  float32[2]");
  EXPECT_EQ(line("Outputs", "0 Y"), "h  float32[max,2]");
  EXPECT_EQ(line("Attributes", "alpha"), "0.5");
  EXPECT_EQ(line("Attributes", "beta"), "1  (default)");
  EXPECT_EQ(line("Documentation", ""), "From line 12.");
  EXPECT_EQ(line("Metadata", "origin"), "layer 1");
  EXPECT_EQ(line("Operator help", ""), *operator_to_text("Gemm-13"));
  EXPECT_FALSE(section("Operator help")->is_open);
  ASSERT_TRUE(viewer_.select_item(node("", "twice")));
  EXPECT_EQ(section("Operator help"), nullptr);  // a function of the model is no operator
}

TEST_F(ViewModel, SearchFindsAttributesAnyDimensionAndWeights) {
  EXPECT_EQ(found("attr:alpha=0.5"), Texts{"h"});
  EXPECT_EQ(found("attr:ALPHA"), Texts{"h"});
  EXPECT_EQ(found("attr:alpha=0.25"), Texts{});
  EXPECT_EQ(found("attr:axis=-1"), Texts{"y"});  // the default
  EXPECT_EQ(found("attr:axis"), Texts{});        // it is not written
  EXPECT_EQ(found("shape:?x3"), (Texts{"x"}));
  EXPECT_EQ(found("shape:maxx3"), (Texts{"x"}));
  EXPECT_EQ(found("shape:3x? is:weight"), Texts{"W"});
  EXPECT_EQ(found("shape:?x?x?"), Texts{});
  EXPECT_EQ(found("shape:?x2 op:Softmax"), Texts{"y"});
  EXPECT_EQ(found("fact"), Texts{"branch.then//factor"});
  EXPECT_EQ(SearchQuery::parse("is:large").error().code, ErrorCode::usage);
  viewer_.set_search("W is:weight");
  EXPECT_TRUE(viewer_.is_hit(node("", "/enc/first")));  // which reads it
}

}  // namespace
}  // namespace parallax
