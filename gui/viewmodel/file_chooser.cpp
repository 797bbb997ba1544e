// SPDX-License-Identifier: Apache-2.0
// Folders are read anew each time: another program may have written to them.
#include "gui/viewmodel/file_chooser.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

namespace parallax {
namespace {

namespace fs = std::filesystem;

bool is_of_kind(std::string_view name, FileKind kind) {
  const auto& endings = info_of(kind).endings;
  const auto fits = [&](std::string_view ending) { return !ending.empty() && name.ends_with(ending); };
  return kind == FileKind::all || std::ranges::any_of(endings, fits);
}

std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

std::string with_home(std::string path) {
  if (path != "~" && !path.starts_with("~/")) return path;
  const char* home = std::getenv("HOME");
  return home == nullptr || *home == 0 ? path : home + path.substr(1);
}

bool is_there(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

}  // namespace

std::optional<std::vector<std::string>> quoted_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool has_word = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0 ? c == quote : (c == '"' || c == '\'')) {
      quote = quote != 0 ? '\0' : c;
      has_word = true;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      has_word = true;
    } else if (c == ' ' && quote == 0) {
      if (has_word) words.push_back(std::move(word));
      word.clear();
      has_word = false;
    } else {
      word += c;
      has_word = true;
    }
  }
  if (has_word) words.push_back(std::move(word));
  if (quote != 0) return std::nullopt;
  return words;
}

bool is_data_set(std::string_view name) { return name.starts_with("test_data_set"); }

std::string expand_path(std::string_view text) {
  text = without_blanks(text);
  if (text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0])
    text = text.substr(1, text.size() - 2);
  return with_home(std::string(text));
}

std::vector<std::string> paths_in(const std::string& text) {
  const std::string whole = with_home(std::string(without_blanks(text)));
  if (is_there(whole)) return {whole};
  if (whole.find_first_of("\"'\\") != std::string::npos) {
    auto words = quoted_words(whole).value_or(std::vector<std::string>());
    for (std::string& word : words) word = with_home(word);
    if (words.size() == 1 || words.size() == 2) return words;
  }
  std::vector<std::string> parts;
  for (size_t at = whole.find(' '); at != std::string::npos; at = whole.find(' ', at + 1)) {
    parts = {whole.substr(0, at), with_home(std::string(without_blanks(whole.substr(at + 1))))};
    if (is_there(parts[0]) && is_there(parts[1])) return parts;
  }
  return parts.empty() ? std::vector{whole} : parts;
}

std::string quoted_path(const std::string& path) {
  if (path.find_first_of(" \"'\\") == std::string::npos) return path;
  std::string quoted = "\"";
  for (const char c : path) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::vector<std::string> pair_in(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> a, b;
  for (const auto& file : fs::directory_iterator(folder, error)) {
    const std::string name = file.path().filename().string();
    if (!name.ends_with(".plx")) continue;
    if (name.starts_with("A-")) a.push_back(file.path().string());
    if (name.starts_with("B-")) b.push_back(file.path().string());
  }
  return a.size() == 1 && b.size() == 1 ? std::vector{a.front(), b.front()} : std::vector<std::string>{};
}

std::vector<std::string> with_pair(std::vector<std::string> files) {
  if (files.size() != 1) return files;
  auto pair = pair_in(files.front());
  return pair.empty() ? files : pair;
}

PathParts path_parts(std::string_view text) {
  std::string path(without_blanks(text));
  if (!path.empty() && (path[0] == '"' || path[0] == '\'')) path.erase(0, 1);
  path = with_home(path);
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

Result<std::vector<FileEntry>> list_folder(const std::string& folder, const std::string& beginning, FileKind kind) {
  std::error_code error;
  std::vector<FileEntry> entries;
  fs::directory_iterator at(folder, error);
  if (error) return Error{ErrorCode::io, fmt::format("'{}' cannot be listed: {}", folder, error.message()), {}, {}};
  for (; at != fs::directory_iterator() && entries.size() < kMostEntries; at.increment(error)) {
    FileEntry entry{.name = at->path().filename().string()};
    if (!entry.name.starts_with(beginning)) continue;
    if (entry.name.starts_with('.') && !beginning.starts_with('.')) continue;
    entry.is_folder = at->is_directory(error);
    if (!entry.is_folder && !is_of_kind(entry.name, kind)) continue;
    if (entry.is_folder) {
      const bool takes_dumps = kind == FileKind::readable || kind == FileKind::dumps;
      entry.is_pair =
          kind == FileKind::inputs ? is_data_set(entry.name) : takes_dumps && !pair_in(at->path().string()).empty();
    } else {
      entry.size_bytes = at->file_size(error);
      if (error) entry.size_bytes = 0;
    }
    entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, [](const FileEntry& a, const FileEntry& b) {
    return a.is_folder != b.is_folder ? a.is_folder : a.name < b.name;
  });
  return entries;
}

std::string complete_path(const std::string& text, FileKind kind) {
  const PathParts parts = path_parts(text);
  if (text == "~") return "~/";
  const auto entries = list_folder(parts.folder, parts.beginning, kind);
  if (!entries.ok() || entries->empty()) return text;
  std::string common = entries->front().name;
  for (const FileEntry& entry : *entries) {
    const auto [end, other] = std::ranges::mismatch(common, entry.name);
    common.erase(end, common.end());
  }
  if (entries->size() == 1 && entries->front().is_folder) common += '/';
  return common.size() <= parts.beginning.size() ? text : text + common.substr(parts.beginning.size());
}

std::string data_set_of(const std::string& model) {
  std::error_code error;
  const fs::path folder = fs::path(model).parent_path();
  std::string first;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("test_data_set_") || !entry.is_directory(error)) continue;
    const std::string path = (folder / name).string();
    if (first.empty() || path.size() < first.size() || (path.size() == first.size() && path < first)) first = path;
  }
  return first;
}

}  // namespace parallax
