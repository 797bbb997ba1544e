// SPDX-License-Identifier: Apache-2.0
// The results of a generation: the tokens, the cost of each step, and, with two sides, their comparison.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "inspector/diff/comparison.h"
#include "inspector/workbench/generate/request.h"

namespace parallax {

struct GenerationModel {
  std::string kind;                          // "decoder" or "encoder-decoder"
  std::map<std::string, std::string> files;  // role of the model -> its path: "decoder" -> "decoder/model.onnx"
  std::map<std::string, std::string> roles;  // role of an input or output -> its name
  int64_t layers = 0;
  int64_t caches_per_layer = 0;
  int64_t cache_bytes_per_token = 0;  // of one row
  int64_t vocabulary = 0;             // 0: not known
};

// The step at which the two sides first choose different tokens, or a token is not the expected one.
struct TokenDivergence {
  int64_t step = 0;
  int64_t row = 0;
  int64_t a = -1, b = -1;  // of expected tokens: `a` is the expected one; -1: the sequence had ended
  double margin = 0;       // by which side A preferred its token to B's
  bool near_tie = false;   // rounding explains it
};

struct GenerationStep {
  int64_t step = 0;
  std::vector<int64_t> tokens;  // one for each row (with beams: of each beam), pad where a row has ended
  double ms = 0;                // of the models; the slower side of two
  std::vector<double> logprob;  // of each token, after processors
  std::vector<double> margin;   // logit of the best token minus that of the second best, after processors
  // Two sides:
  double severity = 0;  // worst of the step
  std::string worst;    // path of that value
  bool diverged = false;
  bool near_tie = false;  // the sides choose different tokens, and rounding explains it
};

// Every setting as it was used.
struct UsedSettings {
  int64_t max_new_tokens = 20, min_new_tokens = 0;
  std::vector<int64_t> eos;
  int64_t pad = 0;
  std::vector<int64_t> start_ids;
  int64_t beams = 1;
  double length_penalty = 1;
  EarlyStopping early_stopping = EarlyStopping::no;
  int64_t returned = 1;
  int64_t no_repeat_ngram = 0;
  double repetition_penalty = 1;
  bool sample = false;
  double temperature = 1;
  int64_t top_k = 0;
  double top_p = 1, min_p = 0;
  uint64_t seed = 0;
  CacheMode cache = CacheMode::copy;
};

struct Generation {
  GenerationModel model;
  std::vector<ComparedExecution> executions;  // one for each side
  UsedSettings settings;
  std::vector<std::vector<int64_t>> sequences;  // new tokens, the end token included; `returned` for each prompt
  std::vector<double> scores;                   // of beams; else empty
  std::vector<std::string> stopped;             // "eos" or "length", of each sequence
  double tokens_per_second = 0;
  double prefill_ms = 0;
  double decode_min_ms = 0, decode_median_ms = 0, decode_p95_ms = 0;
  int64_t peak_bytes = 0;
  std::vector<GenerationStep> steps;
  std::optional<Comparison> comparison;  // of two sides
  std::optional<TokenDivergence> first_token_apart;
  std::vector<std::vector<int64_t>> expected;  // as they were compared; empty: nothing was
  bool is_expectation_missed = false;
  std::vector<std::string> notes;
  std::vector<std::string> written;      // files that remain
  std::shared_ptr<const Model> model_a;  // the decoder, for reports that draw it

  // True where no token and no value is wrong: exit code 0, else 1.
  bool passed() const;
};

std::string_view name_of(CacheMode mode);
std::string_view name_of(EarlyStopping stopping);

// The command line's JSON form, and its text. `failure` (may be null) is what failed afterwards.
std::string generation_to_json(const Generation& generation, const Error* failure = nullptr);
std::string generation_to_text(const Generation& generation);

}  // namespace parallax
