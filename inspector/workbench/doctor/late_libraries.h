// SPDX-License-Identifier: Apache-2.0
// The libraries that are loaded when something first needs them, and the files that the loader takes them from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace parallax {

struct LateLibrary {
  std::string name;            // as the loader is asked for it: "libcublas.so.13"
  std::string_view product;    // "cuBLAS"
  std::string_view loaded_by;  // "parallax", "cuDNN" or "NVTX"
  std::string path;            // absolute; empty where it is found nowhere
};

// Those of this build, in the order in which they are loaded. Some are loaded by this: the loader alone knows its
// search.
std::vector<LateLibrary> examine_late_libraries();

}  // namespace parallax
