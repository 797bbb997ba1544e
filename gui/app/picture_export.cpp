// SPDX-License-Identifier: Apache-2.0
// Cuts the pane out of the frame.
#include "gui/app/picture_export.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gui/app/png_file.h"
#include "inspector/base/input_files.h"

namespace parallax::gui {
namespace {

Picture part_of(const Picture& whole, const Widget& widget) {
  const auto within = [](float at, int most) { return std::clamp(static_cast<int>(at), 0, most); };
  const int left = within(widget.least.x, whole.width), right = within(widget.greatest.x, whole.width),
            top = within(widget.least.y, whole.height), bottom = within(widget.greatest.y, whole.height);
  Picture part{right - left, bottom - top, {}};
  for (int y = top; y < bottom; ++y) {
    const auto row = whole.rgba.begin() + (static_cast<std::ptrdiff_t>(y) * whole.width + left) * 4;
    part.rgba.insert(part.rgba.end(), row, row + static_cast<std::ptrdiff_t>(part.width) * 4);
  }
  return part;
}

}  // namespace

void save_wanted_picture(RenderTarget& target, Ui& ui) {
  Viewer& viewer = *ui.viewer;
  if (viewer.wanted_png.empty()) return;
  const std::string path = std::exchange(viewer.wanted_png, {});
  const auto pane = ui.widgets.find(viewer.wanted_pane);
  if (pane == ui.widgets.end() && !viewer.wanted_pane.empty())
    return viewer.fail(
        usage_error(fmt::format("the {} is not on the screen; show its panel first", viewer.wanted_pane)));
  const input_files::Scope scope(viewer.png_may_replace);  // asked for when the export was
  const Picture whole = target.picture();
  const Status written = write_png(path, viewer.wanted_pane.empty() ? whole : part_of(whole, pane->second));
  if (!written.ok()) return viewer.fail(written.error());
  viewer.note = "wrote " + path;
}

}  // namespace parallax::gui
