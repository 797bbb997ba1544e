// SPDX-License-Identifier: Apache-2.0
// Puts captured payloads back into a dump's graph.
#include "inspector/diff/compare/captured_weights.h"

#include <utility>

#include "inspector/exec/value_path.h"

namespace parallax::diff {

std::shared_ptr<const Model> with_captured_weights(const DumpReader& dump, std::shared_ptr<const Model> model) {
  if (model == nullptr) return model;
  auto complete = std::make_shared<Model>(*model);
  bool has_found = false;
  for (StoredTensor& stored : complete->graph.initializers) {
    if (stored.absence.empty()) continue;
    const int32_t index = dump.find(escape_name(stored.name));
    if (index < 0) continue;
    const DumpEntry& entry = dump.entries()[static_cast<size_t>(index)];
    if (entry.absence.has_value() || entry.level != CaptureLevel::all) continue;
    auto value = dump.load(index);
    const bool fits = value.ok() && value->is_tensor() && value->tensor().dtype() == stored.tensor.dtype() &&
                      value->tensor().shape() == stored.tensor.shape();
    if (!fits) continue;
    stored.tensor = value->tensor();
    stored.absence.clear();
    has_found = true;
  }
  return has_found ? std::shared_ptr<const Model>(std::move(complete)) : model;
}

}  // namespace parallax::diff
