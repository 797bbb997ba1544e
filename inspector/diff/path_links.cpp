// Links between static paths, and how they carry over to the paths of single iterations.
#include "inspector/diff/path_links.h"

#include "inspector/diff/matching.h"
#include "inspector/diff/paths.h"

namespace parallax {

std::vector<PathMatch> matched_paths(const SiteTable& a, const SiteTable& b, const ModelMatching& matching) {
  const auto path_of = [](const SiteTable& table, int32_t id) {
    const ValueSite& site = table.sites()[static_cast<size_t>(id)];
    return site.scope + site.escaped_name;
  };
  std::vector<PathMatch> paths;
  for (const ValueMatch& match : matching.values) {
    if (!match.is_extra) paths.push_back({path_of(a, match.a), path_of(b, match.b), match.how});
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

}  // namespace diff
}  // namespace parallax
