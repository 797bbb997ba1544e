// SPDX-License-Identifier: Apache-2.0
// Policies as users write them: options, globs, files.
#include "inspector/diff/tolerance/policy.h"

#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "inspector/base/mapped_file.h"

namespace parallax {
namespace {

std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + "-" + name)).string();
}

TEST(Policy, RulesAreReadAsWritten) {
  const PolicyRule rule = parse_policy_rule("layers.*//softmax@rtol=1e-3,atol=2").take();
  EXPECT_EQ(rule.glob, "layers.*//softmax");
  EXPECT_EQ(rule.tolerance.rtol, 1e-3);
  EXPECT_EQ(rule.tolerance.atol, 2);
  EXPECT_EQ(parse_policy_rule("a@b@atol=1").take().glob, "a@b");
  EXPECT_TRUE(std::isinf(parse_policy_rule("x@atol=inf").take().tolerance.atol));
}

TEST(Policy, MalformedRulesAreUsageErrors) {
  for (const char* text : {"", "x", "@rtol=1", "x@", "x@rtol", "x@rtol=", "x@rtol=1e", "x@rtol=-1", "x@rtol=nan",
                           "x@foo=1", "x@rtol=1,,", "x@rtol=1,rtol=2", "x@atol=1,rtol=1,atol=1"}) {
    const Result<PolicyRule> rule = parse_policy_rule(text);
    ASSERT_FALSE(rule.ok()) << text;
    EXPECT_EQ(rule.error().code, ErrorCode::usage) << text;
  }
}

TEST(Policy, TheLastMatchingRuleWins) {
  Policy policy;
  EXPECT_FALSE(policy.limit_of("x").has_value());
  policy.tolerance = Tolerance{1, 2};
  policy.rules = {{"x*", {3, 4}}, {"xy", {5, 6}}};
  EXPECT_EQ(policy.limit_of("a")->rtol, 1);
  EXPECT_EQ(policy.limit_of("xz")->atol, 4);
  EXPECT_EQ(policy.limit_of("xy")->atol, 6);
  EXPECT_EQ(policy.limit_of("xy")->from, LimitSource::user);
}

TEST(Policy, Files) {
  const std::string path = temporary("parallax_policy_test.json");
  ASSERT_TRUE(write_file(path, R"({"default": {"rtol": 1e-3}, "per": [{"glob": "**softmax", "atol": "inf"}]})").ok());
  const Policy policy = read_policy_file(path).take();
  EXPECT_EQ(policy.tolerance->rtol, 1e-3);
  EXPECT_EQ(policy.tolerance->atol, 0);
  EXPECT_TRUE(std::isinf(policy.limit_of("a.body[0]//softmax")->atol));
  ASSERT_TRUE(write_file(path, R"({"default": "auto"})").ok());
  EXPECT_FALSE(read_policy_file(path).take().tolerance.has_value());
  for (const char* text :
       {"", "[]", R"({"defualt": "auto"})", R"({"default": 1})", R"({"default": {"rtol": -1}})",
        R"({"per": [{"rtol": 1}]})", R"({"per": [{"glob": "x"}]})", R"({"per": {"glob": "x", "rtol": 1}})"}) {
    ASSERT_TRUE(write_file(path, text).ok());
    const Result<Policy> bad = read_policy_file(path);
    ASSERT_FALSE(bad.ok()) << text;
    EXPECT_EQ(bad.error().code, ErrorCode::usage);
    EXPECT_NE(bad.error().message.find(path), std::string::npos) << bad.error().message;
  }
  std::filesystem::remove(path);
  EXPECT_EQ(read_policy_file(path).error().code, ErrorCode::io);
}

}  // namespace
}  // namespace parallax
