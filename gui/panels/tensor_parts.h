// SPDX-License-Identifier: Apache-2.0
// The parts of the tensor viewer, each in its own child window.
#pragma once

#include "gui/panels/ui.h"

namespace parallax::gui {

constexpr size_t kMostWorst = 1000;  // elements listed

// The name of the first, or only, side of the model.
inline const char* only_side(const TensorPane& pane) {
  return !pane.model->has_b() && pane.mode == TensorMode::b ? "B" : "A";
}

void draw_heat_maps(Ui& ui, ImVec2 size);
void draw_range(Ui& ui);
void draw_histogram(Ui& ui, float height);
void draw_element(Ui& ui);  // the element picked
void draw_lists_of_elements(Ui& ui);

// The picture of one measure, made when it is first drawn: slot 0 for A, 1 for B, 2 for what is chosen.
const TensorUi::Heat& heat_of(Ui& ui, size_t slot, TensorMode mode);

}  // namespace parallax::gui
