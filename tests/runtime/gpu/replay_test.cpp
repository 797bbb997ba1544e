// SPDX-License-Identifier: Apache-2.0
// Recorded runs on the emulated device, which keeps what it is asked to launch and does it later: replays give what
// plain runs give, for other inputs too, take no memory, and give way wherever the device's answer is needed.

#include <array>

#include <gtest/gtest.h>

#include "tests/inspector/executors/decoder_models.h"
#include "tests/runtime/emulated/emulated_executor.h"
#include "tests/runtime/emulated/emulation.h"
#include "tests/runtime/model_text.h"
#include "tests/runtime/session_values.h"

namespace parallax::replay_test {
namespace {

using model_text::node;
using model_text::value;
using session_values::filled;
using session_values::Recorder;
using session_values::same;

constexpr int kInt64 = 7;

std::string axis(int number) { return model_text::integer_attribute("axis", number); }

Value integers(const std::vector<int64_t>& values) { return Tensor::vector<int64_t>(values); }

// Attention over rows that are looked up, a reshape by a computed shape, and a result that follows from shapes alone.
std::shared_ptr<const Model> network() {
  std::string text =
      node("Gather", {"table", "ids"}, {"rows"}) + node("MatMul", {"rows", "w"}, {"mixed"}) +
      node("Transpose", {"mixed"}, {"transposed"}) + node("MatMul", {"mixed", "transposed"}, {"scores"}) +
      node("Softmax", {"scores"}, {"weights"}, axis(-1)) + node("MatMul", {"weights", "rows"}, {"read"}) +
      node("Add", {"read", "bias"}, {"sum"}) + node("Relu", {"sum"}, {"bent"}) + node("Shape", {"rows"}, {"size"}) +
      node("Reshape", {"bent", "minus_one"}, {"y"}) + node("Neg", {"size"}, {"negative"});
  text += "initializer { name: \"minus_one\" data_type: 7 dims: 1 int64_data: -1 } ";
  text += "initializer { name: \"w\" data_type: 1 dims: 8 dims: 8 ";
  for (int i = 0; i < 64; ++i) text += "float_data: " + std::to_string(0.25 * ((i * 7) % 11) - 1.0) + " ";
  text += "} ";
  return model_text::model_of(text + value("input", "table") + value("input", "ids", kInt64) + value("input", "bias") +
                                  value("output", "y") + value("output", "negative", kInt64),
                              21);
}

std::vector<Value> inputs_of(uint32_t seed, const std::vector<int64_t>& ids = {3, 0, 6, 2, 2}) {
  return {filled({7, 8}, seed), integers(ids), filled({8}, seed + 9)};
}

// A session that has run so often that its next run of these shapes is a replay.
std::unique_ptr<Session> warm_session(const std::shared_ptr<const Model>& model, const std::vector<Value>& inputs,
                                      Observer& observer) {
  auto session = tests::make_emulated_executor()->prepare(model, {}).take();
  for (int run = 0; run < 4; ++run) EXPECT_TRUE(session->run(inputs, observer).ok());
  return session;
}

std::vector<Value> fresh(const std::shared_ptr<const Model>& model, const std::vector<Value>& inputs) {
  NullObserver nobody;
  return tests::make_emulated_executor()->prepare(model, {}).take()->run(inputs, nobody).take();
}

// How many allocations of device memory a run makes; a replay makes none.
int64_t allocations_of(Session& session, const std::vector<Value>& inputs, Observer& observer,
                       std::vector<Value>& outputs) {
  const int64_t before = runtime::emulation::allocation_count();
  outputs = session.run(inputs, observer).take();
  return runtime::emulation::allocation_count() - before;
}

// A session that is warm after `first` replays `others`, and gives what fresh sessions give.
void expect_replays(const std::shared_ptr<const Model>& model, const std::vector<Value>& first,
                    const std::vector<std::vector<Value>>& others) {
  NullObserver nobody;
  auto session = warm_session(model, first, nobody);
  for (size_t run = 0; run < others.size(); ++run) {
    std::vector<Value> outputs;
    EXPECT_EQ(allocations_of(*session, others[run], nobody, outputs), 0) << "run " << run << " is not replayed";
    const auto expected = fresh(model, others[run]);
    for (size_t index = 0; index < expected.size(); ++index)
      EXPECT_TRUE(same(outputs[index], expected[index])) << "run " << run << ", output " << index;
  }
}

// The run of a warm session fails with these words, and the next one is a replay again.
void expect_named(const std::shared_ptr<const Model>& model, const std::vector<Value>& good,
                  const std::vector<Value>& bad, const std::string& words) {
  NullObserver nobody;
  auto session = warm_session(model, good, nobody);
  const auto failed = session->run(bad, nobody);
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message.find(words), std::string::npos) << failed.error().message;
  std::vector<Value> again;
  EXPECT_EQ(allocations_of(*session, good, nobody, again), 0);
  EXPECT_TRUE(same(again[0], fresh(model, good)[0]));
}

class Counter final : public Observer {
 public:
  CaptureLevel wants(const ValueInfo&) override { return CaptureLevel::none; }
  Status begin_call(const CallInfo&, std::span<const Value>) override { return ++begun, Status{}; }
  Status end_call(const CallInfo&) override { return ++ended, Status{}; }
  int begun = 0, ended = 0;
};

TEST(Replay, GivesWhatPlainRunsGiveForOtherInputs) {
  const auto model = network();
  Counter counter;
  auto session = warm_session(model, inputs_of(1), counter);
  std::vector<Value> outputs;
  for (uint32_t seed = 2; seed < 8; ++seed) {
    const auto inputs = inputs_of(seed, {seed % 7, 1, 6, -7, 4});
    EXPECT_EQ(allocations_of(*session, inputs, counter, outputs), 0) << "not replayed";
    const auto expected = fresh(model, inputs);
    for (size_t index = 0; index < expected.size(); ++index)
      EXPECT_TRUE(same(outputs[index], expected[index])) << index;
  }
  EXPECT_EQ(counter.begun, 10);
  EXPECT_EQ(counter.ended, 10);
}

// A library's kernels on a GPU take their memory from the plan, and are launched again with the rest.
TEST(Replay, SortsScattersAndSumsAnew) {
  std::string text =
      "initializer { name: \"k\" data_type: 7 dims: 1 int64_data: 30 } "
      "initializer { name: \"zero\" data_type: 7 dims: 1 int64_data: 0 } "
      "initializer { name: \"many\" data_type: 7 dims: 1 int64_data: 7000 } "  // the library sums them
      "initializer { name: \"targets\" data_type: 7 dims: 3 dims: 30 ";
  for (int i = 0; i < 90; ++i) text += "int64_data: " + std::to_string(i * 7 % 11) + " ";
  text += "} " + node("Transpose", {"x"}, {"transposed"}) + node("TopK", {"transposed", "k"}, {"best", "indices"}) +
          node("ScatterElements", {"transposed", "targets", "best"}, {"moved"}, axis(1)) +
          node("Expand", {"n", "many"}, {"same"}) + node("CumSum", {"same", "zero"}, {"sums"});
  text += value("input", "x") + value("input", "n", kInt64) + value("output", "best") +
          value("output", "indices", kInt64) + value("output", "moved") + value("output", "sums", kInt64);
  const auto model = model_text::model_of(text, 21);
  const auto inputs_of_seed = [](uint32_t seed) {
    return std::vector<Value>{filled({40, 3}, seed), integers({static_cast<int64_t>(seed)})};
  };
  NullObserver nobody;
  auto session = warm_session(model, inputs_of_seed(1), nobody);
  std::vector<Value> outputs;
  for (uint32_t seed = 2; seed < 5; ++seed) {
    EXPECT_EQ(allocations_of(*session, inputs_of_seed(seed), nobody, outputs), 0) << "not replayed";
    const auto expected = fresh(model, inputs_of_seed(seed));
    for (size_t index = 0; index < expected.size(); ++index)
      EXPECT_TRUE(same(outputs[index], expected[index])) << index;
  }
}

TEST(Replay, OfSeveralShapesOneAfterTheOther) {
  const auto model = network();
  NullObserver nobody;
  auto session = warm_session(model, inputs_of(1), nobody);
  std::vector<Value> outputs;
  for (uint32_t round = 0; round < 12; ++round) {
    const auto inputs = round % 2 == 0 ? inputs_of(round) : inputs_of(round, {1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4});
    const int64_t taken = allocations_of(*session, inputs, nobody, outputs);
    EXPECT_TRUE(round < 10 || taken == 0) << round;
    EXPECT_TRUE(same(outputs[0], fresh(model, inputs)[0])) << round;
  }
}

TEST(Replay, ABadIndexIsStillNamed) {
  NullObserver nobody;
  auto session = warm_session(network(), inputs_of(1), nobody);
  const auto outputs = session->run(inputs_of(2, {0, 1, 7, 2, 3}), nobody);
  ASSERT_FALSE(outputs.ok());
  EXPECT_NE(outputs.error().message.find("an index is 7; it must be in [-7, 7)"), std::string::npos)
      << outputs.error().message;
  std::vector<Value> again;
  EXPECT_EQ(allocations_of(*session, inputs_of(3), nobody, again), 0);
  EXPECT_TRUE(same(again[0], fresh(network(), inputs_of(3))[0]));
}

std::string heads(int count) { return model_text::integer_attribute("num_heads", count); }

TEST(Replay, RotatesByPositions) {
  const auto model =
      model_text::model_of(node("RotaryEmbedding", {"x", "cosine", "sine", "ids"}, {"r"}, heads(2)) +
                               node("Neg", {"r"}, {"y"}) + value("input", "x") + value("input", "cosine") +
                               value("input", "sine") + value("input", "ids", kInt64) + value("output", "y"),
                           23);
  const auto inputs = [](uint32_t seed, const std::vector<int64_t>& ids) {
    return std::vector<Value>{filled({1, 3, 8}, seed), filled({5, 2}, seed + 1), filled({5, 2}, seed + 2),
                              Tensor::from<int64_t>(Shape{1, 3}, ids)};
  };
  expect_replays(model, inputs(1, {0, 1, 2}), {inputs(2, {4, 0, 3}), inputs(3, {1, 1, 1})});
  expect_named(model, inputs(1, {0, 1, 2}), inputs(4, {0, -1, 2}), "be in [0, 5), the rows of the caches");
  expect_named(model, inputs(1, {0, 1, 2}), inputs(4, {0, 1, 5}), "be in [0, 5), the rows of the caches");
}

TEST(Replay, GathersAndScattersTuples) {
  const auto model = model_text::model_of(
      node("GatherND", {"x", "from"}, {"g"}) + node("ScatterND", {"x", "to", "g"}, {"y"}) + value("input", "x") +
          value("input", "from", kInt64) + value("input", "to", kInt64) + value("output", "y"),
      21);
  const auto inputs = [](uint32_t seed, const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
    return std::vector<Value>{filled({3, 4, 2}, seed), Tensor::from<int64_t>(Shape{2, 2}, from),
                              Tensor::from<int64_t>(Shape{2, 2}, to)};
  };
  const auto good = inputs(1, {0, 1, 2, 3}, {1, 1, 2, 0});
  expect_replays(model, good, {inputs(2, {-3, -1, 1, 1}, {0, 0, -1, -4}), inputs(3, {2, 3, 0, 0}, {2, 3, 1, 2})});
  expect_named(model, good, inputs(4, {0, 4, 2, 3}, {1, 1, 2, 0}), "an index is 4; it must be in [-4, 4)");
  expect_named(model, good, inputs(4, {0, 1, 2, 3}, {1, 1, -4, 0}), "an index is -4; it must be in [-3, 3)");
}

// Nodes that write over their inputs ask for no memory at all.
TEST(Replay, OfNodesInPlace) {
  const auto model = model_text::model_of(
      node("Neg", {"x"}, {"a"}) + node("Abs", {"a"}, {"y"}) + value("input", "x") + value("output", "y"), 21);
  const auto inputs = [](uint32_t seed) { return std::vector<Value>{filled({9}, seed)}; };
  NullObserver nobody;
  auto session = tests::make_emulated_executor()->prepare(model, {}).take();
  std::vector<Value> outputs;
  const int64_t plain = allocations_of(*session, inputs(1), nobody, outputs);
  EXPECT_EQ(plain, 1) << "the upload of x";
  expect_replays(model, inputs(1), {inputs(2), inputs(3)});
}

// A cache of fixed length: where it is written, and how much of it counts, is read by the kernels in each replay.
TEST(Replay, StepsOfAStaticCache) {
  const std::string cache = node("TensorScatter", {"past", "now", "at"}, {"cache"}, axis(2));
  const auto model = model_text::model_of(
      cache + node("Attention", {"q", "cache", "cache", "", "", "", "lengths"}, {"y"}) + value("input", "q") +
          value("input", "past") + value("input", "now") + value("input", "at", kInt64) +
          value("input", "lengths", kInt64) + value("output", "y") + value("output", "cache"),
      24);
  const auto step = [](uint32_t seed, std::vector<int64_t> at, std::vector<int64_t> lengths) {
    return std::vector<Value>{filled({2, 4, 1, 8}, seed), filled({2, 2, 16, 8}, seed + 1),
                              filled({2, 2, 1, 8}, seed + 2), integers(at), integers(lengths)};
  };
  expect_replays(model, step(1, {3, 0}, {4, 1}),
                 {step(2, {4, 1}, {5, 2}), step(3, {5, 2}, {6, 3}), step(4, {15, 9}, {16, 10})});
  expect_named(model, step(1, {3, 0}, {4, 1}), step(2, {4, 16}, {5, 2}), "an entry of write_indices is 16");
  expect_named(model, step(1, {3, 0}, {4, 1}), step(2, {4, 1}, {17, 2}), "a length in nonpad_kv_seqlen is 17");
}

// The content that the host reads belongs to the form: each content has a recording of its own.
TEST(Replay, HoldsForTheContentThatTheHostReads) {
  const auto model = model_text::model_of(
      node("Add", {"begin", "one"}, {"from"}) + node("Slice", {"x", "from", "end"}, {"s"}) + node("Exp", {"s"}, {"e"}) +
          node("Add", {"e", "s"}, {"y"}) + "initializer { name: \"one\" data_type: 7 dims: 1 int64_data: 1 } " +
          value("input", "x") + value("input", "begin", kInt64) + value("input", "end", kInt64) + value("output", "y"),
      21);
  const auto inputs = [](uint32_t seed, int64_t begin, int64_t end) {
    return std::vector<Value>{filled({9, 3}, seed), integers({begin}), integers({end})};
  };
  expect_replays(model, inputs(1, 0, 6), {inputs(2, 0, 6), inputs(3, 0, 6)});
  NullObserver nobody;
  auto session = warm_session(model, inputs(1, 0, 6), nobody);
  std::vector<Value> outputs;
  for (uint32_t round = 0; round < 12; ++round) {
    const auto given = inputs(round, round % 3, 4 + round % 3);  // one length, other rows
    const int64_t taken = allocations_of(*session, given, nobody, outputs);
    EXPECT_TRUE(same(outputs[0], fresh(model, given)[0])) << round;
    EXPECT_TRUE(round < 9 || taken == 0) << round;
  }
}

TEST(Replay, HoldsForTheLengthsOfGroups) {
  using namespace decoder_models;
  const auto model = decoder(Kind::group_query);
  const auto inputs = [](uint32_t seed, int32_t total) {
    std::vector<Value> all{filled({1, 1, kWidth}, seed), Tensor::vector<int32_t>(std::array{total - 1}),
                           Tensor::vector<int32_t>(std::array{total})};
    for (uint32_t cache = 0; cache < 2 * kLayers; ++cache)
      all.push_back(filled({1, cached_heads(Kind::group_query), 7, kSize}, seed + cache));
    return all;
  };
  expect_replays(model, inputs(1, 8), {inputs(2, 8), inputs(3, 8)});
  expect_replays(model, inputs(1, 5), {inputs(2, 5)});
}

// Runs of ever new shapes are made once each; what comes back is recorded, however many others came before.
TEST(Replay, LearnsWhatComesAgain) {
  const auto model = network();
  NullObserver nobody;
  auto session = warm_session(model, inputs_of(1), nobody);
  const auto grown = [](size_t length) { return inputs_of(2, std::vector<int64_t>(length, 3)); };
  std::vector<Value> outputs;
  for (size_t length = 6; length < 40; ++length) {
    auto alone = tests::make_emulated_executor()->prepare(model, {}).take();
    ASSERT_TRUE(alone->run(grown(length), nobody).ok());
    int64_t before = runtime::emulation::launch_count();
    ASSERT_TRUE(alone->run(grown(length), nobody).ok());
    const int64_t plain = runtime::emulation::launch_count() - before;
    before = runtime::emulation::launch_count();
    ASSERT_TRUE(session->run(grown(length), nobody).ok());
    EXPECT_EQ(runtime::emulation::launch_count() - before, plain) << length;
  }
  for (int round = 0; round < 3; ++round) ASSERT_TRUE(session->run(grown(20), nobody).ok());
  EXPECT_EQ(allocations_of(*session, grown(20), nobody, outputs), 0);
  EXPECT_TRUE(same(outputs[0], fresh(model, grown(20))[0]));
}

// More forms than are kept take turns: those that have a recording keep it.
TEST(Replay, KeepsRecordingsOfFormsThatTakeTurns) {
  const auto model = network();
  NullObserver nobody;
  auto session = warm_session(model, inputs_of(1), nobody);
  int64_t replayed = 0;
  std::vector<Value> outputs;
  for (size_t run = 0; run < 120; ++run) {
    const auto inputs = inputs_of(static_cast<uint32_t>(run), std::vector<int64_t>(6 + run % 12, 2));
    if (allocations_of(*session, inputs, nobody, outputs) == 0 && run >= 60) ++replayed;
    EXPECT_TRUE(run < 108 || same(outputs[0], fresh(model, inputs)[0])) << run;
  }
  EXPECT_EQ(replayed, 40) << "8 forms of 12, 5 times each";
}

TEST(Replay, WhoWatchesSeesEveryValue) {
  const auto model = network();
  NullObserver nobody;
  auto session = warm_session(model, inputs_of(1), nobody);
  Recorder watcher, expected;
  ASSERT_TRUE(session->run(inputs_of(5), watcher).ok());
  ASSERT_TRUE(tests::make_emulated_executor()->prepare(model, {}).take()->run(inputs_of(5), expected).ok());
  ASSERT_EQ(watcher.values.size(), expected.values.size());
  for (const auto& [path, tensor] : expected.values) EXPECT_TRUE(same(watcher.values.at(path), tensor)) << path;
  NullObserver another;
  std::vector<Value> outputs;
  ASSERT_TRUE(session->run(inputs_of(6), another).ok());  // absences are announced first
  EXPECT_EQ(allocations_of(*session, inputs_of(6), another, outputs), 0);
  EXPECT_TRUE(same(outputs[0], fresh(model, inputs_of(6))[0]));
}

// How many elements are not zero is known to the device alone.
TEST(Replay, GivesWayWhereTheDeviceMustAnswer) {
  const auto model =
      model_text::model_of(node("NonZero", {"x"}, {"indices"}) + node("Neg", {"x"}, {"a"}) + node("Exp", {"a"}, {"y"}) +
                               value("input", "x") + value("output", "indices", kInt64) + value("output", "y"),
                           21);
  NullObserver nobody;
  auto session = warm_session(model, {filled({9}, 1)}, nobody);
  for (int zeros = 0; zeros < 4; ++zeros) {
    Tensor x = filled({9}, 7).tensor();
    for (int i = 0; i < zeros; ++i) x.mutable_as<float>()[static_cast<size_t>(i) * 2] = 0;
    const auto outputs = session->run(std::vector<Value>{x}, nobody).take();
    EXPECT_EQ(outputs[0].tensor().shape(), (Shape{1, 9 - zeros}));
  }
}

TEST(Replay, GivesWayWhereABranchIsChosen) {
  const std::string branch = " type: GRAPH g { name: \"g\" ";
  const auto model =
      model_text::model_of(node("If", {"which"}, {"y"},
                                "attribute { name: \"then_branch\"" + branch + node("Neg", {"x"}, {"t"}) +
                                    value("output", "t") + "} } attribute { name: \"else_branch\"" + branch +
                                    node("Exp", {"x"}, {"e"}) + value("output", "e") + "} } ") +
                               value("input", "which", 9) + value("input", "x") + value("output", "y"),
                           21);
  NullObserver nobody;
  const auto inputs = [](bool which) { return std::vector<Value>{Tensor::scalar(which), filled({5}, 3)}; };
  auto session = warm_session(model, inputs(true), nobody);
  for (const bool which : {true, false, true, false}) {
    const auto outputs = session->run(inputs(which), nobody).take();
    EXPECT_TRUE(same(outputs[0], fresh(model, inputs(which))[0]));
  }
}

}  // namespace
}  // namespace parallax::replay_test
