// SPDX-License-Identifier: Apache-2.0
// Scripts: a person's actions as lines of text, for tests, demonstrations and pictures.
//   open FILE [FILE ...] files by their paths
//   run MODEL [A,B]      a model on two executors
//   wait-idle            until no job is left
//   select PATH          a value path or a node
//   key CHORD            as in the command table: "Shift+N"
//   click NAME           the middle of a named widget
//   double-click NAME
//   drag NAME FROM TO    over a widget, between two shares of its width: drag histogram 0.2 0.4
//   type TEXT            into the text field that has the keyboard
//   do COMMAND           by its id: "graph.fit"
//   state JSON           as --state
//   resize WIDTH HEIGHT
//   shot FILE.png
//   export FILE          the graph as it is shown: .svg, .dot, .png
//   state-out FILE.json
//   expect POINTER VALUE the view's JSON must hold VALUE there
//   # a comment
#pragma once

#include <string>

#include "gui/app/render_target.h"

namespace parallax::gui {

// Errors name the line that failed.
Status run_script(const std::string& text, const std::string& name, RenderTarget& target, Ui& ui);

// Frames until nothing is left to settle, jobs included.
void settle(RenderTarget& target, Ui& ui);

}  // namespace parallax::gui
