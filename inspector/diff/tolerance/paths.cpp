// SPDX-License-Identifier: Apache-2.0
// Cutting paths into frames and names.
#include "inspector/diff/tolerance/paths.h"

#include "inspector/exec/path_parts.h"

namespace parallax::diff {

std::string static_path(std::string_view path) {
  std::string text;
  while (!path.empty()) {
    const size_t end = path.find("//");
    if (end == std::string_view::npos) break;
    std::string_view frame = path.substr(0, end);
    path.remove_prefix(end + 2);
    const bool is_outer =
        (frame.starts_with("step[") && frame.ends_with(']')) || (frame.starts_with("graph(") && frame.ends_with(')'));
    if (is_outer) continue;
    const size_t body = frame.ends_with(']') ? frame.rfind(".body[") : std::string_view::npos;
    if (body != std::string_view::npos) {
      text.append(frame.substr(0, body)).append(".body[*]");
    } else {
      text.append(frame);
    }
    text.append("//");
  }
  return text.append(path);
}

std::string_view prefix_of(std::string_view path) { return path.substr(0, name_begin(path)); }

bool leave_frame(std::string& prefix) {
  if (prefix.size() < 2) return false;
  prefix.resize(name_begin(std::string_view(prefix).substr(0, prefix.size() - 2)));
  return true;
}

}  // namespace parallax::diff
