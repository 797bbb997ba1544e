// SPDX-License-Identifier: Apache-2.0
// The desktop's own file chooser, run as a program of its own: zenity (which asks the portal where it is one of GTK 4)
// or kdialog.
#pragma once

#include <string>
#include <vector>

#include "gui/panels/ui.h"

namespace parallax::gui {

class DesktopFileChooser {
 public:
  explicit DesktopFileChooser(Ui& ui);  // offers it to `ui` where a program is found in PATH
  // Opens what was chosen meanwhile, or writes it to the field that wants it.
  void poll();

 private:
  void start(FileKind kind, const std::string& folder);

  Ui& ui_;
  std::string program_;  // "zenity", "kdialog"; "" where there is none
  Background<std::vector<std::string>> work_;
};

}  // namespace parallax::gui
