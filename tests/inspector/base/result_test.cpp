// SPDX-License-Identifier: Apache-2.0
// Result, Status and the macros that pass errors up.
#include "inspector/base/result.h"

#include <memory>

#include <gtest/gtest.h>

namespace parallax {
namespace {

Result<std::unique_ptr<int>> make(bool works) {
  if (!works) return io_error("no such number");
  return std::make_unique<int>(7);
}

Result<int> add_one(bool works) {
  const std::unique_ptr<int> number = PX_TRY(make(works));
  return *number + 1;
}

Status named(bool works) {
  PX_TRY_CONTEXT("reading 'numbers'", add_one(works));
  return {};
}

TEST(Result, TryYieldsValuesThatOnlyMove) {
  const Result<int> result = add_one(true);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value(), 8);
}

TEST(Result, TryReturnsTheErrorUnchanged) {
  const Result<int> result = add_one(false);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::io);
  EXPECT_EQ(result.error().message, "no such number");
}

TEST(Result, ContextIsPutInFront) {
  EXPECT_TRUE(named(true).ok());
  EXPECT_EQ(named(false).error().message, "reading 'numbers': no such number");
  const Result<int> outer = add_context(add_one(false), "model 'm.onnx'");
  EXPECT_EQ(outer.error().message, "model 'm.onnx': no such number");
}

TEST(Result, TheInnermostNodeIsTheOneAtFault) {
  const Error error =
      execution_error("index 9 out of range").at_node("gather_1", "Gather-13").at_node("loop", "Loop-16");
  EXPECT_EQ(error.node, "gather_1");
  EXPECT_EQ(error.op, "Gather-13");
}

TEST(Result, ExitCodesAreTheContractOfTheCommandLine) {
  EXPECT_EQ(exit_code(ErrorCode::usage), 2);
  EXPECT_EQ(exit_code(ErrorCode::invalid_model), 3);
  EXPECT_EQ(exit_code(ErrorCode::unsupported), 3);
  EXPECT_EQ(exit_code(ErrorCode::execution), 4);
  EXPECT_EQ(exit_code(ErrorCode::out_of_memory), 4);
  EXPECT_EQ(exit_code(ErrorCode::cancelled), 4);
  EXPECT_EQ(exit_code(ErrorCode::corrupt_file), 5);
  EXPECT_EQ(exit_code(ErrorCode::io), 5);
}

}  // namespace
}  // namespace parallax
