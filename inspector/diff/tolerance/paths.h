// SPDX-License-Identifier: Apache-2.0
// Parts of value paths that the comparison works with.
#pragma once

#include <string>
#include <string_view>

namespace parallax::diff {

// A path with "[*]" for iterations and without the frames of graphs and steps: the key of a value.
std::string static_path(std::string_view path);
// The text that replaces an iteration number in it.
inline constexpr std::string_view kAnyIteration = "[*]";
// "a.body[0]//x" -> "a.body[0]//"; "" in the main graph.
std::string_view prefix_of(std::string_view path);
// "a.body[3]//b.then//" -> "a.body[3]//"; false when there is no frame to leave.
bool leave_frame(std::string& prefix);

}  // namespace parallax::diff
