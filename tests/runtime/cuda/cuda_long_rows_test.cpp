// SPDX-License-Identifier: Apache-2.0
// Long rows on a GPU, in pieces, against the host.
#include "tests/runtime/long_rows.h"

namespace parallax::long_rows {
namespace {

TEST(CudaLongRows, GiveWhatTheHostGives) {
  const auto cuda = make_cuda_executor();
  if (!cuda.ok()) GTEST_SKIP() << cuda.error().message;
  expect_what_the_host_gives(**cuda);
}

}  // namespace
}  // namespace parallax::long_rows
