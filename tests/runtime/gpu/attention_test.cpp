// SPDX-License-Identifier: Apache-2.0
// Which attention goes to the library of a GPU, with what operands: against the host's.
#include "runtime/device/gpu/attention/library_attention.h"
#include "tests/runtime/attention_models.h"
#include "tests/runtime/emulated/emulated_executor.h"
#include "tests/runtime/emulated/queue_emulated.h"

namespace parallax {
namespace {

using attention_models::AttentionModel;
using attention_models::node;
using model_text::integer_attribute;

TEST(GpuAttention, HalfPrecisionIsTheLibrarys) {
  const auto emulated = tests::make_emulated_executor();
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    for (const AttentionModel& given : attention_models::attention_models(dtype)) {
      const int64_t before = runtime::emulated_library().attentions;
      attention_models::expect_what_the_host_gives(*emulated, given, dtype);
      EXPECT_GT(runtime::emulated_library().attentions, before) << given.name;
    }
  }
}

// A library whose softmax is not ours is asked once for each kind, and then no more.
TEST(GpuAttention, IsOurOwnWhereTheLibrarysIsNot) {
  runtime::EmulatedLibrary& library = runtime::emulated_library();
  const auto emulated = tests::make_emulated_executor();
  library.hidden_queries = runtime::EmulatedLibrary::HiddenQueries::means;
  for (const AttentionModel& given : attention_models::attention_models(DType::float16)) {
    const int64_t before = library.attentions;
    attention_models::expect_what_the_host_gives(*emulated, given, DType::float16);
    const int64_t asked = library.attentions - before;
    const bool is_added = given.inputs.size() == 4;
    EXPECT_TRUE(is_added ? asked == 1 : asked > 1) << given.name << ": " << asked << " with the probe";
  }
  library.hidden_queries = runtime::EmulatedLibrary::HiddenQueries::no_numbers;
}

// An attention like that of cuDNN, which gives zeros for fully hidden queries.
TEST(GpuAttention, HiddenQueriesOfTheLibraryAreMended) {
  runtime::EmulatedLibrary& library = runtime::emulated_library();
  library.hidden_queries = runtime::EmulatedLibrary::HiddenQueries::zeros;
  const int64_t before = library.attentions;
  attention_models::expect_minus_infinity_to_hide(*tests::make_emulated_executor());
  EXPECT_EQ(library.attentions - before, 2) << "with the probe";
  library.hidden_queries = runtime::EmulatedLibrary::HiddenQueries::no_numbers;
}

TEST(GpuAttention, IsNotAskedForWhileTheQueueRecords) {
  runtime::Queue<runtime::Emulated> queue;
  const runtime::AttentionKind kind{DType::bfloat16, DType::float32, false, 16, 8};
  ASSERT_TRUE(queue.begin_recording().ok());
  EXPECT_FALSE(runtime::attends_as_ours(queue, kind).take());
  ASSERT_TRUE(queue.end_recording().ok());
  EXPECT_TRUE(queue.known_attentions().empty());
  EXPECT_TRUE(runtime::attends_as_ours(queue, kind).take());
  EXPECT_EQ(queue.known_attentions(), (runtime::KnownAttentions{{kind, true}}));
}

// The cases that the library does not cover, and the rounding that it may do.
TEST(GpuAttention, TheRestIsOurOwn) {
  const auto emulated = tests::make_emulated_executor();
  const std::vector<std::pair<std::string, Shape>> inputs{
      {"q", {2, 4, 5, 8}}, {"k", {2, 2, 6, 8}}, {"v", {2, 2, 6, 16}}};
  auto with_mask = inputs;
  with_mask.emplace_back("mask", Shape{5, 6});
  const std::string capped = "attribute { name: \"softcap\" type: FLOAT f: 2.0 } ";
  const int64_t before = runtime::emulated_library().attentions;
  for (const AttentionModel& given : std::vector<AttentionModel>{
           {"causal", node("Attention", {"q", "k", "v"}, {"y"}, integer_attribute("is_causal", 1)), inputs},
           {"capped", node("Attention", {"q", "k", "v"}, {"y"}, capped), inputs},
           {"masked and causal", node("Attention", {"q", "k", "v", "mask"}, {"y"}, integer_attribute("is_causal", 1)),
            with_mask},
           {"shown",
            node("Attention", {"q", "k", "v"}, {"y", "", "", "s"}) + attention_models::value("output", "s", 10),
            inputs}}) {
    attention_models::expect_what_the_host_gives(*emulated, given, DType::float16);
  }
  for (const AttentionModel& given : attention_models::attention_models(DType::float16)) {
    if (given.name != std::string("heads")) continue;
    attention_models::expect_what_the_host_gives(*emulated, given, DType::float32);
  }
  EXPECT_EQ(runtime::emulated_library().attentions, before);
}

}  // namespace
}  // namespace parallax
