// SPDX-License-Identifier: Apache-2.0
// The graph view: what is open, what is drawn, what color it has, and that nothing jumps.
#include "gui/viewmodel/view_graph.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "inspector/render/compact_numbers.h"
#include "tests/gui/viewmodel/view_fixture.h"

namespace parallax {
namespace {

using view_test::opened;

struct Shown {
  std::shared_ptr<const Document> document;
  GraphView graph;
  explicit Shown(const view_test::Dumps& dumps) : document(opened(dumps)) { graph.set_document(document); }
  int32_t item(const std::string& node, const std::string& scope = "") const {
    return graph.items().find_node(scope, node);
  }
  const SceneBox* box(int32_t index) {
    const int32_t at = graph.scene().box_of_item[static_cast<size_t>(index)];
    return at < 0 ? nullptr : &graph.scene().boxes[static_cast<size_t>(at)];
  }
};

TEST(GraphView, ASmallGraphIsOpenAndItsWorstNodeIsMarked) {
  Shown shown(view_test::llama_fault());
  const int32_t culprits = shown.item(view_test::llama_culprit_node());
  ASSERT_GE(culprits, 0);
  ASSERT_NE(shown.box(culprits), nullptr);
  const ItemLook look = shown.graph.look(culprits);
  EXPECT_TRUE(look.is_bad);
  EXPECT_FALSE(look.is_neutral);
  EXPECT_TRUE(look.badge.ends_with("x") || look.badge == "inf") << look.badge;
  EXPECT_GT(shown.graph.summary(0).diverged, 0);
  EXPECT_EQ(shown.graph.summary(0).diverged, shown.document->comparison->summary.diverged);
}

TEST(GraphView, WhatWasToggledStaysWhereItIsOnTheScreen) {
  Shown shown(view_test::loop_fault());
  const int32_t loop = shown.item("decode");
  ASSERT_GE(loop, 0);
  ASSERT_TRUE(shown.graph.can_open(loop));
  shown.graph.set_open(loop, false);
  const float before = (shown.box(loop)->y - shown.graph.camera.y) * shown.graph.camera.zoom;
  shown.graph.set_open(loop, true);
  EXPECT_TRUE(shown.graph.is_open(loop));
  EXPECT_NEAR((shown.box(loop)->y - shown.graph.camera.y) * shown.graph.camera.zoom, before, 0.5);
  EXPECT_NE(shown.box(shown.item("score_state", "decode.body[*]//")), nullptr);
  shown.graph.set_open(loop, false);
  EXPECT_EQ(shown.box(shown.item("score_state", "decode.body[*]//")), nullptr);
}

TEST(GraphView, AClosedLoopShowsTheWorstOfItsBody) {
  Shown shown(view_test::loop_fault());
  const int32_t loop = shown.item("decode");
  const int32_t inside = shown.item("score_state", "decode.body[*]//");
  ASSERT_GE(inside, 0);
  EXPECT_GT(shown.graph.summary(inside).diverged, 0);
  EXPECT_GE(shown.graph.summary(loop).diverged, shown.graph.summary(inside).diverged);
  EXPECT_GE(shown.graph.summary(loop).number, shown.graph.summary(inside).number);
}

TEST(GraphView, AChosenIterationCountsAlone) {
  Shown shown(view_test::loop_fault());
  const int32_t inside = shown.item("score_state", "decode.body[*]//");
  const auto all = shown.graph.summary(inside);
  shown.graph.set_iteration(0);
  const auto first = shown.graph.summary(inside);
  EXPECT_LT(first.diverged + first.passed, all.diverged + all.passed);
  EXPECT_EQ(shown.document->rows[static_cast<size_t>(first.worst_row)].path, "decode.body[0]//scores");
}

TEST(GraphView, RevealOpensTheWayToANode) {
  Shown shown(view_test::loop_fault());
  shown.graph.close_all(-1);
  const int32_t inside = shown.item("score_state", "decode.body[*]//");
  EXPECT_EQ(shown.box(inside), nullptr);
  shown.graph.reveal(inside);
  EXPECT_NE(shown.box(inside), nullptr);
}

TEST(GraphView, ProducersAndReadersAreNeighborsInThePicture) {
  Shown shown(view_test::nan_fault());
  const int32_t shift = shown.item("shift"), logarithm = shown.item("logarithm");
  EXPECT_EQ(shown.graph.readers_of(shift), std::vector<int32_t>{logarithm});
  EXPECT_EQ(shown.graph.producers_of(logarithm), std::vector<int32_t>{shift});
}

TEST(GraphView, ColorsFollowWhatTheyAreBy) {
  Shown shown(view_test::nan_fault());
  const int32_t logarithm = shown.item("logarithm"), first = shown.item("first");
  shown.graph.set_color_by(ColorBy::nan);
  EXPECT_EQ(shown.graph.look(logarithm).fill, kNanColor);
  EXPECT_TRUE(shown.graph.look(first).is_neutral);
  shown.graph.set_color_by(ColorBy::op);
  EXPECT_EQ(shown.graph.look(logarithm).fill, operator_color("Log"));
  EXPECT_EQ(shown.graph.look(first).fill, operator_color("Abs"));
  for (const ColorByInfo& info : colorings()) {
    shown.graph.set_color_by(info.by);
    EXPECT_FALSE(shown.graph.legend().empty()) << info.name;
  }
}

TEST(GraphView, TimesAreSummedInGroupsAndColorTheirNodes) {
  Shown shown(view_test::nan_fault());
  ProfileResult profile;
  profile.executor = "cpu";
  profile.iterations = 2;
  profile.nodes = {{"", "first", "Abs", 1, 0.5, 0, 0}, {"", "logarithm", "Log", 1, 2, 0, 0}};
  const auto timed = with_times(*shown.document, profile);
  EXPECT_NE(timed->times_of.find("cpu"), std::string::npos);
  shown.graph.set_document(timed);
  shown.graph.set_color_by(ColorBy::time);
  EXPECT_DOUBLE_EQ(shown.graph.summary(0).number, 2.5);
  EXPECT_EQ(shown.graph.look(shown.item("logarithm")).badge, "2 ms");
  EXPECT_EQ(shown.graph.look(shown.item("first")).badge, "500 us");
  EXPECT_LT(luminance(shown.graph.look(shown.item("logarithm")).fill),
            luminance(shown.graph.look(shown.item("first")).fill));
  EXPECT_TRUE(shown.graph.look(shown.item("shift")).is_neutral);  // not measured
}

TEST(GraphView, EachValueHasItsShapeOnOneOfItsWires) {
  Shown shown(view_test::llama_fault());
  std::set<std::pair<int32_t, ValueId>> seen;
  const auto& wires = shown.graph.scene().wires;
  for (size_t i = 0; i < wires.size(); ++i) {
    const std::string shape = shown.graph.shape_on(i);
    if (shape.empty()) continue;
    EXPECT_TRUE(seen.emplace(wires[i].source, wires[i].value).second);
    const int32_t from = wires[i].source;
    const bool is_of_the_run =
        std::ranges::any_of(shown.document->rows_of_item[static_cast<size_t>(from)],
                            [&](int32_t row) { return shown.document->rows[static_cast<size_t>(row)].shape == shape; });
    EXPECT_TRUE(is_of_the_run) << shape;
  }
  EXPECT_GT(seen.size(), 10U);
}

TEST(GraphView, FocusAndZoomToFillThePane) {
  Shown shown(view_test::llama_fault());
  const int32_t culprits = shown.item(view_test::llama_culprit_node());
  shown.graph.camera = {0, 0, 0.1F};
  shown.graph.focus_on(culprits);
  const SceneBox* box = shown.box(culprits);
  EXPECT_GE(shown.graph.camera.zoom, 0.8F);
  EXPECT_NEAR((box->x + box->width / 2 - shown.graph.camera.x) * shown.graph.camera.zoom, shown.graph.canvas_width / 2,
              1);
  const Camera before = shown.graph.camera;
  shown.graph.zoom_to(100, 100, 100 + shown.graph.canvas_width / 2, 100 + shown.graph.canvas_height / 2);
  EXPECT_NEAR(shown.graph.camera.zoom, before.zoom * 2, 1e-3);
  EXPECT_NEAR(shown.graph.camera.x, before.x + 100 / before.zoom, 0.5);
}

TEST(GraphView, TheWholeGraphFitsHoweverTall) {
  Shown shown(view_test::llama_fault());
  shown.graph.fit();
  EXPECT_GT(shown.graph.scene().height * shown.graph.camera.zoom, shown.graph.canvas_height);  // readable first
  shown.graph.fit_whole();
  EXPECT_LE(shown.graph.scene().height * shown.graph.camera.zoom, shown.graph.canvas_height);
  EXPECT_LE(shown.graph.scene().width * shown.graph.camera.zoom, shown.graph.canvas_width);
  shown.graph.canvas_height /= 2;
  shown.graph.fit_again();
  EXPECT_LE(shown.graph.scene().height * shown.graph.camera.zoom, shown.graph.canvas_height);
  shown.graph.zoom_at(10, 10, 2);
  const Camera moved = shown.graph.camera;
  shown.graph.fit_again();  // somebody has moved
  EXPECT_EQ(shown.graph.camera.zoom, moved.zoom);
}

TEST(Operators, HaveKindsAndColors) {
  EXPECT_EQ(kind_of_operator("MatMul"), "matrix");
  EXPECT_EQ(kind_of_operator("com.microsoft.FusedMatMul"), "matrix");
  EXPECT_EQ(kind_of_operator("Softmax"), "activation");
  EXPECT_EQ(kind_of_operator("Loop"), "control and sequences");
  EXPECT_EQ(kind_of_operator("NoSuchOperator"), "other");
  std::set<std::string_view> kinds(operator_kinds().begin(), operator_kinds().end());
  EXPECT_EQ(kinds.size(), operator_kinds().size());
  EXPECT_EQ(operator_color("Gemm"), operator_color("Conv"));
  EXPECT_FALSE(operator_color("Gemm") == operator_color("Relu"));
}

TEST(Numbers, AreShortAndKeepTheirMeaning) {
  EXPECT_EQ(short_number(713400), "7.13e5");
  EXPECT_EQ(short_number(1e-9), "1e-9");
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(-4.76837e-07, 6), "-4.76837e-7");
  EXPECT_EQ(short_number(1e100), "1e100");
  EXPECT_EQ(short_number(INFINITY), "inf");
  EXPECT_EQ(trimmed_exponent("3.9356662e-05"), "3.9356662e-5");
  EXPECT_EQ(trimmed_exponent("true"), "true");
  const auto fits = [](size_t most) { return [most](const std::string& text) { return text.size() <= most; }; };
  EXPECT_EQ(fitted_number("-3.9356662e-5", fits(13)), "-3.9356662e-5");
  EXPECT_EQ(fitted_number("-3.9356662e-5", fits(9)), "~-3.94e-5");
  EXPECT_EQ(fitted_number("1152921504606846976", fits(8)), "~1.15e18");
  EXPECT_EQ(fitted_number("5.658452", fits(2)), "~6");
  EXPECT_EQ(fitted_number("true", fits(2)), "true");
}

TEST(GraphView, CenterOnMovesOnlyWhenTheNodeIsOutOfSight) {
  Shown shown(view_test::llama_fault());
  const int32_t culprits = shown.item(view_test::llama_culprit_node());
  shown.graph.camera = {-100000, -100000, 1};
  shown.graph.center_on(culprits);
  const Camera moved = shown.graph.camera;
  const SceneBox* box = shown.box(culprits);
  EXPECT_NEAR((box->x + box->width / 2 - moved.x) * moved.zoom, shown.graph.canvas_width / 2, 1);
  shown.graph.camera.x += 30;
  shown.graph.center_on(culprits);
  EXPECT_FLOAT_EQ(shown.graph.camera.x, moved.x + 30);
}

TEST(GraphView, ZoomKeepsThePointUnderTheMouse) {
  Shown shown(view_test::nan_fault());
  shown.graph.camera = {-10, -20, 1};
  shown.graph.zoom_at(40, 60, 1.5F);
  EXPECT_NEAR(shown.graph.camera.x + 40 / shown.graph.camera.zoom, 30, 1e-3);
  EXPECT_NEAR(shown.graph.camera.y + 60 / shown.graph.camera.zoom, 40, 1e-3);
  shown.graph.zoom_at(0, 0, 1e9F);
  EXPECT_FLOAT_EQ(shown.graph.camera.zoom, kGreatestZoom);
}

// By whatever moves it.
TEST(GraphView, TheGraphIsNeverMovedOutOfSight) {
  Shown shown(view_test::llama_fault());
  const auto is_in_sight = [&] {
    const Camera& camera = shown.graph.camera;
    const Scene& scene = shown.graph.scene();
    return camera.x < scene.width && camera.y < scene.height && camera.x * camera.zoom > -shown.graph.canvas_width &&
           camera.y * camera.zoom > -shown.graph.canvas_height;
  };
  for (const auto& [x, y] : {std::pair{1e6F, 0.0F}, {-2e6F, 0.0F}, {0.0F, 1e6F}, {0.0F, -2e6F}}) {
    shown.graph.move(x, y);
    EXPECT_TRUE(is_in_sight()) << x << " " << y;
    shown.graph.zoom_at(790, 590, 3);
    EXPECT_TRUE(is_in_sight()) << x << " " << y;
    shown.graph.zoom_at(5, 5, 0.2F);
    EXPECT_TRUE(is_in_sight()) << x << " " << y;
  }
  shown.graph.fit_whole();
  const Camera whole = shown.graph.camera;
  shown.graph.move(30, 20);
  EXPECT_FLOAT_EQ(shown.graph.camera.x, whole.x + 30 / whole.zoom);
  shown.graph.zoom_at(400, 300, 1e-9F);  // no further out than needed to see all
  EXPECT_LE(shown.graph.camera.zoom, std::max(kLeastZoom, whole.zoom));
}

TEST(GraphView, OpeningAndClosingAllKeepsWhatIsSelectedWhereItIs) {
  Shown shown(view_test::loop_fault());
  shown.graph.canvas_width = 300;
  shown.graph.canvas_height = 150;
  const int32_t inside = shown.item("score_state", "decode.body[*]//");
  shown.graph.reveal(inside);
  shown.graph.focus_on(inside);
  const auto location = [&] {
    const int32_t drawn = shown.graph.scene().shown_as[static_cast<size_t>(inside)];
    const SceneBox* box = shown.box(drawn);
    return std::pair{(box->x + box->width / 2 - shown.graph.camera.x) * shown.graph.camera.zoom,
                     (box->y - shown.graph.camera.y) * shown.graph.camera.zoom};
  };
  shown.graph.close_all(inside);
  EXPECT_EQ(shown.box(inside), nullptr);
  shown.graph.focus_on(inside);  // on the block that hides it
  const auto closed = location();
  shown.graph.open_all(inside);
  EXPECT_NE(shown.box(inside), nullptr);
  EXPECT_NEAR(location().first, closed.first, 1);
  EXPECT_NEAR(location().second, closed.second, 1);
}

TEST(GraphView, FindsTheInnermostBoxOfAPoint) {
  Shown shown(view_test::loop_fault());
  const int32_t inside = shown.item("score_state", "decode.body[*]//");
  shown.graph.reveal(inside);
  const SceneBox* box = shown.box(inside);
  EXPECT_EQ(shown.graph.item_at(box->x + 2, box->y + 2), inside);
  EXPECT_EQ(shown.graph.item_at(-50, -50), -1);
}

TEST(Colors, RampsKeepTheirOrderInGray) {
  for (int i = 0; i < 40; ++i) {
    EXPECT_GE(luminance(magnitude_color(i / 40.0, false)), luminance(magnitude_color((i + 1) / 40.0, false)));
    EXPECT_LE(luminance(magnitude_color(i / 40.0, true)), luminance(magnitude_color((i + 1) / 40.0, true)));
    EXPECT_LE(luminance(value_color(i / 40.0)), luminance(value_color((i + 1) / 40.0)));
  }
  EXPECT_GT(luminance(signed_color(0)), luminance(signed_color(1)));
  EXPECT_GT(luminance(signed_color(0)), luminance(signed_color(-1)));
}

// Against the canvas, in both themes: what is worse stands out more, and the worst most of all.
TEST(GraphView, WorseColorsContrastMoreWithTheCanvas) {
  Shown shown(view_test::llama_fault());
  for (const auto& [is_dark, canvas] : {std::pair{true, Color{0x16, 0x18, 0x1B}}, {false, Color{0xFF, 0xFF, 0xFF}}}) {
    shown.graph.is_dark = is_dark;
    double before = 0;
    for (const LegendEntry& entry : shown.graph.legend()) {
      if (entry.is_neutral || entry.is_hatched || entry.text == "mistrusted") continue;
      EXPECT_GT(contrast(entry.fill, canvas), before) << entry.text << (is_dark ? " dark" : " light");
      before = contrast(entry.fill, canvas);
    }
    EXPECT_GT(before, 7) << (is_dark ? "dark" : "light");
  }
}

// WCAG 2.1 asks for 4.5 to 1 in text.
TEST(Colors, TextIsReadableOnEveryFill) {
  for (int i = 0; i <= 100; ++i) {
    for (const Color fill : {magnitude_color(i / 100.0, false), value_color(i / 100.0), signed_color(i / 50.0 - 1)}) {
      EXPECT_GE(contrast(fill, readable_on(fill)), 4.5) << i;
    }
  }
}

}  // namespace
}  // namespace parallax
