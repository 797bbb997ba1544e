// SPDX-License-Identifier: Apache-2.0
// Period search over hashes of operators.
#include "inspector/render/scope_sections.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace parallax {
namespace {

constexpr size_t kMinPeriod = 4;
constexpr size_t kMaxCandidates = 16;

// The distances at which members come again, most frequent first. Rare members tell more than frequent ones, which
// come again inside a block as well: only the distance to the next like one of a member seen seldom is counted.
std::vector<size_t> candidate_periods(std::span<const uint64_t> structure) {
  std::unordered_map<uint64_t, size_t> last;
  std::map<size_t, size_t> votes;
  for (size_t i = 0; i < structure.size(); ++i) {
    // Three neighbors together identify a position in a block better than one operator does.
    uint64_t key = structure[i];
    for (size_t next = i + 1; next < std::min(i + 3, structure.size()); ++next) key = key * 31 + structure[next];
    if (const auto seen = last.find(key); seen != last.end() && i - seen->second >= kMinPeriod) {
      ++votes[i - seen->second];
    }
    last[key] = i;
  }
  std::vector<std::pair<size_t, size_t>> ranked;
  for (const auto& [period, count] : votes) ranked.emplace_back(count, period);
  std::sort(ranked.begin(), ranked.end(),
            [](auto a, auto b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  std::vector<size_t> periods;
  for (size_t i = 0; i < std::min(kMaxCandidates, ranked.size()); ++i) periods.push_back(ranked[i].second);
  return periods;
}

struct Run {
  size_t begin = 0;
  size_t period = 0;
  size_t covered = 0;
};

// The longest stretch in which every member equals the one a period later.
Run longest_run(std::span<const uint64_t> structure, size_t period) {
  Run best{0, period, 0};
  size_t begin = 0;
  for (size_t i = 0; i + period <= structure.size(); ++i) {
    const bool is_equal = i + period < structure.size() && structure[i] == structure[i + period];
    if (is_equal) continue;
    const size_t covered = i > begin ? (i - begin + period) / period * period : 0;
    if (covered > best.covered) best = {begin, period, covered};
    begin = i + 1;
  }
  return best;
}

void cut_evenly(size_t begin, size_t count, size_t limit, std::vector<Section>& sections) {
  if (count == 0) return;
  const size_t parts = (count + limit - 1) / limit;
  for (size_t part = 0; part < parts; ++part) {
    const size_t from = count * part / parts, to = count * (part + 1) / parts;
    sections.push_back({begin + from, to - from, false});
  }
}

}  // namespace

std::vector<Section> find_sections(std::span<const uint64_t> structure, size_t limit) {
  Run best;
  for (size_t period : candidate_periods(structure)) {
    const Run run = longest_run(structure, period);
    if (run.covered > best.covered || (run.covered == best.covered && run.period < best.period)) best = run;
  }
  std::vector<Section> sections;
  const bool repeats = best.covered * 2 >= structure.size() && best.covered >= 2 * best.period && best.period > 0;
  if (!repeats) {
    cut_evenly(0, structure.size(), limit, sections);
    return sections;
  }
  cut_evenly(0, best.begin, limit, sections);
  for (size_t at = best.begin; at < best.begin + best.covered; at += best.period) {
    sections.push_back({at, best.period, true});
  }
  const size_t end = best.begin + best.covered;
  cut_evenly(end, structure.size() - end, limit, sections);
  return sections;
}

}  // namespace parallax
