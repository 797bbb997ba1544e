// SPDX-License-Identifier: Apache-2.0
// Dialogs that open over the windows: the palette of commands, the keys, opening, running.
#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "gui/panels/dialog_parts.h"
#include "gui/panels/panels.h"
#include "inspector/base/text.h"

namespace parallax::gui {
namespace {

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
    ImGui::SetNextItemWidth(-1);
    if (dialog_field(ui, "palette.field", "type what you want to do", ui.palette_field)) ui.palette_at = 0;
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
      const bool is_chosen = static_cast<int>(i) == ui.palette_at;
      ImGui::TextColored(ImGui::GetStyle().Colors[is_chosen ? ImGuiCol_Text : ImGuiCol_TextDisabled], "%s",
                         keys.c_str());
    }
    ImGui::EndChild();
    if (chosen != nullptr) {
      viewer.show_palette = false;
      ui.keys.clear();  // the key that chose it is not for the window it opens
      chosen->run(viewer);
    }
  }
  end_dialog(ui);
}

void draw_help(Ui& ui) {
  if (begin_dialog(ui, "help", 860, 620)) {
    ImGui::TextUnformatted("Keys");
    ImGui::SameLine(ImGui::GetWindowWidth() - 80 * ui.scale);
    if (dialog_button(ui, "Close", "help.close", true)) ui.viewer->show_help = false;
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
  end_dialog(ui);
}

// A field for a path with a button that opens the file chooser for it.
bool browsed_field(Ui& ui, const char* label, const char* name, const char* hint, std::string& text, FileKind kind) {
  const float button = ImGui::CalcTextSize("...").x + 2 * ImGui::GetStyle().FramePadding.x + 6 * ui.scale;
  field_label(ui, label, button);
  const bool changed = path_field(ui, name, hint, text, kind);
  ImGui::SameLine(0, 4 * ui.scale);
  if (dialog_button(ui, fmt::format("...##{}", name).c_str(), fmt::format("{}.browse", name).c_str())) {
    ui.chooser = {};
    ui.chooser.kind = kind;
    ui.chooser.target = &text;
    ui.chooser.title = label;
    ui.path_field = text;
    ui.viewer->show_run = false;
    ui.viewer->show_open = true;
  }
  tooltip("Choose a file");
  return changed;
}

constexpr std::array<const char*, 4> kExecutors = {"reference", "reference:double", "cpu", "cuda"};

void draw_run(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  RunForm& form = viewer.run_form;
  if (begin_dialog(ui, "run", 640, 0)) {
    ImGui::TextUnformatted("Run a model on two executors and compare every value");
    ImGui::Dummy({0, 2 * ui.scale});
    browsed_field(ui, "model", "run.model", "path of the model (.onnx)", form.model, FileKind::models);
    browsed_field(ui, "against", "run.against", "a second model as side B; empty: the same", form.against,
                  FileKind::models);
    browsed_field(ui, "inputs", "run.inputs", "a test_data_set folder, .npz or .safetensors; empty: generated",
                  form.inputs, FileKind::inputs);
    const std::string offered = form.inputs.empty() ? data_set_of(expand_path(form.model)) : "";
    if (!offered.empty()) {
      field_label(ui, "");
      const std::string name = std::filesystem::path(offered).filename().string();
      if (dialog_button(ui, fmt::format("use {}, next to the model", name).c_str(), "run.data_set"))
        form.inputs = offered;
      tooltip(offered.c_str());
    }
    field_label(ui, "A runs on");
    dialog_choice(ui, "run.executor_a", kExecutors, form.executor_a, 170 * ui.scale);
    ImGui::SameLine(0, 20 * ui.scale);
    ImGui::TextDisabled("B runs on");
    ImGui::SameLine(0, 10 * ui.scale);
    dialog_choice(ui, "run.executor_b", kExecutors, form.executor_b, 170 * ui.scale);
    field_label(ui, "");
    dialog_check(ui, "nothing is fused or folded away", "run.observe_all", form.observe_all);
    ImGui::SameLine(0, 20 * ui.scale);
    dialog_check(ui, "keep all elements", "run.keep_values", form.keep_values);
    field_label(ui, "");
    dialog_check(ui, "the reference runs what an executor lacks", "run.fallback", form.falls_back);
    ImGui::Dummy({0, 4 * ui.scale});
    const bool entered = dialog_button(ui, "Run", "run.ok", true);
    ImGui::SameLine();
    if (dialog_button(ui, "Cancel", "run.cancel")) viewer.show_run = false;
    if (entered && !form.model.empty()) {
      viewer.show_run = false;
      for (std::string* path : {&form.model, &form.against, &form.inputs}) *path = expand_path(*path);
      viewer.run(form);
    }
  }
  end_dialog(ui);
}

void draw_export(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  if (begin_dialog(ui, "export", 560, 0)) {
    ImGui::TextUnformatted("Export the graph as it is shown");
    ImGui::SetNextItemWidth(-1);
    path_field(ui, "export.path", "a path that ends in .svg, .png or .dot", ui.export_field, FileKind::all);
    const auto change_ending = [&](const char* ending) {
      const size_t dot = ui.export_field.rfind('.');
      set_field(ui, "export.path",
                (dot == std::string::npos ? ui.export_field : ui.export_field.substr(0, dot)) + ending);
    };
    for (const char* ending : {".svg", ".png", ".dot"}) {
      const bool is_chosen = ui.export_field.ends_with(ending);
      if (dialog_button(ui, fmt::format("{}{}", is_chosen ? "\u2713 " : "", ending).c_str(),
                        fmt::format("export{}", ending).c_str()))
        change_ending(ending);
      ImGui::SameLine(0, 3 * ui.scale);
    }
    ImGui::TextDisabled(ui.export_field.ends_with(".png") ? "what is in sight" : "all of it, groups as they are");
    ImGui::Dummy({0, 4 * ui.scale});
    const bool entered = dialog_button(ui, "Export", "export.ok", true);
    ImGui::SameLine();
    if (dialog_button(ui, "Cancel", "export.cancel")) viewer.show_export = false;
    if (entered && !ui.export_field.empty()) {
      viewer.show_export = false;
      viewer.export_or_ask(expand_path(ui.export_field));
    }
  }
  end_dialog(ui);
}

// Enter alone does nothing here: it may be the one that has closed the dialog before.
void draw_replace(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  if (begin_dialog(ui, "replace", 560, 0)) {
    wrapped_text(fmt::format("'{}' is a file that Parallax did not write, or that has changed since. Replace it?",
                             viewer.foreign_file),
                 ImGui::GetContentRegionAvail().x);
    ImGui::Dummy({0, 4 * ui.scale});
    const bool replaces = dialog_button(ui, "Replace", "replace.ok");
    ImGui::SameLine();
    if (dialog_button(ui, "Cancel", "replace.cancel") || replaces) viewer.show_replace = false;
    if (replaces) {
      if (const Status done = viewer.export_graph(viewer.foreign_file, true); !done.ok()) viewer.fail(done.error());
    }
  }
  end_dialog(ui);
}

void draw_goto(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  if (begin_dialog(ui, "goto", 420, 0)) {
    if (ImGui::IsWindowAppearing()) {
      ui.goto_field.clear();
      ui.goto_problem.clear();
    }
    ImGui::TextUnformatted("Go to an element");
    ImGui::SetNextItemWidth(-1);
    const std::string hint = viewer.tensor().model.has_value()
                                 ? fmt::format("index in {}, as 0,3,5", viewer.tensor().model->shape().to_string())
                                 : "";
    dialog_field(ui, "goto.index", hint.c_str(), ui.goto_field);
    if (!ui.goto_problem.empty()) wrapped_text(ui.goto_problem, ImGui::GetContentRegionAvail().x);
    const bool entered = dialog_button(ui, "Go", "goto.ok", true);
    ImGui::SameLine();
    if (dialog_button(ui, "Cancel", "goto.cancel")) viewer.show_goto = false;
    if (entered) {
      const Status done = viewer.go_to_index(ui.goto_field);
      ui.goto_problem = done.ok() ? "" : done.error().message;
      viewer.show_goto = !done.ok();
      if (!done.ok()) focus_field(ui, "goto.index");
    }
  }
  end_dialog(ui);
}

// Dims the windows under a dialog, and keeps the mouse from them.
void dim_all(Ui& ui) {
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, IM_COL32(0, 0, 0, ui.viewer->is_dark ? 110 : 60));
  ImGui::Begin("dialog backdrop", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoFocusOnAppearing);
  ui.focus.is_backdrop_clicked = ImGui::IsWindowFocused();
  ImGui::End();
  ImGui::PopStyleColor();
}

}  // namespace

void draw_dialogs(Ui& ui) {
  // Escape has closed the chooser of a field: its dialog is there again.
  if (!ui.viewer->show_open && std::exchange(ui.chooser.target, nullptr) != nullptr) ui.viewer->show_run = true;
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
