// SPDX-License-Identifier: Apache-2.0
// States that grow in place on the emulated device: steps give the bits of explicit caches, and copy no cache.
#include <gtest/gtest.h>

#include "runtime/device/cpu/growable.h"
#include "tests/inspector/executors/states_pair.h"
#include "tests/runtime/against_host.h"
#include "tests/runtime/emulated/emulated_executor.h"
#include "tests/runtime/emulated/emulation.h"
#include "tests/runtime/emulated/queue_emulated.h"

namespace parallax {
namespace {

using decoder_models::Kind;
using decoder_models::Pair;
using session_values::Recorder;
using session_values::same;

class GrowingStates : public testing::TestWithParam<std::tuple<Kind, bool>> {
 protected:
  void SetUp() override {
    RunOptions options;
    options.observe_all = std::get<1>(GetParam());
    pair_ = std::make_unique<Pair>(*executor_, std::get<0>(GetParam()), options);
    ASSERT_TRUE(pair_->is_ready());
  }
  const std::unique_ptr<Executor> executor_ = tests::make_emulated_executor();
  std::unique_ptr<Pair> pair_;
};

TEST_P(GrowingStates, GiveTheBitsOfExplicitCaches) {
  for (const int64_t capacity : {0, 4, 64}) {
    ASSERT_TRUE(pair_->reset(2, capacity).ok());
    pair_->step(3);
    for (int step = 0; step < 4; ++step) pair_->step(1);
    pair_->step(2);
  }
}

TEST_P(GrowingStates, AreReorderedAndReplaced) {
  ASSERT_TRUE(pair_->reset(2, 4).ok());
  pair_->step(3);
  pair_->reorder({1, 1, 0});
  pair_->expect_same_states();
  pair_->step(1);
  const Shape shape{3, decoder_models::cached_heads(std::get<0>(GetParam())), 6, decoder_models::kSize};
  for (size_t index = 0; index < Pair::kStates; ++index)
    pair_->set(index, session_values::filled(shape, static_cast<uint32_t>(index) + 90));
  pair_->set_length(6);
  pair_->expect_same_states();
  for (int step = 0; step < 3; ++step) pair_->step(1);
}

TEST_P(GrowingStates, AreShownRowMajor) {
  ASSERT_TRUE(pair_->reset(1, 8).ok());
  pair_->step(3);
  for (int step = 0; step < 2; ++step) {
    Recorder plain, keeping;
    pair_->compare_step(1, plain, keeping);
    ASSERT_EQ(plain.values.size(), keeping.values.size());
    for (const auto& [path, value] : plain.values) {
      ASSERT_TRUE(keeping.values.contains(path)) << path;
      EXPECT_TRUE(same(value, keeping.values.at(path))) << path;
    }
    EXPECT_TRUE(keeping.values.contains("past.0.key") && keeping.values.contains("present.1.value"));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GrowingStates,
                         testing::Combine(testing::Values(Kind::several_heads, Kind::shared_heads, Kind::in_branch,
                                                          Kind::operator_attention, Kind::group_query),
                                          testing::Bool()));

// Attention over caches of float16 that are joined by Concat: scores that a mask is added to are the library's, those
// that are hidden by Where our kernels'.
std::shared_ptr<const Model> narrow_decoder(bool hides) {
  const int type = static_cast<int>(DType::float16);
  const auto shape = [](const std::string& rows) { return decoder_models::shape_text({"1", "2", rows, "8"}); };
  std::string graph;
  for (const std::string name : {"k", "v"}) {
    graph += model_text::value("input", "past_" + name, type, shape("past")) +
             model_text::value("input", name, type, shape("new")) +
             model_text::value("output", "present_" + name, type, shape("present")) +
             model_text::node("Concat", {"past_" + name, name}, {"present_" + name},
                              model_text::integer_attribute("axis", 2));
  }
  graph += model_text::value("input", "q", type, shape("new")) + model_text::value("output", "y", type) +
           model_text::node("Transpose", {"present_k"}, {"t"}, model_text::integers_attribute("perm", {0, 1, 3, 2})) +
           model_text::node("MatMul", {"q", "t"}, {"scores"}) +
           model_text::node("Softmax", {hides ? "seen" : "scores"}, {"p"}, model_text::integer_attribute("axis", -1)) +
           model_text::node("MatMul", {"p", "present_v"}, {"y"});
  if (hides) {
    graph += model_text::value("input", "flags", static_cast<int>(DType::bool_)) +
             "initializer { name: \"lowest\" data_type: 10 int32_data: 64511 } " +  // -65504
             model_text::node("Where", {"flags", "scores", "lowest"}, {"seen"});
  }
  return model_text::model_of(graph, 21);
}

TEST(GrowingNarrowStates, GiveTheBitsOfExplicitCaches) {
  for (const bool hides : {false, true}) {
    const auto model = narrow_decoder(hides);
    ASSERT_NE(model, nullptr);
    RunOptions options;
    options.states = {{"past_k", "present_k", 2}, {"past_v", "present_v", 2}};
    const auto executor = tests::make_emulated_executor();
    const auto keeping = executor->prepare(model, options).take(), plain = executor->prepare(model, {}).take();
    auto& states = dynamic_cast<SessionStates&>(*keeping);
    ASSERT_TRUE(states.reset_states(1, 4).ok());
    const auto numbers = [](int64_t seed) {
      return Value(against_host::sixteenths(DType::float16, {1, 2, 1, 8}, seed));
    };
    Value caches[2];
    for (Value& cache : caches) cache = Tensor::zeros(DType::float16, Shape{1, 2, 0, 8}).take();
    NullObserver nobody;
    for (int64_t step = 0; step < 11; ++step) {
      // past_k, k, past_v, v, q, flags
      std::vector<Value> inputs{Value(), numbers(3 * step), Value(), numbers(3 * step + 1), numbers(3 * step + 2)};
      if (hides) {
        std::vector<bool> flags(static_cast<size_t>(step + 1), true);
        flags[static_cast<size_t>(step) / 2] = step == 0;
        Tensor seen = Tensor::allocate(DType::bool_, Shape{1, 1, 1, step + 1}).take();
        for (size_t i = 0; i < flags.size(); ++i)
          seen.mutable_data()[i] = std::byte{flags[i] ? uint8_t{1} : uint8_t{0}};
        inputs.emplace_back(seen);
      }
      const auto got = keeping->run(inputs, nobody);
      inputs[0] = caches[0], inputs[2] = caches[1];
      const auto expected = plain->run(inputs, nobody);
      ASSERT_TRUE(got.ok() && expected.ok());
      for (size_t index = 0; index < expected->size(); ++index) {
        if ((*got)[index].is_absent()) continue;
        EXPECT_TRUE(same((*got)[index], (*expected)[index])) << "step " << step << (hides ? ", hidden" : "");
      }
      caches[0] = (*expected)[0], caches[1] = (*expected)[1];
      for (size_t index = 0; index < 2; ++index) EXPECT_TRUE(same(*states.state(index), caches[index])) << step;
    }
  }
}

// A cache with room for more stays at its address, and no step makes another one.
TEST(GrowingOnAGpu, AppendsWithinTheBuffer) {
  using namespace runtime;
  Queue<Emulated> queue;
  const auto numbers = [&](const Shape& shape, uint32_t seed) {
    return queue.to_device(session_values::filled(shape, seed).tensor()).take();
  };
  const Tensor start = numbers({2, 3, 5}, 1), more = numbers({2, 2, 5}, 2);
  const Tensor held = with_capacity(queue, start, 1, 8).take();
  const StridedSource rows{more.view().data, row_major_strides(more.shape()), 0};
  const int64_t before = emulation::allocation_count();
  const Tensor longer = append(queue, opened(held), 2, rows).take();
  EXPECT_EQ(emulation::allocation_count(), before);
  EXPECT_EQ(longer.view().data, held.view().data);
  const Tensor again = append(queue, opened(longer), 2, rows).take();  // 7 rows of 8
  EXPECT_EQ(again.view().data, held.view().data);
  const Tensor moved = append(queue, opened(again), 2, rows).take();
  EXPECT_NE(moved.view().data, held.view().data);
  EXPECT_EQ(capacity_of(moved), 16);
  const Tensor all = queue.to_host(without_room(queue, moved).take()).take();
  EXPECT_EQ(all.shape(), (Shape{2, 9, 5}));
  const auto first = session_values::filled({2, 3, 5}, 1), second = session_values::filled({2, 2, 5}, 2);
  for (int64_t sample = 0; sample < 2; ++sample) {
    for (int64_t row = 0; row < 9; ++row) {
      const Value& from = row < 3 ? first : second;
      const int64_t own = row < 3 ? sample * 3 + row : sample * 2 + (row - 3) % 2;
      for (int64_t i = 0; i < 5; ++i) {
        EXPECT_EQ(all.as<float>()[static_cast<size_t>((sample * 9 + row) * 5 + i)],
                  from.tensor().as<float>()[static_cast<size_t>(own * 5 + i)]);
      }
    }
  }
  EXPECT_TRUE(queue.take_failure().ok());
}

}  // namespace
}  // namespace parallax
