// SPDX-License-Identifier: Apache-2.0
// Counts values of one name that the same operators or weights make.
#include "inspector/diff/matching/matching_names.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "inspector/diff/matching/matching_likeness.h"
#include "inspector/diff/tolerance/thresholds.h"

namespace parallax::diff {
namespace {

bool is_computed(const FlatValue& value) { return value.producer >= 0 && !value.is_constant; }

// The values of one size whose name each model has once.
std::vector<std::pair<int32_t, int32_t>> namesakes(const MatchSide& a, const MatchSide& b) {
  std::unordered_map<std::string_view, int32_t> ids;  // -1: several
  for (const FlatValue& value : b.flat.values) {
    if (!is_computed(value)) continue;
    const auto [entry, is_new] = ids.emplace(value.value_info->name, value.value_info->id);
    if (!is_new) entry->second = -1;
  }
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (const FlatValue& value : a.flat.values) {
    const auto found = is_computed(value) ? ids.find(value.value_info->name) : ids.end();
    if (found == ids.end() || found->second < 0) continue;
    const bool may_be_pair = !have_other_sizes(*value.type, *b.value(found->second).type);
    if (may_be_pair) pairs.emplace_back(value.value_info->id, found->second);
    found->second = -1;
  }
  return pairs;
}

// The content of the weights (floats, more than one element) between a value and the nearest of `ends` before it.
std::vector<HashKey> weights_since(const MatchSide& side, int32_t id, const std::unordered_set<int32_t>& ends) {
  constexpr size_t kMostWalked = 256;
  std::vector<HashKey> weights;
  std::vector<int32_t> walked = {id};
  for (size_t index = 0; index < walked.size() && walked.size() < kMostWalked; ++index) {
    const FlatValue& value = side.value(walked[index]);
    if (value.producer < 0 || (index > 0 && ends.contains(walked[index]))) continue;
    for (const int32_t input : side.node(value.producer).inputs) {
      if (input < 0) continue;
      const FlatValue& read = side.value(input);
      if (read.is_constant && is_floating(read.type->dtype) && known_size(*read.type) > 1)
        weights.push_back(read.made_of);
      const bool is_new =
          !read.is_constant && walked.size() < kMostWalked && std::ranges::find(walked, input) == walked.end();
      if (is_new) walked.push_back(input);
    }
  }
  std::ranges::sort(weights);
  return weights;
}

}  // namespace

bool do_names_agree_by_operators(const MatchSide& a, const MatchSide& b) {
  std::unordered_map<std::string_view, HashKey> ops;
  size_t known = 0, same = 0, producers = 0;
  for (const FlatValue& value : b.flat.values) {
    if (value.producer >= 0) ops.emplace(value.value_info->name, b.node(value.producer).op);
  }
  for (const FlatValue& value : a.flat.values) {
    if (!is_computed(value)) continue;
    ++producers;
    const auto found = ops.find(value.value_info->name);
    known += found != ops.end() ? 1 : 0;
    same += found != ops.end() && may_replace(found->second, a.node(value.producer).op) ? 1 : 0;
  }
  return known > 0 && 2 * known >= producers && 4 * same >= 3 * known;
}

NamesByWeights judge_names_by_weights(const MatchSide& a, const MatchSide& b) {
  constexpr size_t kFewWeighted = 2;
  const auto pairs = namesakes(a, b);
  const size_t producers = std::min(static_cast<size_t>(std::ranges::count_if(a.flat.values, is_computed)),
                                    static_cast<size_t>(std::ranges::count_if(b.flat.values, is_computed)));
  std::unordered_set<int32_t> ends_a, ends_b;
  for (const auto& [in_a, in_b] : pairs) {
    ends_a.insert(a.value(in_a).root);
    ends_b.insert(b.value(in_b).root);
  }
  size_t weighted = 0, same = 0;
  for (const auto& [in_a, in_b] : pairs) {
    const std::vector<HashKey> weights_a = weights_since(a, a.value(in_a).root, ends_a);
    const std::vector<HashKey> weights_b = weights_since(b, b.value(in_b).root, ends_b);
    if (weights_a.empty() || weights_b.empty()) continue;
    ++weighted;
    same += std::ranges::includes(weights_a, weights_b) || std::ranges::includes(weights_b, weights_a) ? 1 : 0;
  }
  const bool do_agree = weighted >= kFewWeighted && 2 * pairs.size() >= producers && 4 * same >= 3 * weighted;
  return {do_agree,
          do_agree && thresholds::kSureNameShare * static_cast<double>(weighted) <= static_cast<double>(same + 1)};
}

}  // namespace parallax::diff
