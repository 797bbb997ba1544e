// SPDX-License-Identifier: Apache-2.0
// Feeds: what the inputs of a model are given in one step, by their roles.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "inspector/tensor/value.h"
#include "inspector/workbench/generate/roles.h"

namespace parallax::generate {

// Tokens of a step and what was before them. All rows are as long as each other: a mask says what is padding.
struct StepState {
  int64_t rows = 0, length = 0;            // of `tokens`
  int64_t past = 0;                        // length of what is kept of earlier steps
  std::vector<int64_t> tokens;             // rows x length
  std::vector<std::vector<int64_t>> mask;  // rows of past + length: 1, or 0 where padding is
  bool uses_cache = false;                 // what use_cache_branch is given
  Value encoder_states;                    // absent without an encoder
  std::vector<std::vector<int64_t>> encoder_mask;
};

// One value for each input of the graph; `caches` in the order of ModelRoles::past, absent ones where the session keeps
// them. A cache that is undefined is an empty one. Errors: unsupported, for a dimension that nothing tells.
Result<std::vector<Value>> make_feeds(const Model& model, const ModelRoles& roles, const StepState& state,
                                      std::span<const Value> caches, bool session_keeps_caches);

// An empty cache of that slot.
Result<Value> empty_cache(const CacheSlot& slot, int64_t rows, const std::string& model);

// Rows of a tensor along an axis: row i of the result is row rows[i]. Errors: out_of_memory.
Result<Value> gather_rows(const Value& value, int axis, std::span<const int32_t> rows);

}  // namespace parallax::generate
