// SPDX-License-Identifier: Apache-2.0
// Dimensions of caches that a model names only, as exporters for onnxruntime-genai write them: the files next to it
// tell the numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "inspector/workbench/generate/roles.h"

namespace parallax::generate {

struct CacheDims {
  std::optional<int64_t> heads, head_size;  // of keys and values
};

// The model with these dimensions where its caches of rank 4, [batch, heads, length, size] or [batch, length, heads,
// size], leave them open; the same model where they do not, or where nothing is known.
std::shared_ptr<const Model> with_cache_dims(std::shared_ptr<const Model> model, const ModelRoles& roles,
                                             const CacheDims& dims);

}  // namespace parallax::generate
