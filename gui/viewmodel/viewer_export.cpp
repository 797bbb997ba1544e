// SPDX-License-Identifier: Apache-2.0
// The exported graph and the clipboard.
#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "gui/viewmodel/view_export.h"
#include "gui/viewmodel/viewer.h"
#include "inspector/base/input_files.h"
#include "inspector/base/mapped_file.h"

namespace parallax {

// Checks that the file is none of those that are shown, and a foreign one only where it may be replaced.
Status Viewer::admit_export(const std::string& path, bool replaces) const {
  const bool is_view = path.ends_with(".json") && document_ != nullptr;
  if (!is_view && !graph.has_graph())
    return usage_error("there is no graph to export; open a model, or a dump with a graph");
  constexpr std::string_view kEndings[] = {".svg", ".png", ".dot", ".gv", ".json"};
  if (!std::ranges::any_of(kEndings, [&](std::string_view ending) { return path.ends_with(ending); }))
    return usage_error(fmt::format("'{}' must end in .svg, .png, .dot or .json", path));
  const input_files::Scope scope(replaces || may_replace);
  for (const std::string& file : document_->files) input_files::note(file);
  for (const std::string& file : {run_form.model, run_form.against, run_form.inputs}) input_files::note(file);
  return admit_output(path);
}

Status Viewer::export_graph(const std::string& path, bool replaces) {
  PX_TRY(admit_export(path, replaces));
  if (path.ends_with(".png")) {
    wanted_png = path;
    png_may_replace = replaces || may_replace;
    return {};
  }
  const input_files::Scope scope(replaces || may_replace);
  PX_TRY(write_file(path, path.ends_with(".json")  ? session_to_json(*this)
                          : path.ends_with(".svg") ? scene_to_svg(graph)
                                                   : scene_to_dot(graph)));
  note = "wrote " + path;
  return {};
}

void Viewer::export_or_ask(const std::string& path) {
  if (!admit_export(path, false).ok() && admit_export(path, true).ok()) {
    foreign_file = path;
    show_replace = true;
    return;
  }
  if (const Status done = export_graph(path); !done.ok()) fail(done.error());
}

bool Viewer::copy(std::string text) {
  if (text.empty()) return false;
  const auto lines = std::ranges::count(text, '\n');
  note = lines > 1 ? fmt::format("copied {} lines", lines) : "copied: " + text;
  clipboard = std::move(text);
  return true;
}

}  // namespace parallax
