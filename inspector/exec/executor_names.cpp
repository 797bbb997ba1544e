// SPDX-License-Identifier: Apache-2.0
// Reads names of executors.
#include "inspector/exec/executor_names.h"

#include <algorithm>
#include <cctype>

namespace parallax {
namespace {

constexpr size_t kLongestFileName = 80;

bool is_plain(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0; }

}  // namespace

bool is_foreign_executor(std::string_view name) {
  return std::ranges::find(kOwnExecutors, name) == kOwnExecutors.end();
}

std::vector<std::string> split_executors(std::string_view text) {
  std::vector<std::string> names(1);
  char quote = '\0';
  for (size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    const bool is_escape = letter == '\\' && quote != '\'' && at + 1 < text.size();
    if (letter == ',' && quote == '\0') {
      names.emplace_back();
      continue;
    }
    names.back() += letter;
    if (is_escape) {
      names.back() += text[++at];
    } else if (quote != '\0' && letter == quote) {
      quote = '\0';
    } else if (quote == '\0' && (letter == '"' || letter == '\'')) {
      quote = letter;
    }
  }
  return names;
}

std::string file_name_of(std::string_view executor) {
  std::string name;
  for (const char letter : executor) {
    const bool follows_letter = !name.empty() && is_plain(name.back());
    if (is_plain(letter) || letter == '_') {
      name += letter;
    } else if (follows_letter) {
      name += letter == ':' || letter == '.' ? letter : '-';
    }
  }
  if (name.size() > kLongestFileName) name.resize(kLongestFileName);
  while (!name.empty() && !is_plain(name.back()) && name.back() != '_') name.pop_back();
  return name.empty() ? "program" : name;
}

}  // namespace parallax
