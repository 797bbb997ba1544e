// SPDX-License-Identifier: Apache-2.0
// By the dynamic loader: what Parallax loads itself is opened as the runtime opens it, what other libraries load is
// looked for where they would find it.
#include "inspector/workbench/doctor/late_libraries.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include <dlfcn.h>
#include <link.h>

#include "inspector/base/loading/late_library.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;

std::string whole_path(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  return error ? path : whole.lexically_normal().string();
}

// A library that stays open until the others have been looked for: some need it to be there.
class LoadedLibrary {
 public:
  explicit LoadedLibrary(void* handle) : handle_(handle) {}
  LoadedLibrary(const std::string& name, int flags) : LoadedLibrary(::dlopen(name.c_str(), flags)) {}
  ~LoadedLibrary() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;

  std::string path() const {
    link_map* map = nullptr;
    if (handle_ == nullptr || ::dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return {};
    return *map->l_name == 0 ? std::string() : whole_path(map->l_name);
  }

 private:
  void* handle_;
};

// Opens as the runtime does.
class LibrarySearch {
 public:
  void open(const std::string& name, std::string_view product, const std::string& folder, int visibility) {
    void* handle = open_late_library(name, folder, RTLD_LAZY | visibility).handle;
    opened_.push_back(std::make_unique<LoadedLibrary>(handle));
    found_.push_back({name, product, "parallax", opened_.back()->path()});
  }

  // Looks for what a library in `folder` loads by its name alone: already there, in LD_LIBRARY_PATH, next to that
  // library, where the system has it, or where a wheel has installed it.
  void look_for(const std::string& name, std::string_view product, std::string_view loaded_by,
                const std::string& folder) {
    std::string path = LoadedLibrary(name, RTLD_LAZY | RTLD_NOLOAD).path();
    if (path.empty()) path = file_in(searched_folders(), name);
    if (path.empty()) path = file_in({folder}, name);
    if (path.empty()) path = LoadedLibrary(name, RTLD_LAZY | RTLD_LOCAL).path();
    if (path.empty()) path = file_in(wheel_library_folders(), name);
    found_.push_back({name, product, loaded_by, path});
  }

  void add(LateLibrary library) { found_.push_back(std::move(library)); }
  std::string folder_of_last() const { return fs::path(found_.back().path).parent_path().string(); }
  std::vector<LateLibrary> take() { return std::move(found_); }

 private:
  static std::vector<std::string> searched_folders() {
    const char* given = std::getenv("LD_LIBRARY_PATH");
    std::vector<std::string> folders;
    std::string rest = given == nullptr ? "" : given;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find_first_of(":;"), rest.size());
      folders.push_back(end == 0 ? "." : rest.substr(0, end));  // an empty entry is the current folder
      rest.erase(0, std::min(rest.size(), end + 1));
    }
    return folders;
  }

  static std::string file_in(const std::vector<std::string>& folders, const std::string& name) {
    for (const std::string& folder : folders) {
      std::error_code error;
      if (!folder.empty() && fs::is_regular_file(fs::path(folder) / name, error))
        return whole_path(folder + "/" + name);
    }
    return {};
  }

  std::vector<std::unique_ptr<LoadedLibrary>> opened_;
  std::vector<LateLibrary> found_;
};

}  // namespace

std::vector<LateLibrary> examine_late_libraries() {
  LibrarySearch search;
  search.open("libcuda.so.1", "NVIDIA driver", "", RTLD_LOCAL);
#ifdef PARALLAX_CUBLAS
  search.open("libcublasLt.so." PARALLAX_CUBLAS, "cuBLAS", PARALLAX_CUBLAS_FOLDER, RTLD_GLOBAL);
  search.open("libcublas.so." PARALLAX_CUBLAS, "cuBLAS", PARALLAX_CUBLAS_FOLDER, RTLD_GLOBAL);
#endif
#ifdef PARALLAX_CUDNN
  search.open("libcudnn.so." PARALLAX_CUDNN, "cuDNN", PARALLAX_CUDNN_FOLDER, RTLD_LOCAL);
  const std::string folder = search.folder_of_last();
  for (const char* part :
       {"graph", "ops", "cnn", "adv", "heuristic", "engines_precompiled", "engines_runtime_compiled"})
    search.look_for(std::string("libcudnn_") + part + ".so." PARALLAX_CUDNN, "cuDNN", "cuDNN", folder);
#endif
#ifdef PARALLAX_CUBLAS
#ifdef PARALLAX_CUDNN
  search.look_for("libnvrtc.so." PARALLAX_CUBLAS, "NVRTC", "cuDNN", folder);
#endif
  // The ranges of NVTX load the library of a profiler, which the profiler names, and no library of their own.
  const char* profiler = std::getenv("NVTX_INJECTION64_PATH");
  if (profiler != nullptr && *profiler != 0) search.add({profiler, "profiler", "NVTX", whole_path(profiler)});
#endif
  return search.take();
}

}  // namespace parallax
