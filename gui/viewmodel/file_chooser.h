// SPDX-License-Identifier: Apache-2.0
// Paths as people write them, and folders as they look through them: "~", quotes, completion, kinds of files.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"

namespace parallax {

enum class FileKind : uint8_t { readable, models, dumps, inputs, all };
struct FileKindInfo {
  FileKind kind;
  std::string_view name, title;                  // "models", "models (.onnx)"
  std::array<std::string_view, 2> endings = {};  // of files; none: any file
};
inline constexpr std::array<FileKindInfo, 5> kFileKinds = {
    {{FileKind::readable, "readable", "models and dumps", {".onnx", ".plx"}},
     {FileKind::models, "models", ".onnx", {".onnx"}},
     {FileKind::dumps, "dumps", ".plx", {".plx"}},
     {FileKind::inputs, "inputs", ".npz, .safetensors", {".npz", ".safetensors"}},
     {FileKind::all, "all", "all files"}}};

inline const FileKindInfo& info_of(FileKind kind) { return kFileKinds[static_cast<size_t>(kind)]; }

struct FileEntry {
  std::string name;  // of a folder without a slash
  bool is_folder = false;
  bool is_pair = false;  // a folder with the two dumps of a run, or one with inputs: it can be chosen itself
  uint64_t size_bytes = 0;
  bool operator==(const FileEntry&) const = default;
};

// A path as typed: without quotes and blanks around it, "~" as the home folder.
std::string expand_path(std::string_view text);

// Words with blanks between them, where "...", '...' and a backslash keep one in a word; none where a quote is left
// open.
std::optional<std::vector<std::string>> quoted_words(std::string_view text);

// One path, or two with a blank between them; a blank in a name needs no quotes where the file is there, else "..." or
// '...' or a backslash before it.
std::vector<std::string> paths_in(const std::string& text);

// A path that paths_in() takes for one: quoted where it has a blank, a quote or a backslash.
std::string quoted_path(const std::string& path);

// The two dumps that `run --dump FOLDER` wrote, A's first; empty where the folder does not hold one A-*.plx and one
// B-*.plx.
std::vector<std::string> pair_in(const std::string& folder);

// `files` with a single folder of two dumps as those two.
std::vector<std::string> with_pair(std::vector<std::string> files);

// The folder and the beginning of a name that a text of the path field stands for: "~/mo" is the home folder and "mo".
struct PathParts {
  std::string folder, beginning;
};
PathParts path_parts(std::string_view text);

// Folders first, then files of `kind`, by name; those that begin with a dot only where `beginning` does. At most
// kMostEntries. Errors: io, naming the folder.
constexpr size_t kMostEntries = 10'000;
Result<std::vector<FileEntry>> list_folder(const std::string& folder, const std::string& beginning, FileKind kind);

// The text with as much more as all entries that fit have in common; a slash after a single folder.
std::string complete_path(const std::string& text, FileKind kind);

// By a folder's name.
bool is_data_set(std::string_view name);

// The first test_data_set_N folder next to a model; "" where there is none.
std::string data_set_of(const std::string& model);

}  // namespace parallax
