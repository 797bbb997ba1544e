// SPDX-License-Identifier: Apache-2.0
// Folders of Python packages that look as NVIDIA's wheels leave them, and a library that only they have.
#include "inspector/base/loading/late_library.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

namespace parallax {
namespace {

namespace fs = std::filesystem;

class LateLibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("late_library_test." + std::to_string(::getpid()));
    ::unsetenv("VIRTUAL_ENV");
    ::unsetenv("CONDA_PREFIX");
  }
  void TearDown() override {
    set_package_folders({});
    ::unsetenv("VIRTUAL_ENV");
    fs::remove_all(folder_);
  }
  // Makes a folder as a wheel does, and puts a library of the system there under `name`.
  std::string make_wheel(const fs::path& packages, const std::string& product, const std::string& name) const {
    const fs::path lib = packages / "nvidia" / product / "lib";
    fs::create_directories(lib);
    void* handle = ::dlopen("libdl.so.2", RTLD_NOW);
    link_map* map = nullptr;
    EXPECT_TRUE(handle != nullptr && ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0) << ::dlerror();
    if (map != nullptr) fs::copy_file(map->l_name, lib / name);
    return lib.string();
  }
  static std::string file_of(void* handle) {
    link_map* map = nullptr;
    return ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
  }

  fs::path folder_;
};

TEST_F(LateLibraryTest, FindsWheelsOfTheInterpreterBeforeThoseOfTheEnvironment) {
  const fs::path own = folder_ / "own/site-packages", active = folder_ / "active";
  const std::string name = "libparallax_of_a_wheel.so.7";
  const std::string second = make_wheel(own, "cudnn", "libother.so.1"), first = make_wheel(own, "cu13", name);
  const std::string third = make_wheel(active / "lib/python3.12/site-packages", "cublas", name);
  EXPECT_EQ(open_late_library(name, "", RTLD_NOW).handle, nullptr);
  ::setenv("VIRTUAL_ENV", active.c_str(), 1);
  set_package_folders({own.string(), own.string()});
  EXPECT_EQ(wheel_library_folders(), (std::vector<std::string>{first, second, third}));
  const OpenedLibrary opened = open_late_library(name, "", RTLD_NOW);
  ASSERT_NE(opened.handle, nullptr) << opened.problem;
  EXPECT_EQ(file_of(opened.handle), first + "/" + name);
  EXPECT_EQ(::dlclose(opened.handle), 0);
  set_package_folders({});
  const OpenedLibrary other = open_late_library(name, "", RTLD_NOW);
  ASSERT_NE(other.handle, nullptr) << other.problem;
  EXPECT_EQ(file_of(other.handle), third + "/" + name);
  EXPECT_EQ(::dlclose(other.handle), 0);
}

TEST_F(LateLibraryTest, TakesTheFolderOfTheBuildBeforeWheels) {
  const fs::path packages = folder_ / "dist-packages";
  const std::string name = "libparallax_of_two.so.7", wheel = make_wheel(packages, "cudnn", name);
  const std::string built = make_wheel(folder_ / "toolkit", "cudnn", name);
  set_package_folders({packages.string()});
  const OpenedLibrary opened = open_late_library(name, built, RTLD_NOW);
  ASSERT_NE(opened.handle, nullptr) << opened.problem;
  EXPECT_EQ(file_of(opened.handle), built + "/" + name);
  EXPECT_EQ(::dlclose(opened.handle), 0);
}

// A model's folder may be the current one, and others may write next to where a program was unpacked.
TEST_F(LateLibraryTest, IgnoresFoldersThatAreRelativeOrNoPackages) {
  const std::string name = "libparallax_of_elsewhere.so.7";
  make_wheel(folder_ / "models", "cudnn", name);
  make_wheel(folder_ / "models/site-packages", "cudnn", name);
  const fs::path before = fs::current_path();
  fs::current_path(folder_ / "models");
  set_package_folders({(folder_ / "models").string(), "", ".", "site-packages"});
  ::setenv("VIRTUAL_ENV", "relative", 1);
  EXPECT_TRUE(wheel_library_folders().empty());
  const OpenedLibrary opened = open_late_library(name, "nvidia/cudnn/lib", RTLD_NOW);
  fs::current_path(before);
  EXPECT_EQ(opened.handle, nullptr);
  EXPECT_NE(opened.problem.find(name), std::string::npos) << opened.problem;
}

}  // namespace
}  // namespace parallax
