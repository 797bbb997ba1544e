// SPDX-License-Identifier: Apache-2.0
// Lines of "key value".
#include "gui/app/settings.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "inspector/base/hash.h"
#include "inspector/base/input_files.h"
#include "inspector/base/mapped_file.h"
#include "inspector/base/text.h"

namespace parallax::gui {
namespace {

constexpr size_t kMostRecent = 10, kMostSessions = 200;

float share_from(std::string_view text, float otherwise) {
  const float value = std::strtof(std::string(text).c_str(), nullptr);
  return value >= 0.1F && value <= 0.7F ? value : otherwise;
}

float text_size_from(std::string_view text) {
  const float value = std::strtof(std::string(text).c_str(), nullptr);
  return value >= 0.6F && value <= 3 ? value : 1;
}

}  // namespace

std::string settings_path() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  if (config != nullptr && *config != 0) return std::string(config) + "/parallax/gui.conf";
  return home == nullptr || *home == 0 ? "" : std::string(home) + "/.config/parallax/gui.conf";
}

void load_settings(const std::string& path, Ui& ui) {
  const auto text = read_file(path);
  if (!text.ok()) return;  // the first start
  for (std::string_view line : split(*text, '\n')) {
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, blank), value = line.substr(blank + 1);
    if (key == "theme") ui.viewer->is_dark = value != "light";
    if (key == "chooser") ui.viewer->uses_desktop_chooser = value == "desktop";
    if (key == "shapes") ui.viewer->graph.shows_shapes = value == "on";
    if (key == "text") ui.viewer->text_size = text_size_from(value);
    if (key == "left") ui.left = share_from(value, ui.left);
    if (key == "right") ui.right = share_from(value, ui.right);
    if (key == "bottom") ui.bottom = share_from(value, ui.bottom);
    if (key == "recent" && ui.viewer->recent.size() < kMostRecent) ui.viewer->recent.emplace_back(value);
  }
}

Status save_settings(const std::string& path, const Ui& ui) {
  if (path.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  std::string text =
      fmt::format("theme {}\nchooser {}\nshapes {}\ntext {:.3f}\nleft {:.3f}\nright {:.3f}\nbottom {:.3f}\n",
                  ui.viewer->is_dark ? "dark" : "light", ui.viewer->uses_desktop_chooser ? "desktop" : "own",
                  ui.viewer->graph.shows_shapes ? "on" : "off", ui.viewer->text_size, ui.left, ui.right, ui.bottom);
  for (const std::string& recent : ui.viewer->recent) text += "recent " + recent + "\n";
  const input_files::Scope scope(true);  // it was read to be written anew
  input_files::release(path);
  return write_file(path, text);
}

std::string session_path(const std::string& settings, std::span<const std::string> files) {
  if (settings.empty() || files.empty()) return "";
  std::string names;
  std::error_code unknown;  // what cannot be resolved is named as it was
  for (const std::string& file : files) names += std::filesystem::absolute(file, unknown).string() + '\0';
  const auto folder = std::filesystem::path(settings).parent_path() / "views";
  return (folder / (sha256_hex(names.data(), names.size()).substr(0, 32) + ".json")).string();
}

Status save_session(const std::string& settings, const Viewer& viewer) {
  if (viewer.document() == nullptr) return {};
  const std::string path = session_path(settings, viewer.document()->files);
  if (path.empty()) return {};
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  std::vector<std::pair<fs::file_time_type, fs::path>> kept;
  for (const auto& entry : fs::directory_iterator(fs::path(path).parent_path(), error))
    kept.emplace_back(entry.last_write_time(error), entry.path());
  std::ranges::sort(kept);
  for (size_t i = 0; i + kMostSessions - 1 < kept.size(); ++i) fs::remove(kept[i].second, error);
  const input_files::Scope scope(true);  // it was read to be written anew
  input_files::release(path);
  return write_file(path, session_to_json(viewer));
}

void restore_session(const std::string& settings, Viewer& viewer) {
  if (viewer.document() == nullptr) return;
  const std::vector<std::string> files = viewer.document()->files;
  const std::string path = session_path(settings, files);
  const auto text = read_file(path);
  if (!text.ok()) return;  // the first time
  std::error_code error;
  const auto kept_at = std::filesystem::last_write_time(path, error);
  const bool are_new = std::ranges::any_of(
      files, [&](const std::string& file) { return std::filesystem::last_write_time(file, error) > kept_at; });
  static_cast<void>(apply_session(viewer, *text, !are_new));  // else it is of an older program
}

void add_recent(Viewer& viewer, std::span<const std::string> files) {
  std::error_code error;
  std::string whole;
  for (const std::string& file : files)
    whole += (whole.empty() ? "" : std::string(1, kRecentSeparator)) + std::filesystem::absolute(file, error).string();
  std::erase(viewer.recent, whole);
  viewer.recent.insert(viewer.recent.begin(), whole);
  if (viewer.recent.size() > kMostRecent) viewer.recent.resize(kMostRecent);
}

}  // namespace parallax::gui
