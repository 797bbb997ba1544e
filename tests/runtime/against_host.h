// SPDX-License-Identifier: Apache-2.0
// Sessions of a GPU device against the host's.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/tensor/elements.h"
#include "runtime/plan/runtime.h"

namespace parallax::against_host {

// Multiples of 1/16 below 2, which are what they are in every type.
inline Tensor sixteenths(DType dtype, const Shape& shape, int64_t seed) {
  std::vector<double> values(static_cast<size_t>(shape.element_count()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>((static_cast<int64_t>(i) * 7919 + seed * 104729) % 61 - 30) / 16;
  }
  Tensor tensor = Tensor::allocate(dtype, shape).take();
  store_doubles(tensor, 0, values);
  return tensor;
}

// The first output of a run.
inline std::vector<double> numbers_of_run(Session& session, const std::vector<Value>& inputs) {
  NullObserver nobody;
  const auto outputs = session.run(inputs, nobody);
  EXPECT_TRUE(outputs.ok()) << (outputs.ok() ? "" : outputs.error().message);
  if (!outputs.ok()) return {};
  std::vector<double> values(static_cast<size_t>((*outputs)[0].tensor().element_count()));
  load_doubles((*outputs)[0].tensor(), 0, values);
  return values;
}

// Several runs, the last of which are replays: near what the host gives, and the same bits when repeated.
inline void expect_what_the_host_gives(Executor& executor, const std::shared_ptr<const Model>& model, double step,
                                       const std::function<std::vector<Value>(int64_t turn)>& inputs_of_turn,
                                       const std::string& name) {
  constexpr int64_t kRuns = 6;
  ASSERT_NE(model, nullptr) << name;
  const auto on_gpu = executor.prepare(model, {}), on_host = make_cpu_executor()->prepare(model, {});
  ASSERT_TRUE(on_gpu.ok()) << name << ": " << on_gpu.error().message;
  ASSERT_TRUE(on_host.ok()) << name << ": " << on_host.error().message;
  for (int64_t turn = 0; turn < kRuns; ++turn) {
    const auto inputs = inputs_of_turn(turn);
    const auto found = numbers_of_run(**on_gpu, inputs), expected = numbers_of_run(**on_host, inputs);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], step * (1 + std::abs(expected[i])))
          << name << ", run " << turn << ", element " << i;
    }
    EXPECT_EQ(numbers_of_run(**on_gpu, inputs), found) << name << ", run " << turn << " was not repeated to the bit";
  }
}

}  // namespace parallax::against_host
