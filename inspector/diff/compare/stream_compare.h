// SPDX-License-Identifier: Apache-2.0
// StreamComparer: compares two running executors value by value and keeps nothing. Each side is an Observer for the
// thread that runs it; the side that is ahead waits once it has laid by `buffer_bytes`, so that memory does not grow
// with the model.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "inspector/diff/comparison.h"
#include "inspector/diff/matching/path_links.h"
#include "inspector/diff/tolerance/policy.h"
#include "inspector/exec/observer.h"

namespace parallax {

struct StreamOptions {
  size_t buffer_bytes =
      size_t{8} << 20;  // each side; a single larger value is let through, and so is what arrives out of order
  std::vector<std::string> only;  // globs over paths; empty: all. Graph outputs are always compared
  // Values that `only` leaves out are compared nevertheless, though not reported: the limits of later values depend on
  // them. Not done where the policy is a user's.
  bool follows_rest = true;
  bool match_by_name = true;    // as CompareOptions::match_by_name
  bool error_pictures = false;  // as CompareOptions::error_pictures
  // Two models: which values are to be compared, and no others (matching.h).
  std::optional<std::vector<PathMatch>> matches;
  // By the path in A of an input: how much the two sides' values of it may differ (standard deviation, absolute), since
  // earlier runs have made them. Such a difference is carried on as if it had been made here.
  std::map<std::string, double> inherited;
  // Called with each pair when it has been compared, one at a time, from the thread that compared it; must be quick.
  std::function<void(const ValueComparison&)> on_value;
};

class StreamComparer {
 public:
  StreamComparer(Policy policy, StreamOptions options);
  ~StreamComparer();

  // To be driven from two threads. begin_run first, end_run last, also when the executor failed or could not be
  // prepared: the other side waits for it. Events other than observe() never wait.
  Observer& side_a();
  Observer& side_b();

  // As NoiseModel::count_foreign_kernels, which a side that is a foreign executor entails: the limits are for values
  // that another runtime made. Before the first event.
  void count_foreign_kernels();

  // After both sides have ended: what was not matched is said, and the verdict drawn.
  Comparison finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace parallax
