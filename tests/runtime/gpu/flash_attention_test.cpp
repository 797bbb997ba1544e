// SPDX-License-Identifier: Apache-2.0
// Our own attention kernel on the emulated device.
#include "tests/runtime/emulated/queue_emulated.h"
#include "tests/runtime/flash_cases.h"

namespace parallax::runtime {
namespace {

std::unique_ptr<Queue<Emulated>> make_queue(bool tf32) {
  auto queue = std::make_unique<Queue<Emulated>>();
  queue->options().tf32 = tf32;
  return queue;
}

TEST(FlashAttention, IsTheSoftmaxOfTheDefinition) { flash_cases::expect_softmax_of_the_definition(make_queue); }
TEST(FlashAttention, LengthsMayBeOnTheDevice) { flash_cases::expect_lengths_on_the_device(make_queue); }
TEST(FlashAttention, ValuesThatAreNoNumbersAreNotLeftOut) { flash_cases::expect_unbounded_values(make_queue); }
TEST(FlashAttention, HiddenQueriesAreNaNWhereTheyAreNotZero) { flash_cases::expect_hidden_queries(make_queue); }

TEST(FlashAttention, RefusesWhatItDoesNotCompute) {
  const flash_cases::Case given{"plain", 2, 2, 1, 3, 5, 8, 8};
  FlashAttention attention = flash_cases::described(given, DType::float32);
  EXPECT_TRUE(is_for_flash(attention));
  attention.problem.k.offsets[3] += 8;
  EXPECT_FALSE(is_for_flash(attention)) << "strides are not even";
  attention = flash_cases::described(given, DType::float64);
  EXPECT_FALSE(is_for_flash(attention));
  attention = flash_cases::described({"wide", 1, 1, 1, 3, 5, 257, 8}, DType::float32);
  EXPECT_FALSE(is_for_flash(attention));
}

}  // namespace
}  // namespace parallax::runtime
