// SPDX-License-Identifier: Apache-2.0
// ModelSide: a language model on one executor: its sessions, its caches, and what the next call is given.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "inspector/exec/session_states.h"
#include "inspector/workbench/generate/feeds.h"
#include "inspector/workbench/generate/language_model.h"
#include "inspector/workbench/run_side.h"

namespace parallax::generate {

// Token ids of a batch, padded to one length each, with masks.
struct TokenRows {
  std::vector<std::vector<int64_t>> ids, mask;
  int64_t rows() const { return static_cast<int64_t>(ids.size()); }
  int64_t length() const { return ids.empty() ? 0 : static_cast<int64_t>(ids.front().size()); }
  bool has_padding() const;
};

// The first tokens of a generation. `encoder` has no rows for a model without one.
struct PromptBatch {
  TokenRows encoder, decoder;
  int64_t capacity = 0;  // positions that will be needed
};

struct SideOptions {
  CacheMode cache = CacheMode::automatic;
  // Only the last position's logits are computed where the model allows it. Not for prompts that are padded right.
  bool last_position_only = false;
};

class ModelSide {
 public:
  static Result<std::unique_ptr<ModelSide>> prepare(const LanguageModel& model, const std::string& executor,
                                                    const RunRequest& request, const SideOptions& options,
                                                    const ExecutorFactory& make_executor);

  const LanguageModel& model() const { return *model_; }
  CacheMode cache() const { return cache_; }
  int64_t peak_bytes() const;
  double prepare_ms() const;
  const RunSide& stepping() const { return later_ == nullptr ? *first_ : *later_; }

  // Forgets what was before.
  Status begin(const PromptBatch& batch);
  bool has_encoder() const { return encoder_ != nullptr; }

  // The next call: the part that runs, with its inputs in RunSide::inputs, and how the call is named.
  struct Call {
    RunSide* run = nullptr;
    const Part* part = nullptr;
    CallInfo info;
    bool is_encoder = false;
  };
  Result<Call> encoder_call();
  Result<Call> first_call();                                // the prompt
  Result<Call> next_call(std::span<const int64_t> tokens);  // one token for each row

  // The outputs of the call. The logits are those of each row's last token, rows x vocabulary.
  struct Logits {
    std::vector<float> values;
    int64_t vocabulary = 0;
  };
  Status accept_encoder(const std::vector<Value>& outputs);
  Result<Logits> accept_step(const Call& call, const std::vector<Value>& outputs);
  Status reorder(std::span<const int32_t> rows);

 private:
  ModelSide() = default;
  Result<std::unique_ptr<RunSide>> prepare_part(const Part& part, const std::string& executor,
                                                const RunRequest& request, const std::vector<StateBinding>& states,
                                                bool last_position_only, const ExecutorFactory& make_executor);
  Status prepare_stepping(const std::string& executor, const RunRequest& request, const SideOptions& options,
                          const ExecutorFactory& make_executor);
  Result<Call> step_call(bool is_first);
  Status take_caches(bool was_first, const std::vector<Value>& outputs);
  SessionStates* states() const;

  const LanguageModel* model_ = nullptr;
  CacheMode cache_ = CacheMode::copy;
  std::unique_ptr<RunSide> encoder_, first_, later_;
  std::vector<int32_t> first_presents_;  // of each past of the stepping model, in the first one's presents
  std::vector<int32_t> state_of_slot_;   // of each past; -1: not kept in the session

  int64_t step_ = 0;
  int64_t past_ = 0;
  int64_t capacity_ = 0;
  TokenRows tokens_;  // all of the decoder's so far
  // Position of each row's last token in the call that runs; empty: the last one of all rows.
  std::vector<int64_t> last_tokens_;
  TokenRows encoder_tokens_;
  std::vector<int32_t> prompt_of_;  // of each row
  Value encoder_states_;
  std::vector<Value> caches_;
};

}  // namespace parallax::generate
