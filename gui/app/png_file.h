// SPDX-License-Identifier: Apache-2.0
// PNG files of pictures, by libpng.
#pragma once

#include <string>

#include "gui/app/render_target.h"

namespace parallax::gui {

Status write_png(const std::string& path, const Picture& picture);
Result<Picture> read_png(const std::string& path);

}  // namespace parallax::gui
