// The check that every override names a value the model has: a misspelt path would silently override nothing.
#pragma once

#include <map>
#include <string>

#include "inspector/exec/sites.h"

namespace parallax::runtime {

// Errors: usage.
Status check_override_paths(const SiteTable& sites, const std::map<std::string, Value>& overrides);

}  // namespace parallax::runtime
