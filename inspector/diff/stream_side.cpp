// One side's bookkeeping, and links between sites of equal name.
#include "inspector/diff/stream_side.h"

#include <algorithm>

#include <fmt/format.h>

#include "inspector/diff/value_compare.h"

namespace parallax::diff {
namespace {

constexpr std::string_view kAnyIteration = "[*]";

size_t count_iterations(std::string_view static_text) {
  size_t count = 0;
  for (size_t at = static_text.find(kAnyIteration); at != std::string_view::npos;
       at = static_text.find(kAnyIteration, at + 1))
    ++count;
  return count;
}

// The frames of graphs and steps that lead `path` ("" without): static paths leave them out.
std::string_view outer_frames(std::string_view path) {
  size_t end = 0;
  for (;;) {
    const std::string_view rest = path.substr(end);
    if (!rest.starts_with("step[") && !rest.starts_with("graph(")) break;
    const size_t separator = rest.find("//");
    if (separator == std::string_view::npos) break;
    end += separator + 2;
  }
  return path.substr(0, end);
}

// `target` (a static path) with the iterations of `path`, whose own static path has as many.
std::string with_iterations_of(const std::string& path, const std::string& target) {
  const std::string_view outer = outer_frames(path);
  std::string_view rest = std::string_view(path).substr(outer.size());
  std::string text(outer);
  size_t begin = 0;
  for (size_t at = target.find(kAnyIteration); at != std::string::npos; at = target.find(kAnyIteration, begin)) {
    const size_t body = rest.find(".body["), end = rest.find("]//", body);
    text.append(target, begin, at - begin).append(rest.substr(body + 5, end - body - 4));
    rest.remove_prefix(end + 3);
    begin = at + kAnyIteration.size();
  }
  return text.append(target, begin);
}

std::string linked(const std::unordered_map<std::string, std::string>& links, const std::string& path) {
  if (links.empty()) return path;
  const auto found = links.find(static_path(path));
  return found == links.end() ? path : with_iterations_of(path, found->second);
}

// Static paths of sites without counterpart by path, by name; a name that stands twice is no help.
std::unordered_map<std::string, std::string> lonely_by_name(const StreamSide& side, const StreamSide& other) {
  std::unordered_map<std::string, std::string> lonely;
  for (const auto& [path, site] : side.sites) {
    if (other.sites.contains(path) || other.absent.contains(path)) continue;
    const auto [entry, is_new] = lonely.emplace(site.name, path);
    if (!is_new) entry->second.clear();
  }
  return lonely;
}

}  // namespace

bool StreamSide::may_deliver(const std::string& path, int64_t other_calls_begun) const {
  if (has_ended) return false;
  if (calls_begun < other_calls_begun) return true;
  const std::string place = static_path(path);
  return sites.contains(place) && !absent.contains(place);
}

std::string StreamSide::reason_for(const std::string& path, std::string_view side_name) const {
  const std::string place = static_path(path);
  if (const auto found = absent.find(place); found != absent.end()) return reason_of(found->second);
  const bool in_main_graph = place.find("//") == std::string::npos;
  if (sites.contains(place) && (in_main_graph || !has_completed)) return "not captured";
  return fmt::format("absent in {}", side_name);
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

void NameLinks::update(const StreamSide& a, const StreamSide& b) {
  const auto in_a = lonely_by_name(a, b), in_b = lonely_by_name(b, a);
  for (const auto& [name, path_a] : in_a) {
    const auto found = in_b.find(name);
    if (found == in_b.end() || path_a.empty() || found->second.empty()) continue;
    if (count_iterations(path_a) != count_iterations(found->second)) continue;
    a_of_b_[found->second] = path_a;
    b_of_a_[path_a] = found->second;
  }
}

std::string NameLinks::a_path_of(const std::string& b_path) const { return linked(a_of_b_, b_path); }
std::string NameLinks::b_path_of(const std::string& a_path) const { return linked(b_of_a_, a_path); }

}  // namespace parallax::diff
