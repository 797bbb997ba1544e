// SPDX-License-Identifier: Apache-2.0
// The view of a graph that is too large to be read as a whole: its beginning, at a size that can be read.
#pragma once

#include <span>

#include "inspector/render/scope_layout.h"

namespace parallax {

// screen = (world - origin) * zoom
struct Camera {
  float x = 0, y = 0, zoom = 1;
};

struct FirstViewLimits {
  float width = 0, height = 0;              // of the canvas, in pixels
  float least_zoom = 0, greatest_zoom = 0;  // at which its text can be read, and is not larger than elsewhere
};

// The position that shows most of the boxes `first` (indices into Scene::boxes) whole; among those the one where the
// border of the canvas cuts the fewest boxes, then the largest, then the one that shows the most boxes whole. Frames of
// open groups are cut.
Camera view_of_beginning(const Scene& scene, std::span<const int32_t> first, const FirstViewLimits& limits);

}  // namespace parallax
