// SPDX-License-Identifier: Apache-2.0
// Overrides of a run: values put in place of what was computed, named by value path.
#pragma once

#include <map>
#include <string>

#include "inspector/exec/value_table.h"

namespace parallax {

// That every override names a value the model has: a misspelt path would silently override nothing. Errors: usage.
Status check_override_paths(const ValueTable& value_infos, const std::map<std::string, Value>& overrides);

}  // namespace parallax
