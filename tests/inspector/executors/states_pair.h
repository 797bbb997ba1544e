// SPDX-License-Identifier: Apache-2.0
// A decoder whose session keeps its caches, and the same with explicit caches: they give the same bits.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "inspector/exec/session_states.h"
#include "tests/inspector/executors/decoder_models.h"
#include "tests/runtime/session_values.h"

namespace parallax::decoder_models {

inline Value rows_of(const Value& value, std::span<const int32_t> rows) {
  const Tensor& tensor = value.tensor();
  std::vector<int64_t> dims(tensor.shape().begin(), tensor.shape().end());
  const size_t bytes = dims[0] == 0 ? 0 : tensor.size_bytes() / static_cast<size_t>(dims[0]);
  dims[0] = static_cast<int64_t>(rows.size());
  Tensor taken = Tensor::allocate(tensor.dtype(), Shape(dims)).take();
  for (size_t i = 0; i < rows.size(); ++i)
    std::memcpy(taken.mutable_data() + i * bytes, tensor.view().data + static_cast<size_t>(rows[i]) * bytes, bytes);
  return taken;
}

class Pair {
 public:
  static constexpr size_t kStates = 2 * kLayers;

  Pair(Executor& executor, Kind kind, RunOptions options) : kind_(kind), model_(decoder(kind)) {
    plain_ = prepare(executor, options);
    options.states = bindings();
    keeping_ = prepare(executor, options);
    states_ = dynamic_cast<SessionStates*>(keeping_.get());
  }
  bool is_ready() const { return plain_ != nullptr && states_ != nullptr; }
  SessionStates& states() { return *states_; }
  Session& keeping() { return *keeping_; }
  const Value& cache(size_t index) const { return caches_[index]; }
  int64_t length() const { return length_; }

  Status reset(int64_t batch, int64_t capacity) {
    length_ = 0;
    batch_ = batch;
    caches_.assign(kStates, Tensor::zeros(DType::float32, Shape{batch, cached_heads(kind_), 0, kSize}).take());
    return states_->reset_states(batch, capacity);
  }
  void reorder(std::vector<int32_t> rows) {
    for (Value& cache : caches_) cache = rows_of(cache, rows);
    batch_ = static_cast<int64_t>(rows.size());
    const Status done = states_->reorder_states(rows);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  void set(size_t index, const Value& value) {
    caches_[index] = value;
    const Status done = states_->set_state(index, value);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  void set_length(int64_t length) { length_ = length; }

  // All inputs but the caches.
  std::vector<Value> given(int64_t tokens) {
    std::vector<Value> inputs{session_values::filled(Shape{batch_, tokens, kWidth}, ++seed_)};
    if (kind_ == Kind::in_branch) inputs.push_back(Tensor::vector<bool>(std::array{length_ > 0}));
    if (kind_ == Kind::group_query) {
      const auto total = static_cast<int32_t>(length_ + tokens);
      inputs.push_back(Tensor::vector<int32_t>(std::vector<int32_t>(static_cast<size_t>(batch_), total - 1)));
      inputs.push_back(Tensor::vector<int32_t>(std::array{total}));
    }
    return inputs;
  }

  void step(int64_t tokens) {
    NullObserver nobody;
    compare_step(tokens, nobody, nobody);
  }
  void compare_step(int64_t tokens, Observer& to_plain, Observer& to_keeping) {
    std::vector<Value> inputs = given(tokens);
    std::vector<Value> explicit_inputs = inputs;
    explicit_inputs.insert(explicit_inputs.end(), caches_.begin(), caches_.end());
    inputs.resize(explicit_inputs.size());
    const auto expected = plain_->run(explicit_inputs, to_plain);
    const auto got = keeping_->run(inputs, to_keeping);
    ASSERT_TRUE(expected.ok()) << expected.error().message;
    ASSERT_TRUE(got.ok()) << got.error().message;
    length_ += tokens;
    for (size_t index = 0; index < got->size(); ++index) {
      const bool is_state = index >= got->size() - kStates;
      EXPECT_EQ((*got)[index].is_absent(), is_state) << "output " << index;
      if (is_state) continue;
      EXPECT_TRUE(session_values::same((*got)[index], (*expected)[index])) << "output " << index;
    }
    caches_.assign(expected->end() - kStates, expected->end());
    expect_same_states();
  }
  void expect_same_states() {
    for (size_t index = 0; index < kStates; ++index) {
      const auto state = states_->state(index);
      ASSERT_TRUE(state.ok()) << state.error().message;
      EXPECT_TRUE(session_values::same(*state, caches_[index])) << "state " << index;
    }
  }

 private:
  std::unique_ptr<Session> prepare(Executor& executor, const RunOptions& options) {
    auto session = executor.prepare(model_, options);
    EXPECT_TRUE(session.ok()) << session.error().message;
    return session.ok() ? session.take() : nullptr;
  }

  Kind kind_;
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Session> plain_, keeping_;
  SessionStates* states_ = nullptr;
  std::vector<Value> caches_;
  int64_t length_ = 0, batch_ = 1;
  uint32_t seed_ = 5;
};

}  // namespace parallax::decoder_models
