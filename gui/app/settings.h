// SPDX-License-Identifier: Apache-2.0
// Settings that are kept between two starts: theme, sizes of panes, recent files. A text file in the XDG configuration
// folder.
#pragma once

#include <span>
#include <string>

#include "gui/panels/ui.h"

namespace parallax::gui {

std::string settings_path();                          // "" where neither XDG_CONFIG_HOME nor HOME is set
void load_settings(const std::string& path, Ui& ui);  // what is missing or broken keeps its default
Status save_settings(const std::string& path, const Ui& ui);
// The file of the settings' folder that keeps the view of these files (session_to_json); "" where there is no folder.
std::string session_path(const std::string& settings, std::span<const std::string> files);
// Keeps the view of what is open; the oldest of more than 200 files goes. Errors: io.
Status save_session(const std::string& settings, const Viewer& viewer);
// Looks at what is open as the last time; where a file has changed since, at what is new in it, with the bookmarks and
// colors of the last time. What does not suit any more is left as it is.
void restore_session(const std::string& settings, Viewer& viewer);
void add_recent(Viewer& viewer, std::span<const std::string> files);  // that were opened together

}  // namespace parallax::gui
