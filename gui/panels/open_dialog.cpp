// SPDX-License-Identifier: Apache-2.0
// The file chooser: a path to type, completed by Tab, next to the folder it leads to; recent files and folders at the
// left. It opens files, or fills a field of the run dialog.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "gui/panels/dialog_parts.h"
#include "gui/panels/panels.h"
#include "inspector/base/text.h"

namespace parallax::gui {
namespace {

std::string current_folder() {
  std::error_code error;
  return std::filesystem::current_path(error).string() + "/";
}

// The folder of what is shown, else the current one.
std::string first_folder(const Viewer& viewer) {
  if (viewer.document() == nullptr || viewer.document()->files.empty()) return current_folder();
  std::error_code error;
  const auto path = std::filesystem::absolute(viewer.document()->files.front(), error);
  return error ? current_folder() : path.parent_path().string() + "/";
}

void show_text(Ui& ui, std::string text) {
  set_field(ui, "open.path", text);
  ui.path_field = std::move(text);
  focus_field(ui, "open.path");
}

void list_again(Ui& ui) {
  ChooserUi& chooser = ui.chooser;
  if (!std::exchange(chooser.is_due, false) && chooser.listed == ui.path_field) return;
  chooser.listed = ui.path_field;
  chooser.at = -1;
  const PathParts parts = path_parts(ui.path_field);
  auto entries = list_folder(parts.folder, parts.beginning, chooser.kind);
  chooser.problem = entries.ok() ? "" : entries.error().message;
  chooser.entries = entries.ok() ? std::move(entries).take() : std::vector<FileEntry>{};
}

std::string path_of(const Ui& ui, const FileEntry& entry) {
  const std::string folder = path_parts(ui.chooser.listed).folder;
  return (folder.ends_with('/') ? folder : folder + "/") + entry.name;
}

// Goes back to the dialog whose field wanted a path.
void close(Ui& ui) {
  ui.viewer->show_open = false;
  if (std::exchange(ui.chooser.target, nullptr) != nullptr) ui.viewer->show_run = true;
}

void choose(Ui& ui, std::vector<std::string> paths) {
  std::error_code error;
  const bool is_folder = paths.size() == 1 && std::filesystem::is_directory(paths.front(), error);
  const bool takes_folder = ui.chooser.kind == FileKind::inputs
                                ? is_data_set(std::filesystem::path(paths.front()).filename().string())
                                : ui.chooser.target == nullptr && !pair_in(paths.front()).empty();
  if (is_folder && !takes_folder) return show_text(ui, paths.front() + (paths.front().ends_with('/') ? "" : "/"));
  if (ui.chooser.target != nullptr) {
    *ui.chooser.target = paths.front();
  } else {
    ui.viewer->open(std::move(paths));
  }
  close(ui);
}

// Folders that are often looked for, and what was open before.
void draw_shortcuts(Ui& ui, float width) {
  const ImFont* font = ui.fonts.base;
  const char* home = std::getenv("HOME");
  std::vector<std::pair<std::string, std::string>> folders = {{"Current folder", current_folder()}};
  if (home != nullptr && *home != 0) folders.emplace_back("Home", std::string(home) + "/");
  if (ui.viewer->document() != nullptr) folders.emplace_back("Folder of what is open", first_folder(*ui.viewer));
  for (const auto& [title, folder] : folders) {
    if (ImGui::Selectable(title.c_str())) show_text(ui, folder);
    ui.mark("open.folder:" + title);
    tooltip(folder.c_str());
  }
  if (ui.viewer->recent.empty() || ui.chooser.target != nullptr) return;
  ImGui::Dummy({0, 4 * ui.scale});
  ImGui::TextDisabled("Recent");
  for (size_t i = 0; i < ui.viewer->recent.size(); ++i) {
    const std::string files = ui.viewer->recent[i], title = title_of_recent(files);
    if (ImGui::Selectable(fmt::format("{}##{}", cut_front(font, font->FontSize, title, width), i).c_str())) {
      const auto paths = split(files, kRecentSeparator);
      choose(ui, {paths.begin(), paths.end()});
    }
    ui.mark(fmt::format("open.recent:{}", i));
    tooltip(title.c_str());
  }
}

std::string kind_text(const FileEntry& entry, FileKind kind) {
  if (entry.is_pair) return kind == FileKind::inputs ? "inputs" : "two dumps of a run";
  if (entry.is_folder) return "";
  constexpr std::pair<double, const char*> kUnits[] = {{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}};
  for (const auto& [unit, name] : kUnits) {
    const double count = static_cast<double>(entry.size_bytes) / unit;
    if (count >= 1) return fmt::format("{:.{}f} {}", count, count < 10 ? 1 : 0, name);
  }
  return fmt::format("{} B", entry.size_bytes);
}

// A click writes the path, with Ctrl a second one next to it; two clicks choose it.
void click_entry(Ui& ui, const FileEntry& entry, int index) {
  const std::string path = path_of(ui, entry);
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) return choose(ui, {path});
  std::error_code error;
  const std::string before = expand_path(ui.path_field);
  const bool is_second = ImGui::GetIO().KeyCtrl && std::filesystem::is_regular_file(before, error) && before != path;
  show_text(ui, is_second ? quoted_path(before) + " " + quoted_path(path) : path);
  ui.chooser.listed = ui.path_field;  // the list stays
  ui.chooser.at = index;
  if (entry.is_folder && !entry.is_pair) show_text(ui, path + "/");
}

void draw_entries(Ui& ui) {
  ChooserUi& chooser = ui.chooser;
  if (!chooser.problem.empty()) return wrapped_text(chooser.problem, ImGui::GetContentRegionAvail().x);
  if (chooser.entries.empty()) {
    ImGui::TextDisabled("Nothing here is of this kind.");
    return;
  }
  const ImFont* font = ui.fonts.base;
  const std::vector<FileEntry> entries = chooser.entries;  // a click may list others
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(entries.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const FileEntry& entry = entries[static_cast<size_t>(i)];
      const std::string right = kind_text(entry, chooser.kind);
      const float room = ImGui::GetContentRegionAvail().x, wide = ImGui::CalcTextSize(right.c_str()).x;
      const std::string title =
          cut_text(font, font->FontSize, entry.name + (entry.is_folder ? "/" : ""), room - wide - 16 * ui.scale);
      ImGui::PushID(i);
      ImGui::PushStyleColor(ImGuiCol_Text, entry.is_folder ? ui.theme().accent : ui.theme().text);
      if (ImGui::Selectable(title.c_str(), i == chooser.at, ImGuiSelectableFlags_AllowDoubleClick))
        click_entry(ui, entry, i);
      ImGui::PopStyleColor();
      ImGui::PopID();
      ui.mark("open.entry:" + entry.name);
      ImGui::SameLine(room - wide);
      ImGui::TextDisabled("%s", right.c_str());
    }
  }
  const float line = ImGui::GetTextLineHeightWithSpacing(), top = static_cast<float>(chooser.at) * line;
  if (chooser.at >= 0 && (was_pressed(ui, "Down") || was_pressed(ui, "Up")))
    ImGui::SetScrollY(std::clamp(ImGui::GetScrollY(), top + 2 * line - ImGui::GetWindowHeight(), top));
}

void move_highlight(Ui& ui) {
  ChooserUi& chooser = ui.chooser;
  const int step = (was_pressed(ui, "Down") ? 1 : 0) - (was_pressed(ui, "Up") ? 1 : 0) +
                   (was_pressed(ui, "PageDown") ? 10 : 0) - (was_pressed(ui, "PageUp") ? 10 : 0);
  if (step != 0) chooser.at = std::clamp(chooser.at + step, -1, static_cast<int>(chooser.entries.size()) - 1);
  if (!was_pressed(ui, "Alt+Up")) return;
  const PathParts parts = path_parts(ui.path_field);
  const auto folder = std::filesystem::absolute(parts.folder).lexically_normal();
  show_text(ui, parts.beginning.empty() && folder.has_parent_path() && folder != "/"
                    ? (folder.parent_path() / "").string()
                    : (folder / "").string());
}

void draw_buttons(Ui& ui) {
  for (const FileKindInfo& info : kFileKinds) {
    const bool is_chosen = ui.chooser.kind == info.kind;
    if (ui.chooser.target != nullptr && info.kind != FileKind::all && !is_chosen) continue;
    if (small_button(ui, info.title.data(), fmt::format("open.kind:{}", info.name).c_str(), is_chosen)) {
      ui.chooser.kind = info.kind;
      ui.chooser.is_due = true;
    }
    ImGui::SameLine(0, 3 * ui.scale);
  }
  ImGui::NewLine();
  ImGui::Dummy({0, 2 * ui.scale});
  const bool chosen = dialog_button(ui, ui.chooser.target == nullptr ? "Open" : "Choose", "open.ok", true);
  ImGui::SameLine();
  const bool cancelled = dialog_button(ui, "Cancel", "open.cancel");
  if (ui.desktop.start) {
    ImGui::SameLine();
    if (dialog_button(ui, "The desktop's chooser...", "open.desktop") && !ui.desktop.is_open)
      ui.desktop.start(ui.chooser.kind, path_parts(ui.path_field).folder);
  }
  ImGui::SameLine(0, 14 * ui.scale);
  ImGui::TextDisabled("Tab completes, arrows choose, Alt+\u2191 leads up; Ctrl and a click: a second file");
  if (cancelled) return close(ui);
  if (!chosen) return;
  if (ui.chooser.at >= 0 && ui.chooser.at < static_cast<int>(ui.chooser.entries.size())) {
    choose(ui, {path_of(ui, ui.chooser.entries[static_cast<size_t>(ui.chooser.at)])});
  } else if (!ui.path_field.empty()) {
    choose(ui, paths_in(ui.path_field));
  }
}

}  // namespace

void draw_open(Ui& ui) {
  ChooserUi& chooser = ui.chooser;
  if (begin_dialog(ui, "open", 860, 520)) {
    if (ImGui::IsWindowAppearing()) {
      chooser.is_due = true;
      if (ui.path_field.empty()) ui.path_field = first_folder(*ui.viewer);
      if (chooser.target == nullptr && ui.viewer->uses_desktop_chooser && ui.desktop.start) {
        ui.desktop.start(chooser.kind, path_parts(ui.path_field).folder);
        ui.viewer->show_open = false;
      }
    }
    if (chooser.target == nullptr) {
      ImGui::TextUnformatted("Open one model (.onnx) or two, one dump (.plx) or two, or the folder of a run");
    } else {
      ImGui::TextUnformatted(fmt::format("Choose: {}", chooser.title).c_str());
    }
    ImGui::SetNextItemWidth(-1);
    path_field(ui, "open.path", "path, or two paths with a blank between them", ui.path_field, chooser.kind);
    list_again(ui);
    move_highlight(ui);
    const float below = 2 * ImGui::GetFrameHeightWithSpacing() + 12 * ui.scale, left = 230 * ui.scale;
    const float height = std::max(60 * ui.scale, ImGui::GetContentRegionAvail().y - below);
    ImGui::BeginChild("shortcuts", {left, height});
    draw_shortcuts(ui, left - 8 * ui.scale);
    ImGui::EndChild();
    ImGui::SameLine(0, 12 * ui.scale);
    ImGui::PushStyleColor(ImGuiCol_ChildBg, ui.theme().canvas);
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {8 * ui.scale, 6 * ui.scale});
    ImGui::BeginChild("files", {0, height}, false, ImGuiWindowFlags_AlwaysUseWindowPadding);
    ImGui::PopStyleVar();
    draw_entries(ui);
    ImGui::EndChild();
    ImGui::PopStyleColor();
    if (ui.viewer->show_open) draw_buttons(ui);
  }
  end_dialog(ui);
}

}  // namespace parallax::gui
