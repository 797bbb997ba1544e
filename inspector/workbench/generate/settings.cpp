// SPDX-License-Identifier: Apache-2.0
// Defaults, ranges, padding.
#include "inspector/workbench/generate/settings.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "inspector/base/checked_math.h"
#include "inspector/base/memory_budget.h"

namespace parallax::generate {
namespace {

Status at_least(std::string_view option, int64_t value, int64_t least) {
  if (value >= least) return {};
  return usage_error(fmt::format("{} is {}; it must be at least {}", option, value, least));
}

Status within(std::string_view option, double value, double low, double high) {
  if (value >= low && value <= high) return {};
  return usage_error(fmt::format("{} is {}; it must lie between {} and {}", option, value, low, high));
}

Status above_zero(std::string_view option, double value) {
  if (value > 0 && std::isfinite(value)) return {};
  return usage_error(fmt::format("{} is {}; it must be a number above 0", option, value));
}

// Options that would change nothing are refused.
Status check_effects(const GenerationSettings& options, const UsedSettings& used) {
  const bool any_sampling = options.temperature || options.top_k || options.top_p || options.min_p;
  if (any_sampling && !used.sample)
    return usage_error(
        "--temperature, --top-k, --top-p and --min-p change what is drawn, and nothing is: add --sample");
  const bool any_beams = options.length_penalty || options.early_stopping;
  if (any_beams && used.beams == 1)
    return usage_error("--length-penalty and --early-stopping are options of beam search: add --beams N");
  if (used.returned > used.beams)
    return usage_error(
        fmt::format("--return {} asks for more sequences than there are beams ({}); --beams N makes more",
                    used.returned, used.beams));
  if (used.min_new_tokens > used.max_new_tokens)
    return usage_error(fmt::format("--min-new-tokens {} is more than --max-new-tokens {}; it must be at most that",
                                   used.min_new_tokens, used.max_new_tokens));
  return {};
}

Status check_ranges(const UsedSettings& used) {
  PX_TRY(at_least("--max-new-tokens", used.max_new_tokens, 1));
  PX_TRY(at_least("--min-new-tokens", used.min_new_tokens, 0));
  PX_TRY(at_least("--beams", used.beams, 1));
  PX_TRY(at_least("--return", used.returned, 1));
  PX_TRY(at_least("--no-repeat-ngram", used.no_repeat_ngram, 0));
  PX_TRY(at_least("--top-k", used.top_k, 0));
  PX_TRY(above_zero("--repetition-penalty", used.repetition_penalty));
  PX_TRY(above_zero("--temperature", used.temperature));
  PX_TRY(within("--top-p", used.top_p, 0, 1));
  return within("--min-p", used.min_p, 0, 1);
}

template <class T>
T first_of(const std::optional<T>& option, const std::optional<T>& fallback, T value) {
  return option.value_or(fallback.value_or(std::move(value)));
}

Status check_ids(const std::vector<int64_t>& ids, int64_t vocabulary, std::string_view what) {
  for (const int64_t id : ids) {
    if (id >= 0 && (vocabulary == 0 || id < vocabulary)) continue;
    return usage_error(vocabulary == 0 ? fmt::format("{} holds the id {}; ids begin with 0", what, id)
                                       : fmt::format("{} holds the id {}; the vocabulary has the ids 0 to {}", what, id,
                                                     vocabulary - 1));
  }
  return {};
}

Status check_mask(size_t row, const std::vector<int64_t>& mask, const std::vector<int64_t>& prompt) {
  if (mask.size() != prompt.size())
    return usage_error(fmt::format("the mask of prompt {} has the length {}; it must be as long as the prompt, {}", row,
                                   mask.size(), prompt.size()));
  for (const int64_t number : mask) {
    if (number != 0 && number != 1)
      return usage_error(
          fmt::format("the mask of prompt {} holds {}; it must hold 1 where a token counts and 0 where it is padding",
                      row, number));
  }
  if (std::ranges::find(mask, 1) == mask.end())
    return usage_error(fmt::format("the mask of prompt {} is 0 for all tokens; it must be 1 for one at least", row));
  return {};
}

Status check_prompts(const LanguageModel& model, const GenerationRequest& request) {
  if (request.prompts.empty()) return usage_error("there is no prompt; --prompt-ids 1,2,3 gives one");
  const int64_t vocabulary =
      model.encoder.has_value() ? vocabulary_of(*model.encoder->model, model.encoder->roles) : model.vocabulary;
  for (size_t row = 0; row < request.prompts.size(); ++row) {
    const std::string name = fmt::format("prompt {}", row);
    if (request.prompts[row].empty()) return usage_error(name + " is empty; it must hold one token id at least");
    PX_TRY(check_ids(request.prompts[row], vocabulary, name));
  }
  if (request.masks.empty()) return {};
  if (request.masks.size() != request.prompts.size())
    return usage_error(fmt::format("there are {} masks and {} prompts; each prompt needs one, or none does",
                                   request.masks.size(), request.prompts.size()));
  for (size_t row = 0; row < request.masks.size(); ++row)
    PX_TRY(check_mask(row, request.masks[row], request.prompts[row]));
  return {};
}

// An id that an option gives must exist. One of the model's files must where it is fed: as an end token it ends no row.
Status check_special_tokens(const LanguageModel& model, const GenerationSettings& options, const UsedSettings& used,
                            bool feeds_padding) {
  if (options.eos.has_value()) PX_TRY(check_ids(used.eos, model.vocabulary, "--eos"));
  if (options.pad.has_value() || feeds_padding) PX_TRY(check_ids({used.pad}, model.vocabulary, "--pad"));
  if (!model.encoder.has_value() && options.start_ids.has_value())
    return usage_error(fmt::format(
        "--start-ids is what the decoder of an encoder-decoder begins with, and '{}' has no encoder; leave it out",
        model.title));
  return {};
}

// Sequences that beams can be: at most the vocabulary to the power of their length.
bool are_enough_sequences(int64_t vocabulary, int64_t length, int64_t beams) {
  int64_t sequences = 1;
  for (int64_t token = 0; token < length && sequences < beams && vocabulary > 1; ++token)
    sequences = checked_mul(sequences, vocabulary).value_or(INT64_MAX);
  return sequences >= beams;
}

// Bytes of the caches of all rows at their full length, and of the rows' logits and scores; absent: more than int64
// counts.
std::optional<int64_t> bytes_of_beams(const LanguageModel& model, int64_t rows, int64_t positions) {
  constexpr int64_t kBytesOfScore = sizeof(float) + 2 * sizeof(double);  // a logit, its score, its sum
  const auto cache = checked_mul(report_of(model).cache_bytes_per_token, positions);
  const auto scores = checked_mul(model.vocabulary, kBytesOfScore);
  if (!cache.has_value() || !scores.has_value()) return std::nullopt;
  const auto row = checked_add(*cache, *scores);
  return row.has_value() ? checked_mul(*row, rows) : std::nullopt;
}

TokenRows padded(const GenerationRequest& request, int64_t pad, bool on_the_left) {
  size_t longest = 0;
  for (const auto& prompt : request.prompts) longest = std::max(longest, prompt.size());
  TokenRows rows;
  for (size_t row = 0; row < request.prompts.size(); ++row) {
    std::vector<int64_t> ids = request.prompts[row];
    std::vector<int64_t> mask = request.masks.empty() ? std::vector<int64_t>(ids.size(), 1) : request.masks[row];
    const size_t missing = longest - ids.size();
    ids.insert(on_the_left ? ids.begin() : ids.end(), missing, pad);
    mask.insert(on_the_left ? mask.begin() : mask.end(), missing, 0);
    rows.ids.push_back(std::move(ids));
    rows.mask.push_back(std::move(mask));
  }
  return rows;
}

}  // namespace

Result<UsedSettings> resolve_settings(const GenerationSettings& options, const GenerationSettings& defaults) {
  UsedSettings used;
  used.max_new_tokens = first_of<int64_t>(options.max_new_tokens, defaults.max_new_tokens, 20);
  used.min_new_tokens = first_of<int64_t>(options.min_new_tokens, defaults.min_new_tokens, 0);
  used.eos = first_of<std::vector<int64_t>>(options.eos, defaults.eos, {});
  used.pad = first_of<int64_t>(options.pad, defaults.pad, used.eos.empty() ? 0 : used.eos.front());
  used.start_ids = first_of<std::vector<int64_t>>(options.start_ids, defaults.start_ids, {used.pad});
  used.beams = first_of<int64_t>(options.beams, defaults.beams, 1);
  used.length_penalty = first_of<double>(options.length_penalty, defaults.length_penalty, 1);
  used.early_stopping = first_of(options.early_stopping, defaults.early_stopping, EarlyStopping::no);
  used.returned = options.returned;
  used.no_repeat_ngram = first_of<int64_t>(options.no_repeat_ngram, defaults.no_repeat_ngram, 0);
  used.repetition_penalty = first_of<double>(options.repetition_penalty, defaults.repetition_penalty, 1);
  used.sample = options.sample;
  used.seed = options.seed;
  if (used.sample) {
    used.temperature = first_of<double>(options.temperature, defaults.temperature, 1);
    used.top_k = first_of<int64_t>(options.top_k, defaults.top_k, 50);
    used.top_p = first_of<double>(options.top_p, defaults.top_p, 1);
    used.min_p = first_of<double>(options.min_p, defaults.min_p, 0);
  }
  PX_TRY(check_ranges(used));
  PX_TRY(check_effects(options, used));
  if (used.start_ids.empty()) return usage_error("--start-ids is empty; a decoder begins with one id at least");
  return used;
}

Result<PromptBatch> make_batch(const LanguageModel& model, const GenerationRequest& request,
                               const UsedSettings& settings) {
  PX_TRY(check_prompts(model, request));
  const bool feeds_padding = request.prompts.size() > 1;  // rows that are shorter or end first
  PX_TRY(check_special_tokens(model, request.settings, settings, feeds_padding));
  PromptBatch batch;
  if (model.encoder.has_value()) {
    PX_TRY(check_ids(settings.start_ids, model.vocabulary, "--start-ids"));
    batch.encoder = padded(request, settings.pad, false);
    batch.decoder.ids.assign(request.prompts.size(), settings.start_ids);
    batch.decoder.mask.assign(request.prompts.size(), std::vector<int64_t>(settings.start_ids.size(), 1));
  } else {
    batch.decoder = padded(request, settings.pad, true);
    PX_TRY(check_padding(model, batch));
  }
  batch.capacity = checked_add(batch.decoder.length(), settings.max_new_tokens).value_or(INT64_MAX);
  return batch;
}

Status check_padding(const LanguageModel& model, const PromptBatch& batch) {
  if (!batch.decoder.has_padding()) return {};
  const ModelRoles& roles = model.stepping().roles;
  if (roles.input(InputRole::attention_mask).has_value() || roles.input(InputRole::sequence_lengths).has_value())
    return {};
  return unsupported(
      fmt::format("the prompts of this batch differ in length or have masks, and '{}' has no attention_mask and no "
                  "seqlens_k that could say which tokens count; generate for one prompt after the other",
                  model.stepping().path));
}

Status check_beams(const LanguageModel& model, const PromptBatch& batch, const UsedSettings& settings,
                   int64_t memory_bytes) {
  if (settings.beams == 1) return {};
  if (!are_enough_sequences(model.vocabulary, settings.max_new_tokens, settings.beams) && model.vocabulary > 0)
    return usage_error(fmt::format(
        "--beams is {}, and {} tokens of a vocabulary of {} make fewer sequences; there must be one for each beam",
        settings.beams, settings.max_new_tokens, model.vocabulary));
  const auto rows = checked_mul(settings.beams, batch.decoder.rows());
  const auto bytes = rows.has_value() ? bytes_of_beams(model, *rows, batch.capacity) : std::nullopt;
  if (bytes.has_value() && *bytes <= memory_bytes && *rows <= INT32_MAX) return {};
  return usage_error(fmt::format(
      "--beams is {}, and the caches and scores of so many rows of {} positions take {}; they must fit in {} of memory",
      settings.beams, batch.capacity, bytes.has_value() ? bytes_text(*bytes) : "more bytes than can be counted",
      bytes_text(memory_bytes)));
}

std::vector<std::vector<int64_t>> histories_of(const LanguageModel& model, const PromptBatch& batch) {
  std::vector<std::vector<int64_t>> histories;
  for (size_t row = 0; row < batch.decoder.ids.size(); ++row) {
    std::vector<int64_t>& history = histories.emplace_back();
    for (size_t index = 0; index < batch.decoder.ids[row].size(); ++index) {
      if (model.encoder.has_value() || batch.decoder.mask[row][index] != 0)
        history.push_back(batch.decoder.ids[row][index]);
    }
  }
  return histories;
}

}  // namespace parallax::generate
