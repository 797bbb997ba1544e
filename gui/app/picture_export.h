// SPDX-License-Identifier: Apache-2.0
// The picture of a pane, or of the window, that an export asked for.
#pragma once

#include "gui/app/render_target.h"

namespace parallax::gui {

// Writes the pane's part of the last frame where the viewer wants it; nothing where it wants none. What fails becomes
// a message of the viewer.
void save_wanted_picture(RenderTarget& target, Ui& ui);

}  // namespace parallax::gui
