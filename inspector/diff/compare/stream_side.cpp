// SPDX-License-Identifier: Apache-2.0
// One side's bookkeeping, and links between values of equal name.
#include "inspector/diff/compare/stream_side.h"

#include <fmt/format.h>

#include "inspector/diff/tolerance/value_compare.h"

namespace parallax::diff {
namespace {

// Static paths of values without counterpart by path, by name; a name that occurs twice is ignored.
std::unordered_map<std::string, std::string> lonely_by_name(const StreamSide& side, const StreamSide& other) {
  std::unordered_map<std::string, std::string> lonely;
  for (const auto& [path, value_info] : side.value_infos) {
    if (other.value_infos.contains(path) || other.absent.contains(path)) continue;
    const auto [entry, is_new] = lonely.emplace(value_info.name, path);
    if (!is_new) entry->second.clear();
  }
  return lonely;
}

}  // namespace

bool StreamSide::may_deliver(const std::string& path, int64_t other_calls_begun) const {
  if (has_ended) return false;
  if (calls_begun < other_calls_begun) return true;
  const std::string location = static_path(path);
  return value_infos.contains(location) && !absent.contains(location);
}

std::string StreamSide::reason_for(const std::string& path, std::string_view side_name) const {
  const std::string location = static_path(path);
  if (const auto found = absent.find(location); found != absent.end()) return reason_of(found->second);
  const bool in_main_graph = location.find("//") == std::string::npos;
  if (value_infos.contains(location) && (in_main_graph || !has_completed)) return "not captured";
  return fmt::format("{}{}", kAbsentIn, side_name);
}

void StreamSide::put(Seen seen) {
  waiting_bytes += seen.bytes;
  waiting.insert_or_assign(seen.key, std::move(seen));
}

Seen StreamSide::take(const std::string& key) {
  const auto found = waiting.find(key);
  Seen seen = std::move(found->second);
  waiting.erase(found);
  waiting_bytes -= seen.bytes;
  return seen;
}

void link_names(const StreamSide& a, const StreamSide& b, PathLinks& links) {
  const auto in_a = lonely_by_name(a, b), in_b = lonely_by_name(b, a);
  for (const auto& [name, path_a] : in_a) {
    const auto found = in_b.find(name);
    if (found == in_b.end() || path_a.empty() || found->second.empty()) continue;
    links.link({path_a, found->second, MatchedBy::name});
  }
}

}  // namespace parallax::diff
