// SPDX-License-Identifier: Apache-2.0
// Models of attention in float16 that a GPU's library takes, for executors of GPU devices against the host's.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "tests/runtime/against_host.h"
#include "tests/runtime/model_text.h"

namespace parallax::attention_models {

using model_text::integer_attribute;
using model_text::node;
using model_text::value;

struct AttentionModel {
  const char* name;
  std::string graph;  // of one type; "y" is what comes out
  std::vector<std::pair<std::string, Shape>> inputs;
};

// The operator's parts, as exporters write them; rewriting makes one node of them.
inline std::string in_parts(DType dtype) {
  const std::string quarter = dtype == DType::float16 ? "13312" : "16000";  // its bits
  return node("Transpose", {"k"}, {"t"}, model_text::integers_attribute("perm", {0, 1, 3, 2})) +
         node("MatMul", {"q", "t"}, {"s"}) + node("Mul", {"s", "quarter"}, {"r"}) + node("Add", {"r", "mask"}, {"m"}) +
         node("Softmax", {"m"}, {"p"}, integer_attribute("axis", -1)) + node("MatMul", {"p", "v"}, {"y"}) +
         "initializer { name: \"quarter\" data_type: " + std::to_string(static_cast<int>(dtype)) +
         " int32_data: " + quarter + " } ";
}

inline std::vector<AttentionModel> attention_models(DType dtype) {
  const std::string heads = integer_attribute("q_num_heads", 4) + integer_attribute("kv_num_heads", 2);
  return {
      {"heads",
       node("Attention", {"q", "k", "v"}, {"y"}),
       {{"q", {2, 4, 5, 8}}, {"k", {2, 2, 6, 8}}, {"v", {2, 2, 6, 16}}}},
      {"side_by_side",
       node("Attention", {"q", "k", "v"}, {"y"}, heads),
       {{"q", {2, 5, 32}}, {"k", {2, 6, 16}}, {"v", {2, 6, 16}}}},
      {"with_past",
       node("Attention", {"q", "k", "v", "", "pk", "pv"}, {"y"}),
       {{"q", {1, 2, 1, 8}}, {"k", {1, 2, 1, 8}}, {"v", {1, 2, 1, 8}}, {"pk", {1, 2, 7, 8}}, {"pv", {1, 2, 7, 8}}}},
      {"masked",
       node("Attention", {"q", "k", "v", "mask"}, {"y"}),
       {{"q", {2, 4, 5, 8}}, {"k", {2, 2, 8, 8}}, {"v", {2, 2, 8, 16}}, {"mask", {2, 1, 5, 8}}}},
      {"in_parts",
       in_parts(dtype),
       {{"q", {2, 3, 5, 8}}, {"k", {2, 3, 8, 8}}, {"v", {2, 3, 8, 16}}, {"mask", {2, 1, 5, 8}}}},
      {"in_parts_padded",
       in_parts(dtype),
       {{"q", {2, 3, 5, 8}}, {"k", {2, 3, 8, 8}}, {"v", {2, 3, 8, 8}}, {"mask", {2, 1, 1, 8}}}},
  };
}

inline std::shared_ptr<const Model> model_of(const AttentionModel& given, DType dtype) {
  std::string graph = given.graph;
  const int type = static_cast<int>(dtype);
  for (const auto& [name, shape] : given.inputs) graph += value("input", name, type);
  return model_text::model_of(graph + value("output", "y", type), 23);
}

inline std::vector<Value> inputs_of(const AttentionModel& given, DType dtype, int64_t turn) {
  std::vector<Value> inputs;
  for (const auto& [name, shape] : given.inputs) {
    inputs.emplace_back(against_host::sixteenths(dtype, shape, turn + static_cast<int64_t>(inputs.size())));
  }
  return inputs;
}

// Weights are rounded to the type, and values are up to 2.
inline void expect_what_the_host_gives(Executor& executor, const AttentionModel& given, DType dtype) {
  against_host::expect_what_the_host_gives(
      executor, model_of(given, dtype), dtype == DType::float16 ? 2e-3 : 1.6e-2,
      [&](int64_t turn) { return inputs_of(given, dtype, turn); }, given.name);
}

// Keys hidden by minus infinity weigh nothing; a query all of whose keys are hidden gives no numbers, as on the host.
inline void expect_minus_infinity_to_hide(Executor& executor) {
  const auto host = make_cpu_executor();
  for (const AttentionModel& given : attention_models(DType::float16)) {
    if (given.name != std::string("in_parts")) continue;
    const auto model = model_of(given, DType::float16);
    const auto session = executor.prepare(model, {}), expecting = host->prepare(model, {});
    ASSERT_TRUE(session.ok() && expecting.ok());
    auto inputs = inputs_of(given, DType::float16, 0);
    std::vector<double> mask(2 * 5 * 8, 0.0);
    for (size_t i = 0; i < mask.size(); ++i) {
      if (i % 8 > i / 8 % 5 || i / 8 == 3) mask[i] = -std::numeric_limits<double>::infinity();
    }
    Tensor hidden = Tensor::allocate(DType::float16, Shape{2, 1, 5, 8}).take();
    store_doubles(hidden, 0, mask);
    inputs[3] = hidden;
    const auto found = against_host::numbers_of_run(**session, inputs);
    const auto expected = against_host::numbers_of_run(**expecting, inputs);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(std::isnan(found[i]), std::isnan(expected[i])) << "element " << i;
      if (std::isnan(expected[i])) continue;
      ASSERT_NEAR(found[i], expected[i], 4e-3) << "element " << i;
    }
  }
}

}  // namespace parallax::attention_models
