// SPDX-License-Identifier: Apache-2.0
// PathLinks: which path of B stands for which of A, where they are not simply the same.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "inspector/diff/comparison.h"

namespace parallax {

struct ModelMatching;
class ValueTable;

// Static paths ("[*]" for any iteration) of two values that stand for each other. One of them empty: what the call of a
// function takes or gives there is in the other model a value that has a nearer counterpart, in the function or
// outside.
struct PathMatch {
  std::string a, b;
  MatchedBy how = MatchedBy::path;
};

// The nearest counterparts of a matching as paths, and what calls repeat.
std::vector<PathMatch> matched_paths(const ValueTable& a, const ValueTable& b, const ModelMatching& matching);

namespace diff {

class PathLinks {
 public:
  // Pairs in a different number of loops cannot be linked, and are left out.
  void link(const PathMatch& match);
  // From now on only what is linked has a counterpart; equal paths alone prove nothing.
  void close() { is_closed_ = true; }
  bool is_closed() const { return is_closed_; }

  // The path in the other execution, iterations kept. Where links are closed and there is none: a path that no value
  // has.
  std::string a_path_of(const std::string& b_path) const;
  std::string b_path_of(const std::string& a_path) const;
  MatchedBy how(const std::string& a_path) const;
  // Said to be absent in the other model, though it is there: a call repeats it.
  bool is_repeated(const ValueComparison& value) const;

 private:
  struct Link {
    std::string path;
    MatchedBy how;
  };
  using Links = std::unordered_map<std::string, Link>;  // by static path
  std::string linked(const Links& links, const std::string& path) const;

  Links a_of_b_, b_of_a_;
  std::unordered_set<std::string> repeated_in_a_, repeated_in_b_;  // static paths
  bool is_closed_ = false;
};

}  // namespace diff
}  // namespace parallax
