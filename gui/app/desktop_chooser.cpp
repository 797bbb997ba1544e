// SPDX-License-Identifier: Apache-2.0
// One line of output a file.
#include "gui/app/desktop_chooser.h"

#include <utility>

#include <fmt/format.h>

#include "inspector/base/shell.h"
#include "inspector/base/signal_cleanup.h"
#include "inspector/base/text.h"

namespace parallax::gui {
namespace {

// "*.onnx *.plx".
std::string patterns_of(FileKind kind) {
  std::string patterns;
  for (std::string_view ending : info_of(kind).endings) {
    if (!ending.empty()) patterns += fmt::format("{}*{}", patterns.empty() ? "" : " ", ending);
  }
  return patterns.empty() ? "*" : patterns;
}

std::string command_of(const std::string& program, FileKind kind, const std::string& folder) {
  const std::string patterns = patterns_of(kind), start = shell_quoted(folder + "/");
  if (program == "kdialog")
    return fmt::format("kdialog --multiple --separate-output --getopenfilename {} {} 2>/dev/null", start,
                       shell_quoted(patterns));
  return fmt::format(
      "zenity --file-selection --multiple --separator='\n' --title=Parallax --filename={} "
      "--file-filter={} --file-filter='*' 2>/dev/null",
      start, shell_quoted(patterns));
}

}  // namespace

DesktopFileChooser::DesktopFileChooser(Ui& ui) : ui_(ui) {
  for (const char* program : {"zenity", "kdialog"}) {
    if (program_.empty() && !find_program(program).empty()) program_ = program;
  }
  if (program_.empty()) return;
  ui.desktop.start = [this](FileKind kind, const std::string& folder) { start(kind, folder); };
}

void DesktopFileChooser::start(FileKind kind, const std::string& folder) {
  ui_.desktop.is_open = true;
  const auto work = [command = command_of(program_, kind, folder)](const CancelToken& stop) {
    std::vector<std::string> files;
    const auto folder_of_log = TemporaryPath::make_folder("parallax-chooser");
    if (!folder_of_log.ok()) return files;
    const auto outcome = run_shell(command, 0, (*folder_of_log)->path() + "/log", stop);
    if (!outcome.ok() || outcome->exit_code != 0) return files;  // cancelled
    for (std::string_view line : split(outcome->output, '\n')) {
      if (!line.empty()) files.emplace_back(line);
    }
    return files;
  };
  work_.start(work, false, ui_.viewer->wake);
}

void DesktopFileChooser::poll() {
  auto files = work_.take();
  if (!files.has_value()) return;
  ui_.desktop.is_open = false;
  if (files->empty()) return;
  ui_.viewer->show_open = false;
  if (std::string* target = std::exchange(ui_.chooser.target, nullptr); target != nullptr) {
    *target = files->front();
    ui_.viewer->show_run = true;
    return;
  }
  ui_.viewer->open(std::move(*files));
}

}  // namespace parallax::gui
