// SPDX-License-Identifier: Apache-2.0
// The end of a failed PX_CHECK.
#include "inspector/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace parallax {

void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "parallax: internal error: %s:%d: %s does not hold\n", file, line, condition);
  std::abort();
}

}  // namespace parallax
