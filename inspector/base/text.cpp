// SPDX-License-Identifier: Apache-2.0
// Splitting, comparing and suggesting.
#include "inspector/base/text.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace parallax {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& character : result) {
    if (character >= 'A' && character <= 'Z') character = static_cast<char>(character - 'A' + 'a');
  }
  return result;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::string did_you_mean(std::string_view asked, const std::vector<std::string>& known) {
  constexpr size_t kMost = 3, kLongest = 256;
  if (asked.empty() || asked.size() > kLongest) return {};
  std::vector<std::pair<size_t, std::string_view>> alike;
  for (const std::string& name : known) {
    const size_t distance = edit_distance(lower_case(asked), lower_case(name));
    if (distance <= std::max<size_t>(1, asked.size() / 3)) alike.emplace_back(distance, name);
  }
  std::ranges::stable_sort(alike, {}, &std::pair<size_t, std::string_view>::first);
  alike.resize(std::min(alike.size(), kMost));
  std::string text;
  for (size_t index = 0; index < alike.size(); ++index) {
    text += index == 0 ? "; did you mean '" : index + 1 == alike.size() ? "' or '" : "', '";
    text += alike[index].second;
  }
  return text.empty() ? text : text + "'?";
}

}  // namespace parallax
