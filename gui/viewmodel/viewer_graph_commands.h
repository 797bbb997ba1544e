// SPDX-License-Identifier: Apache-2.0
// Commands that walk along the graph, open its blocks and look at parts of it; of two models, in the one in which
// something was selected last. False when there was nothing to do. Private to this folder.
#pragma once

#include "gui/viewmodel/viewer.h"

namespace parallax {

bool go_producer(Viewer& v);
bool go_reader(Viewer& v);
bool go_sibling(Viewer& v, int step);
bool open_block(Viewer& v);   // or closes it
bool close_outer(Viewer& v);  // and selects it; from the outermost on the model
bool open_all(Viewer& v);     // of both models
bool close_all(Viewer& v);
bool fit_graph(Viewer& v);
bool zoom_graph(Viewer& v, float factor);

}  // namespace parallax
