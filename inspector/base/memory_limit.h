// SPDX-License-Identifier: Apache-2.0
// How much memory there is, and what is said where a limit of it is met, in the same words by every executor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "inspector/base/result.h"

namespace parallax {

// `what` takes `needed` bytes more than the `held` ones, and together they would exceed the limit.
Error over_memory_limit(std::string_view what, int64_t needed, int64_t held, int64_t limit);
// The weights alone do.
Error weights_over_memory_limit(int64_t weights, int64_t limit);

// The machine's memory.
int64_t physical_memory_bytes();

// Bytes for people, in whole KiB or MiB and rounded up: a limit of that size is enough.
std::string bytes_rounded_up(int64_t bytes);
// A size to a tenth, and small sizes exactly: "912 B", "12.3 KiB".
std::string bytes_text(int64_t bytes);

}  // namespace parallax
