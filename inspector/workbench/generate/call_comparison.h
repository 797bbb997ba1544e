// SPDX-License-Identifier: Apache-2.0
// CallComparison: two sides at once, call by call; what differs first is blamed while its inputs are at hand.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "inspector/diff/compare/stream_compare.h"
#include "inspector/diff/matching/path_links.h"
#include "inspector/workbench/generate/side.h"

namespace parallax::generate {

struct CallComparisonOptions {
  Policy policy;
  std::optional<CaptureLevel> capture;  // unset: all values are compared; those of the graphs' outputs, and what does
                                        // not pass, stay in the document. none: outputs alone are compared
  std::vector<std::string> only;
  bool error_pictures = false;
  CancelToken cancel;
  MessageCallback message;
};

class CallComparison {
 public:
  // `a` and `b` outlive it.
  CallComparison(const ModelSide& a, const ModelSide& b, RunRequest request, CallComparisonOptions options,
                 ExecutorFactory make_executor);

  struct Call {
    std::vector<Value> outputs_a, outputs_b;
    double severity = 0;
    std::string worst;
    bool diverged = false;
    double ms_a = 0, ms_b = 0;
  };
  // Observers may be null.
  Result<Call> run(const ModelSide::Call& a, const ModelSide::Call& b, std::vector<Observer*> watch_a,
                   std::vector<Observer*> watch_b);

  // Everything so far as one document.
  Comparison take();

 private:
  struct Compared {
    Call call;
    Comparison comparison;
  };
  Result<Compared> run_together(const ModelSide::Call& a, const ModelSide::Call& b, std::vector<Observer*> watch_a,
                                std::vector<Observer*> watch_b, const std::string& prefix, bool inherits);
  Result<const std::vector<PathMatch>*> matches_of(const Part& a, const Part& b);
  Status look_into(const ModelSide::Call& a, const ModelSide::Call& b, const std::string& prefix,
                   Comparison& comparison);
  Policy policy_for(const std::string& prefix) const;
  void remember(const std::string& output, const std::string& input, const Comparison& comparison);
  void remember_outputs(const ModelSide::Call& call, const Comparison& comparison);
  void drop_repeated(const Part& part, Comparison& comparison);
  void add(const std::string& prefix, Comparison comparison, Call& call);
  bool is_kept(const ValueComparison& value) const;

  const ModelSide &a_, &b_;
  RunRequest request_;
  CallComparisonOptions options_;
  ExecutorFactory make_executor_;
  std::map<std::pair<const Part*, const Part*>, std::vector<PathMatch>> matches_;
  std::map<std::string, double> inherited_;  // name of a past of A -> rms of what the two sides' caches may differ by
  std::map<const Part*, bool> has_run_;
  Comparison total_;
  bool is_blamed_ = false;
};

}  // namespace parallax::generate
