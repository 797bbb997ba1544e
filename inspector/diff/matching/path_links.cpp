// SPDX-License-Identifier: Apache-2.0
// Links between static paths, and how they carry over to the paths of single iterations.
#include "inspector/diff/matching/path_links.h"

#include "inspector/diff/matching/matching.h"
#include "inspector/diff/tolerance/paths.h"
#include "inspector/diff/tolerance/value_compare.h"

namespace parallax {

namespace {

// The value ids of inputs and outputs of functions, and of the outputs of their calls.
void add_of_calls(const GraphValues& location, std::vector<bool>& found) {
  const auto add = [&](const GraphValues& where, ValueId value) {
    const ValueInfo* value_info = value == kNoValue ? nullptr : where.values[static_cast<size_t>(value)];
    if (value_info != nullptr) found[static_cast<size_t>(value_info->id)] = true;
  };
  for (const GraphValues::Child& child : location.children) {
    add_of_calls(*child.value_infos, found);
    if (!child.attribute.empty()) continue;
    for (const ValueId input : child.value_infos->graph->inputs) add(*child.value_infos, input);
    for (const ValueId output : child.value_infos->graph->outputs) add(*child.value_infos, output);
    for (const ValueId output : location.graph->nodes[static_cast<size_t>(child.node)].outputs) add(location, output);
  }
}

std::vector<bool> values_of_calls(const ValueTable& table) {
  std::vector<bool> found(table.value_infos().size(), false);
  add_of_calls(table.main(), found);
  return found;
}

}  // namespace

std::vector<PathMatch> matched_paths(const ValueTable& a, const ValueTable& b, const ModelMatching& matching) {
  const auto path_of = [](const ValueTable& table, int32_t id) {
    const ValueInfo& value_info = table.value_infos()[static_cast<size_t>(id)];
    return value_info.scope + value_info.escaped_name;
  };
  const std::vector<bool> of_calls_a = values_of_calls(a), of_calls_b = values_of_calls(b);
  // One of the two has a nearer counterpart, the other none.
  const auto is_repeated = [](int32_t nearest, int32_t other, int32_t nearest_of_other, int32_t self) {
    return nearest >= 0 && nearest != other && (nearest_of_other < 0 || nearest_of_other == self);
  };
  std::vector<PathMatch> paths;
  for (const ValueMatch& match : matching.values) {
    const auto in_a = static_cast<size_t>(match.a), in_b = static_cast<size_t>(match.b);
    const int32_t of_a = matching.b_of_a[in_a], of_b = matching.a_of_b[in_b];
    if (!match.is_extra) {
      paths.push_back({path_of(a, match.a), path_of(b, match.b), match.how});
    } else if (of_calls_a[in_a] && is_repeated(of_b, match.a, of_a, match.b)) {
      paths.push_back({path_of(a, match.a), "", match.how});
    } else if (of_calls_b[in_b] && is_repeated(of_a, match.b, of_b, match.a)) {
      paths.push_back({"", path_of(b, match.b), match.how});
    }
  }
  return paths;
}

namespace diff {
namespace {

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

}  // namespace

void PathLinks::link(const PathMatch& match) {
  if (match.a.empty() || match.b.empty()) {
    (match.a.empty() ? repeated_in_b_ : repeated_in_a_).insert(match.a.empty() ? match.b : match.a);
    return;
  }
  if (count_iterations(match.a) != count_iterations(match.b)) return;
  a_of_b_[match.b] = {match.a, match.how};
  b_of_a_[match.a] = {match.b, match.how};
}

std::string PathLinks::linked(const Links& links, const std::string& path) const {
  if (links.empty() && !is_closed_) return path;
  const auto found = links.find(static_path(path));
  if (found != links.end()) return with_iterations_of(path, found->second.path);
  return is_closed_ ? "\n" + path : path;
}

std::string PathLinks::a_path_of(const std::string& b_path) const { return linked(a_of_b_, b_path); }
std::string PathLinks::b_path_of(const std::string& a_path) const { return linked(b_of_a_, a_path); }

MatchedBy PathLinks::how(const std::string& a_path) const {
  const auto found = b_of_a_.find(static_path(a_path));
  return found == b_of_a_.end() ? MatchedBy::path : found->second.how;
}

bool PathLinks::is_repeated(const ValueComparison& value) const {
  if (value.is_graph_output || !value.reason.starts_with(kAbsentIn)) return false;
  return value.a.empty() ? repeated_in_b_.contains(static_path(value.b))
                         : repeated_in_a_.contains(static_path(value.a));
}

}  // namespace diff
}  // namespace parallax
