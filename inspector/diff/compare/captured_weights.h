// SPDX-License-Identifier: Apache-2.0
// A dump's graph with the weights that were captured with it: what tells its nodes apart where a name does not.
#pragma once

#include <memory>

#include "inspector/dump/dump_reader.h"

namespace parallax::diff {

// `model` is the dump's own graph, which leaves large weights out; those of the main graph whose payload was captured
// come back as views of the dump's mapping.
std::shared_ptr<const Model> with_captured_weights(const DumpReader& dump, std::shared_ptr<const Model> model);

}  // namespace parallax::diff
