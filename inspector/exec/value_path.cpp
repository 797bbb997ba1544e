// SPDX-License-Identifier: Apache-2.0
// The grammar of value paths: escaping, printing, parsing, globs.
#include "inspector/exec/value_path.h"

#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "inspector/base/check.h"

namespace parallax {
namespace {

constexpr std::string_view kSeparator = "//";
constexpr std::string_view kEscapedSeparator = "%2F%2F";  // in a name; a glob may have it as it is written there

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

int hex_value(char c) {
  if (c <= '9') return c - '0';
  return (c | 0x20) - 'a' + 10;
}

bool starts_hex_escape(std::string_view text) {
  return text.size() >= 3 && text[0] == '%' && is_hex(text[1]) && is_hex(text[2]);
}

Error bad_path(std::string_view text, std::string_view problem) {
  return usage_error(fmt::format("'{}' is not a value path: {}", text, problem));
}

// "word[12]" -> 12 for the given word; -1 when the text is not of that form.
int64_t indexed(std::string_view text, std::string_view word) {
  if (!text.starts_with(word) || !text.ends_with(']')) return -1;
  text.remove_prefix(word.size());
  if (!text.starts_with('[')) return -1;
  text = text.substr(1, text.size() - 2);
  int64_t index = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  return error == std::errc() && end == text.data() + text.size() ? index : -1;
}

// "module(a.b)" or "module(a.b).call[2]". Frames of nodes end otherwise, so a module's name may hold parentheses,
// brackets and dots. Nothing when the text is not of that form.
std::optional<Frame> module_frame(std::string_view text) {
  constexpr std::string_view kBegin = "module(";
  constexpr std::string_view kCall = ").call[";
  if (!text.starts_with(kBegin)) return std::nullopt;
  const auto name_until = [&](size_t end) { return unescape_name(text.substr(kBegin.size(), end - kBegin.size())); };
  if (text.ends_with(')')) return Frame{Frame::Kind::module, name_until(text.size() - 1), -1};
  const size_t call = text.rfind(kCall);
  if (call == std::string_view::npos || call < kBegin.size()) return std::nullopt;
  const int64_t index = indexed(text.substr(call + 2), "call");
  if (index < 0) return std::nullopt;
  return Frame{Frame::Kind::module, name_until(call), index};
}

Result<Frame> parse_frame(std::string_view text, std::string_view whole) {
  if (text.starts_with("graph(") && text.ends_with(')')) {
    return Frame{Frame::Kind::graph, unescape_name(text.substr(6, text.size() - 7)), -1};
  }
  if (const int64_t step = indexed(text, "step"); step >= 0) return Frame{Frame::Kind::step, {}, step};
  if (auto module = module_frame(text); module.has_value()) return *std::move(module);
  const size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return bad_path(whole, fmt::format("'{}' is no frame", text));
  const std::string node = unescape_name(text.substr(0, dot));
  const std::string_view kind = text.substr(dot + 1);
  if (kind == "then") return Frame{Frame::Kind::then_branch, node, -1};
  if (kind == "else") return Frame{Frame::Kind::else_branch, node, -1};
  if (kind == "call") return Frame{Frame::Kind::call, node, -1};
  if (const int64_t iteration = indexed(kind, "body"); iteration >= 0) return Frame{Frame::Kind::body, node, iteration};
  return bad_path(whole, fmt::format("'{}' is no frame (expected .body[n], .then, .else or .call)", text));
}

void append_escaped(std::string& text, std::string_view name) {
  if (name.find_first_of("/%") == std::string_view::npos) {
    text += name;
    return;
  }
  for (size_t index = 0; index < name.size(); ++index) {
    const std::string_view rest = name.substr(index);
    if (rest.starts_with(kSeparator)) {
      text += kEscapedSeparator;
      ++index;
    } else if (starts_hex_escape(rest)) {
      text += "%25";
    } else {
      text += name[index];
    }
  }
}

void append_index(std::string& text, int64_t index) {
  char digits[20];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, index);
  text += '[';
  text.append(digits, end);
  text += ']';
}

// Executors come here for each iteration of a loop.
void append(std::string& text, const Frame& frame) {
  switch (frame.kind) {
    case Frame::Kind::graph:
      text += "graph(";
      append_escaped(text, frame.node);
      text += ')';
      return;
    case Frame::Kind::step:
      text += "step";
      return append_index(text, frame.index);
    case Frame::Kind::body:
      append_escaped(text, frame.node);
      text += ".body";
      return append_index(text, frame.index);
    case Frame::Kind::then_branch:
      append_escaped(text, frame.node);
      text += ".then";
      return;
    case Frame::Kind::else_branch:
      append_escaped(text, frame.node);
      text += ".else";
      return;
    case Frame::Kind::call:
      append_escaped(text, frame.node);
      text += ".call";
      return;
    case Frame::Kind::module:
      text += "module(";
      append_escaped(text, frame.node);
      text += ')';
      if (frame.index < 0) return;
      text += ".call";
      return append_index(text, frame.index);
  }
}

}  // namespace

std::string escape_name(std::string_view name) {
  std::string text;
  append_escaped(text, name);
  return text;
}

std::string unescape_name(std::string_view text) {
  std::string name;
  name.reserve(text.size());
  for (size_t index = 0; index < text.size(); ++index) {
    if (starts_hex_escape(text.substr(index))) {
      name += static_cast<char>(hex_value(text[index + 1]) * 16 + hex_value(text[index + 2]));
      index += 2;
    } else {
      name += text[index];
    }
  }
  return name;
}

std::string to_string(const Frame& frame) {
  std::string text;
  append(text, frame);
  return text;
}

std::string to_string(const ValuePath& path) {
  std::string text;
  for (const Frame& frame : path.frames) text += to_string(frame) + "//";
  return text + escape_name(path.name);
}

Result<ValuePath> parse_value_path(std::string_view text) {
  ValuePath path;
  std::string_view rest = text;
  for (size_t at = rest.find(kSeparator); at != std::string_view::npos; at = rest.find(kSeparator)) {
    path.frames.push_back(PX_TRY(parse_frame(rest.substr(0, at), text)));
    rest.remove_prefix(at + kSeparator.size());
  }
  if (rest.empty()) return bad_path(text, "it names no value");
  path.name = unescape_name(rest);
  return path;
}

std::string static_glob(std::string_view glob) {
  while (glob.starts_with("step[") || glob.starts_with("graph(")) {
    const size_t end = glob.find(kSeparator);
    if (end == std::string_view::npos) break;
    glob.remove_prefix(end + kSeparator.size());
  }
  std::string result;
  for (size_t at = 0; at < glob.size(); ++at) {
    result += glob[at];
    const size_t close = glob[at] == '[' ? glob.find_first_not_of("0123456789", at + 1) : std::string_view::npos;
    if (close == std::string_view::npos || close == at + 1 || glob[close] != ']') continue;
    result += '*';
    at = close - 1;
  }
  return result;
}

// Backtracks to the last `*` and the last `**` only: linear in practice, and never exponential.
bool glob_matches(std::string_view glob, std::string_view path) {
  constexpr size_t kNone = std::string_view::npos;
  size_t g = 0;
  size_t p = 0;
  size_t star = kNone, star_at = 0;
  size_t double_star = kNone, double_star_at = 0;
  while (p < path.size() || g < glob.size()) {
    if (glob.substr(g).starts_with("**")) {
      g += 2;
      double_star = g;
      double_star_at = p;
      star = kNone;
    } else if (g < glob.size() && glob[g] == '*') {
      star = ++g;
      star_at = p;
    } else if (g < glob.size() && p < path.size() &&
               (glob[g] == path[p] || (glob[g] == '?' && !path.substr(p).starts_with(kSeparator)))) {
      ++g;
      ++p;
    } else if (glob.substr(g).starts_with(kSeparator) && path.substr(p).starts_with(kEscapedSeparator)) {
      g += kSeparator.size();
      p += kEscapedSeparator.size();
    } else if (star != kNone && star_at < path.size() && !path.substr(star_at).starts_with(kSeparator)) {
      p = ++star_at;
      g = star;
    } else if (double_star != kNone && double_star_at < path.size()) {
      p = ++double_star_at;
      g = double_star;
      star = kNone;
    } else {
      return false;
    }
  }
  return true;
}

void FrameStack::push(Frame frame) {
  lengths_.push_back(prefix_.size());
  append(prefix_, frame);
  prefix_ += kSeparator;
  frames_.push_back(std::move(frame));
}

void FrameStack::pop() {
  PX_CHECK(!frames_.empty());
  prefix_.resize(lengths_.back());
  lengths_.pop_back();
  frames_.pop_back();
}

}  // namespace parallax
