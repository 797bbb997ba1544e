// SPDX-License-Identifier: Apache-2.0
// Cuts a long row of operators into parts that can be read at a glance.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace parallax {

struct Section {
  size_t begin = 0;
  size_t count = 0;
  bool is_repeat = false;  // one of several parts of equal structure
};

// Parts of `structure` (a hash for each member, in execution order). A period that shows in most of the row gives its
// repetitions; the members before, between and after, or a row without one, is cut into equal parts of at most `limit`.
std::vector<Section> find_sections(std::span<const uint64_t> structure, size_t limit);

}  // namespace parallax
