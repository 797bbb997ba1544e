// SPDX-License-Identifier: Apache-2.0
// The text forms of RewriteChoice: what --rewrite and --patterns take on the command line, `rewrite=` and `patterns=`
// in Python.
#pragma once

#include <string_view>

#include "inspector/exec/executor.h"

namespace parallax {

// "default", "none", "all", "standard", "standard+microsoft", then "-NAME" and "+NAME", separated by commas. `option`
// stands in front of messages. Errors: usage, naming the part that is none of them.
Result<RewriteChoice> parse_rewrite_choice(std::string_view option, std::string_view text);

// Parses patterns where a bare "NAME" adds one pattern; without a set, names alone mean that nothing else is on.
// Executors say whether there is such a pattern. Errors: usage for a text without a pattern or with two sets.
Result<RewriteChoice> parse_patterns(std::string_view option, std::string_view text);

}  // namespace parallax
