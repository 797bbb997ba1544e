// SPDX-License-Identifier: Apache-2.0
// Processors: pure functions from the scores of the next token to other scores, in the order in which transformers
// applies them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "inspector/workbench/generate/generation.h"

namespace parallax::generate {

struct ProcessorContext {
  const UsedSettings& settings;
  std::span<const int64_t> history;  // of the row, without padding: prompt (or start ids) and new tokens
  int64_t generated = 0;             // how many of these are new
};

struct Processor {
  std::string_view name;
  bool is_for_sampling = false;
  bool (*is_on)(const UsedSettings& settings);
  void (*apply)(const ProcessorContext& context, std::span<double> scores);  // one score for each token
};

// To add one: a function, and a row at its position in the order.
std::span<const Processor> processors();

// All that the settings ask for. `scores` are logits, with beams the logarithms of probabilities.
void process(const ProcessorContext& context, std::span<double> scores);

}  // namespace parallax::generate
