// SPDX-License-Identifier: Apache-2.0
// Sessions that keep states compute, bit for bit, what the same model computes with its caches as inputs and outputs.
#include <gtest/gtest.h>

#include "inspector/exec/session_cloning.h"
#include "inspector/executors/make_executor.h"
#include "tests/inspector/executors/states_pair.h"

namespace parallax {
namespace {

using decoder_models::Kind;
using decoder_models::Pair;
using session_values::filled;
using session_values::Recorder;
using session_values::same;

using Choice = std::tuple<const char*, Kind, bool>;  // executor, model, observe_all

std::string name_of_choice(const testing::TestParamInfo<Choice>& info) {
  constexpr const char* kKinds[] = {"SeveralHeads", "SharedHeads", "InBranch", "OperatorAttention", "GroupQuery"};
  std::string name = std::get<0>(info.param);
  std::erase(name, ':');
  return name + kKinds[static_cast<size_t>(std::get<1>(info.param))] + (std::get<2>(info.param) ? "Unfused" : "");
}

class States : public testing::TestWithParam<Choice> {
 protected:
  void SetUp() override {
    auto made = make_executor(std::get<0>(GetParam()));
    if (!made.ok()) GTEST_SKIP() << made.error().message;
    executor_ = *made;
    RunOptions options;
    options.observe_all = std::get<2>(GetParam());
    pair_ = std::make_unique<Pair>(*executor_, std::get<1>(GetParam()), options);
    ASSERT_TRUE(pair_->is_ready());
  }
  std::shared_ptr<Executor> executor_;
  std::unique_ptr<Pair> pair_;
};

TEST_P(States, StepsEqualThoseWithExplicitCaches) {
  for (const int64_t batch : {1, 3}) {
    for (const int64_t capacity : {0, 4, 64}) {
      ASSERT_TRUE(pair_->reset(batch, capacity).ok());
      pair_->step(5);
      for (int step = 0; step < 12; ++step) pair_->step(1);
      pair_->step(3);
    }
  }
}

TEST_P(States, ObserversSeePlainValues) {
  ASSERT_TRUE(pair_->reset(2, 4).ok());
  pair_->step(3);
  Recorder plain, keeping;
  for (const int64_t tokens : {1, 2, 1}) {
    pair_->compare_step(tokens, plain, keeping);
    ASSERT_EQ(plain.values.size(), keeping.values.size());
    for (const auto& [path, value] : plain.values) {
      ASSERT_TRUE(keeping.values.contains(path)) << path;
      EXPECT_TRUE(same(value, keeping.values.at(path))) << path;
    }
    EXPECT_TRUE(keeping.values.contains("past.0.key"));
    EXPECT_TRUE(keeping.values.contains("present.1.value"));
  }
  pair_->step(1);
}

TEST_P(States, RowsAreReordered) {
  ASSERT_TRUE(pair_->reset(3, 8).ok());
  pair_->step(4);
  for (const std::vector<int32_t>& rows :
       std::vector<std::vector<int32_t>>{{2, 0, 1}, {1, 1, 1}, {0, 2, 2, 1, 0}, {4}, {0, 0}}) {
    pair_->reorder(rows);
    pair_->expect_same_states();
    pair_->step(1);
    pair_->step(2);
  }
}

TEST_P(States, AStateIsReplaced) {
  ASSERT_TRUE(pair_->reset(2, 8).ok());
  pair_->step(3);
  const Shape shape{2, decoder_models::cached_heads(std::get<1>(GetParam())), 6, decoder_models::kSize};
  for (size_t index = 0; index < Pair::kStates; ++index)
    pair_->set(index, filled(shape, static_cast<uint32_t>(index) + 90));
  pair_->set_length(6);
  pair_->expect_same_states();
  for (int step = 0; step < 4; ++step) pair_->step(1);
}

TEST_P(States, AnAnswerStaysAsItWas) {
  ASSERT_TRUE(pair_->reset(2, 64).ok());
  pair_->step(3);
  const Value before = pair_->states().state(1).take();
  const Value expected = pair_->cache(1);
  for (int step = 0; step < 3; ++step) pair_->step(1);
  pair_->reorder({1, 0});
  EXPECT_TRUE(same(before, expected));
}

TEST_P(States, AFailedRunChangesNothing) {
  ASSERT_TRUE(pair_->reset(2, 8).ok());
  pair_->step(3);
  NullObserver nobody;
  std::vector<Value> inputs = pair_->given(1);
  inputs.resize(inputs.size() + Pair::kStates);
  inputs[0] = filled(Shape{3, 1, decoder_models::kWidth}, 1);  // another batch than the states'
  EXPECT_FALSE(pair_->keeping().run(inputs, nobody).ok());
  pair_->expect_same_states();
  for (int step = 0; step < 3; ++step) pair_->step(1);
}

TEST_P(States, ErrorsTellWhatIsWrong) {
  SessionStates& states = pair_->states();
  NullObserver nobody;
  std::vector<Value> inputs = pair_->given(1);
  inputs.resize(inputs.size() + Pair::kStates);
  const auto expect_usage = [](const auto& result, const std::string& part) {
    ASSERT_FALSE(result.ok()) << part;
    EXPECT_EQ(result.error().code, ErrorCode::usage) << result.error().message;
    EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
  };
  expect_usage(pair_->keeping().run(inputs, nobody), "past.0.key");  // never reset
  expect_usage(states.state(0), "no value yet");
  expect_usage(states.reorder_states(std::array<int32_t, 1>{0}), "no value yet");
  expect_usage(states.reset_states(-1, 4), "negative");
  expect_usage(states.reset_states(1, -4), "negative");
  ASSERT_TRUE(pair_->reset(2, 4).ok());
  expect_usage(states.reorder_states(std::array<int32_t, 1>{2}), "row 2");
  expect_usage(states.reorder_states(std::array<int32_t, 1>{-1}), "row -1");
  expect_usage(states.state(Pair::kStates), "is not there");
  expect_usage(states.set_state(0, Value()), "past.0.key");
  expect_usage(states.set_state(0, Tensor::zeros(DType::int64, Shape{2, 2, 1, 4}).take()), "past.0.key");
  expect_usage(states.set_state(0, filled(Shape{2, 4}, 1)), "rank 2");
  expect_usage(states.set_state(1, filled(Shape{2, 9, 1, 4}, 1)), "dimension 1");
  inputs.back() = pair_->cache(3);
  expect_usage(pair_->keeping().run(inputs, nobody), "past.1.value");
  pair_->step(1);
}

TEST_P(States, AClonedSessionHasItsOwn) {
  const auto* cloning = dynamic_cast<const SessionCloning*>(&pair_->keeping());
  if (cloning == nullptr) return;  // sessions may do without
  ASSERT_TRUE(pair_->reset(2, 8).ok());
  pair_->step(3);
  auto clone = cloning->clone();
  ASSERT_TRUE(clone.ok());
  if (*clone == nullptr) return;
  auto* states = dynamic_cast<SessionStates*>(clone->get());
  ASSERT_NE(states, nullptr);
  EXPECT_FALSE(states->state(0).ok());
  for (size_t index = 0; index < Pair::kStates; ++index)
    ASSERT_TRUE(states->set_state(index, pair_->cache(index)).ok());
  NullObserver nobody;
  std::vector<Value> inputs = pair_->given(1);
  inputs.resize(inputs.size() + Pair::kStates);
  ASSERT_TRUE((*clone)->run(inputs, nobody).ok());
  pair_->expect_same_states();
  pair_->step(1);
}

INSTANTIATE_TEST_SUITE_P(Executors, States,
                         testing::Combine(testing::Values("reference", "reference:double", "cpu", "cuda"),
                                          testing::Values(Kind::several_heads, Kind::shared_heads, Kind::in_branch,
                                                          Kind::operator_attention, Kind::group_query),
                                          testing::Bool()),
                         name_of_choice);

// ---- Bindings ----

class StateBindings : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto made = make_executor(GetParam());
    if (!made.ok()) GTEST_SKIP() << made.error().message;
    executor_ = *made;
  }
  void expect_refused(const std::vector<StateBinding>& bindings, const std::string& part,
                      std::shared_ptr<const Model> model = decoder_models::decoder(Kind::several_heads)) {
    RunOptions options;
    options.states = bindings;
    const auto session = executor_->prepare(std::move(model), options);
    ASSERT_FALSE(session.ok()) << part;
    EXPECT_EQ(session.error().code, ErrorCode::usage) << session.error().message;
    EXPECT_NE(session.error().message.find(part), std::string::npos) << session.error().message;
  }
  std::shared_ptr<Executor> executor_;
};

TEST_P(StateBindings, AreChecked) {
  expect_refused({{"past.9.key", "present.0.key", 2}}, "no input 'past.9.key'");
  expect_refused({{"past.0.key", "present.9.key", 2}}, "no output 'present.9.key'");
  expect_refused({{"present.0.key", "present.0.key", 2}}, "not an input");
  expect_refused({{"past.0.key", "past.0.key", 2}}, "no output 'past.0.key'");
  expect_refused({{"past.0.key", "past_shape", 2}}, "one type");
  expect_refused({{"past.0.key", "x.2", 2}}, "rank");
  expect_refused({{"past.0.key", "present.0.key", 4}}, "axis 4 is out of range");
  expect_refused({{"past.0.key", "present.0.key", 0}}, "axis 0 is out of range");
  expect_refused({{"past.0.key", "present.0.key", 3}}, "fixed length");
  expect_refused({{"past.0.key", "present.0.key", 2}, {"past.0.key", "present.0.value", 2}}, "'past.0.key' is bound");
  expect_refused({{"past.0.key", "present.0.key", 2}, {"past.0.value", "present.0.key", 2}},
                 "'present.0.key' is bound");
}

TEST_P(StateBindings, AnEmptyStateNeedsFixedDimensions) {
  const std::string graph =
      model_text::value("input", "past", 1, decoder_models::shape_text({"b", "h", "t"})) +
      model_text::value("input", "x", 1, decoder_models::shape_text({"b", "h", "s"})) +
      model_text::value("output", "present", 1, decoder_models::shape_text({"b", "h", "u"})) +
      model_text::node("Concat", {"past", "x"}, {"present"}, decoder_models::int_attribute_text("axis", 2));
  RunOptions options;
  options.states = {{"past", "present", -1}};
  auto session = executor_->prepare(model_text::model_of(graph), options);
  ASSERT_TRUE(session.ok()) << session.error().message;
  auto& states = dynamic_cast<SessionStates&>(**session);
  const Status reset = states.reset_states(2, 4);
  ASSERT_FALSE(reset.ok());
  EXPECT_EQ(reset.error().code, ErrorCode::usage);
  EXPECT_NE(reset.error().message.find("axis 1 of input 'past'"), std::string::npos) << reset.error().message;
  ASSERT_TRUE(states.set_state(0, filled(Shape{2, 3, 1}, 4)).ok());
  NullObserver nobody;
  const Value inputs[] = {Value(), filled(Shape{2, 3, 2}, 8)};
  ASSERT_TRUE((*session)->run(inputs, nobody).ok());
  EXPECT_EQ(states.state(0)->tensor().shape(), (Shape{2, 3, 3}));
}

INSTANTIATE_TEST_SUITE_P(Executors, StateBindings, testing::Values("reference", "cpu", "cuda"));

}  // namespace
}  // namespace parallax
