// SPDX-License-Identifier: Apache-2.0
// A frame that is a branch, and its sibling.
#include "inspector/exec/branches.h"

#include "inspector/exec/value_path.h"

namespace parallax {

std::optional<std::string> branch_not_taken(std::string_view path,
                                            const std::function<bool(const std::string& frames)>& runs_in) {
  const auto parsed = parse_value_path(path);
  if (!parsed.ok()) return std::nullopt;
  std::string prefix;
  for (const Frame& frame : parsed->frames) {
    const std::string frames = prefix + to_string(frame);
    const bool is_then = frame.kind == Frame::Kind::then_branch, is_else = frame.kind == Frame::Kind::else_branch;
    Frame other = frame;
    other.kind = is_then ? Frame::Kind::else_branch : Frame::Kind::then_branch;
    if ((is_then || is_else) && !runs_in(frames + "//") && runs_in(prefix + to_string(other) + "//")) return frames;
    prefix = frames + "//";
  }
  return std::nullopt;
}

}  // namespace parallax
