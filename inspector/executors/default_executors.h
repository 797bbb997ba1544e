// SPDX-License-Identifier: Apache-2.0
// The executors that run where a person names none.
#pragma once

#include <string>
#include <vector>

namespace parallax {

// "reference" and "cuda" where a GPU can be used, else "reference" and "cpu"; with a second model "reference" alone.
std::vector<std::string> default_executors(bool against);

}  // namespace parallax
