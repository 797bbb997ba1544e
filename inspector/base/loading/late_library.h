// SPDX-License-Identifier: Apache-2.0
// Libraries that are loaded when they are first needed, and the folders where they are looked for: those of the loader,
// the one where the library was when the program was built, and those where wheels install NVIDIA's libraries.
#pragma once

#include <string>
#include <vector>

namespace parallax {

// Folders `nvidia/NAME/lib` that are there now, of these folders of Python packages, in this order: the one that holds
// this program or module; those that were added; those of an activated environment (VIRTUAL_ENV, CONDA_PREFIX). A
// folder of packages is absolute and named site-packages or dist-packages; others are ignored, for a library is code.
std::vector<std::string> wheel_library_folders();

// The running interpreter's folders of packages, which take the position of those that were added before.
void set_package_folders(std::vector<std::string> folders);

struct OpenedLibrary {
  void* handle = nullptr;  // null where the library is found nowhere; the caller closes it
  std::string problem;     // the loader's reason for not finding it by its name, or empty
};

// `flags` are dlopen's. `folder` is ignored unless it is absolute.
OpenedLibrary open_late_library(const std::string& name, const std::string& folder, int flags);

}  // namespace parallax
