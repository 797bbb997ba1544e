// SPDX-License-Identifier: Apache-2.0
// The settings of one generation: options over the model's defaults over ours, checked; and the prompts as batches.
#pragma once

#include <vector>

#include "inspector/workbench/generate/generation.h"
#include "inspector/workbench/generate/language_model.h"
#include "inspector/workbench/generate/side.h"

namespace parallax::generate {

// Errors: usage, for a number out of its range and for settings that exclude each other.
Result<UsedSettings> resolve_settings(const GenerationSettings& options, const GenerationSettings& defaults);

// Padded left for a decoder alone, right for an encoder, whose decoder begins with the start ids. Errors: usage (no
// tokens, ids beyond the vocabulary, a mask that does not fit), unsupported.
Result<PromptBatch> make_batch(const LanguageModel& model, const GenerationRequest& request,
                               const UsedSettings& settings);

// True where the model can tell padding from tokens. Errors: unsupported.
Status check_padding(const LanguageModel& model, const PromptBatch& batch);

// Checks that there is a sequence and memory for each beam. Errors: usage.
Status check_beams(const LanguageModel& model, const PromptBatch& batch, const UsedSettings& settings,
                   int64_t memory_bytes);

// The tokens that count as written already in each row: the prompt without padding, or the start ids.
std::vector<std::vector<int64_t>> histories_of(const LanguageModel& model, const PromptBatch& batch);

// The request's expected tokens, without prompts and padding. Errors: usage, io.
Result<std::vector<std::vector<int64_t>>> expected_tokens(const GenerationRequest& request,
                                                          const UsedSettings& settings,
                                                          const std::vector<std::vector<int64_t>>& histories);

}  // namespace parallax::generate
