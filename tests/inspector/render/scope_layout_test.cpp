// SPDX-License-Identifier: Apache-2.0
// Nested layout and the items it draws: members within their groups, wires downward, blocks that are alike drawn alike.
#include "inspector/render/scope_layout.h"

#include <algorithm>
#include <span>

#include <gtest/gtest.h>

#include "inspector/model/io/import.h"
#include "inspector/render/scope_sections.h"

namespace parallax {
namespace {

std::shared_ptr<const GraphItems> items_of(const std::string& sample, int32_t section = 200) {
  const auto model = import_model(std::string(PX_SOURCE_DIR) + "/samples/" + sample + "/model.onnx").take();
  return GraphItems::build(model, section).take();
}

std::vector<bool> all_open(const GraphItems& items) { return std::vector<bool>(items.items().size(), true); }

const SceneBox& box_of(const Scene& scene, int32_t item) {
  return scene.boxes[static_cast<size_t>(scene.box_of_item[static_cast<size_t>(item)])];
}

bool overlap(const SceneBox& a, const SceneBox& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

// Requirements on any picture.
void check_scene(const GraphItems& items, const Scene& scene) {
  for (const SceneBox& box : scene.boxes) {
    const int32_t parent = items.item(box.item).parent;
    if (parent > 0) {
      const SceneBox& around = box_of(scene, parent);
      EXPECT_GE(box.x, around.x);
      EXPECT_GT(box.y, around.y);
      EXPECT_LE(box.x + box.width, around.x + around.width + 0.1F);
      EXPECT_LE(box.y + box.height, around.y + around.height + 0.1F);
    }
    for (const SceneBox& other : scene.boxes) {
      if (other.item == box.item || items.item(other.item).parent != parent) continue;
      EXPECT_FALSE(overlap(box, other)) << items.item(box.item).title << " " << items.item(other.item).title;
    }
  }
  for (const SceneWire& wire : scene.wires) {
    if (wire.kind != EdgeKind::led) continue;
    ASSERT_GE(wire.points.size(), 2U);
    for (size_t i = 1; i < wire.points.size(); ++i) EXPECT_LE(wire.points[i - 1].y, wire.points[i].y + 0.01F);
    const SceneBox &from = box_of(scene, wire.from), &to = box_of(scene, wire.to);
    EXPECT_NEAR(wire.points.front().y, from.y + from.height, 0.1);
    EXPECT_NEAR(wire.points.back().y, to.y, 0.1);
  }
}

TEST(SceneMaker, KeepsItsPromisesOpenAndClosed) {
  for (const char* sample : {"llama_layer", "mobilenet", "greedy_decoder", "scan_filter", "resnet"}) {
    SCOPED_TRACE(sample);
    const auto items = items_of(sample);
    SceneMaker maker(items);
    check_scene(*items, maker.make(all_open(*items)));
    check_scene(*items, maker.make(std::vector<bool>(items->items().size(), false)));
  }
}

TEST(SceneMaker, AnyChoiceOfOpenGroupsKeepsThem) {
  const auto items = items_of("llama_layer", 12);
  SceneMaker maker(items);
  for (size_t seed = 1; seed < 24; ++seed) {
    std::vector<bool> open(items->items().size());
    for (size_t i = 0; i < open.size(); ++i) open[i] = (i * 7919 + seed * 104729) % 3 != 0;
    check_scene(*items, maker.make(open));
  }
}

TEST(SceneMaker, GivesTheSameCoordinatesAgain) {
  const auto items = items_of("mobilenet");
  const Scene first = SceneMaker(items).make(all_open(*items)), second = SceneMaker(items).make(all_open(*items));
  ASSERT_EQ(first.boxes.size(), second.boxes.size());
  for (size_t i = 0; i < first.boxes.size(); ++i) {
    EXPECT_EQ(first.boxes[i].x, second.boxes[i].x);
    EXPECT_EQ(first.boxes[i].y, second.boxes[i].y);
  }
}

TEST(SceneMaker, EveryWireOfClosedGroupsEndsAtWhatIsDrawn) {
  const auto items = items_of("mobilenet");
  const Scene scene = SceneMaker(items).make(std::vector<bool>(items->items().size(), false));
  EXPECT_LT(scene.boxes.size(), items->items().size());
  for (const SceneWire& wire : scene.wires) {
    EXPECT_GE(scene.box_of_item[static_cast<size_t>(wire.from)], 0);
    EXPECT_GE(scene.box_of_item[static_cast<size_t>(wire.to)], 0);
    EXPECT_NE(wire.from, wire.to);
  }
}

TEST(GraphItems, HoldEveryNodeOnceAndBodiesBelowTheirNode) {
  const auto items = items_of("greedy_decoder");
  const int32_t loop = items->find_node("", "decode");
  ASSERT_GE(loop, 0);
  const int32_t inside = items->find_node("decode.body[*]//", "score_state");
  ASSERT_GE(inside, 0);
  EXPECT_TRUE(items->is_inside(inside, loop));
  EXPECT_FALSE(items->is_inside(loop, inside));
  EXPECT_EQ(items->find_node("", "score_state"), -1);
  int32_t nodes = 0;
  for (const GraphItem& item : items->items()) nodes += item.kind == GraphItem::Kind::node;
  EXPECT_EQ(items->item(0).node_count, nodes);
}

TEST(GraphItems, ValuesFromOutsideReachIntoBodies) {
  const auto items = items_of("greedy_decoder");
  const int32_t loop = items->find_node("", "decode");
  const int32_t norm = items->find_node("", "norm");
  const bool feeds =
      std::ranges::any_of(items->wires(), [&](const GraphWire& w) { return w.from == norm && w.to == loop; });
  EXPECT_TRUE(feeds);
}

std::shared_ptr<const GraphItems> items_of_text(const std::string& nodes) {
  const std::string text = "ir_version: 8 opset_import { version: 17 } graph { name: \"g\" " + nodes +
                           "input { name: \"x\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } } } } } "
                           "output { name: \"y\" type { tensor_type { elem_type: 1 } } } }";
  return GraphItems::build(import_model(std::as_bytes(std::span<const char>(text)), "", "m.textproto").take()).take();
}

std::string constant(const std::string& name, const std::string& value) {
  return "node { op_type: \"Constant\" name: \"" + name + "\" output: \"" + name + "\" attribute { name: \"value" +
         value + " } } ";
}

TEST(GraphItems, ConstantsAreFoldedIntoTheirReaders) {
  const auto items = items_of_text(constant("c", "_ints\" type: INTS ints: 4 ints: 1") +
                                   constant("k", "\" type: TENSOR t { data_type: 1 float_data: 0.5 }") +
                                   "node { op_type: \"Reshape\" name: \"r\" input: \"x\" input: \"c\" output: \"p\" } "
                                   "node { op_type: \"Mul\" name: \"m\" input: \"p\" input: \"k\" output: \"q\" } "
                                   "node { op_type: \"Add\" name: \"a\" input: \"k\" input: \"q\" output: \"y\" } ");
  EXPECT_EQ(items->item(items->find_node("", "r")).constants_text, "[4,1]");
  EXPECT_EQ(items->item(items->find_node("", "m")).constants_text, "0.5");
  EXPECT_EQ(items->item(items->find_node("", "a")).constants_text, "0.5");
  const int32_t shared = items->find_node("", "k");
  EXPECT_TRUE(items->item(shared).is_folded);
  EXPECT_EQ(items->item(shared).parent, items->find_node("", "m"));
  EXPECT_EQ(items->item(0).node_count, 5);
  const Scene scene = SceneMaker(items).make(all_open(*items));
  EXPECT_EQ(scene.boxes.size(), 5U);  // x, three nodes, y
  EXPECT_EQ(scene.box_of_item[static_cast<size_t>(shared)], -1);
  EXPECT_EQ(scene.shown_as[static_cast<size_t>(shared)], items->find_node("", "m"));
  const SceneBox &plain = box_of(scene, items->find_input("", "x")), &wide = box_of(scene, items->find_node("", "r"));
  EXPECT_GT(wide.height, plain.height);
}

TEST(GraphItems, AConstantThatIsAnOutputOrUnreadIsDrawn) {
  const std::string half = "\" type: TENSOR t { data_type: 1 float_data: 0.5 }";
  const auto items = items_of_text(constant("y", half) + constant("unread", half) +
                                   "node { op_type: \"Add\" name: \"a\" input: \"x\" input: \"y\" output: \"z\" } ");
  EXPECT_FALSE(items->item(items->find_node("", "y")).is_folded);
  EXPECT_FALSE(items->item(items->find_node("", "unread")).is_folded);
}

// features > 0 > block > 0 around one Conv, next to a Relu in features > 0.
TEST(GraphItems, ScopesWithASingleMemberAreMerged) {
  const auto items = items_of_text(
      "node { op_type: \"Relu\" name: \"/features/0/block/0/conv/A\" input: \"x\" output: \"p\" } "
      "node { op_type: \"Abs\" name: \"/features/0/B\" input: \"p\" output: \"q\" } "
      "node { op_type: \"Neg\" name: \"/tail/C\" input: \"q\" output: \"y\" } ");
  const GraphItem& first = items->item(items->find_node("", "/features/0/block/0/conv/A"));
  EXPECT_EQ(first.module, "block.0.conv");
  const GraphItem& around = items->item(first.parent);
  EXPECT_EQ(around.title, "features.0");
  EXPECT_EQ(around.parent, 0);
  EXPECT_EQ(around.depth, 1);
  EXPECT_EQ(around.node_count, 2);
  EXPECT_EQ(items->item(items->find_node("", "/tail/C")).module, "tail");
  EXPECT_EQ(items->item(items->find_node("", "/tail/C")).parent, 0);
  SceneMaker maker(items);
  check_scene(*items, maker.make(all_open(*items)));
}

TEST(GraphItems, LongGroupsAreCutAtRepeats) {
  const auto items = items_of("llama_layer", 10);
  for (const GraphItem& item : items->items()) {
    if (item.kind != GraphItem::Kind::group || item.title.find("part") == std::string::npos) continue;
    EXPECT_LE(item.children.size(), 10U);
  }
}

TEST(Paths, StaticScopesForgetIterationsStepsAndGraphs) {
  EXPECT_EQ(static_scope_of("x"), "");
  EXPECT_EQ(static_scope_of("loop.body[3]//x"), "loop.body[*]//");
  EXPECT_EQ(static_scope_of("step[7]//loop.body[3]//if.then//x"), "loop.body[*]//if.then//");
  EXPECT_EQ(static_scope_of("graph(decoder)//x"), "");
}

std::vector<uint64_t> repeated(const std::vector<uint64_t>& head, const std::vector<uint64_t>& block, int times) {
  std::vector<uint64_t> row = head;
  for (int i = 0; i < times; ++i) row.insert(row.end(), block.begin(), block.end());
  return row;
}

TEST(Sections, FindTheBlocksOfARow) {
  const auto row = repeated({90, 91, 92}, {1, 2, 3, 4, 5, 2, 6}, 12);
  const auto sections = find_sections(row, 50);
  int repeats = 0;
  size_t at = 0;
  for (const Section& section : sections) {
    EXPECT_EQ(section.begin, at);
    at += section.count;
    if (!section.is_repeat) continue;
    ++repeats;
    EXPECT_EQ(section.count, 7U);
  }
  EXPECT_EQ(at, row.size());
  EXPECT_GE(repeats, 11);
}

TEST(Sections, CutEvenlyWhereNothingRepeats) {
  std::vector<uint64_t> row;
  for (uint64_t i = 0; i < 205; ++i) row.push_back(i * i + 7);
  const auto sections = find_sections(row, 50);
  ASSERT_EQ(sections.size(), 5U);
  size_t at = 0;
  for (const Section& section : sections) {
    EXPECT_FALSE(section.is_repeat);
    EXPECT_LE(section.count, 50U);
    EXPECT_EQ(section.begin, at);
    at += section.count;
  }
  EXPECT_EQ(at, row.size());
}

}  // namespace
}  // namespace parallax
