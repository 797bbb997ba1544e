// SPDX-License-Identifier: Apache-2.0
// `reduce`: the smallest part of a model that still fails, with its data and a script that repeats it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "inspector/workbench/run.h"
#include "inspector/workbench/transforms/extract.h"

namespace parallax {

// A command of the user's that judges candidates.
struct CheckCommand {
  std::string text;             // {model} and {inputs} stand for the candidate's file and its data set's folder
  std::vector<int> fail_codes;  // exit codes that mean failure; empty: any but 0
  std::string fail_regex;       // POSIX extended, over lines of stdout and stderr; empty: not asked
  double timeout_s = 0;         // 0: none; a command that takes longer has not failed
};

// Judges a candidate in memory: true where it fails. An error ends the search.
using CandidateCheck =
    std::function<Result<bool>(const std::shared_ptr<const Model>& candidate, const std::vector<NamedValue>& inputs)>;

struct ReduceRequest {
  RunRequest run;                  // with `against`: both models; with a check: one executor, which computes the values
  CheckCommand check;              // no text: what fails is the comparison, or
  CandidateCheck candidate_check;  // this, where there is one
  std::string directory;
  std::string script_options;  // further options of `parallax run`, as the script repeats them
  int64_t max_checks = 5000;
};

struct ReduceResult {
  bool fails = true;        // false: the model as it is does not fail, and nothing was written
  std::string explanation;  // then: a sentence
  PartSummary part;
  std::string location;    // frames that lead to the part: "loop.body[3]//", "" in the main graph
  int64_t checks = 0;      // candidates that were judged
  int64_t remembered = 0;  // of these, by the journal
  bool is_minimal = true;  // false: max_checks was reached
  std::vector<std::string> notes;
};

// Writes DIR/model.onnx (DIR/A.onnx and DIR/B.onnx with two models), DIR/test_data_set_0, DIR/repeat.sh (not for a
// candidate_check, which no script can repeat) and DIR/journal.jsonl, by which a search that was killed goes on where
// it was. Errors: as of runs; usage; io; cancelled.
Result<ReduceResult> reduce_model(const ReduceRequest& request, const ExecutorFactory& make_executor);

std::string reduce_to_json(const ReduceResult& result);
std::string reduce_to_text(const ReduceResult& result);

}  // namespace parallax
