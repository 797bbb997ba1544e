// SPDX-License-Identifier: Apache-2.0
// Value paths: how every value of every execution is named (the grammar is in the command line's contract).
//   path  = { frame "//" } name
//   frame = "graph(" name ")" | "step[" n "]" | node ".body[" n "]" | node ".then" | node ".else" | node ".call"
//         | "module(" name ")" [ ".call[" n "]" ]
// In a name "//" is written "%2F%2F", and "%" before two hex digits "%25".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"

namespace parallax {

struct Frame {
  enum class Kind : uint8_t { graph, step, body, then_branch, else_branch, call, module };
  Kind kind = Kind::body;
  std::string node;    // display name of the node whose body this is; the graph's or module's name for those kinds
  int64_t index = -1;  // step, iteration or call of a module, from 0; -1 for a module without calls
  bool operator==(const Frame&) const = default;
};

struct ValuePath {
  std::vector<Frame> frames;
  std::string name;  // the ONNX value name, not escaped
  bool operator==(const ValuePath&) const = default;
};

std::string escape_name(std::string_view name);
std::string unescape_name(std::string_view text);
std::string to_string(const Frame& frame);
std::string to_string(const ValuePath& path);
Result<ValuePath> parse_value_path(std::string_view text);

// Globs over the text of a path: `?` one character, `*` any run within a frame, `**` any run across frames; everything
// else, brackets included, stands for itself.
bool glob_matches(std::string_view glob, std::string_view path);

// The glob for static paths (ValueInfo's scope and name, "[*]" for any iteration) of what `glob` may match: without
// frames of steps and graphs, its iterations any.
std::string static_glob(std::string_view glob);

// The frames an executor stands in, with their text kept ready. Pushing and popping costs no more than the frame's own
// text.
class FrameStack {
 public:
  void push(Frame frame);
  void pop();
  const std::vector<Frame>& frames() const { return frames_; }
  std::string path_of(std::string_view escaped_name) const { return prefix_ + std::string(escaped_name); }
  const std::string& prefix() const { return prefix_; }  // "" or "...//"

 private:
  std::vector<Frame> frames_;
  std::vector<size_t> lengths_;
  std::string prefix_;
};

}  // namespace parallax
