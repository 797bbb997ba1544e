// SPDX-License-Identifier: Apache-2.0
// The command table: what can be done, how it is called, and which keys do it.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gui/viewmodel/viewer.h"
#include "gui/viewmodel/viewer_graph_commands.h"

namespace parallax {
namespace {

bool has_document(Viewer& v) { return v.document() != nullptr; }

bool first_divergence(Viewer& v) {
  if (v.walks_differences()) return v.select_difference(0);
  return !v.alerts().empty() && v.select_row(v.alerts().front().row);
}

bool worst_value(Viewer& v) { return has_document(v) && v.select_row(worst_row(*v.document())); }

template <Preset kPreset>
bool set_preset(Viewer& v) {
  v.preset = kPreset;
  if (kPreset == Preset::table) v.left_tab = LeftTab::table;
  v.tensor_maximized = false;
  return true;
}

template <TensorMode kMode>
bool set_mode(Viewer& v) {
  v.set_tensor_mode(kMode);
  return v.tensor().model.has_value() && v.tensor().mode == kMode;
}

template <ColorBy kBy>
bool color_by(Viewer& v) {
  v.set_color_by(kBy);
  return v.graph.has_graph();
}

bool flip(bool& flag) {
  flag = !flag;
  return true;
}

// A setting that the figures of the value depend on.
bool flip_setting(Viewer& v, bool& setting) {
  if (!v.tensor().model.has_value()) return false;
  ++v.tensor().version;
  return flip(setting);
}

bool step_element(Viewer& v, int64_t rows, int64_t columns) {
  TensorPane& pane = v.tensor();
  if (!pane.model.has_value() || pane.element < 0) return false;
  const auto [row, column] = pane.model->location_of(pane.element);
  const int64_t element = pane.model->element_at(row + rows, column + columns);
  if (element < 0) return false;
  v.select_element(element);
  return true;
}

bool step_slice(Viewer& v, int step) {
  if (!v.tensor().model.has_value() || !v.tensor().model->step_slice(step)) return false;
  v.tensor().element = -1;
  v.refresh_range();
  return true;
}

bool copy_command(Viewer& v) { return v.copy(v.inspector().command); }

bool copy_view(Viewer& v) { return v.copy(view_command(v)); }

// The name of the selected value, else of the node.
bool copy_name(Viewer& v) {
  if (!has_document(v)) return false;
  if (v.row() >= 0) return v.copy(v.document()->rows[static_cast<size_t>(v.row())].path);
  return v.item() >= 0 && v.copy(v.graph.items().item(v.item()).title);
}

bool copy_row(Viewer& v) { return v.row() >= 0 && v.copy(table_row_text(*v.document(), v.row())); }

bool copy_table(Viewer& v) {
  if (!has_document(v)) return false;
  std::string text = table_title_text(*v.document()) + "\n";
  for (const int32_t row : v.table_rows()) text += table_row_text(*v.document(), row) + "\n";
  return v.copy(std::move(text));
}

bool copy_element(Viewer& v) {
  const TensorPane& pane = v.tensor();
  if (!pane.model.has_value() || pane.element < 0) return false;
  const ElementView view = pane.model->describe(pane.element);
  std::string text = view.index;
  for (const std::string* part : {&view.a, &view.b, &view.difference, &view.ulp, &view.severity}) {
    if (!part->empty()) text += "\t" + *part;
  }
  return v.copy(std::move(text));
}

bool copy_inspector(Viewer& v) {
  const InspectorView view = v.inspector();
  if (view.title.empty()) return false;
  std::string text = view.title + "\n" + view.subtitle + "\n";
  for (const InspectorSection& section : view.sections) {
    text += "\n" + section.title + "\n";
    for (const InspectorLine& line : section.lines)
      text += line.key + "\t" + line.a + (line.b.empty() ? "" : "\t" + line.b) + "\n";
  }
  return v.copy(std::move(text));
}

bool choose_iteration(Viewer& v, int64_t step) {
  if (!has_document(v) || v.document()->iterations == 0) return false;
  const int64_t next = v.graph.iteration() + step;
  if (next < -1 || next >= v.document()->iterations) return false;
  v.set_iteration(next);
  return true;
}

template <TensorTab kTab>
bool show_tab(Viewer& v) {
  v.tensor().tab = kTab;
  return v.tensor().model.has_value();
}

bool escape(Viewer& v) {
  for (bool* window :
       {&v.show_palette, &v.show_help, &v.show_open, &v.show_run, &v.show_export, &v.show_goto, &v.show_replace}) {
    if (!*window) continue;
    *window = false;
    return true;
  }
  if (!v.messages.empty()) {
    v.messages.pop_back();
    return true;
  }
  if (v.tensor().filter.brush.has_value()) {
    v.set_brush(std::nullopt);
    return true;
  }
  if (v.search().empty()) return false;
  v.set_search("");
  return true;
}

bool autofit(Viewer& v) {
  v.tensor().is_auto_range = true;
  v.refresh_range();
  return v.tensor().model.has_value();
}

bool symmetric(Viewer& v) {
  const ValueRange range = v.tensor().range;
  const double most = std::max(std::abs(range.low), std::abs(range.high));
  v.set_range({-most, most});
  return true;
}

bool size_text(Viewer& v, float factor) {
  const float size = v.text_size * factor;
  if (size < 0.6F || size > 3) return false;
  v.text_size = std::abs(size - 1) < 0.02F ? 1 : size;
  return true;
}

template <int kNumber>
bool bookmark(Viewer& v) {
  return kNumber <= static_cast<int>(v.bookmarks().size()) && v.select_row(v.bookmarks()[kNumber - 1]);
}

constexpr Command kCommands[] = {
    {"file.open", "File", "Open...", "Ctrl+O", [](Viewer& v) { return flip(v.show_open); }},
    {"file.run", "File", "Run a model...", "Ctrl+R", [](Viewer& v) { return flip(v.show_run); }},
    {"file.reload", "File", "Reload", "F5",
     [](Viewer& v) {
       v.reload();
       return v.is_busy();
     }},
    {"file.cancel", "File", "Cancel the job", "Ctrl+Period",
     [](Viewer& v) {
       v.cancel_job();
       return v.is_busy();
     }},
    {"file.export", "File", "Export...", "Ctrl+E", [](Viewer& v) { return flip(v.show_export); }},
    {"file.desktop_chooser", "File", "Open with the desktop's file chooser", "",
     [](Viewer& v) { return flip(v.uses_desktop_chooser); }},
    {"file.close", "File", "Back to the start", "Ctrl+W",
     [](Viewer& v) {
       if (!has_document(v)) return false;
       v.close();
       return true;
     }},
    {"file.quit", "File", "Quit", "Ctrl+Q", [](Viewer& v) { return v.wants_quit = true; }},

    {"edit.copy_name", "Edit", "Copy the name of the value or node", "Ctrl+C", copy_name},
    {"edit.copy_row", "Edit", "Copy its row of the table", "Ctrl+Alt+C", copy_row},
    {"edit.copy_table", "Edit", "Copy the table as it is listed", "", copy_table},
    {"edit.copy_element", "Edit", "Copy the element with its figures", "Ctrl+Shift+E", copy_element},
    {"edit.copy_inspector", "Edit", "Copy all that the inspector says", "", copy_inspector},
    {"edit.copy_message", "Edit", "Copy the message", "",
     [](Viewer& v) { return !v.messages.empty() && v.copy(v.messages.back()); }},
    {"tensor.copy_command", "Edit", "Copy the command that repeats this", "Ctrl+Shift+X", copy_command},
    {"file.copy_view", "Edit", "Copy the command that shows this view", "Ctrl+Shift+C", copy_view},

    {"go.first_divergence", "Go", "First divergence", "Home", first_divergence},
    {"go.next_divergence", "Go", "Next divergence, or difference of two models", "N",
     [](Viewer& v) { return v.step_alert(1); }},
    {"go.previous_divergence", "Go", "Previous divergence, or difference of two models", "Shift+N",
     [](Viewer& v) { return v.step_alert(-1); }},
    {"go.worst_value", "Go", "Worst value", "W", worst_value},
    {"go.worst_element", "Go", "Worst element of the value", "E",
     [](Viewer& v) {
       v.worst_element();
       return v.tensor().element >= 0 || v.tensor().wants_worst;
     }},
    {"go.next_value", "Go", "Next value in execution order", "RightBracket", [](Viewer& v) { return v.step_row(1); }},
    {"go.previous_value", "Go", "Previous value in execution order", "LeftBracket",
     [](Viewer& v) { return v.step_row(-1); }},
    {"go.next_iteration", "Go", "Same value, next iteration", "Period", [](Viewer& v) { return v.step_iteration(1); }},
    {"go.previous_iteration", "Go", "Same value, previous iteration", "Comma",
     [](Viewer& v) { return v.step_iteration(-1); }},
    {"go.next_hit", "Go", "Next hit of the search", "Ctrl+J", [](Viewer& v) { return v.step_hit(1); }},
    {"go.previous_hit", "Go", "Previous hit of the search", "Ctrl+Shift+J", [](Viewer& v) { return v.step_hit(-1); }},
    {"go.producer", "Go", "Go to producer", "Ctrl+Up", go_producer},
    {"go.reader", "Go", "Go to consumer", "Ctrl+Down", go_reader},
    {"go.left", "Go", "Go to the node at the left", "Ctrl+Left", [](Viewer& v) { return go_sibling(v, -1); }},
    {"go.right", "Go", "Go to the node at the right", "Ctrl+Right", [](Viewer& v) { return go_sibling(v, 1); }},
    {"go.back", "Go", "Back", "Alt+Left", [](Viewer& v) { return v.go(-1); }},
    {"go.forward", "Go", "Forward", "Alt+Right", [](Viewer& v) { return v.go(1); }},
    {"go.bookmark", "Go", "Set or clear a bookmark", "Ctrl+B",
     [](Viewer& v) {
       v.toggle_bookmark();
       return v.row() >= 0;
     }},
    {"go.bookmark_1", "Go", "Bookmark 1", "Ctrl+1", bookmark<1>},
    {"go.bookmark_2", "Go", "Bookmark 2", "Ctrl+2", bookmark<2>},
    {"go.bookmark_3", "Go", "Bookmark 3", "Ctrl+3", bookmark<3>},
    {"go.bookmark_4", "Go", "Bookmark 4", "Ctrl+4", bookmark<4>},
    {"go.bookmark_5", "Go", "Bookmark 5", "Ctrl+5", bookmark<5>},
    {"go.bookmark_6", "Go", "Bookmark 6", "Ctrl+6", bookmark<6>},
    {"go.bookmark_7", "Go", "Bookmark 7", "Ctrl+7", bookmark<7>},
    {"go.bookmark_8", "Go", "Bookmark 8", "Ctrl+8", bookmark<8>},
    {"go.bookmark_9", "Go", "Bookmark 9", "Ctrl+9", bookmark<9>},

    {"view.search", "View", "Search", "Ctrl+F Slash", [](Viewer& v) { return v.focus_search = true; }},
    {"view.palette", "View", "All commands", "Ctrl+P", [](Viewer& v) { return flip(v.show_palette); }},
    {"view.help", "Help", "Keys", "Shift+Slash F12", [](Viewer& v) { return flip(v.show_help); }},
    {"view.all", "View", "All panes", "F1", set_preset<Preset::all>},
    {"view.graph", "View", "Graph", "F2", set_preset<Preset::graph>},
    {"view.tensor", "View", "Graph and tensor", "F3", set_preset<Preset::tensor>},
    {"view.table", "View", "Table", "F4", set_preset<Preset::table>},
    {"view.maximise_tensor", "View", "Tensor viewer over all", "Ctrl+Enter",
     [](Viewer& v) { return flip(v.tensor_maximized); }},
    {"view.theme", "View", "Dark or light", "T", [](Viewer& v) { return flip(v.is_dark); }},
    {"view.text_larger", "View", "Larger text", "Ctrl+Alt+Equal", [](Viewer& v) { return size_text(v, 1.1F); }},
    {"view.text_smaller", "View", "Smaller text", "Ctrl+Alt+Minus", [](Viewer& v) { return size_text(v, 1 / 1.1F); }},
    {"view.text_normal", "View", "Text as large as the screen asks for", "Ctrl+Alt+0",
     [](Viewer& v) { return size_text(v, 1 / v.text_size); }},
    {"view.legend", "View", "Legend", "K", [](Viewer& v) { return flip(v.show_legend); }},
    {"view.shapes", "View", "Shapes on edges", "D", [](Viewer& v) { return flip(v.graph.shows_shapes); }},
    {"help.about", "Help", "About Parallax", "",
     [](Viewer& v) {
       v.note = "Parallax " + v.version + ", Apache License 2.0; samples/GUIDE.md is a guide by tasks";
       return true;
     }},
    {"view.escape", "View", "Close, dismiss, clear", "Escape", escape},

    {"graph.fit", "Graph", "Fit graph / fit selection", "Space F", fit_graph},
    {"graph.open", "Graph", "Open or close the block", "Enter", open_block},
    {"graph.up", "Graph", "Close the block around", "Backspace", close_outer},
    {"graph.open_all", "Graph", "Open all blocks", "Ctrl+Shift+O", open_all},
    {"graph.close_all", "Graph", "Close all blocks", "Ctrl+Shift+W", close_all},
    {"graph.zoom_in", "Graph", "Zoom in", "Equal Ctrl+Equal Ctrl+Shift+Equal",
     [](Viewer& v) { return zoom_graph(v, 1.25F); }},
    {"graph.zoom_out", "Graph", "Zoom out", "Minus Ctrl+Minus", [](Viewer& v) { return zoom_graph(v, 0.8F); }},
    {"graph.next_iteration", "Graph", "Colors of the next iteration", "Shift+Period",
     [](Viewer& v) { return choose_iteration(v, 1); }},
    {"graph.previous_iteration", "Graph", "Colors of the iteration before", "Shift+Comma",
     [](Viewer& v) { return choose_iteration(v, -1); }},
    {"graph.measure_times", "Graph", "Time every node", "",
     [](Viewer& v) {
       v.graph.set_color_by(ColorBy::time);
       v.measure_times();
       return v.is_busy();
     }},
    {"graph.wheel", "Graph", "Wheel moves or zooms", "Ctrl+M", [](Viewer& v) { return flip(v.wheel_zooms); }},

    {"colour.severity", "Color by", "Error / limit", "", color_by<ColorBy::severity>},
    {"colour.max_abs", "Color by", "Largest |a-b|", "", color_by<ColorBy::max_abs>},
    {"colour.rmse", "Color by", "RMS of a-b", "", color_by<ColorBy::rmse>},
    {"colour.cosine", "Color by", "Cosine distance", "", color_by<ColorBy::cosine>},
    {"colour.ulp", "Color by", "ULP", "", color_by<ColorBy::ulp>},
    {"colour.nan", "Color by", "NaN and Inf", "", color_by<ColorBy::nan>},
    {"colour.introduced", "Color by", "Introduced error", "", color_by<ColorBy::introduced>},
    {"colour.op", "Color by", "Operator", "", color_by<ColorBy::op>},
    {"colour.time", "Color by", "Time", "", color_by<ColorBy::time>},
    {"colour.structure", "Color by", "Difference of two models", "", color_by<ColorBy::structure>},

    {"tensor.a", "Tensor", "A", "1", set_mode<TensorMode::a>},
    {"tensor.b", "Tensor", "B", "2", set_mode<TensorMode::b>},
    {"tensor.difference", "Tensor", "A-B", "3", set_mode<TensorMode::difference>},
    {"tensor.absolute", "Tensor", "|A-B|", "4", set_mode<TensorMode::absolute>},
    {"tensor.relative", "Tensor", "Relative difference", "5", set_mode<TensorMode::relative>},
    {"tensor.ulp", "Tensor", "ULP", "6", set_mode<TensorMode::ulp>},
    {"tensor.severity", "Tensor", "Severity", "7", set_mode<TensorMode::severity>},
    {"tensor.split", "Tensor", "A, B and the measure side by side", "8 V",
     [](Viewer& v) { return flip(v.tensor().is_split); }},
    {"tensor.montage", "Tensor", "All channels as tiles", "9 G",
     [](Viewer& v) {
       if (!v.tensor().model.has_value()) return false;
       v.set_montage(!v.tensor().is_montage);
       return true;
     }},
    {"tensor.specials", "Tensor", "NaN and Inf alone", "M",
     [](Viewer& v) { return flip_setting(v, v.tensor().filter.specials_only); }},
    {"tensor.goto", "Tensor", "Go to an index...", "Ctrl+G",
     [](Viewer& v) { return v.tensor().model.has_value() && flip(v.show_goto); }},
    {"tensor.linear_counts", "Tensor", "Counts of the histogram linear or logarithmic", "H",
     [](Viewer& v) { return v.tensor().model.has_value() && flip(v.tensor().linear_counts); }},
    {"tensor.whole", "Tensor", "Histogram and lists of all slices", "Shift+H",
     [](Viewer& v) {
       bool whole = v.tensor().counts_whole();
       if (!flip_setting(v, whole)) return false;
       v.tensor().chosen_whole = whole;
       return true;
     }},
    {"tensor.flip_axis", "Tensor", "Values of the histogram logarithmic or linear", "Alt+H",
     [](Viewer& v) { return flip_setting(v, v.tensor().flips_axis); }},
    {"tensor.clear_brush", "Tensor", "All values again", "C",
     [](Viewer& v) {
       const bool was_set = v.tensor().filter.brush.has_value();
       v.set_brush(std::nullopt);
       return was_set;
     }},
    {"tensor.tab_worst", "Tensor", "List the worst elements", "Ctrl+Shift+1", show_tab<TensorTab::worst>},
    {"tensor.tab_values", "Tensor", "List all elements", "Ctrl+Shift+2", show_tab<TensorTab::values>},
    {"tensor.tab_channels", "Tensor", "Figures by channel", "Ctrl+Shift+3", show_tab<TensorTab::channels>},
    {"tensor.tab_around", "Tensor", "Surroundings of the element", "Ctrl+Shift+4", show_tab<TensorTab::around>},
    {"tensor.hex", "Tensor", "Bits in the table", "X",
     [](Viewer& v) { return v.tensor().model.has_value() && flip(v.tensor().hex); }},
    {"tensor.autofit", "Tensor", "Fit the range", "A R", autofit},
    {"tensor.symmetric", "Tensor", "Range symmetric about 0", "S", symmetric},
    {"tensor.next_slice", "Tensor", "Next slice", "PageDown", [](Viewer& v) { return step_slice(v, 1); }},
    {"tensor.previous_slice", "Tensor", "Previous slice", "PageUp", [](Viewer& v) { return step_slice(v, -1); }},
    {"tensor.left", "Tensor", "Element at the left", "Left", [](Viewer& v) { return step_element(v, 0, -1); }},
    {"tensor.right", "Tensor", "Element at the right", "Right", [](Viewer& v) { return step_element(v, 0, 1); }},
    {"tensor.up", "Tensor", "Element above", "Up", [](Viewer& v) { return step_element(v, -1, 0); }},
    {"tensor.down", "Tensor", "Element below", "Down", [](Viewer& v) { return step_element(v, 1, 0); }},
};

}  // namespace

std::span<const Command> commands() {
  static const auto* const all = new std::vector<Command>(with_run_commands(kCommands));
  return *all;
}

}  // namespace parallax
