// SPDX-License-Identifier: Apache-2.0
// The address space that is left to a driver of OpenGL, which ends the program where it gets none.
#pragma once

#include "inspector/base/result.h"

namespace parallax::gui {

// To be called before a driver is loaded. Where the address space is limited (ulimit -v), it checks that what Mesa's
// software driver takes for pixels of so many rows and columns is left, and has malloc set less aside. Errors:
// out_of_memory.
Status check_address_space(int width, int height);

}  // namespace parallax::gui
