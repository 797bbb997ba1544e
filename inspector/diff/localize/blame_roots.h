// SPDX-License-Identifier: Apache-2.0
// Roots: the nodes of one model whose own arithmetic is wrong on one of two sides.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "inspector/diff/localize/node_judge.h"

namespace parallax::diff {

// A node that is wrong, in one or many of its instances.

struct Root {
  NodeInstance instance;  // the first that is wrong
  size_t output = 0;
  Side side = Side::unknown;
  double introduced = 0;  // of the worst instance
  double inherited = 0;   // of the first
  int64_t order = 0;      // position in the execution
  int64_t wrong = 0;      // instances
  int64_t judged = 0;
};

class RootFinder {
 public:
  RootFinder(const BlameRequest& request, const Comparison& comparison, std::shared_ptr<const Model> model,
             const ValueTable& value_infos);

  // Judges the nodes of all values that diverged; where that finds none, of all that differ at all.
  Status run();
  // Once more, sparing neither side: the reference too may be an old or a foreign one.
  Status judge_both_sides();
  bool found_roots() const { return !roots_.empty(); }

  std::vector<Root> take_roots();
  const std::string& unjudged() const { return unjudged_; }  // why a node could not be judged; empty: all were
  int64_t judged() const { return judged_; }
  const CapturedSide& a() const { return a_; }
  const CapturedSide& b() const { return b_; }

  // The position and node of a value's path; nothing for a value without a node.
  const GraphValues* location_of(std::string_view path) const;

 private:
  struct Finding {
    Side side = Side::unknown;
    double introduced = 0;
    double inherited = 0;
    size_t output = 0;
  };
  struct Candidate {
    NodeInstance instance;
    std::vector<std::optional<Limit>> carried;  // by output
    int64_t order = 0;
  };

  std::vector<Candidate> candidates(bool only_diverged) const;
  Status judge_all(const std::vector<Candidate>& candidates);
  Status judge(const Candidate& candidate);
  Result<Finding> find(const Candidate& candidate);
  bool holds_root(const Candidate& candidate) const;
  void note_unjudged(const NodeInstance& instance, const NodeJudgement& judgement);
  void add_locations(const GraphValues& location);

  const BlameRequest& request_;
  const Comparison& comparison_;
  CapturedSide a_, b_;
  std::unordered_map<std::string, const GraphValues*> locations_;  // by static prefix
  std::map<std::pair<const GraphValues*, NodeId>, Root> roots_;
  std::vector<std::string> root_paths_;  // prefixes of instances that are roots
  std::string unjudged_;
  int64_t judged_ = 0;
  bool is_strict_ = false;
};

}  // namespace parallax::diff
