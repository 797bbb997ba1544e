// SPDX-License-Identifier: Apache-2.0
// The end of a value path's frames, after which its name begins. A name may begin with a slash
// ("a.body[0]///Add_output_0"), so the first two of three slashes are the separator: no frame ends with a slash, and
// names hold no two of them (escape_name).
#pragma once

#include <string_view>

namespace parallax {

// Position of the name in a path: 0 in the main graph, else after the last separator.
inline size_t name_begin(std::string_view path) {
  size_t at = path.rfind("//");
  if (at == std::string_view::npos) return 0;
  while (at > 0 && path[at - 1] == '/') --at;
  return at + 2;
}

}  // namespace parallax
