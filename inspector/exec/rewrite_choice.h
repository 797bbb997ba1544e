// The text form of RewriteChoice: what --rewrite takes on the command line and `rewrite=` in Python.
#pragma once

#include <string_view>

#include "inspector/exec/executor.h"

namespace parallax {

// "default", "none", "all", "standard", "standard+microsoft", then "-NAME" and "+NAME", separated by commas. `option`
// stands in front of messages. Errors: usage, naming the part that is none of them.
Result<RewriteChoice> parse_rewrite_choice(std::string_view option, std::string_view text);

}  // namespace parallax
