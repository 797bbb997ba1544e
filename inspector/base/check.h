// SPDX-License-Identifier: Apache-2.0
// PX_CHECK: a broken invariant of our own stops the program with its source line and the condition. Never for bad
// input.
#pragma once

namespace parallax {
[[noreturn]] void check_failed(const char* file, int line, const char* condition);
}

#define PX_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::parallax::check_failed(__FILE__, __LINE__, #condition))
