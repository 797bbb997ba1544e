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
#include "inspector/exec/executor_names.h"

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
    if (found.empty()) ImGui::TextDisabled("No matching command. Ctrl+F searches values and nodes.");
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
        const bool is_numbered = command.title.starts_with("Bookmark ") || command.title.starts_with("Other run ");
        if (command.title == "Bookmark 1") line("Ctrl+1 to 9", "Bookmarks");
        if (command.title == "Other run 1") line("Alt+1 to 9", "Of several runs, the other one");
        if (!is_numbered && !command.keys.empty()) line(all_keys(command), command.title);
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

struct Field {
  const char* label;
  const char* name;
  const char* hint;
  std::string* text;
};
// Two fields in a line.
void field_pair(Ui& ui, const Field& first, const Field& second) {
  constexpr float kLabel = 62, kGap = 12;
  const float width = (ImGui::GetContentRegionAvail().x - 92 * ui.scale) / 2;
  field_label(ui, first.label, width + kGap * ui.scale);
  dialog_field(ui, first.name, first.hint, *first.text);
  ImGui::SameLine(0, kGap * ui.scale);
  const float start = ImGui::GetCursorPosX();
  ImGui::TextDisabled("%s", second.label);
  ImGui::SameLine(start + kLabel * ui.scale);
  ImGui::SetNextItemWidth(-1);
  dialog_field(ui, second.name, second.hint, *second.text);
}

// The last five are programs of their own: a field below takes the rest of the name.
constexpr std::array<const char*, 9> kExecutors = {"reference", "reference:double", "cpu",
                                                   "cuda",      "onnxruntime",      "torch:FILE.pt2",
                                                   "openvino",  "tensorrt",         "cmd:COMMAND"};

// The name of an executor that is a program of its own, as it may be typed.
void draw_program(Ui& ui, const char* label, const char* name, std::string& executor) {
  if (!is_foreign_executor(executor)) return;
  field_label(ui, label);
  dialog_field(ui, name, "onnxruntime:PROVIDER, torch:FILE.pt2, openvino:DEVICE, tensorrt, cmd:COMMAND", executor);
}

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
    draw_program(ui, "program of A", "run.program_a", form.executor_a);
    draw_program(ui, "program of B", "run.program_b", form.executor_b);
    field_label(ui, "");
    dialog_check(ui, "no fusion or constant folding (observe every tensor)", "run.observe_all", form.observe_all);
    ImGui::SameLine(0, 20 * ui.scale);
    dialog_check(ui, "capture full tensors", "run.keep_values", form.keep_values);
    field_label(ui, "");
    dialog_check(ui, "fall back to the reference for unsupported operators", "run.fallback", form.falls_back);
    field_pair(ui, {"seed", "run.seed", "0", &form.seed}, {"dims", "run.dims", "batch=2 sequence=16", &form.dims});
    field_pair(ui, {"shapes", "run.shapes", "image=1x3x64x64", &form.shapes},
               {"ranges", "run.ranges", "ids=0..99", &form.ranges});
    field_pair(ui, {"rtol", "run.rtol", "by operator and type", &form.rtol},
               {"atol", "run.atol", "by operator and type", &form.atol});
    field_label(ui, "only");
    dialog_field(ui, "run.only", "values to compare, as /encoder/* *Softmax*; empty: all", form.only);
    field_label(ui, "dumps");
    path_field(ui, "run.dumps", "a folder that keeps the dumps; empty: they go with this window", form.dumps,
               FileKind::all);
    ImGui::Dummy({0, 4 * ui.scale});
    if (!ui.run_problem.empty()) wrapped_text(ui.run_problem, ImGui::GetContentRegionAvail().x);
    const bool entered = dialog_button(ui, "Run", "run.ok", true);
    ImGui::SameLine();
    if (dialog_button(ui, "Cancel", "run.cancel")) viewer.show_run = false;
    if (entered && !form.model.empty()) {
      for (std::string* path : {&form.model, &form.against, &form.inputs, &form.dumps}) *path = expand_path(*path);
      const Status begun = viewer.run(form);
      ui.run_problem = begun.ok() ? "" : begun.error().message;
      viewer.show_run = !begun.ok();
    }
  }
  end_dialog(ui);
}

void draw_export(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  if (begin_dialog(ui, "export", 560, 0)) {
    std::array<const char*, kExportSubjects.size()> names{};
    for (size_t i = 0; i < names.size(); ++i) names[i] = kExportSubjects[i].name;
    std::string& name = ui.export_subject;
    field_label(ui, "export");
    const std::string before = name;
    dialog_choice(ui, "export.what", names, name, 170 * ui.scale);
    const auto chosen = std::ranges::find(kExportSubjects, name, &ExportSubjectInfo::name);
    const ExportSubjectInfo& subject = chosen == kExportSubjects.end() ? kExportSubjects[0] : *chosen;
    const auto change_ending = [&](std::string_view ending) {
      const std::filesystem::path path(ui.export_field);
      set_field(ui, "export.path", (path.parent_path() / path.stem()).string() + std::string(ending));
    };
    if (before != name) change_ending(subject.endings[0]);
    field_label(ui, "into");
    path_field(ui, "export.path", "path of the file", ui.export_field, FileKind::all);
    field_label(ui, "");
    for (const std::string_view ending : subject.endings) {
      if (ending.empty()) continue;
      const bool is_chosen = ui.export_field.ends_with(ending);
      if (dialog_button(ui, fmt::format("{}{}", is_chosen ? "\u2713 " : "", ending).c_str(),
                        fmt::format("export{}", ending).c_str()))
        change_ending(ending);
      ImGui::SameLine(0, 3 * ui.scale);
    }
    ImGui::TextDisabled("%s", subject.meaning);
    ImGui::Dummy({0, 4 * ui.scale});
    const bool entered = dialog_button(ui, "Export", "export.ok", true);
    ImGui::SameLine();
    if (dialog_button(ui, "Cancel", "export.cancel")) viewer.show_export = false;
    if (entered && !ui.export_field.empty()) {
      viewer.show_export = false;
      viewer.export_or_ask(expand_path(ui.export_field), subject.subject);
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
      if (const Status done = viewer.export_to(viewer.foreign_file, viewer.foreign_subject, true); !done.ok())
        viewer.fail(done.error());
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
