// SPDX-License-Identifier: Apache-2.0
// Names that are too long, and characters that would steer a terminal.
#include "inspector/base/shown_text.h"

#include <string>

#include <gtest/gtest.h>

namespace parallax {
namespace {

TEST(ShownText, CutsALongNameInTheMiddle) {
  const std::string name = "begin" + std::string(3000, 'L') + "end";
  const std::string shown = with_short_names("node '" + name + "' reads '" + name + "' twice");
  EXPECT_LT(shown.size(), 420U);
  EXPECT_TRUE(shown.starts_with("node 'beginL")) << shown;
  EXPECT_NE(shown.find("L...L"), std::string::npos);
  EXPECT_TRUE(shown.ends_with("Lend' twice")) << shown;
}

TEST(ShownText, KeepsNamesOf200Bytes) {
  const std::string message = "node '" + std::string(200, 'x') + "'";
  EXPECT_EQ(with_short_names(message), message);
}

TEST(ShownText, CutsBetweenCharacters) {
  std::string name;
  for (int count = 0; count < 200; ++count) name += "\xE2\x82\xAC";
  const std::string shown = with_short_names(name);
  EXPECT_EQ(shown.substr(shown.find("...") + 3, 3), "\xE2\x82\xAC");
  EXPECT_EQ(shown.find("...") % 3, 0U);
}

TEST(ShownText, ALineHasNoControlCharacters) {
  EXPECT_EQ(one_safe_line("a\x1B[31mb\nc\x7F"
                          "d\xC2\x9B"
                          "e\xC3\xA9"),
            "a?[31mb c?d?e\xC3\xA9");
}

}  // namespace
}  // namespace parallax
