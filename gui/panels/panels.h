// SPDX-License-Identifier: Apache-2.0
// The windows of the program: each draws one part of the Viewer into the child window it is called in.
#pragma once

#include "gui/panels/ui.h"

namespace parallax::gui {

// Instead of ImGui::NewFrame: takes from `ui.input` what one frame can take, in the order in which it came. Dear ImGui
// 1.86 looks at keys and buttons once a frame: while more waits, further frames are due, which need not be drawn.
void begin_frame(Ui& ui);
// The whole frame, between begin_frame and ImGui::Render.
void draw_frame(Ui& ui);

void draw_menu(Ui& ui);
void draw_status(Ui& ui);
std::string zoom_text(const Ui& ui);  // "100 %", where letters have the size of the scale
void draw_messages(Ui& ui);
void draw_lists(Ui& ui);                         // alerts, table, causes
void draw_differences(Ui& ui);                   // of two models
void draw_canvas(Ui& ui, GraphView& graph);      // one of the viewer's
void draw_iterations(Ui& ui);                    // the choice of one, where values are repeated
void draw_ribbon(Ui& ui);                        // all values in execution order, as one strip
void draw_legend(Ui& ui);                        // what the graph's colors mean
float legend_height(const Ui& ui, float width);  // 0 where there is nothing to tell
void draw_inspector(Ui& ui);
void draw_tensor(Ui& ui);
void draw_dialogs(Ui& ui);  // palette, help, open, run
void draw_open(Ui& ui);     // the file chooser
void draw_welcome(Ui& ui);  // what stands where nothing is open

// Gives a chord to the viewer, unless a text field wants it. False when nobody did.
bool handle_key(Ui& ui, const std::string& chord);

}  // namespace parallax::gui
