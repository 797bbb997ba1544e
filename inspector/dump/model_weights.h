// SPDX-License-Identifier: Apache-2.0
// The weights of a model as a dump in memory, so that whoever looks into dumps can look into models.
#pragma once

#include <memory>

#include "inspector/base/result.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/model/ir.h"

namespace parallax {

// Initializers (sparse ones are read as dense) and the tensors of Constant nodes, of the main graph, of bodies and of
// called functions: under their value paths, those in the body of a loop under its first iteration. Entries have no
// statistics; an absent weight is an entry that cannot be loaded. Errors: invalid_model, where the model expands to too
// many values.
Result<std::shared_ptr<const DumpReader>> weights_of(std::shared_ptr<const Model> model);

}  // namespace parallax
