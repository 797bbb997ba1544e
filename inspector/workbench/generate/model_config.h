// SPDX-License-Identifier: Apache-2.0
// The defaults of a generation that generation_config.json, config.json and genai_config.json of a folder hold, and the
// dimensions of caches.
#pragma once

#include <string>

#include "inspector/base/result.h"
#include "inspector/workbench/generate/cache_dims.h"
#include "inspector/workbench/generate/request.h"

namespace parallax::generate {

struct ModelConfig {
  GenerationSettings defaults;
  std::string decoder_file;  // of genai_config.json; empty: none is named
  CacheDims cache;
};

// A setting that several files have follows a precedence: generation_config.json wins over config.json, and that over
// genai_config.json. A folder without any of them gives nothing. Errors: usage, for a file that is no JSON object or
// has a value of another kind.
Result<ModelConfig> read_model_config(const std::string& folder);

}  // namespace parallax::generate
