// SPDX-License-Identifier: Apache-2.0
// The request of `generate`: the models that are opened once, and the settings of one generation.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "inspector/diff/tolerance/policy.h"
#include "inspector/exec/executor.h"
#include "inspector/workbench/run.h"

namespace parallax {

// The storage of the past of the tokens: in the session, which appends to it; outside, given and returned with each
// step; nowhere, so that all tokens are computed again with each step.
enum class CacheMode : uint8_t { automatic, in_place, copy, none };

enum class EarlyStopping : uint8_t { no, yes, never };

// Models in memory, by what each is for: "model" (decoder-only), or "encoder", "decoder", "decoder_with_past",
// "merged".
using ModelsByRole = std::map<std::string, std::shared_ptr<const Model>>;

// The models that a Generator opens.
struct GeneratorRequest {
  std::string model;    // an ONNX file or a folder; only a title where `models` is given
  std::string against;  // the same for the second side; empty: one model
  ModelsByRole models, against_models;
  std::vector<std::string> executors;  // one or two; two sides also where `against` is given
  RunOptions options;                  // `states` and `cancel` are set by the Generator
  std::string fallback;                // executor name, or empty
  CacheMode cache = CacheMode::automatic;
  std::string map_file;                      // JSON {role: name of an input or output}; empty: by name and shape
  std::map<std::string, std::string> roles;  // the same in memory; wins over the file
  bool all_logits = false;                   // the head is computed for every position, as in the file
  MessageCallback message;                   // roles and notes, one sentence each

  bool has_against() const { return !against.empty() || !against_models.empty(); }
  bool has_two_sides() const { return executors.size() == 2 || has_against(); }
};

// Options of one generation. What is not set comes from generation_config.json, config.json or genai_config.json of the
// model's folder, else it has the value named here.
struct GenerationSettings {
  std::optional<int64_t> max_new_tokens;          // 20
  std::optional<int64_t> min_new_tokens;          // 0
  std::optional<std::vector<int64_t>> eos;        // none; an empty list: no token ends a sequence
  std::optional<int64_t> pad;                     // the first of eos, else 0
  std::optional<std::vector<int64_t>> start_ids;  // of an encoder-decoder: pad, as config.json has it
  std::optional<int64_t> beams;                   // 1
  std::optional<double> length_penalty;           // 1
  std::optional<EarlyStopping> early_stopping;    // no
  int64_t returned = 1;                           // sequences of each prompt, at most `beams`
  std::optional<int64_t> no_repeat_ngram;         // 0: off
  std::optional<double> repetition_penalty;       // 1: off
  bool sample = false;                            // else the most likely token
  std::optional<double> temperature;              // 1
  std::optional<int64_t> top_k;                   // 50; 0: off
  std::optional<double> top_p;                    // 1
  std::optional<double> min_p;                    // off
  uint64_t seed = 0;
};

struct GenerationStep;

struct GenerationRequest {
  std::vector<std::vector<int64_t>> prompts;  // token ids, one list for each row; of any lengths
  // 0 where a token is padding, one list for each prompt and as long; empty: every token counts.
  std::vector<std::vector<int64_t>> masks;
  GenerationSettings settings;
  // Expected new tokens, one list for each returned sequence; empty: none.
  std::vector<std::vector<int64_t>> expected;
  std::string expected_file;  // expected.json, a list of ids, or transformers' `sequences`
  // Two sides, and dumps: what is captured and compared of each step. Default: the logits; all with a dump.
  std::optional<CaptureLevel> capture;
  std::vector<std::string> only;  // globs over value paths
  std::string dump_directory;     // empty: no dumps
  Policy policy;
  bool error_pictures = false;
  Observer* observer = nullptr;                        // sees every call of side A; may be null
  std::function<void(const GenerationStep&)> on_step;  // after each step, from the thread that generates
};

struct Prompts {
  std::vector<std::vector<int64_t>> ids, masks;  // masks: empty, or as many and as long as ids
};

// "1,2,3;4,5" is two prompts. Errors: usage.
Result<std::vector<std::vector<int64_t>>> parse_prompt_ids(const std::string& text);
// "2,3" or "none" (an empty list). Errors: usage, naming the option.
Result<std::vector<int64_t>> parse_token_list(std::string_view option, const std::string& text);
// A JSON file with a list of ids, a list of lists, or an object with `input_ids` or `prompt_ids` and perhaps
// `attention_mask`; or an .npy file of integers of rank 1 or 2. Errors: usage, io, corrupt_file.
Result<Prompts> read_prompt_file(const std::string& path);

}  // namespace parallax
