// SPDX-License-Identifier: Apache-2.0
// Programs on the PATH.
#include "inspector/base/shell.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "inspector/base/signal_cleanup.h"

namespace parallax {
namespace {

TEST(Shell, FindsAProgramAndNothingElse) {
  const auto folder = TemporaryPath::make_folder("px-shell").take();
  const std::string first = folder->file("first"), second = folder->file("second");
  std::filesystem::create_directories(first + "/tool");  // a folder of the program's name
  std::filesystem::create_directories(second);
  for (const char* name : {"tool", "text"}) std::ofstream(second + "/" + name) << "#!/bin/sh\n";
  std::filesystem::permissions(second + "/tool", std::filesystem::perms::owner_all);
  const char* const path = std::getenv("PATH");
  const std::string before = path == nullptr ? "" : path;
  ::setenv("PATH", (":" + first + ":" + second).c_str(), 1);
  const std::string tool = find_program("tool"), text = find_program("text"), none = find_program("");
  ::setenv("PATH", before.c_str(), 1);
  EXPECT_EQ(tool, second + "/tool");
  EXPECT_EQ(text, "");
  EXPECT_EQ(none, "");
  EXPECT_EQ(find_program(second + "/tool"), second + "/tool");
  EXPECT_EQ(find_program(first + "/tool"), "");
}

}  // namespace
}  // namespace parallax
