// SPDX-License-Identifier: Apache-2.0
// Walking along the graph.
#include "gui/viewmodel/viewer_graph_commands.h"

namespace parallax {

bool go_producer(Viewer& v) {
  if (!v.graph.has_graph() || v.active_item() < 0) return false;
  const auto items = v.active_graph().producers_of(v.active_item());
  return !items.empty() && v.select_active(items.front());
}

bool go_reader(Viewer& v) {
  if (!v.graph.has_graph() || v.active_item() < 0) return false;
  const auto items = v.active_graph().readers_of(v.active_item());
  return !items.empty() && v.select_active(items.front());
}

bool go_sibling(Viewer& v, int step) {
  return v.graph.has_graph() && v.active_item() >= 0 &&
         v.select_active(v.active_graph().neighbor(v.active_item(), step));
}

bool open_block(Viewer& v) {
  if (!v.graph.has_graph() || v.active_item() < 0) return false;
  GraphView& graph = v.active_graph();
  const int32_t shown = graph.scene().shown_as[static_cast<size_t>(v.active_item())];  // the closed block that hides it
  if (shown < 0 || !graph.can_open(shown)) return false;
  v.set_open(graph, shown, !graph.is_open(shown));
  return true;
}

bool close_outer(Viewer& v) {
  if (!v.graph.has_graph() || v.active_item() < 0) return false;
  GraphView& graph = v.active_graph();
  int32_t outer = graph.items().item(v.active_item()).parent;
  while (outer > 0 && !graph.can_open(outer)) outer = graph.items().item(outer).parent;
  if (outer <= 0) return v.active_item() > 0 && v.select_active(0);
  v.set_open(graph, outer, false);
  return v.select_active(outer);
}

bool open_all(Viewer& v) {
  v.graph.open_all(v.item());
  v.graph_b.open_all(v.item_b());
  return v.graph.has_graph();
}

bool close_all(Viewer& v) {
  v.graph.close_all(v.item());
  v.graph_b.close_all(v.item_b());
  return v.graph.has_graph();
}

bool fit_graph(Viewer& v) {
  if (!v.graph.has_graph()) return false;
  const bool is_whole = v.graph.is_fitted && v.graph.is_whole;
  const auto fit = [&](GraphView& graph, int32_t item) {
    if (is_whole && item >= 0) return graph.focus_on(item);
    graph.fit_whole();
  };
  fit(v.graph, v.item());
  if (v.graph_b.has_graph()) fit(v.graph_b, v.item_b());
  return true;
}

bool zoom_graph(Viewer& v, float factor) {
  GraphView& graph = v.active_graph();
  graph.zoom_at(graph.canvas_width / 2, graph.canvas_height / 2, factor);
  return true;
}

}  // namespace parallax
