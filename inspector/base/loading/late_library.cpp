// SPDX-License-Identifier: Apache-2.0
// By the dynamic loader, which also knows the file of this code.
#include "inspector/base/loading/late_library.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <utility>

#include <dlfcn.h>
#include <link.h>

namespace parallax {
namespace {

namespace fs = std::filesystem;

struct AddedFolders {
  std::mutex mutex;
  std::vector<std::string> folders;
};

AddedFolders& added_folders() {
  static AddedFolders added;
  return added;
}

// The file that holds this code: a module, which the loader names, or the program, which it does not.
fs::path own_file() {
  Dl_info info{};
  link_map* map = nullptr;
  const int found =
      ::dladdr1(reinterpret_cast<void*>(&own_file), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP);
  const bool is_module = found != 0 && map != nullptr && map->l_name != nullptr && *map->l_name != 0;
  std::error_code error;
  const fs::path file = fs::canonical(is_module ? map->l_name : "/proc/self/exe", error);
  return error ? fs::path() : file;
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    entries.push_back(entry->path());
  std::ranges::sort(entries);
  return entries;
}

std::vector<fs::path> package_folders() {
  std::vector<fs::path> folders{own_file().parent_path().parent_path()};
  {
    AddedFolders& added = added_folders();
    const std::scoped_lock lock(added.mutex);
    folders.insert(folders.end(), added.folders.begin(), added.folders.end());
  }
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char* environment = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): only read
    if (environment == nullptr || *environment != '/') continue;
    for (const fs::path& interpreter : sorted_entries(fs::path(environment) / "lib")) {
      if (interpreter.filename().string().starts_with("python3")) folders.push_back(interpreter / "site-packages");
    }
  }
  std::erase_if(folders, [](const fs::path& folder) {
    const fs::path name = folder.filename();
    return !folder.is_absolute() || (name != "site-packages" && name != "dist-packages");
  });
  return folders;
}

}  // namespace

std::vector<std::string> wheel_library_folders() {
  std::vector<std::string> folders;
  for (const fs::path& packages : package_folders()) {
    for (const fs::path& product : sorted_entries(packages / "nvidia")) {
      std::error_code error;
      std::string folder = (product / "lib").string();
      if (fs::is_directory(folder, error) && std::ranges::find(folders, folder) == folders.end())
        folders.push_back(std::move(folder));
    }
  }
  return folders;
}

void set_package_folders(std::vector<std::string> folders) {
  AddedFolders& added = added_folders();
  const std::scoped_lock lock(added.mutex);
  added.folders = std::move(folders);
}

OpenedLibrary open_late_library(const std::string& name, const std::string& folder, int flags) {
  if (void* handle = ::dlopen(name.c_str(), flags)) return {handle, ""};
  const char* reported = ::dlerror();
  OpenedLibrary opened{nullptr, reported == nullptr ? "" : reported};
  std::vector<std::string> folders = wheel_library_folders();
  if (folder.starts_with('/')) folders.insert(folders.begin(), folder);
  for (const std::string& known : folders) {
    opened.handle = ::dlopen((known + "/" + name).c_str(), flags);
    if (opened.handle != nullptr) break;
  }
  return opened;
}

}  // namespace parallax
