// SPDX-License-Identifier: Apache-2.0
// Two models next to each other: counterparts, differences, what is selected on both sides, weights as A, B and |A-B|.
#include <algorithm>

#include <gtest/gtest.h>

#include "inspector/base/mapped_file.h"
#include "tests/gui/viewmodel/person.h"

namespace parallax {
namespace {

using view_test::item_in;
using view_test::Person;
using view_test::sample;
using view_test::scratch;

// x -> Mul by a weight -> a Softmax -> in A a Relu that B lacks -> y; `vendor` is known to nobody.
std::string written(const std::string& name, const std::string& axis, const std::string& weight, bool has_relu,
                    const std::string& vendor = "") {
  std::string text = R"(ir_version: 8
opset_import { version: 17 }
opset_import { domain: "vendor" version: 1 }
graph {
  name: "pair"
  node { name: "scale" op_type: "Mul" input: "x" input: "w" output: "p" }
  node { name: "soft" op_type: "Softmax" input: "p" output: "q" attribute { name: "axis" type: INT i: AXIS } }
  MORE
  initializer { name: "w" dims: 4 data_type: 1 float_data: 1 float_data: 2 float_data: WEIGHT float_data: 4 }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } dim { dim_value: 4 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } dim { dim_value: 4 } } } } }
}
)";
  std::string last = "q";
  std::string more;
  if (has_relu) {
    more += R"(node { name: "clip" op_type: "Relu" input: "q" output: "r" })";
    last = "r";
  }
  more += R"(node { name: "end" op_type: ")" + (vendor.empty() ? std::string("Identity") : vendor) + R"(" input: ")" +
          last + R"(" output: "y")" + (vendor.empty() ? "" : R"( domain: "vendor")") + " }";
  for (const auto& [word, value] :
       {std::pair<std::string, std::string>{"AXIS", axis}, {"WEIGHT", weight}, {"MORE", more}})
    text.replace(text.find(word), word.size(), value);
  const std::string path = scratch(name + ".textproto");
  EXPECT_TRUE(write_file(path, text).ok());
  return path;
}

struct Two : Person {
  Two(const std::string& a, const std::string& b) : Person(std::vector<std::string>{a, b}) {}
};

Two different() { return {written("two_a", "0", "3", true), written("two_b", "1", "3.5", false)}; }

TEST(TwoModels, OpenWithTheirDifferencesAndTheFirstOneSelectedOnBothSides) {
  Two person = different();
  ASSERT_NE(person.viewer.models(), nullptr) << person.viewer.messages.size();
  const TwoModels& models = *person.viewer.models();
  EXPECT_FALSE(models.structure->is_same());
  EXPECT_EQ(person.viewer.left_tab, LeftTab::differences);
  EXPECT_EQ(person.viewer.graph.color_by(), ColorBy::structure);
  const auto shown = person.shown();
  EXPECT_EQ(shown["verdict"], "different");
  EXPECT_EQ(shown["selection"]["difference"], 0);
  EXPECT_EQ(shown["selection"]["item"], "scale");
  EXPECT_EQ(shown["selection"]["item_b"], "scale");
  EXPECT_EQ(shown["lists"]["difference_count"], models.differences.size());
  EXPECT_EQ(shown["graph"]["nodes"], 4);
  EXPECT_EQ(shown["graph_b"]["nodes"], 3);
  EXPECT_EQ(person.viewer.document()->title(), "A: two_a.textproto    B: two_b.textproto");
  EXPECT_EQ(person.viewer.run_form.against, person.viewer.document()->files.back());
}

TEST(TwoModels, AWeightThatDiffersOpensAsBothSidesAndTheirDifference) {
  Two person = different();
  EXPECT_EQ(person.path(), "w");
  const TensorPane& pane = person.viewer.tensor();
  ASSERT_TRUE(pane.model.has_value()) << pane.problem;
  ASSERT_TRUE(pane.model->has_b());
  EXPECT_EQ(pane.model->number(TensorMode::a, 2), 3);
  EXPECT_EQ(pane.model->number(TensorMode::b, 2), 3.5);
  EXPECT_EQ(pane.model->number(TensorMode::absolute, 2), 0.5);
  EXPECT_TRUE(person.press("1"));
  EXPECT_TRUE(person.press("4"));
  const InspectorView& view = person.viewer.inspector();
  const auto constant = std::ranges::find(view.sections, "Constant B", &InspectorSection::title);
  ASSERT_NE(constant, view.sections.end());
  const auto differ = std::ranges::find(constant->lines, "differ", &InspectorLine::key);
  ASSERT_NE(differ, constant->lines.end());
  EXPECT_EQ(differ->a, "1 of 4 elements");
}

TEST(TwoModels, NStepsThroughDifferencesAndStopsAtTheLast) {
  Two person = different();
  const size_t count = person.viewer.models()->differences.size();
  ASSERT_GE(count, 3U);
  for (size_t i = 1; i < count; ++i) {
    ASSERT_TRUE(person.press("N"));
    EXPECT_EQ(person.viewer.difference_at(), static_cast<int>(i));
  }
  EXPECT_FALSE(person.press("N"));
  EXPECT_TRUE(person.press("Shift+N"));
  EXPECT_EQ(person.viewer.difference_at(), static_cast<int>(count) - 2);
  EXPECT_TRUE(person.press("Home"));
  EXPECT_EQ(person.viewer.difference_at(), 0);
}

TEST(TwoModels, AttributesStandInTwoColumnsAndThoseThatDifferAreMarked) {
  Two person = different();
  ASSERT_TRUE(person.viewer.select_item(item_in(*person.viewer.document(), "soft")));
  const InspectorView& view = person.viewer.inspector();
  const auto attributes = std::ranges::find(view.sections, "Attributes", &InspectorSection::title);
  ASSERT_NE(attributes, view.sections.end());
  const auto axis = std::ranges::find(attributes->lines, "axis", &InspectorLine::key);
  ASSERT_NE(axis, attributes->lines.end());
  EXPECT_EQ(axis->a, "0");
  EXPECT_EQ(axis->b, "1");
  EXPECT_TRUE(axis->is_changed);
  const auto inputs = std::ranges::find(view.sections, "Inputs", &InspectorSection::title);
  ASSERT_NE(inputs, view.sections.end());
  EXPECT_TRUE(std::ranges::none_of(inputs->lines, &InspectorLine::is_changed));
}

TEST(TwoModels, WhatOneSideAloneHasIsSelectedThereAlone) {
  Two person = different();
  const Document& document = *person.viewer.document();
  ASSERT_TRUE(person.viewer.select_item(item_in(document, "clip")));
  EXPECT_EQ(person.viewer.item_b(), -1);
  EXPECT_EQ(person.viewer.graph.look(person.viewer.item()).badge, "only in A");
  Two swapped(written("two_b", "1", "3.5", false), written("two_a", "0", "3", true));
  const TwoModels& models = *swapped.viewer.models();
  const int32_t clip = item_in(*models.b, "clip");
  ASSERT_TRUE(swapped.viewer.select_item_b(clip));
  EXPECT_EQ(swapped.viewer.item(), -1);
  EXPECT_EQ(swapped.viewer.item_b(), clip);
  EXPECT_EQ(swapped.path(), "r");
  EXPECT_EQ(swapped.viewer.inspector().title, "clip");
  EXPECT_EQ(swapped.viewer.graph_b.look(clip).badge, "only in B");
  ASSERT_TRUE(swapped.press("Home"));
  ASSERT_TRUE(swapped.press("Alt+Left"));
  EXPECT_EQ(swapped.viewer.item_b(), clip);
  EXPECT_TRUE(swapped.viewer.select_path("r"));
  EXPECT_EQ(swapped.viewer.item_b(), clip);
}

TEST(TwoModels, SelectingInOneSelectsTheCounterpartInTheOther) {
  Two person = different();
  const TwoModels& models = *person.viewer.models();
  const int32_t end_a = item_in(*person.viewer.document(), "end"), end_b = item_in(*models.b, "end");
  ASSERT_TRUE(person.viewer.select_item(end_a));
  EXPECT_EQ(person.viewer.item_b(), end_b);
  ASSERT_TRUE(person.viewer.select_item_b(item_in(*models.b, "soft")));
  EXPECT_EQ(person.viewer.item(), item_in(*person.viewer.document(), "soft"));
  EXPECT_TRUE(person.press("Ctrl+Up"));  // walks in B
  EXPECT_EQ(person.viewer.item_b(), item_in(*models.b, "scale"));
  EXPECT_TRUE(person.viewer.select_path("x"));
  EXPECT_GE(person.viewer.item_b(), 0);
}

TEST(TwoModels, AModelAgainstItselfIsTheSame) {
  Two person(sample("resnet/model.onnx"), sample("resnet/model.onnx"));
  ASSERT_NE(person.viewer.models(), nullptr);
  EXPECT_EQ(person.viewer.models()->verdict_text(), "The two models are the same.");
  EXPECT_EQ(person.shown()["verdict"], "same");
  EXPECT_FALSE(person.press("N"));
  EXPECT_EQ(obstacle_to(person.viewer, *command_for_key("N")), "the two models are the same");
  const TwoModels& models = *person.viewer.models();
  for (size_t i = 0; i < models.b_of_a.size(); ++i) {
    const GraphItem& item = models.b->items->items()[i];
    if (item.kind == GraphItem::Kind::node && item.detail == "Constant") continue;
    EXPECT_EQ(models.b_of_a[i], static_cast<int32_t>(i)) << item.title;
  }
  for (const ValueRow& row : person.viewer.document()->rows) EXPECT_FALSE(row.is_only_b) << row.path;
}

TEST(TwoModels, OpeningABlockOpensItsCounterpart) {
  Two person(sample("greedy_decoder/model.onnx"), sample("greedy_decoder/model.onnx"));
  const int32_t loop = item_in(*person.viewer.document(), "decode");
  ASSERT_TRUE(person.viewer.select_item(loop));
  const bool was_open = person.viewer.graph.is_open(loop);
  EXPECT_EQ(person.viewer.graph_b.is_open(person.viewer.item_b()), was_open);
  ASSERT_TRUE(person.press("Enter"));
  EXPECT_EQ(person.viewer.graph.is_open(loop), !was_open);
  EXPECT_EQ(person.viewer.graph_b.is_open(person.viewer.item_b()), !was_open);
}

TEST(TwoModels, LinksOfAnExportLeadToWhatIsDrawn) {
  Two person(sample("greedy_decoder/model.onnx"), sample("greedy_decoder/model.onnx"));
  const auto links = [&] {
    const std::string path = scratch("links.svg");
    EXPECT_TRUE(person.viewer.export_to(path, ExportSubject::graph).ok());
    const std::string drawn = *read_file(path), mark = "href=\"#";
    int64_t count = 0;
    for (size_t at = drawn.find(mark); at != std::string::npos; at = drawn.find(mark, at + 1), ++count) {
      const std::string id = drawn.substr(at + mark.size(), drawn.find('"', at + mark.size()) - at - mark.size());
      EXPECT_NE(drawn.find(" id=\"" + id + "\""), std::string::npos) << id;
    }
    return count;
  };
  ASSERT_TRUE(find_command("graph.open_all")->run(person.viewer));
  const int64_t open = links();
  person.viewer.graph_b.set_open(person.viewer.models()->b->items->find_node("", "decode"), false);
  const int64_t closed = links();
  EXPECT_GT(closed, 0);
  EXPECT_LT(closed, open);
}

TEST(TwoModels, AWeightThatBAloneHasIsCountedWhole) {
  Two person(written("two_c", "0", "3", false), sample("cnn/model.onnx"));
  const Document& b = *person.viewer.models()->b;
  const auto weight = std::ranges::find_if(b.rows, [](const ValueRow& row) { return row.weight >= 0; });
  ASSERT_NE(weight, b.rows.end());
  ASSERT_TRUE(person.viewer.select_path_in_b(weight->path));
  const TensorPane& pane = person.viewer.tensor();
  ASSERT_TRUE(pane.model.has_value()) << pane.problem;
  EXPECT_FALSE(pane.weight.statistics.has_value());
  EXPECT_TRUE(pane.counts_whole());
}

TEST(TwoModels, OperatorsThatNobodyKnowsAreComparedToo) {
  Two person(written("vendor_a", "0", "3", false, "Gadget"), written("vendor_b", "0", "3", false, "Widget"));
  ASSERT_NE(person.viewer.models(), nullptr);
  EXPECT_FALSE(person.viewer.models()->structure->is_same());
  Two same(written("vendor_a", "0", "3", false, "Gadget"), written("vendor_c", "0", "3", false, "Gadget"));
  ASSERT_NE(same.viewer.models(), nullptr);
  EXPECT_TRUE(same.viewer.models()->structure->is_same());
}

TEST(TwoModels, AModelAndADumpAreRefusedWithOneSentence) {
  const std::string dump = view_test::plain_values().a, model = sample("cnn/model.onnx");
  const auto opened = open_document({model, dump});
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message.find("two files must be two dumps or two models"), std::string::npos);
}

TEST(TwoModels, OneModelAfterTwoIsShownAlone) {
  Two person = different();
  person.viewer.open({sample("cnn/model.onnx")});
  person.viewer.wait_idle();
  EXPECT_EQ(person.viewer.models(), nullptr);
  EXPECT_FALSE(person.viewer.graph_b.has_graph());
  EXPECT_EQ(person.viewer.graph.color_by(), ColorBy::op);
  EXPECT_EQ(person.viewer.left_tab, LeftTab::table);
  EXPECT_EQ(person.viewer.run_form.against, "");
}

TEST(TwoModels, ASearchFindsValuesThatBAloneHas) {
  Two person(written("two_b", "1", "3.5", false), written("two_a", "0", "3", true));
  person.viewer.set_search("op:Relu");
  ASSERT_EQ(person.viewer.table_rows().size(), 1U);
  const int32_t clip = item_in(*person.viewer.models()->b, "clip");
  EXPECT_TRUE(person.viewer.is_hit(clip, true));
  EXPECT_FALSE(person.viewer.is_hit(item_in(*person.viewer.document(), "soft")));
  EXPECT_TRUE(person.press("Ctrl+J"));
  EXPECT_EQ(person.viewer.item_b(), clip);
}

}  // namespace
}  // namespace parallax
