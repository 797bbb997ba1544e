// SPDX-License-Identifier: Apache-2.0
// The text form of rewrite choices: sets, single patterns, and what is none of them.
#include "inspector/exec/rewrite_choice.h"

#include <gtest/gtest.h>

namespace parallax {
namespace {

using Base = RewriteChoice::Base;

TEST(RewriteChoice, NamesSets) {
  for (const auto& [text, base] :
       {std::pair("default", Base::default_), std::pair("none", Base::none), std::pair("all", Base::all),
        std::pair("standard", Base::standard), std::pair("standard+microsoft", Base::microsoft),
        std::pair("standard+microsoft+own", Base::default_)})
    EXPECT_EQ(parse_rewrite_choice("--rewrite", text)->base, base) << text;
}

TEST(RewriteChoice, SwitchesSinglePatterns) {
  const auto choice = parse_rewrite_choice("--rewrite", "none,+gelu,-dropout");
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->base, Base::none);
  EXPECT_EQ(choice->changes, (std::vector<std::pair<std::string, bool>>{{"gelu", true}, {"dropout", false}}));
}

TEST(RewriteChoice, NamesThePartThatIsNone) {
  for (const char* text : {"some", "default,", "+", "default,gelu"}) {
    const auto choice = parse_rewrite_choice("rewrite", text);
    ASSERT_FALSE(choice.ok()) << text;
    EXPECT_EQ(choice.error().code, ErrorCode::usage);
    EXPECT_TRUE(choice.error().message.starts_with("rewrite: '")) << choice.error().message;
  }
}

}  // namespace
}  // namespace parallax
