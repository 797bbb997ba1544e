// The command table: what can be done, how it is called, and which keys do it.
#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "inspector/base/text.h"
#include "inspector/workbench/viewer.h"

namespace parallax {
namespace {

bool has_document(Viewer& v) { return v.document() != nullptr; }

bool first_divergence(Viewer& v) { return !v.alerts().empty() && v.select_row(v.alerts().front().row); }

bool worst_value(Viewer& v) {
  if (!has_document(v) || !v.graph.has_graph()) return false;
  return v.select_row(v.graph.summary(0).worst_row);
}

bool go_producer(Viewer& v) {
  if (!v.graph.has_graph() || v.item() < 0) return false;
  const auto items = v.graph.producers_of(v.item());
  return !items.empty() && v.select_item(items.front());
}

bool go_reader(Viewer& v) {
  if (!v.graph.has_graph() || v.item() < 0) return false;
  const auto items = v.graph.readers_of(v.item());
  return !items.empty() && v.select_item(items.front());
}

bool go_sibling(Viewer& v, int step) {
  return v.graph.has_graph() && v.item() >= 0 && v.select_item(v.graph.neighbour(v.item(), step));
}

bool open_block(Viewer& v) {
  if (!v.graph.has_graph() || v.item() < 0 || !v.graph.can_open(v.item())) return false;
  v.graph.set_open(v.item(), !v.graph.is_open(v.item()));
  return true;
}

bool close_outer(Viewer& v) {
  if (!v.graph.has_graph() || v.item() < 0) return false;
  int32_t outer = v.graph.items().item(v.item()).parent;
  while (outer > 0 && !v.graph.can_open(outer)) outer = v.graph.items().item(outer).parent;
  if (outer <= 0) return false;
  v.graph.set_open(outer, false);
  return v.select_item(outer);
}

template <Preset kPreset>
bool set_preset(Viewer& v) {
  v.preset = kPreset;
  if (kPreset == Preset::table) v.left_tab = LeftTab::table;
  v.tensor_maximised = false;
  return true;
}

template <TensorMode kMode>
bool set_mode(Viewer& v) {
  v.set_tensor_mode(kMode);
  return v.tensor().mode == kMode;
}

template <ColourBy kBy>
bool colour_by(Viewer& v) {
  v.graph.set_colour_by(kBy);
  return true;
}

bool flip(bool& flag) {
  flag = !flag;
  return true;
}

bool step_element(Viewer& v, int64_t rows, int64_t columns) {
  TensorPane& pane = v.tensor();
  if (!pane.model.has_value() || pane.element < 0) return false;
  const auto [row, column] = pane.model->place_of(pane.element);
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

bool copy_command(Viewer& v) {
  v.clipboard = v.inspector().command;
  if (!v.clipboard.empty()) v.note = "copied: " + v.clipboard;
  return !v.clipboard.empty();
}

bool escape(Viewer& v) {
  for (bool* window : {&v.show_palette, &v.show_help, &v.show_open, &v.show_run}) {
    if (!*window) continue;
    *window = false;
    return true;
  }
  if (!v.messages.empty()) {
    v.messages.pop_back();
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
  ValueRange& range = v.tensor().range;
  const double most = std::max(std::abs(range.low), std::abs(range.high));
  range = {-most, most};
  v.tensor().is_auto_range = false;
  ++v.tensor().version;
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
    {"file.quit", "File", "Quit", "Ctrl+Q", [](Viewer& v) { return v.wants_quit = true; }},

    {"go.first_divergence", "Go", "First divergence", "Home", first_divergence},
    {"go.next_divergence", "Go", "Next divergence", "N", [](Viewer& v) { return v.step_alert(1); }},
    {"go.previous_divergence", "Go", "Previous divergence", "Shift+N", [](Viewer& v) { return v.step_alert(-1); }},
    {"go.worst_value", "Go", "Worst value", "W", worst_value},
    {"go.worst_element", "Go", "Worst element of the value", "E",
     [](Viewer& v) {
       v.worst_element();
       return v.tensor().element >= 0;
     }},
    {"go.next_value", "Go", "Next value in execution order", "RightBracket", [](Viewer& v) { return v.step_row(1); }},
    {"go.previous_value", "Go", "Previous value in execution order", "LeftBracket",
     [](Viewer& v) { return v.step_row(-1); }},
    {"go.next_iteration", "Go", "Same value, next iteration", "Period", [](Viewer& v) { return v.step_iteration(1); }},
    {"go.previous_iteration", "Go", "Same value, previous iteration", "Comma",
     [](Viewer& v) { return v.step_iteration(-1); }},
    {"go.producer", "Go", "To the producer", "Ctrl+Up", go_producer},
    {"go.reader", "Go", "To the reader", "Ctrl+Down", go_reader},
    {"go.left", "Go", "To the node at the left", "Ctrl+Left", [](Viewer& v) { return go_sibling(v, -1); }},
    {"go.right", "Go", "To the node at the right", "Ctrl+Right", [](Viewer& v) { return go_sibling(v, 1); }},
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

    {"view.search", "View", "Search", "Ctrl+F Slash", [](Viewer& v) { return v.focus_search = true; }},
    {"view.palette", "View", "All commands", "Ctrl+P", [](Viewer& v) { return flip(v.show_palette); }},
    {"view.help", "View", "Keys", "Shift+Slash F12", [](Viewer& v) { return flip(v.show_help); }},
    {"view.all", "View", "All panes", "F1", set_preset<Preset::all>},
    {"view.graph", "View", "Graph", "F2", set_preset<Preset::graph>},
    {"view.tensor", "View", "Graph and tensor", "F3", set_preset<Preset::tensor>},
    {"view.table", "View", "Table", "F4", set_preset<Preset::table>},
    {"view.maximise_tensor", "View", "Tensor viewer over all", "Ctrl+Enter",
     [](Viewer& v) { return flip(v.tensor_maximised); }},
    {"view.theme", "View", "Dark or light", "T", [](Viewer& v) { return flip(v.is_dark); }},
    {"view.legend", "View", "Legend", "K", [](Viewer& v) { return flip(v.show_legend); }},
    {"view.escape", "View", "Close, dismiss, clear", "Escape", escape},

    {"graph.fit", "Graph", "Fit", "Space F",
     [](Viewer& v) {
       v.graph.fit();
       return v.graph.has_graph();
     }},
    {"graph.open", "Graph", "Open or close the block", "Enter", open_block},
    {"graph.up", "Graph", "Close the block around", "Backspace", close_outer},
    {"graph.open_all", "Graph", "Open all blocks", "Ctrl+Shift+O",
     [](Viewer& v) {
       v.graph.open_all();
       v.graph.fit();
       return v.graph.has_graph();
     }},
    {"graph.close_all", "Graph", "Close all blocks", "Ctrl+Shift+C",
     [](Viewer& v) {
       v.graph.close_all();
       v.graph.fit();
       return v.graph.has_graph();
     }},
    {"graph.zoom_in", "Graph", "Zoom in", "Equal Ctrl+Equal",
     [](Viewer& v) {
       v.graph.zoom_at(v.graph.canvas_width / 2, v.graph.canvas_height / 2, 1.25F);
       return true;
     }},
    {"graph.zoom_out", "Graph", "Zoom out", "Minus Ctrl+Minus",
     [](Viewer& v) {
       v.graph.zoom_at(v.graph.canvas_width / 2, v.graph.canvas_height / 2, 0.8F);
       return true;
     }},

    {"colour.severity", "Colour by", "Error / limit", "", colour_by<ColourBy::severity>},
    {"colour.max_abs", "Colour by", "Largest |a-b|", "", colour_by<ColourBy::max_abs>},
    {"colour.rmse", "Colour by", "RMS of a-b", "", colour_by<ColourBy::rmse>},
    {"colour.cosine", "Colour by", "Cosine distance", "", colour_by<ColourBy::cosine>},
    {"colour.ulp", "Colour by", "ULP", "", colour_by<ColourBy::ulp>},
    {"colour.nan", "Colour by", "NaN and Inf", "", colour_by<ColourBy::nan>},
    {"colour.introduced", "Colour by", "Introduced error", "", colour_by<ColourBy::introduced>},
    {"colour.op", "Colour by", "Operator", "", colour_by<ColourBy::op>},

    {"tensor.a", "Tensor", "A", "1", set_mode<TensorMode::a>},
    {"tensor.b", "Tensor", "B", "2", set_mode<TensorMode::b>},
    {"tensor.difference", "Tensor", "A-B", "3", set_mode<TensorMode::difference>},
    {"tensor.absolute", "Tensor", "|A-B|", "4", set_mode<TensorMode::absolute>},
    {"tensor.relative", "Tensor", "Relative difference", "5", set_mode<TensorMode::relative>},
    {"tensor.ulp", "Tensor", "ULP", "6", set_mode<TensorMode::ulp>},
    {"tensor.severity", "Tensor", "Severity", "7", set_mode<TensorMode::severity>},
    {"tensor.specials", "Tensor", "NaN and Inf alone", "M",
     [](Viewer& v) {
       ++v.tensor().version;
       return flip(v.tensor().specials_only);
     }},
    {"tensor.hex", "Tensor", "Bits in the table", "X", [](Viewer& v) { return flip(v.tensor().hex); }},
    {"tensor.autofit", "Tensor", "Fit the range", "A R", autofit},
    {"tensor.symmetric", "Tensor", "Range symmetric about 0", "S", symmetric},
    {"tensor.next_slice", "Tensor", "Next slice", "PageDown", [](Viewer& v) { return step_slice(v, 1); }},
    {"tensor.previous_slice", "Tensor", "Previous slice", "PageUp", [](Viewer& v) { return step_slice(v, -1); }},
    {"tensor.left", "Tensor", "Element at the left", "Left", [](Viewer& v) { return step_element(v, 0, -1); }},
    {"tensor.right", "Tensor", "Element at the right", "Right", [](Viewer& v) { return step_element(v, 0, 1); }},
    {"tensor.up", "Tensor", "Element above", "Up", [](Viewer& v) { return step_element(v, -1, 0); }},
    {"tensor.down", "Tensor", "Element below", "Down", [](Viewer& v) { return step_element(v, 1, 0); }},
    {"tensor.copy_command", "Tensor", "Copy the command that repeats this", "Ctrl+C", copy_command},
};

bool contains_word(std::string_view text, std::string_view word) {
  const auto equal = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), equal) != text.end();
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

const Command* find_command(std::string_view id) {
  const auto found = std::ranges::find(kCommands, id, &Command::id);
  return found == std::end(kCommands) ? nullptr : &*found;
}

const Command* command_for_key(std::string_view chord) {
  for (const Command& command : kCommands) {
    for (std::string_view key : split(command.keys, ' ')) {
      if (!chord.empty() && key == chord) return &command;
    }
  }
  return nullptr;
}

std::vector<const Command*> find_commands(std::string_view words) {
  std::vector<const Command*> found;
  for (const Command& command : kCommands) {
    const auto parts = split(words, ' ');
    const bool fits = std::ranges::all_of(parts, [&](std::string_view word) {
      return contains_word(command.title, word) || contains_word(command.group, word) ||
             contains_word(command.id, word);
    });
    if (fits) found.push_back(&command);
  }
  return found;
}

}  // namespace parallax
