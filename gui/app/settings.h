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
void add_recent(Viewer& viewer, std::span<const std::string> files);  // that were opened together

}  // namespace parallax::gui
