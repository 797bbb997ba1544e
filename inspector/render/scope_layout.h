// SPDX-License-Identifier: Apache-2.0
// A picture of a graph with some of its groups open: every group is laid out on its own, from the inside out, and
// groups that are alike share one layout.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "inspector/render/layout/layout.h"
#include "inspector/render/scope_items.h"

namespace parallax {

struct SceneBox {
  int32_t item = 0;
  float x = 0, y = 0, width = 0, height = 0;
  bool is_open = false;  // a frame around its members, with its title on top
};

struct SceneWire {
  int32_t from = 0;  // items that are drawn: the leaves, or the closed groups they are in
  int32_t to = 0;
  int32_t source = 0;  // the leaf that makes the value
  ValueId value = kNoValue;
  EdgeKind kind = EdgeKind::led;
  std::vector<LayoutPoint> points;  // empty unless led
};

struct Scene {
  float width = 0;
  float height = 0;
  std::vector<SceneBox> boxes;  // groups before what is in them
  std::vector<SceneWire> wires;
  std::vector<int32_t> box_of_item;  // -1 for what is not drawn
  std::vector<int32_t> shown_as;  // of each item: itself, the reader of a folded Constant, or the closed group around
};

// The heights and distances that drawing and layout agree on, in pixels at zoom 1.
struct SceneMetrics {
  float title_height = 24;  // of an open group
  float padding = 12;
  float node_height = 40;
  float constants_height = 14;  // more, of a node that shows constants
  float pill_height = 24;
  float character_width = 7.4F;  // upper bound of the mean of the font at 13 pixels
  float least_width = 84;
  float greatest_width = 236;
};

class SceneMaker {
 public:
  explicit SceneMaker(std::shared_ptr<const GraphItems> items) : items_(std::move(items)) {}
  // `open`: for each item whether its members are drawn; bodies are open with their node, and item 0 always is.
  Scene make(const std::vector<bool>& open);

 private:
  friend class SceneBuilder;
  std::shared_ptr<const GraphItems> items_;
  std::map<std::string, std::shared_ptr<const Layout>> known_;  // layouts by all that goes into them
};

}  // namespace parallax
