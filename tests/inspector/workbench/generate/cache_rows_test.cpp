// SPDX-License-Identifier: Apache-2.0
// A session whose reorder of beams leaves one row of one cache as it was is named at its cache and step; a correct one
// is not.
#include <cstring>

#include <gtest/gtest.h>

#include "inspector/exec/session_states.h"
#include "inspector/executors/make_executor.h"
#include "inspector/workbench/generate/generator.h"

namespace parallax::generate {
namespace {

constexpr size_t kForgottenCache = 2;  // past_key_values.1.key
constexpr int32_t kBeams = 4;

// The record of a reordering session, from which the test knows where the fault must be found.
struct Seen {
  int64_t runs = 0;
  int64_t first_stale = -1;  // the run that reads the first stale row
};

// Forwards to a session that keeps its caches. `row`: the one that reorder_states forgets in cache kForgottenCache; -1:
// none.
class ForgetfulSession final : public Session, public SessionStates {
 public:
  ForgetfulSession(std::unique_ptr<Session> inner, int32_t row, Seen& seen)
      : inner_(std::move(inner)), states_(dynamic_cast<SessionStates&>(*inner_)), row_(row), seen_(seen) {}

  Result<std::vector<Value>> run(std::span<const Value> inputs, Observer& observer, const CallInfo& call) override {
    ++seen_.runs;
    return inner_->run(inputs, observer, call);
  }
  SessionStatistics statistics() const override { return inner_->statistics(); }
  Status reset_states(int64_t batch, int64_t capacity) override { return states_.reset_states(batch, capacity); }
  Status set_state(size_t index, const Value& value) override { return states_.set_state(index, value); }
  Result<Value> state(size_t index) const override { return states_.state(index); }

  Status reorder_states(std::span<const int32_t> rows) override {
    const Value before = PX_TRY(states_.state(kForgottenCache));
    PX_TRY(states_.reorder_states(rows));
    const auto row = static_cast<size_t>(row_);
    if (row_ < 0 || row >= rows.size() || rows[row] == row_ || before.tensor().shape()[0] <= row_) return {};
    const Tensor after = PX_TRY(states_.state(kForgottenCache)).tensor();
    Tensor changed = PX_TRY(Tensor::allocate(after.dtype(), after.shape()));
    const size_t bytes = after.size_bytes() / rows.size();
    std::memcpy(changed.mutable_data(), after.view().data, after.size_bytes());
    std::memcpy(changed.mutable_data() + row * bytes, before.tensor().view().data + row * bytes, bytes);
    if (std::memcmp(changed.view().data, after.view().data, after.size_bytes()) == 0) return {};
    if (seen_.first_stale < 0) seen_.first_stale = seen_.runs;
    return states_.set_state(kForgottenCache, Value(std::move(changed)));
  }

 private:
  std::unique_ptr<Session> inner_;
  SessionStates& states_;
  int32_t row_;
  Seen& seen_;
};

// `executor` whose sessions, where they keep caches, forget a row. Others, which compare calls on equal inputs, are as
// they were.
class ForgetfulExecutor final : public Executor {
 public:
  ForgetfulExecutor(const std::string& executor, int32_t row, Seen& seen)
      : inner_(make_executor(executor).take()), row_(row), seen_(seen) {}
  std::string name() const override { return "forgetful"; }
  std::string device() const override { return inner_->device(); }
  std::map<std::string, std::string> settings(const RunOptions& options) const override {
    return inner_->settings(options);
  }
  Result<std::unique_ptr<Session>> prepare(std::shared_ptr<const Model> model, const RunOptions& options) override {
    auto session = PX_TRY(inner_->prepare(std::move(model), options));
    if (options.states.empty()) return session;
    return std::unique_ptr<Session>(std::make_unique<ForgetfulSession>(std::move(session), row_, seen_));
  }

 private:
  std::shared_ptr<Executor> inner_;
  int32_t row_;
  Seen& seen_;
};

Generation generate_on(const std::string& a, const std::string& inner_of_b, int32_t row, Seen& seen) {
  GeneratorRequest model;
  model.model = std::string(PX_SOURCE_DIR) + "/samples/decoder/model.textproto";
  model.executors = {a, "forgetful"};
  model.cache = CacheMode::in_place;
  GenerationRequest request;
  request.prompts = {{3, 1, 4, 1, 5}};
  request.settings.beams = kBeams;
  request.settings.max_new_tokens = 8;
  const ExecutorFactory factory = [&](const std::string& name) -> Result<std::shared_ptr<Executor>> {
    if (name == "forgetful")
      return std::shared_ptr<Executor>(std::make_shared<ForgetfulExecutor>(inner_of_b, row, seen));
    return make_executor(name);
  };
  auto generation = generate_once(model, request, factory);
  EXPECT_TRUE(generation.ok()) << generation.error().message;
  return generation.ok() ? generation.take() : Generation();
}

class CacheRows : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(CacheRows, AStaleRowAfterAReorderIsNamedAtItsCacheAndStep) {
  int faults = 0;  // a row that no reorder moves is never stale
  for (int32_t row = 0; row < kBeams; ++row) {
    Seen seen;
    const Generation generation = generate_on(GetParam().first, GetParam().second, row, seen);
    ASSERT_TRUE(generation.comparison.has_value());
    const bool is_stale = seen.first_stale >= 0;
    EXPECT_EQ(generation.passed(), !is_stale) << "row " << row;
    ASSERT_EQ(generation.comparison->causes.size(), is_stale ? 1U : 0U) << "row " << row;
    if (!is_stale) continue;
    ++faults;
    const Cause& cause = generation.comparison->causes.front();
    EXPECT_EQ(cause.path, "step[" + std::to_string(seen.first_stale) + "]//past_key_values.1.key");
    EXPECT_NE(cause.why.find("what keeps them between steps is wrong"), std::string::npos);
  }
  EXPECT_GE(faults, 2);
}

TEST_P(CacheRows, TwoCorrectSidesThatKeepCachesInPlaceAgree) {
  Seen seen;
  const Generation generation = generate_on(GetParam().first, GetParam().second, -1, seen);
  EXPECT_EQ(generation.settings.cache, CacheMode::in_place);
  EXPECT_TRUE(generation.passed());
  ASSERT_TRUE(generation.comparison.has_value());
  EXPECT_EQ(generation.comparison->verdict, OverallVerdict::pass);
  EXPECT_TRUE(generation.comparison->causes.empty());
  EXPECT_GT(generation.comparison->summary.compared, 0);
  EXPECT_EQ(seen.runs, 8);
}

INSTANTIATE_TEST_SUITE_P(Executors, CacheRows,
                         ::testing::Values(std::pair("reference", "cpu"), std::pair("cpu", "cpu"),
                                           std::pair("cpu", "reference")),
                         [](const auto& pair) { return std::string(pair.param.first) + "_" + pair.param.second; });

}  // namespace
}  // namespace parallax::generate
