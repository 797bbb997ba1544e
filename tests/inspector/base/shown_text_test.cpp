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
            "a\\x1b[31mb c\\x7fd\\x9be\xC3\xA9");
}

TEST(ShownText, ALineOfManyNamesKeepsItsStartAndItsEnd) {
  std::string message = "'m.onnx' reads ";
  for (int count = 0; count < 400; ++count) message += "'\x01\x02\x03\x04', ";
  const std::string line = one_safe_line(message + "it must read one. Remove the others");
  EXPECT_LE(line.size(), 900U);
  EXPECT_TRUE(line.starts_with("'m.onnx' reads '\\x01")) << line;
  EXPECT_TRUE(line.ends_with("it must read one. Remove the others")) << line;
}

TEST(ShownText, PrintableIsUtf8WithoutControlCharacters) {
  EXPECT_EQ(printable("a\n\t\r\x01"), "a\\n\\t\\r\\x01");
  EXPECT_EQ(printable("a\n\tb\r", "\n\t"), "a\n\tb\\r");
  EXPECT_EQ(printable("\xC2\x85\xC2\xA0\xE2\x82\xAC\xF0\x9F\x98\x80"), "\\x85\xC2\xA0\xE2\x82\xAC\xF0\x9F\x98\x80");
  constexpr std::string_view kReplaced = "\xEF\xBF\xBD";
  for (const std::string_view bytes : {"\x8E", "\xFF", "\xC2", "\xEF\xBF\xBE", "\xEF\xBF\xBF"})
    EXPECT_EQ(printable(bytes), kReplaced) << bytes;
  EXPECT_EQ(printable("\xED\xA0\x80").size(), 3 * kReplaced.size());  // a surrogate: three bytes that are no UTF-8
}

}  // namespace
}  // namespace parallax
