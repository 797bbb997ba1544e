// SPDX-License-Identifier: Apache-2.0
// The nodes by which states of a session grow in place.
#include "runtime/plan/growing.h"

#include <gtest/gtest.h>

#include "runtime/plan/host_platform.h"
#include "tests/inspector/executors/decoder_models.h"

namespace parallax::runtime {
namespace {

using decoder_models::Kind;

struct Planned {
  std::shared_ptr<const Model> model;
  std::unique_ptr<GraphPlan> plan;
  std::vector<bool> grow;
};

Planned planned(std::shared_ptr<const Model> model, const std::vector<StateBinding>& bindings, bool observe_all) {
  RunOptions options;
  options.observe_all = observe_all;
  const ValueTable value_infos = ValueTable::build(model).take();
  const auto platform = make_host_platform({});
  PlanRequest request;
  request.options = &options;
  request.platform = platform.get();
  request.patterns = chosen_patterns(options, true).take();
  request.evaluate = [](const Node&, std::span<const Value>) -> Result<std::vector<Value>> {
    return unsupported("nothing is folded");
  };
  auto plan = plan_graph(value_infos.main(), request);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  const KeptStates states = KeptStates::create(model->graph, bindings).take();
  Planned made{model, plan.take(), {}};
  made.grow = mark_growing(*made.plan, states, true);
  return made;
}

class Growing : public testing::TestWithParam<std::tuple<Kind, bool>> {};

TEST_P(Growing, ADecodersCachesGrowInPlace) {
  const auto [kind, observe_all] = GetParam();
  const Planned made = planned(decoder_models::decoder(kind), decoder_models::bindings(), observe_all);
  EXPECT_EQ(made.grow, std::vector<bool>(4, true));
  ASSERT_EQ(made.plan->growing_outputs.size(), made.plan->outputs.size());
  EXPECT_EQ(std::ranges::count(made.plan->growing_outputs, 1), 4);
}

INSTANTIATE_TEST_SUITE_P(Models, Growing,
                         testing::Combine(testing::Values(Kind::several_heads, Kind::shared_heads, Kind::in_branch,
                                                          Kind::operator_attention, Kind::group_query),
                                          testing::Bool()));

// [b, 2, t, 4] joined as `inputs` have it along `axis`.
std::shared_ptr<const Model> joined(const std::vector<std::string>& inputs, int64_t axis) {
  const std::string shape = decoder_models::shape_text({"b", "h", "t", "4"});
  const std::string other = decoder_models::shape_text({"b", "k", "s", "4"});
  return model_text::model_of(
      model_text::value("input", "past", 1, shape) + model_text::value("input", "x", 1, other) +
      model_text::value("output", "present") +
      model_text::node("Concat", inputs, {"present"}, decoder_models::int_attribute_text("axis", axis)));
}

TEST(Growing, OtherNodesAppendNothing) {
  const auto grows = [](const std::vector<std::string>& inputs, int64_t axis) -> bool {
    return planned(joined(inputs, axis), {{"past", "present", 2}}, true).grow.front();
  };
  EXPECT_TRUE(grows({"past", "x"}, 2));
  EXPECT_TRUE(grows({"past", "x"}, -2));
  EXPECT_FALSE(grows({"x", "past"}, 2));
  EXPECT_FALSE(grows({"past", "x", "x"}, 2));
  EXPECT_FALSE(grows({"past", "x"}, 1));
}

}  // namespace
}  // namespace parallax::runtime
