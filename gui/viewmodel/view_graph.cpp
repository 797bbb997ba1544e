// SPDX-License-Identifier: Apache-2.0
// Opening, closing, moving about.
#include "gui/viewmodel/view_graph.h"

#include <algorithm>
#include <cmath>

#include "inspector/exec/path_parts.h"
#include "inspector/exec/value_path.h"

namespace parallax {
namespace {

constexpr int32_t kOpenAtOnce = 150;        // nodes: a graph of that many is readable when all is open
constexpr float kLeastReadableZoom = 0.7F;  // the smaller text has 8 pixels
constexpr size_t kFirstBoxes = 3;           // nodes that the first view shows whole
constexpr float kFocusZoom = 1;
constexpr float kMargin = 8;         // pixels around the whole graph
constexpr float kLeastInSight = 80;  // pixels of the graph that stay in the window

}  // namespace

void GraphView::set_document(std::shared_ptr<const Document> document) {
  const bool same_graph = document_ != nullptr && document != nullptr && document_->items == document->items;
  document_ = std::move(document);
  if (!has_graph()) {
    open_.clear();
    summaries_.clear();
    scene_ = {};
    return;
  }
  if (!same_graph) {
    maker_ = std::make_unique<SceneMaker>(document_->items);
    open_.assign(document_->items->items().size(), false);
    is_stale_ = true;
  }
  summarize();
  if (!same_graph) {
    open_first_view();
    fit();
  }
}

// Among what stands directly in it; -1 when there are none or several.
int32_t GraphView::only_group_in(int32_t item) const {
  int32_t only = -1;
  for (const int32_t child : items().item(item).children) {
    if (items().item(child).kind != GraphItem::Kind::group) continue;
    if (only >= 0) return -1;
    only = child;
  }
  return only;
}

// Few nodes: all scopes open. Many: closed, but for the way to the first divergence.
void GraphView::open_first_view() {
  const auto is_drawn = [](const GraphItem& item) { return item.kind == GraphItem::Kind::node && !item.is_folded; };
  const bool is_small = std::ranges::count_if(items().items(), is_drawn) <= kOpenAtOnce;
  for (size_t i = 0; is_small && i < open_.size(); ++i) {
    open_[i] = items().items()[i].kind == GraphItem::Kind::group;
  }
  // A group that stands alone, as exporters wrap whole models, hides everything.
  for (int32_t at = 0; !is_small && at >= 0;) {
    at = only_group_in(at);
    if (at >= 0) open_[static_cast<size_t>(at)] = true;
  }
  if (document_->comparison == nullptr || !document_->comparison->first_divergence.has_value()) return;
  const int32_t row = document_->find_row(document_->comparison->first_divergence->path);
  if (row >= 0 && document_->rows[static_cast<size_t>(row)].item >= 0) {
    reveal(document_->rows[static_cast<size_t>(row)].item);
  }
}

const Scene& GraphView::scene() {
  if (is_stale_ && has_graph()) {
    scene_ = maker_->make(open_);
    is_stale_ = false;
  }
  return scene_;
}

bool GraphView::can_open(int32_t item) const {
  return items().item(item).has_children() && items().item(item).kind != GraphItem::Kind::body && item != 0;
}

// The item that was clicked keeps its position on the screen.
void GraphView::relayout_keeping(int32_t item) {
  const auto location = [&]() -> const SceneBox* {
    const int32_t box = scene_.box_of_item.empty() ? -1 : scene_.box_of_item[static_cast<size_t>(item)];
    return box < 0 ? nullptr : &scene_.boxes[static_cast<size_t>(box)];
  };
  const SceneBox* before = location();
  const LayoutPoint old = before == nullptr ? LayoutPoint{} : LayoutPoint{before->x + before->width / 2, before->y};
  const bool was_drawn = before != nullptr;
  is_stale_ = true;
  scene();
  const SceneBox* after = location();
  if (!was_drawn || after == nullptr) return;
  camera.x += after->x + after->width / 2 - old.x;
  camera.y += after->y - old.y;
}

void GraphView::set_open(int32_t item, bool open, bool recursive) {
  scene();
  open_[static_cast<size_t>(item)] = open;
  if (recursive) {
    for (size_t i = 0; i < open_.size(); ++i) {
      const auto kind = items().items()[i].kind;
      const bool opens = kind == GraphItem::Kind::group || !open;
      if (opens && items().is_inside(static_cast<int32_t>(i), item)) open_[i] = open;
    }
  }
  relayout_keeping(item);
}

// The selected item if it is visible, else the one that is drawn nearest to the middle; where blocks are nested, a
// node.
int32_t GraphView::anchor(int32_t selected) {
  const float left = camera.x, right = camera.x + canvas_width / camera.zoom;
  const float top = camera.y, bottom = camera.y + canvas_height / camera.zoom;
  const auto x_of = [](const SceneBox& box) { return box.x + box.width / 2; };
  const SceneBox* own = box_of(selected);
  if (own != nullptr && x_of(*own) >= left && x_of(*own) <= right && own->y >= top && own->y <= bottom) return selected;
  int32_t nearest = -1;
  float least = 0;
  for (const SceneBox& box : scene().boxes) {
    if (box.item == 0 || (is_open(box.item) && items().item(box.item).has_children())) continue;
    const float distance = std::hypot(x_of(box) - (left + right) / 2, box.y + box.height / 2 - (top + bottom) / 2);
    if (nearest >= 0 && distance >= least) continue;
    nearest = box.item;
    least = distance;
  }
  while (nearest >= 0 && items().item(nearest).has_children()) nearest = items().item(nearest).children.front();
  return nearest;
}

void GraphView::set_all_open(const std::vector<bool>& open, int32_t selected) {
  if (!has_graph()) return;
  const int32_t kept = anchor(selected);
  const SceneBox* box = box_of(kept);
  const LayoutPoint before = box == nullptr ? LayoutPoint{} : LayoutPoint{box->x + box->width / 2, box->y};
  open_ = open;
  is_stale_ = true;
  const Scene& all = scene();
  const bool is_readable =
      std::min(canvas_width / all.width, canvas_height / all.height) >= kLeastReadableZoom * pixel_scale;
  box = box_of(kept);
  if (is_readable || box == nullptr) return fit();
  camera.x += box->x + box->width / 2 - before.x;
  camera.y += box->y - before.y;
  is_fitted = false;
  keep_in_sight();
}

void GraphView::open_all(int32_t selected) {
  std::vector<bool> open(open_.size());
  for (size_t i = 0; i < open.size(); ++i) open[i] = items().items()[i].has_children();
  set_all_open(open, selected);
}

void GraphView::close_all(int32_t selected) { set_all_open(std::vector<bool>(open_.size()), selected); }

void GraphView::reveal(int32_t item) {
  if (items().item(item).is_folded) item = items().item(item).parent;
  for (int32_t at = items().item(item).parent; at > 0; at = items().item(at).parent) {
    if (open_[static_cast<size_t>(at)] || items().item(at).kind == GraphItem::Kind::body) continue;
    open_[static_cast<size_t>(at)] = true;
    is_stale_ = true;
  }
}

void GraphView::fit() {
  const Scene& all = scene();
  if (all.width <= 0 || all.height <= 0) return;
  const float whole = std::min(canvas_width / all.width, canvas_height / all.height);
  const float readable = kLeastReadableZoom * pixel_scale;
  if (whole >= readable) {
    camera.zoom = std::clamp(whole, kLeastZoom, pixel_scale);
    camera.x = all.width / 2 - canvas_width / camera.zoom / 2;
    camera.y = all.height / 2 - canvas_height / camera.zoom / 2;
  } else {
    camera = view_of_beginning(all, first_boxes(all), {canvas_width, canvas_height, readable, pixel_scale});
  }
  is_fitted = true;
  is_whole = false;
}

// The nodes and closed blocks drawn, by their order of execution.
std::vector<int32_t> GraphView::first_boxes(const Scene& all) const {
  std::vector<int32_t> boxes;
  for (size_t i = 1; i < all.shown_as.size() && boxes.size() < kFirstBoxes; ++i) {
    const GraphItem& item = items().items()[i];
    if (item.kind != GraphItem::Kind::node || item.is_folded || all.shown_as[i] < 0) continue;
    const int32_t box = all.box_of_item[static_cast<size_t>(all.shown_as[i])];
    if (box >= 0 && std::ranges::find(boxes, box) == boxes.end()) boxes.push_back(box);
  }
  return boxes;
}

float GraphView::whole_zoom() {
  const Scene& all = scene();
  if (all.width <= 0 || all.height <= 0) return 1;
  const float width = std::max(canvas_width - 2 * kMargin, 1.0F), height = std::max(canvas_height - 2 * kMargin, 1.0F);
  return std::min(width / all.width, height / all.height);
}

void GraphView::fit_whole() {
  const Scene& all = scene();
  if (all.width <= 0 || all.height <= 0) return;
  const float whole = whole_zoom();
  camera.zoom = std::min(whole, pixel_scale);
  camera.x = all.width / 2 - canvas_width / camera.zoom / 2;
  camera.y = all.height / 2 - canvas_height / camera.zoom / 2;
  is_fitted = is_whole = true;
}

void GraphView::fit_again() {
  if (!is_fitted) return;
  is_whole ? fit_whole() : fit();
}

const SceneBox* GraphView::box_of(int32_t item) {
  if (!has_graph() || item < 0) return nullptr;
  const Scene& all = scene();
  const int32_t shown = all.shown_as[static_cast<size_t>(item)];
  const int32_t index = shown < 0 ? -1 : all.box_of_item[static_cast<size_t>(shown)];
  return index < 0 ? nullptr : &all.boxes[static_cast<size_t>(index)];
}

void GraphView::center_on(int32_t item) {
  const SceneBox* box = box_of(item);
  if (box == nullptr) return;
  if (camera.zoom < kLeastReadableZoom * pixel_scale) return focus_on(item);
  const float x = box->x + box->width / 2, y = box->y + std::min(box->height, 40.0F) / 2;
  const float screen_x = (x - camera.x) * camera.zoom, screen_y = (y - camera.y) * camera.zoom;
  const bool in_sight = screen_x > canvas_width * 0.1F && screen_x < canvas_width * 0.9F &&
                        screen_y > canvas_height * 0.1F && screen_y < canvas_height * 0.85F;
  if (in_sight) return;
  is_fitted = false;
  camera.x = x - canvas_width / camera.zoom / 2;
  camera.y = y - canvas_height / camera.zoom / 2;
}

void GraphView::focus_on(int32_t item) {
  const SceneBox* box = box_of(item);
  if (box == nullptr) return;
  camera.zoom = std::max(camera.zoom, kFocusZoom * pixel_scale);
  is_fitted = false;
  camera.x = box->x + box->width / 2 - canvas_width / camera.zoom / 2;
  camera.y = box->y + std::min(box->height, 40.0F) / 2 - canvas_height / camera.zoom * 0.45F;
}

void GraphView::zoom_to(float left, float top, float right, float bottom) {
  if (right - left < 1 || bottom - top < 1) return;
  const float x = camera.x + (left + right) / 2 / camera.zoom, y = camera.y + (top + bottom) / 2 / camera.zoom;
  const float factor = std::min(canvas_width / (right - left), canvas_height / (bottom - top));
  camera.zoom = std::clamp(camera.zoom * factor, std::min(kLeastZoom, whole_zoom()), kGreatestZoom);
  is_fitted = false;
  camera.x = x - canvas_width / camera.zoom / 2;
  camera.y = y - canvas_height / camera.zoom / 2;
  keep_in_sight();
}

void GraphView::zoom_at(float screen_x, float screen_y, float factor) {
  const float zoom = std::clamp(camera.zoom * factor, std::min(kLeastZoom, whole_zoom()), kGreatestZoom);
  is_fitted = false;
  camera.x += screen_x / camera.zoom - screen_x / zoom;
  camera.y += screen_y / camera.zoom - screen_y / zoom;
  camera.zoom = zoom;
  keep_in_sight();
}

void GraphView::move(float screen_x, float screen_y) {
  is_fitted = false;
  camera.x += screen_x / camera.zoom;
  camera.y += screen_y / camera.zoom;
  keep_in_sight();
}

void GraphView::keep_in_sight() {
  const Scene& all = scene();
  if (all.width <= 0 || all.height <= 0) return;
  const auto kept = [&](float at, float size, float canvas) {
    const float margin = std::min(kLeastInSight * pixel_scale, canvas / 3) / camera.zoom;
    return std::clamp(at, margin - canvas / camera.zoom, std::max(size - margin, margin - canvas / camera.zoom));
  };
  camera.x = kept(camera.x, all.width, canvas_width);
  camera.y = kept(camera.y, all.height, canvas_height);
}

std::vector<int32_t> GraphView::producers_of(int32_t item) {
  std::vector<int32_t> result;
  for (const SceneWire& wire : scene().wires) {
    if (wire.to == item && std::find(result.begin(), result.end(), wire.from) == result.end()) {
      result.push_back(wire.from);
    }
  }
  return result;
}

std::vector<int32_t> GraphView::readers_of(int32_t item) {
  std::vector<int32_t> result;
  for (const SceneWire& wire : scene().wires) {
    if (wire.from == item && std::find(result.begin(), result.end(), wire.to) == result.end()) {
      result.push_back(wire.to);
    }
  }
  return result;
}

// Among the members of its group: to the left or right where there is one at its height, else before or after it.
int32_t GraphView::neighbor(int32_t item, int step) {
  if (item <= 0) return -1;
  const Scene& all = scene();
  const auto box_of = [&](int32_t index) -> const SceneBox* {
    const int32_t box = all.box_of_item[static_cast<size_t>(index)];
    return box < 0 ? nullptr : &all.boxes[static_cast<size_t>(box)];
  };
  const SceneBox* own = box_of(item);
  if (own == nullptr) return -1;
  int32_t best = -1;
  float distance = 0;
  for (int32_t sibling : items().item(items().item(item).parent).children) {
    const SceneBox* box = box_of(sibling);
    if (sibling == item || box == nullptr || box->y != own->y) continue;
    const float away = (box->x - own->x) * static_cast<float>(step);
    if (away > 0 && (best < 0 || away < distance)) {
      best = sibling;
      distance = away;
    }
  }
  return best;
}

std::string GraphView::shape_on(size_t index) {
  const std::vector<SceneWire>& wires = scene().wires;
  const SceneWire& wire = wires[index];
  if (wire.kind != EdgeKind::led) return "";
  for (size_t before = index;
       before-- > 0 && wires[before].source == wire.source && wires[before].value == wire.value;) {
    if (wires[before].kind == EdgeKind::led) return "";
  }
  const GraphItem& source = items().item(wire.source);
  const ValueDef& value = source.graph->values[static_cast<size_t>(wire.value)];
  const std::string name = escape_name(value.name);
  for (const int32_t row : document_->rows_of_item[static_cast<size_t>(wire.source)]) {
    const ValueRow& shown = document_->rows[static_cast<size_t>(row)];
    if (!shown.shape.empty() && shown.path.substr(name_begin(shown.path)) == name) return shown.shape;
  }
  return dims_text(value.type);
}

int32_t GraphView::item_at(float world_x, float world_y) {
  int32_t found = -1;
  for (const SceneBox& box : scene().boxes) {  // inner boxes come after those around them
    const bool inside =
        world_x >= box.x && world_x < box.x + box.width && world_y >= box.y && world_y < box.y + box.height;
    if (inside) found = box.item;
  }
  return found;
}

}  // namespace parallax
