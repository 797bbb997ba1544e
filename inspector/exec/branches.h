// SPDX-License-Identifier: Apache-2.0
// Values in the branch of an If that did not run: why they are not there.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace parallax {

// The outermost branch on the way to `path` in place of which the other one ran, as its frames:
// "loop.body[2]//pick.then". `runs_in`: whether anything ran below these frames, which end in "//".
std::optional<std::string> branch_not_taken(std::string_view path,
                                            const std::function<bool(const std::string& frames)>& runs_in);

}  // namespace parallax
