// SPDX-License-Identifier: Apache-2.0
// Lays groups out from the inside out, then positions them and joins the pieces of wires that cross their borders.
#include "inspector/render/scope_layout.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

namespace parallax {
namespace {

constexpr SceneMetrics kMetrics;
constexpr size_t kMaxKnown = 4096;  // layouts kept; beyond that the memory is worth more than the time

using WireKey = std::pair<int32_t, ValueId>;  // leaf and value

struct LocalEdge {
  int32_t from_box = 0, to_box = 0;        // in the group's LayoutGraph
  int32_t from_group = -1, to_group = -1;  // open groups at the ends whose port it meets
  WireKey key;
  bool is_stub = false;
};

struct Group {
  std::vector<int32_t> boxes;           // items
  std::map<int32_t, int32_t> box_of;    // item -> box
  std::map<WireKey, int32_t> in_ports;  // -> box
  std::map<WireKey, int32_t> out_ports;
  int32_t box_count = 0;  // ports included
  std::vector<LocalEdge> edges;
  std::map<std::tuple<int32_t, int32_t, WireKey>, int32_t> edge_of;
  std::shared_ptr<const Layout> layout;
};

template <class T>
void append_bytes(std::string& key, const T& value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  key.append(bytes, sizeof(T));
}

std::string key_of(const LayoutGraph& graph) {
  std::string key;
  for (const LayoutBox& box : graph.boxes) {
    append_bytes(key, box.width);
    append_bytes(key, box.height);
    append_bytes(key, box.pin);
  }
  key += '|';
  for (const LayoutEdge& edge : graph.edges) {
    append_bytes(key, edge.from);
    append_bytes(key, edge.to);
    append_bytes(key, edge.wire);
    append_bytes(key, edge.from_x);
    append_bytes(key, edge.to_x);
    append_bytes(key, edge.is_stub);
  }
  return key;
}

}  // namespace

class SceneBuilder {
 public:
  SceneBuilder(SceneMaker& maker, const std::vector<bool>& open) : maker_(maker), items_(*maker.items_), open_(open) {}

  Scene build() {
    scene_.box_of_item.assign(items_.items().size(), -1);
    scene_.shown_as.assign(items_.items().size(), -1);
    show(0, true);
    collect_wires();
    for (auto group = order_.rbegin(); group != order_.rend(); ++group) lay_out(*group);
    const Group& root = groups_.at(0);
    scene_.width = root.layout->width + 2 * kMetrics.padding;
    scene_.height = root.layout->height + 2 * kMetrics.padding;
    add_boxes(0, kMetrics.padding, kMetrics.padding);
    for (size_t wire = 0; wire < scene_.wires.size(); ++wire) join(wire);
    return std::move(scene_);
  }

 private:
  struct Piece {
    int32_t group;
    int32_t edge;
  };

  bool is_open(int32_t index) const {
    const GraphItem& item = items_.item(index);
    if (!item.has_children()) return false;
    return index == 0 || item.kind == GraphItem::Kind::body || open_[static_cast<size_t>(index)];
  }

  void show(int32_t index, bool visible) {
    const bool opened = visible && is_open(index);
    if (visible) scene_.shown_as[static_cast<size_t>(index)] = index;
    if (opened) {
      order_.push_back(index);
      Group& group = groups_[index];
      for (int32_t child : items_.item(index).children) {
        group.box_of[child] = static_cast<int32_t>(group.boxes.size());
        group.boxes.push_back(child);
      }
      group.box_count = static_cast<int32_t>(group.boxes.size());
    }
    for (int32_t child : items_.item(index).children) {
      if (!opened) scene_.shown_as[static_cast<size_t>(child)] = scene_.shown_as[static_cast<size_t>(index)];
      show(child, opened);
    }
    for (int32_t constant : items_.item(index).constants)
      scene_.shown_as[static_cast<size_t>(constant)] = scene_.shown_as[static_cast<size_t>(index)];
  }

  // ---- wires ----

  void collect_wires() {
    std::vector<std::tuple<int32_t, ValueId, int32_t, int32_t>> seen;  // leaf, value, to, from
    for (const GraphWire& wire : items_.wires()) {
      const int32_t from = scene_.shown_as[static_cast<size_t>(wire.from)];
      const int32_t to = scene_.shown_as[static_cast<size_t>(wire.to)];
      if (from != to && !items_.is_inside(from, to)) seen.emplace_back(wire.from, wire.value, to, from);
    }
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    std::map<WireKey, int> readers;
    for (const auto& [leaf, value, to, from] : seen) ++readers[{leaf, value}];
    const LayoutOptions options;
    for (const auto& [leaf, value, to, from] : seen) {
      SceneWire wire;
      wire.from = from;
      wire.to = to;
      wire.source = leaf;
      wire.value = value;
      const bool is_stub = readers[{leaf, value}] > options.stub_readers;
      if (is_stub) wire.kind = EdgeKind::stub;
      scene_.wires.push_back(std::move(wire));
      pieces_.emplace_back();
      add_pieces({leaf, value}, from, to, is_stub);
    }
  }

  int32_t common_group(int32_t a, int32_t b) const {
    while (a != b) {
      int32_t& deeper = items_.item(a).depth >= items_.item(b).depth ? a : b;
      deeper = items_.item(deeper).parent;
    }
    return a;
  }

  // The pieces of a wire: out of the groups around its source, across the common one, into those around its reader. A
  // stub is drawn at its ends only and passes no border.
  void add_pieces(const WireKey& key, int32_t from, int32_t to, bool is_stub) {
    const int32_t common = common_group(items_.item(from).parent, items_.item(to).parent);
    int32_t below = from, group = items_.item(from).parent;
    int32_t from_group = -1;
    while (group != common) {
      if (!is_stub) add_piece(group, {box_in(group, below), port(group, key, false), from_group, -1, key, false});
      from_group = group;
      below = group;
      group = items_.item(group).parent;
    }
    std::vector<int32_t> inward;  // groups around the reader, outermost last
    for (int32_t at = items_.item(to).parent; at != common; at = items_.item(at).parent) inward.push_back(at);
    const int32_t entered = inward.empty() ? to : inward.back();
    add_piece(common, {box_in(common, below), box_in(common, entered), is_stub ? -1 : from_group,
                       is_stub || inward.empty() ? -1 : entered, key, is_stub});
    if (is_stub) return;
    for (size_t i = inward.size(); i > 0; --i) {
      const int32_t inside = i > 1 ? inward[i - 2] : to;
      add_piece(inward[i - 1],
                {port(inward[i - 1], key, true), box_in(inward[i - 1], inside), -1, i > 1 ? inside : -1, key, false});
    }
  }

  int32_t box_in(int32_t group, int32_t item) { return groups_[group].box_of.at(item); }

  int32_t port(int32_t group, const WireKey& key, bool inward) {
    Group& at = groups_[group];
    auto& ports = inward ? at.in_ports : at.out_ports;
    const auto [found, is_new] = ports.emplace(key, at.box_count);
    if (is_new) ++at.box_count;
    return found->second;
  }

  void add_piece(int32_t group, const LocalEdge& edge) {
    Group& at = groups_[group];
    const auto [found, is_new] =
        at.edge_of.emplace(std::tuple(edge.from_box, edge.to_box, edge.key), static_cast<int32_t>(at.edges.size()));
    if (is_new) at.edges.push_back(edge);
    pieces_.back().push_back({group, found->second});
  }

  // ---- layout ----

  LayoutBox size_of(int32_t index) const {
    if (const auto group = groups_.find(index); group != groups_.end()) {
      const Layout& inner = *group->second.layout;
      const float title = kMetrics.character_width * static_cast<float>(items_.item(index).title.size()) + 60;
      return {std::max(inner.width, std::min(title, kMetrics.greatest_width)) + 2 * kMetrics.padding,
              inner.height + kMetrics.title_height + kMetrics.padding * 2};
    }
    const GraphItem& item = items_.item(index);
    const bool is_pill = item.kind == GraphItem::Kind::input || item.kind == GraphItem::Kind::output;
    const std::string& name = item.module.empty() ? item.title : item.module;
    const size_t characters = is_pill ? item.title.size() + 1 : std::max(name.size(), item.detail.size() + 6);
    float width = kMetrics.character_width * static_cast<float>(characters) + 16;
    const bool has_constants = !item.constants_text.empty();
    if (has_constants)
      width = std::max(width, kMetrics.character_width * static_cast<float>(item.constants_text.size()));
    return {std::clamp(width, kMetrics.least_width, kMetrics.greatest_width),
            is_pill ? kMetrics.pill_height : kMetrics.node_height + (has_constants ? kMetrics.constants_height : 0)};
  }

  // The x of a group's port, from the left side of its `box` in another group.
  float port_x(int32_t group, const WireKey& key, bool inward) const {
    const Group& at = groups_.at(group);
    const auto& ports = inward ? at.in_ports : at.out_ports;
    return kMetrics.padding + at.layout->boxes[static_cast<size_t>(ports.at(key))].x;
  }

  void lay_out(int32_t index) {
    Group& group = groups_.at(index);
    LayoutGraph graph;
    for (int32_t item : group.boxes) graph.boxes.push_back(size_of(item));
    graph.boxes.resize(static_cast<size_t>(group.box_count));
    for (const auto& [key, box] : group.in_ports) graph.boxes[static_cast<size_t>(box)].pin = LayoutBox::Pin::top;
    for (const auto& [key, box] : group.out_ports) graph.boxes[static_cast<size_t>(box)].pin = LayoutBox::Pin::bottom;
    std::map<WireKey, int32_t> wires;
    for (const LocalEdge& edge : group.edges) {
      LayoutEdge added;
      added.from = edge.from_box;
      added.to = edge.to_box;
      added.wire = wires.emplace(edge.key, static_cast<int32_t>(wires.size())).first->second;
      added.is_stub = edge.is_stub;
      if (edge.from_group >= 0) added.from_x = port_x(edge.from_group, edge.key, false);
      if (edge.to_group >= 0) added.to_x = port_x(edge.to_group, edge.key, true);
      graph.edges.push_back(added);
    }
    std::string key = key_of(graph);
    std::shared_ptr<const Layout>& known = maker_.known_[std::move(key)];
    if (known == nullptr) known = std::make_shared<Layout>(layered_layout(graph));
    group.layout = known;
  }

  void add_boxes(int32_t index, float x, float y) {
    const Group& group = groups_.at(index);
    origins_[index] = {x, y};
    for (size_t box = 0; box < group.boxes.size(); ++box) {
      const int32_t item = group.boxes[box];
      const LayoutBox size = size_of(item);
      const bool opened = groups_.contains(item);
      const LayoutPoint corner{x + group.layout->boxes[box].x, y + group.layout->boxes[box].y};
      scene_.box_of_item[static_cast<size_t>(item)] = static_cast<int32_t>(scene_.boxes.size());
      scene_.boxes.push_back({item, corner.x, corner.y, size.width, size.height, opened});
      if (opened) add_boxes(item, corner.x + kMetrics.padding, corner.y + kMetrics.title_height + kMetrics.padding);
    }
  }

  void join(size_t index) {
    SceneWire& wire = scene_.wires[index];
    for (const Piece& piece : pieces_[index]) {
      const EdgeRoute& route = groups_.at(piece.group).layout->edges[static_cast<size_t>(piece.edge)];
      if (route.kind != EdgeKind::led) wire.kind = route.kind;
    }
    if (wire.kind != EdgeKind::led) return;
    for (const Piece& piece : pieces_[index]) {
      const LayoutPoint origin = origins_.at(piece.group);
      for (const LayoutPoint& point : groups_.at(piece.group).layout->edges[static_cast<size_t>(piece.edge)].points) {
        wire.points.push_back({origin.x + point.x, origin.y + point.y});
      }
    }
  }

  SceneMaker& maker_;
  const GraphItems& items_;
  const std::vector<bool>& open_;
  Scene scene_;
  std::map<int32_t, Group> groups_;
  std::vector<int32_t> order_;              // open groups, outer before inner
  std::vector<std::vector<Piece>> pieces_;  // of each wire
  std::map<int32_t, LayoutPoint> origins_;
};

Scene SceneMaker::make(const std::vector<bool>& open) {
  if (known_.size() > kMaxKnown) known_.clear();
  return SceneBuilder(*this, open).build();
}

}  // namespace parallax
