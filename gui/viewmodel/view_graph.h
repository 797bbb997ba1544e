// SPDX-License-Identifier: Apache-2.0
// GraphView: which groups are open, where things stand, what color they have, and what part of it is looked at.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gui/viewmodel/first_view.h"
#include "gui/viewmodel/view_colors.h"
#include "gui/viewmodel/view_document.h"
#include "inspector/render/scope_layout.h"

namespace parallax {

enum class ColorBy : uint8_t { severity, max_abs, rmse, cosine, ulp, nan, introduced, op, time, structure };
struct ColorByInfo {
  ColorBy by;
  std::string_view name;  // in settings and states
  std::string_view title;
  bool needs_comparison;
};
std::span<const ColorByInfo> colorings();

// The values of an item: of a node its own, of a group those of all its nodes.
struct ItemSummary {
  int32_t worst_row = -1;
  double number = -1;  // of what colors are by, of a group the worst, of times the sum; below 0: nothing known
  int32_t diverged = 0, passed = 0, mistrusted = 0, not_compared = 0;
  int32_t explained = 0;  // of those that passed, beyond their limits
};

struct ItemLook {
  Color fill;
  bool is_neutral = true;   // fill is the theme's
  bool is_hatched = false;  // fused, folded, absent
  bool is_bad = false;      // a thick border: color is never the only sign
  std::string badge;        // "37x", "fused into X"; short
};

struct LegendEntry {
  Color fill;
  bool is_neutral = false;
  bool is_hatched = false;
  std::string text;
};

constexpr float kLeastZoom = 0.005F, kGreatestZoom = 4.0F;  // less where the whole graph needs it

class GraphView {
 public:
  // Keeps what is open where the graph is the same.
  void set_document(std::shared_ptr<const Document> document);
  bool has_graph() const { return document_ != nullptr && document_->items != nullptr; }
  const GraphItems& items() const { return *document_->items; }

  const Scene& scene();  // laid out when needed
  bool is_open(int32_t item) const { return open_[static_cast<size_t>(item)]; }
  bool can_open(int32_t item) const;
  void set_open(int32_t item, bool open, bool recursive = false);
  // All of it where that can be read; else what was in sight stays there: `selected` (may be -1), or what is nearest to
  // the middle.
  void open_all(int32_t selected);
  void close_all(int32_t selected);
  void reveal(int32_t item);  // opens every group around it

  bool is_dark = false;  // the background that the colors stand on
  ColorBy color_by() const { return color_by_; }
  void set_color_by(ColorBy by);
  // Only values of this iteration count, in families that have several; -1: the worst of all.
  void set_iteration(int64_t iteration);
  int64_t iteration() const { return iteration_; }
  const ItemSummary& summary(int32_t item) const { return summaries_[static_cast<size_t>(item)]; }
  ItemLook look(int32_t item) const;
  std::vector<LegendEntry> legend() const;

  bool shows_shapes = false;  // on edges
  // "1x64x56x56" of the value on a wire, as it was run or else as the model says; empty where it is not known. One
  // wire of each value has it: the others begin at the same point.
  std::string shape_on(size_t wire);

  Camera camera;
  bool is_fitted = false;  // nobody has moved since fit(): a window of another size is fitted again
  bool is_whole = false;   // then by fit_whole()
  float canvas_width = 800, canvas_height = 600;
  float pixel_scale = 1;         // of the screen: how many pixels an ordinary one would be
  void fit();                    // the whole graph, or its beginning where all of it is too small to be read
  void fit_whole();              // however small its letters get
  void fit_again();              // as it was fitted before, if nobody has moved since
  void center_on(int32_t item);  // only when it is not well in sight already
  void focus_on(int32_t item);   // in the middle, large enough to be read
  void zoom_to(float left, float top, float right, float bottom);  // a part of the screen
  void zoom_at(float screen_x, float screen_y, float factor);
  void move(float screen_x, float screen_y);  // by so many pixels; an edge of the graph stays in sight

  // Items joined to this one in the picture, in order: those that feed it, or those that read it.
  std::vector<int32_t> producers_of(int32_t item);
  std::vector<int32_t> readers_of(int32_t item);
  int32_t neighbor(int32_t item, int step);  // the sibling drawn next to it; -1 at the end
  int32_t item_at(float world_x, float world_y);

 private:
  void open_first_view();
  int32_t only_group_in(int32_t item) const;
  void summarize();
  bool stands_before(int32_t row, int32_t known_row, double known_number) const;
  void add_row(ItemSummary& summary, int32_t row) const;
  double number_of(int32_t row) const;
  double share_of(double number) const;  // along the ramp, by the range of all numbers
  const SceneBox* box_of(int32_t item);  // of the item, or of the closed group that stands for it
  void add_below(ItemSummary& outer, const ItemSummary& inner) const;
  ItemLook look_of_time(int32_t item) const;
  std::vector<LegendEntry> legend_of_operators() const;
  void relayout_keeping(int32_t item);
  void set_all_open(const std::vector<bool>& open, int32_t selected);
  int32_t anchor(int32_t selected);
  float whole_zoom();  // that shows all of it
  void keep_in_sight();
  std::vector<int32_t> first_boxes(const Scene& all) const;

  std::shared_ptr<const Document> document_;
  std::unique_ptr<SceneMaker> maker_;
  std::vector<bool> open_;
  Scene scene_;
  bool is_stale_ = true;
  ColorBy color_by_ = ColorBy::severity;
  int64_t iteration_ = -1;
  double least_ = 0, greatest_ = 0;  // of the numbers above 0
  std::vector<ItemSummary> summaries_;
  std::vector<Color> operator_colors_;  // of items, where colors are by operator
};

}  // namespace parallax
