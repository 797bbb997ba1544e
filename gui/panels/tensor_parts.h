// The parts of the tensor viewer, each in its own child window.
#pragma once

#include "gui/panels/ui.h"

namespace parallax::gui {

void draw_heat_map(Ui& ui);
void draw_range(Ui& ui);
void draw_histogram(Ui& ui);
void draw_element(Ui& ui);   // the element picked, and its surroundings
void draw_elements(Ui& ui);  // the worst elements as a table

}  // namespace parallax::gui
