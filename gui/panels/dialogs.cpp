// SPDX-License-Identifier: Apache-2.0
// Dialogs that open over the windows: the palette of commands, the keys, opening, running.
#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "gui/panels/panels.h"
#include "inspector/base/text.h"

namespace parallax::gui {
namespace {

bool begin_dialog(Ui& ui, const char* name, float width, float height) {
  const ImVec2 display = ImGui::GetIO().DisplaySize;
  const ImVec2 size{std::min(width * ui.scale, display.x * 0.92F),
                    height > 0 ? std::min(height * ui.scale, display.y * 0.85F) : 0};
  ImGui::SetNextWindowPos({display.x / 2, display.y * 0.12F}, ImGuiCond_Always, {0.5F, 0});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {14 * ui.scale, 12 * ui.scale});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 8 * ui.scale);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ui.theme().panel);
  constexpr ImGuiWindowFlags kFlags = ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize |
                                      ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                                      ImGuiWindowFlags_NoCollapse;
  const bool visible = ImGui::Begin(name, nullptr, kFlags);
  if (ImGui::IsWindowAppearing()) ImGui::SetWindowFocus();
  return visible;
}

void end_dialog() {
  ImGui::End();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(3);
}

std::string all_keys(const Command& command) {
  std::string text;
  for (std::string_view chord : split(command.keys, ' ')) text += (text.empty() ? "" : "  ") + readable_keys(chord);
  return text;
}

void draw_palette(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  if (begin_dialog(ui, "palette", 520, 420)) {
    if (ImGui::IsWindowAppearing()) {
      ui.palette_field.clear();
      ui.palette_at = 0;
    }
    ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(-1);
    if (text_field("##command", "type what you want to do", ui.palette_field)) ui.palette_at = 0;
    ui.mark("palette.field");
    const auto found = find_commands(ui.palette_field);
    ui.palette_at += (was_pressed(ui, "Down") ? 1 : 0) - (was_pressed(ui, "Up") ? 1 : 0);
    ui.palette_at = std::clamp(ui.palette_at, 0, std::max(0, static_cast<int>(found.size()) - 1));
    const Command* chosen =
        was_pressed(ui, "Enter") && !found.empty() ? found[static_cast<size_t>(ui.palette_at)] : nullptr;
    ImGui::BeginChild("found");
    if (found.empty()) ImGui::TextDisabled("No command is called so. Ctrl+F searches values and nodes.");
    for (size_t i = 0; i < found.size(); ++i) {
      const Command& command = *found[i];
      if (ImGui::Selectable(fmt::format("{}: {}##{}", command.group, command.title, command.id).c_str(),
                            static_cast<int>(i) == ui.palette_at))
        chosen = &command;
      ui.mark("palette:" + std::string(command.id));
      const std::string keys = all_keys(command);
      ImGui::SameLine(ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(keys.c_str()).x);
      ImGui::TextDisabled("%s", keys.c_str());
    }
    ImGui::EndChild();
    if (chosen != nullptr) {
      viewer.show_palette = false;
      ui.keys.clear();  // the key that chose it is not for the window it opens
      chosen->run(viewer);
    }
  }
  end_dialog();
}

void draw_help(Ui& ui) {
  if (begin_dialog(ui, "help", 860, 620)) {
    ImGui::TextUnformatted("Keys");
    ImGui::SameLine(ImGui::GetWindowWidth() - 80 * ui.scale);
    if (small_button(ui, "Close", "help.close")) ui.viewer->show_help = false;
    ImGui::Separator();
    if (ImGui::BeginTable("keys", 4, ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingStretchProp)) {
      int column = 0;
      const auto line = [&](const std::string& keys, std::string_view title) {
        if (column == 0) ImGui::TableNextRow();
        ImGui::TableSetColumnIndex(column);
        ImGui::TextDisabled("%s", keys.c_str());
        ImGui::TableSetColumnIndex(column + 1);
        ImGui::TextUnformatted(title.data());
        column = (column + 2) % 4;
      };
      for (const Command& command : commands()) {
        const bool is_bookmark = command.title.starts_with("Bookmark ");
        if (is_bookmark && command.title == "Bookmark 1") line("Ctrl+1 to 9", "Bookmarks");
        if (!is_bookmark && !command.keys.empty()) line(all_keys(command), command.title);
      }
      constexpr std::pair<const char*, const char*> kMouse[] = {
          {"Wheel", "Graph: move; with Ctrl, and over a picture: zoom"},
          {"Drag", "Move; on the graph with Ctrl: mark what fills the pane"},
          {"Double click", "Graph: open a block; picture: fit it"},
          {"Shift, Ctrl held", "Over a picture: A, B"},
          {"Drag the histogram", "Choose values"}};
      for (const auto& [keys, title] : kMouse) line(keys, title);
      ImGui::EndTable();
    }
  }
  end_dialog();
}

// One path, or two with a blank between them; a blank may be part of a name, too.
std::vector<std::string> paths_in(const std::string& text) {
  std::error_code error;
  const auto is_there = [&](const std::string& path) { return std::filesystem::exists(path, error); };
  if (is_there(text)) return {text};
  std::vector<std::string> parts;
  for (size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at + 1)) {
    parts = {text.substr(0, at), text.substr(at + 1)};
    if (is_there(parts[0]) && is_there(parts[1])) return parts;
  }
  return parts.empty() ? std::vector{text} : parts;
}

void draw_open(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  if (begin_dialog(ui, "open", 640, 0)) {
    ImGui::TextUnformatted("Open a model (.onnx), a dump (.plx), or two dumps");
    ImGui::SetNextItemWidth(-1);
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    text_field("##path", "path, or two paths with a blank between them", ui.path_field,
               ImGuiInputTextFlags_AutoSelectAll);
    const bool entered = was_pressed(ui, "Enter");
    ui.mark("open.path");
    ImGui::Dummy({0, 4 * ui.scale});
    const bool pressed = small_button(ui, "Open", "open.ok");
    ImGui::SameLine();
    if (small_button(ui, "Cancel", "open.cancel")) viewer.show_open = false;
    for (const std::string& recent : viewer.recent) {
      if (!ImGui::Selectable(title_of_recent(recent).c_str())) continue;
      ui.path_field = recent;
      std::ranges::replace(ui.path_field, kRecentSeparator, ' ');
    }
    if ((entered || pressed) && !ui.path_field.empty()) {
      viewer.show_open = false;
      viewer.open(paths_in(ui.path_field));
    }
  }
  end_dialog();
}

void executor_combo(Ui& ui, const char* label, std::string& executor) {
  ImGui::SetNextItemWidth(170 * ui.scale);
  if (ImGui::BeginCombo(label, executor.c_str())) {
    close_on_escape(ui);
    for (const char* name : {"reference", "reference:double", "cpu", "cuda"}) {
      if (ImGui::Selectable(name, executor == name)) executor = name;
    }
    ImGui::EndCombo();
  }
}

// Before a field that takes the rest of the line.
void label(const Ui& ui, const char* text) {
  ImGui::AlignTextToFramePadding();
  ImGui::TextDisabled("%s", text);
  ImGui::SameLine(92 * ui.scale);
  ImGui::SetNextItemWidth(-1);
}

void draw_run(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  RunForm& form = viewer.run_form;
  if (begin_dialog(ui, "run", 640, 0)) {
    ImGui::TextUnformatted("Run a model on two executors and compare every value");
    ImGui::Dummy({0, 2 * ui.scale});
    label(ui, "model");
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    text_field("##model", "path of the model (.onnx)", form.model);
    ui.mark("run.model");
    label(ui, "against");
    text_field("##against", "a second model as side B; empty: the same", form.against);
    ui.mark("run.against");
    label(ui, "inputs");
    text_field("##inputs", "a test_data_set folder, .npz or .safetensors; empty: generated", form.inputs);
    ui.mark("run.inputs");
    label(ui, "A runs on");
    executor_combo(ui, "##A", form.executor_a);
    ImGui::SameLine(0, 20 * ui.scale);
    ImGui::TextDisabled("B runs on");
    ImGui::SameLine(0, 10 * ui.scale);
    executor_combo(ui, "##B", form.executor_b);
    label(ui, "");
    ImGui::Checkbox("nothing is fused or folded away", &form.observe_all);
    ImGui::SameLine(0, 20 * ui.scale);
    ImGui::Checkbox("keep all elements", &form.keep_values);
    label(ui, "");
    ImGui::Checkbox("the reference runs what an executor lacks", &form.falls_back);
    ui.mark("run.fallback");
    ImGui::Dummy({0, 4 * ui.scale});
    const bool entered = small_button(ui, "Run", "run.ok") || was_pressed(ui, "Enter");
    if (entered && !form.model.empty()) {
      viewer.show_run = false;
      viewer.run(form);
    }
    ImGui::SameLine();
    if (small_button(ui, "Cancel", "run.cancel")) viewer.show_run = false;
  }
  end_dialog();
}

void draw_export(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  if (begin_dialog(ui, "export", 560, 0)) {
    ImGui::TextUnformatted("Export the graph as it is shown");
    ImGui::SetNextItemWidth(-1);
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    text_field("##to", "a path that ends in .svg, .png or .dot", ui.export_field, ImGuiInputTextFlags_AutoSelectAll);
    ui.mark("export.path");
    const auto change_ending = [&](const char* ending) {
      const size_t dot = ui.export_field.rfind('.');
      ui.export_field = (dot == std::string::npos ? ui.export_field : ui.export_field.substr(0, dot)) + ending;
    };
    for (const char* ending : {".svg", ".png", ".dot"}) {
      if (small_button(ui, ending, fmt::format("export{}", ending).c_str(), ui.export_field.ends_with(ending)))
        change_ending(ending);
      ImGui::SameLine(0, 3 * ui.scale);
    }
    ImGui::TextDisabled(ui.export_field.ends_with(".png") ? "what is in sight" : "all of it, groups as they are");
    ImGui::Dummy({0, 4 * ui.scale});
    const bool entered = small_button(ui, "Export", "export.ok") || was_pressed(ui, "Enter");
    ImGui::SameLine();
    if (small_button(ui, "Cancel", "export.cancel")) viewer.show_export = false;
    if (entered && !ui.export_field.empty()) {
      viewer.show_export = false;
      viewer.export_or_ask(ui.export_field);
    }
  }
  end_dialog();
}

// Enter does nothing here: it may be the one that has closed the dialog before.
void draw_replace(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  if (begin_dialog(ui, "replace", 560, 0)) {
    wrapped_text(fmt::format("'{}' is a file that Parallax did not write, or that has changed since. Replace it?",
                             viewer.foreign_file),
                 ImGui::GetContentRegionAvail().x);
    ImGui::Dummy({0, 4 * ui.scale});
    const bool replaces = small_button(ui, "Replace", "replace.ok");
    ImGui::SameLine();
    if (small_button(ui, "Cancel", "replace.cancel") || replaces) viewer.show_replace = false;
    if (replaces) {
      if (const Status done = viewer.export_graph(viewer.foreign_file, true); !done.ok()) viewer.fail(done.error());
    }
  }
  end_dialog();
}

void draw_goto(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  if (begin_dialog(ui, "goto", 420, 0)) {
    if (ImGui::IsWindowAppearing()) {
      ui.goto_field.clear();
      ui.goto_problem.clear();
    }
    ImGui::TextUnformatted("Go to an element");
    ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(-1);
    const std::string hint = viewer.tensor().model.has_value()
                                 ? fmt::format("index in {}, as 0,3,5", viewer.tensor().model->shape().to_string())
                                 : "";
    text_field("##index", hint.c_str(), ui.goto_field);
    ui.mark("goto.index");
    if (!ui.goto_problem.empty()) wrapped_text(ui.goto_problem, ImGui::GetContentRegionAvail().x);
    if (was_pressed(ui, "Enter")) {
      const Status done = viewer.go_to_index(ui.goto_field);
      ui.goto_problem = done.ok() ? "" : done.error().message;
      viewer.show_goto = !done.ok();
    }
  }
  end_dialog();
}

// Dims the windows under a dialog.
void dim_all(const Ui& ui) {
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, IM_COL32(0, 0, 0, ui.viewer->is_dark ? 110 : 60));
  ImGui::Begin("dialog backdrop", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoInputs | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoFocusOnAppearing);
  ImGui::End();
  ImGui::PopStyleColor();
}

}  // namespace

void draw_dialogs(Ui& ui) {
  const Viewer& viewer = *ui.viewer;
  if (viewer.show_export || viewer.show_goto || viewer.show_palette || viewer.show_help || viewer.show_open ||
      viewer.show_run || viewer.show_replace)
    dim_all(ui);
  if (ui.viewer->show_export) draw_export(ui);
  if (ui.viewer->show_goto) draw_goto(ui);
  if (ui.viewer->show_palette) draw_palette(ui);
  if (ui.viewer->show_help) draw_help(ui);
  if (ui.viewer->show_open) draw_open(ui);
  if (ui.viewer->show_run) draw_run(ui);
  if (ui.viewer->show_replace) draw_replace(ui);
}

}  // namespace parallax::gui
