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

struct DotPicture {
  std::string image;
  std::string problem;  // a sentence with advice, where Graphviz made no picture: it is not installed, or met a limit
};

// Format by name: "svg", "png", "pdf". Errors: io, where this process can start no other (files, processes).
Result<DotPicture> run_dot(std::string_view dot, std::string_view format, const GraphvizLimits& limits = {});

// The picture alone. Errors: io, for a problem, too.
Result<std::string> draw_dot(std::string_view dot, std::string_view format, const GraphvizLimits& limits = {});

// Checks that a file of that name can be written. Errors: usage.
Status check_picture_name(const std::string& path);

// Writes dot text, or a picture of it, by the path's ending (.dot, .gv, .svg, .png, .pdf). Errors: usage for other
// endings.
Status write_graph_picture(const std::string& dot, const std::string& path, const GraphvizLimits& limits = {});

}  // namespace parallax
