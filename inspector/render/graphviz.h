// SPDX-License-Identifier: Apache-2.0
// Pictures of dot graphs, made by Graphviz's `dot` program in a child process with limits on time and memory.
#pragma once

#include <string>
#include <string_view>

#include "inspector/base/result.h"

namespace parallax {

struct GraphvizLimits {
  int seconds = 60;
  size_t memory_bytes = size_t{4} << 30;
};

// Format by name: "svg", "png", "pdf". Errors: unsupported (no `dot` program; too large for the limits, with advice),
// io.
Result<std::string> draw_dot(std::string_view dot, std::string_view format, const GraphvizLimits& limits = {});

// Checks that a file of that name can be written. Errors: usage.
Status check_picture_name(const std::string& path);

// Writes dot text, or a picture of it, by the path's ending (.dot, .gv, .svg, .png, .pdf). Errors: usage for other
// endings.
Status write_graph_picture(const std::string& dot, const std::string& path, const GraphvizLimits& limits = {});

}  // namespace parallax
