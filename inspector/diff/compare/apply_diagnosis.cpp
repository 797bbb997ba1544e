// SPDX-License-Identifier: Apache-2.0
// Verdicts after the comparison: accepted, unmatched and rechecked values, and the conclusion from them.
#include "inspector/diff/compare/apply_diagnosis.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "inspector/diff/matching/unmatch.h"

namespace parallax {
namespace {

template <class Entry>
std::unordered_map<std::string_view, const Entry*> entries_by_path(const std::vector<Entry>& entries) {
  std::unordered_map<std::string_view, const Entry*> found;
  for (const Entry& entry : entries) found.emplace(entry.path, &entry);
  return found;
}

void accept_value(const Acceptance& acceptance, ValueComparison& value) {
  value.verdict = Verdict::pass;
  value.accepted = acceptance;
  value.reason = fmt::format("{}: {}", acceptance.reason, acceptance.evidence);
}

void recheck_value(const RecheckedValue& found, ValueComparison& value) {
  if (value.accepted.has_value()) value.reason.clear();
  value.accepted.reset();
  value.verdict = Verdict::diverged;
  value.severity = found.severity;
  value.limit = found.limit;
}

void split_matches(const std::vector<UnmatchedValue>& unmatched, std::vector<ValueComparison>& values) {
  std::unordered_map<std::string_view, const ValueComparison*> in_b;
  for (const UnmatchedValue& value : unmatched) {
    if (value.in_b.has_value()) in_b.emplace(value.in_b->b, &*value.in_b);
  }
  if (in_b.empty()) return;
  split_unmatched(values, [&](const std::string& path, ValueComparison& value) {
    if (const auto found = in_b.find(path); found != in_b.end()) value = *found->second;
  });
}

}  // namespace

void apply(const Diagnosis& diagnosis, Comparison& comparison) {
  const auto accepted = entries_by_path(diagnosis.accepted_as_rounding);
  const auto unmatched = entries_by_path(diagnosis.unmatched);
  const auto rechecked = entries_by_path(diagnosis.rechecked);
  for (ValueComparison& value : comparison.values) {
    const bool has_diverged = value.verdict == Verdict::diverged;
    if (const auto found = accepted.find(value.path); has_diverged && found != accepted.end())
      accept_value(found->second->acceptance, value);
    if (const auto found = unmatched.find(value.path); has_diverged && found != unmatched.end())
      unmatch(value, found->second->note);
    if (const auto found = rechecked.find(value.path); value.verdict == Verdict::pass && found != rechecked.end())
      recheck_value(*found->second, value);
  }
  for (const AcceptedExpected& found : diagnosis.expected) {
    for (ValueComparison& value : comparison.expected) {
      if (value.verdict == Verdict::diverged && value.path == found.path && value.held == found.side)
        accept_value(found.acceptance, value);
    }
  }
  split_matches(diagnosis.unmatched, comparison.values);
  comparison.causes = diagnosis.causes;
  conclude(comparison);
}

Comparison applied(const Diagnosis& diagnosis, Comparison comparison) {
  apply(diagnosis, comparison);
  return comparison;
}

bool may_accept(const Comparison& comparison) {
  return std::ranges::none_of(comparison.values, [](const ValueComparison& value) {
    return value.verdict == Verdict::diverged && value.limit.from == LimitSource::user;
  });
}

void accept_diverged(const Comparison& comparison, const Acceptance& acceptance, Diagnosis& diagnosis) {
  for (const ValueComparison& value : comparison.values) {
    const bool may_be_rounding = value.verdict == Verdict::diverged && value.shape_a.empty();
    if (may_be_rounding) diagnosis.accepted_as_rounding.push_back({value.path, acceptance});
  }
}

}  // namespace parallax
