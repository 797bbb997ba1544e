// SPDX-License-Identifier: Apache-2.0
// The inspector's sections for a node, a block and the whole model: what the file says of them. Private to this folder.
#pragma once

#include "gui/viewmodel/inspect/view_inspector.h"

namespace parallax {

// Titles and sections of a node (attributes, inputs, outputs, documentation), a group or a body (the values that cross
// its border), an input or an output.
void add_item(const GraphItems& items, int32_t item, InspectorView& view);

// Titles and sections of the document's model: versions, counts, metadata, inputs and outputs.
void add_model(const Document& document, InspectorView& view);

}  // namespace parallax
