// SPDX-License-Identifier: Apache-2.0
// `merge-decoders`: two decoders as one file, and the proof that each branch computes what its model did.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inspector/transform/merge_decoders.h"
#include "inspector/workbench/run.h"

namespace parallax {

struct MergeRequest {
  std::string first, later;  // files: the decoder without a cache, and the one that reads it
  std::shared_ptr<const Model> first_in_memory, later_in_memory;  // in place of the files
  std::string output;
  std::string condition = "use_cache_branch";
  bool verify = false;
  // A test_data_set_N folder with the inputs of the merged model, the condition among them, and its outputs; or a
  // folder that holds some; empty: none.
  std::string data;
  std::vector<std::string> executors = {"reference", "cpu"};
  uint64_t seed = 0;  // of generated inputs
};

// One branch against its model on one executor, bit by bit; or the merged model against the outputs of a data set, by
// the default policy.
struct MergeCheck {
  std::string executor;
  std::string against;  // the model's path, or the data set's folder
  bool condition = false;
  int64_t outputs = 0;                 // compared
  std::vector<std::string> different;  // outputs that differ
};

struct MergeResult {
  transform::MergedDecoders merged;
  std::string output;
  std::optional<std::vector<MergeCheck>> checks;
  bool passed() const;
};

// Reads the data, writes `output`, and verifies what was written. Nothing is written where the request is wrong.
// Errors: as of merge_decoders, usage, io, as of the runs.
Result<MergeResult> merge_decoder_files(const MergeRequest& request, const ExecutorFactory& make_executor);

// {"output", "condition", "weights", "passed_through", "renamed", "verification"}
std::string merge_to_json(const MergeResult& result);
std::string merge_to_text(const MergeResult& result);

}  // namespace parallax
