// Result and Status: values pass through PX_TRY, errors return early with their context in front.
#include "inspector/base/result.h"

#include <gtest/gtest.h>

namespace parallax {
namespace {

Result<std::unique_ptr<int>> make_number(bool good) {
  if (!good) return execution_error("no number");
  return std::make_unique<int>(7);
}

Result<int> twice(bool good) {
  const auto number = PX_TRY_CONTEXT("twice", make_number(good));
  return *number * 2;
}

Status checked(bool good) {
  PX_TRY(twice(good));
  return {};
}

TEST(Result, TryYieldsTheValue) {
  const auto result = twice(true);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*result, 14);
  EXPECT_TRUE(checked(true).ok());
}

TEST(Result, TryReturnsTheErrorWithContext) {
  const auto status = checked(false);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "twice: no number");
  EXPECT_EQ(status.error().code, ErrorCode::execution);
}

TEST(Result, TheInnermostNodeIsKept) {
  const Error error = execution_error("x").at_node("inner", "Add-14").at_node("outer", "If-21");
  EXPECT_EQ(error.node, "inner");
  EXPECT_EQ(error.op, "Add-14");
}

TEST(Result, ExitCodesFollowTheContract) {
  EXPECT_EQ(exit_code(ErrorCode::usage), 2);
  EXPECT_EQ(exit_code(ErrorCode::invalid_model), 3);
  EXPECT_EQ(exit_code(ErrorCode::unsupported), 3);
  EXPECT_EQ(exit_code(ErrorCode::execution), 4);
  EXPECT_EQ(exit_code(ErrorCode::out_of_memory), 4);
  EXPECT_EQ(exit_code(ErrorCode::corrupt_file), 5);
  EXPECT_EQ(exit_code(ErrorCode::io), 5);
}

}  // namespace
}  // namespace parallax
