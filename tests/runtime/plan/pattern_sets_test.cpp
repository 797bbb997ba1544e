// SPDX-License-Identifier: Apache-2.0
// Sets of rewrite patterns as text: which patterns are on.
#include <algorithm>

#include <gtest/gtest.h>

#include "inspector/exec/rewrite_choice.h"
#include "runtime/plan/plan.h"

namespace parallax::runtime {
namespace {

using Names = std::vector<std::string>;

Result<Names> names_of(std::string_view text) {
  RunOptions options;
  options.rewrite = PX_TRY(parse_patterns("--patterns", text));
  Names names;
  for (const ChosenPattern& each : PX_TRY(chosen_patterns(options, true))) names.emplace_back(each.pattern->name);
  return names;
}

bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(PatternSets, SetsIncludeEachOther) {
  const auto standard = names_of("standard"), microsoft = names_of("standard+microsoft"),
             own = names_of("standard+microsoft+own"), all = names_of("default");
  ASSERT_TRUE(standard.ok() && microsoft.ok() && own.ok() && all.ok());
  EXPECT_LT(standard->size(), microsoft->size());
  EXPECT_LT(microsoft->size(), own->size());
  EXPECT_EQ(*own, *all);
  EXPECT_TRUE(contains(*standard, "layer-norm") && !contains(*standard, "skip-norm"));
  EXPECT_TRUE(contains(*microsoft, "skip-norm") && !contains(*microsoft, "attention"));
}

TEST(PatternSets, ResidualsGoIntoProductsWhereALibraryAddsThem) {
  for (const bool on_host : {false, true}) {
    const auto chosen = chosen_patterns({}, on_host);
    ASSERT_TRUE(chosen.ok());
    const auto has = [&](std::string_view name) {
      return std::any_of(chosen->begin(), chosen->end(), [&](const auto& each) { return each.pattern->name == name; });
    };
    EXPECT_EQ(has("matmul-add"), !on_host);
    EXPECT_TRUE(has("linear-add"));
  }
  EXPECT_TRUE(contains(*names_of("matmul-add"), "matmul-add")) << "named, it is there on the host, too";
}

TEST(PatternSets, NamesStandAloneOrChangeASet) {
  EXPECT_EQ(*names_of("swish,gelu"), (Names{"gelu", "swish"}));
  const auto less = names_of("standard,-gelu"), more = names_of("standard,+rotary"), minus = names_of("-gelu");
  ASSERT_TRUE(less.ok() && more.ok() && minus.ok());
  EXPECT_FALSE(contains(*less, "gelu"));
  EXPECT_TRUE(contains(*more, "rotary") && contains(*more, "gelu"));
  EXPECT_TRUE(!contains(*minus, "gelu") && contains(*minus, "attention"));
}

TEST(PatternSets, UnknownNamesAndTwoSetsAreRefused) {
  EXPECT_EQ(names_of("standart").error().code, ErrorCode::usage);
  EXPECT_EQ(names_of("standard,default").error().code, ErrorCode::usage);
  EXPECT_EQ(names_of("").error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace parallax::runtime
