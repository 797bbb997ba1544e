// SPDX-License-Identifier: Apache-2.0
// The search on its own: what it finds for failures that are known exactly.
#include "inspector/transform/reduce.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/inspector/transform/models.h"

namespace parallax::transform {
namespace {

// A chain of `length` Neg nodes n0, n1, ...
std::shared_ptr<const Model> chain(int length) {
  std::string text = R"(ir_version: 10 opset_import { version: 20 } graph { name: "chain"
    input { name: "v0" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } })";
  for (int i = 0; i < length; ++i) {
    text += " node { name: \"n" + std::to_string(i) + "\" op_type: \"Neg\" input: \"v" + std::to_string(i) +
            "\" output: \"v" + std::to_string(i + 1) + "\" }";
  }
  text += " output { name: \"v" + std::to_string(length) +
          "\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } } }";
  return parallax::testing::model_of_text(text).take();
}

// Fails where all these nodes are in.
class NeedsAll {
 public:
  explicit NeedsAll(std::vector<NodeId> needed) : needed_(std::move(needed)) {}
  PartCheck check() {
    return [this](const Part& part) -> Result<bool> {
      ++asked;
      const auto is_in = [&](NodeId id) { return std::ranges::find(part.nodes, id) != part.nodes.end(); };
      return std::ranges::all_of(needed_, is_in);
    };
  }
  int asked = 0;

 private:
  std::vector<NodeId> needed_;
};

Part whole(const Location& location) {
  std::vector<NodeId> nodes(location.graph().order);
  return part_of_nodes(location, nodes);
}

TEST(ShrinkPart, FindsOneNodeByBisection) {
  const Location location = find_location(chain(1000), {}).take();
  NeedsAll failure({617});
  const auto part = shrink_part(whole(location), failure.check());
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->nodes, std::vector<NodeId>({617}));
  EXPECT_LE(failure.asked, 25);
}

TEST(ShrinkPart, KeepsNodesThatOnlyFailTogether) {
  const Location location = find_location(chain(200), {}).take();
  const std::vector<NodeId> needed = {20, 77, 150};
  NeedsAll failure(needed);
  const auto part = shrink_part(whole(location), failure.check());
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->nodes, needed);
  EXPECT_EQ(part->inputs.size(), 3U);   // v20, v77, v150
  EXPECT_EQ(part->outputs.size(), 3U);  // all are read by others
  EXPECT_LE(failure.asked, 400);
}

TEST(ShrinkPart, HandsErrorsOn) {
  const Location location = find_location(chain(8), {}).take();
  const auto part =
      shrink_part(whole(location), [](const Part&) -> Result<bool> { return io_error("the disk is full"); });
  ASSERT_FALSE(part.ok());
  EXPECT_EQ(part.error().code, ErrorCode::io);
}

TEST(FindFailingPart, BeginsWithTheNodeAlone) {
  const Location location = find_location(chain(100), {}).take();
  NeedsAll failure({40});
  const auto part = find_failing_part(location, 40, {}, failure.check());
  ASSERT_TRUE(part.ok() && part->has_value());
  EXPECT_EQ((*part)->nodes, std::vector<NodeId>({40}));
  EXPECT_EQ(failure.asked, 1);
}

TEST(FindFailingPart, GoesBackToSoundValues) {
  const Location location = find_location(chain(100), {}).take();
  NeedsAll failure({37, 40});
  const auto part = find_failing_part(location, 40, {"v36"}, failure.check());
  ASSERT_TRUE(part.ok() && part->has_value());
  EXPECT_EQ((*part)->nodes, std::vector<NodeId>({36, 37, 38, 39, 40}));
  EXPECT_EQ(failure.asked, 2);
}

TEST(FindFailingPart, GrowsForthAsWellAsBack) {
  const Location location = find_location(chain(100), {}).take();
  std::set<std::string> sound;
  for (int i = 0; i <= 100; ++i) sound.insert("v" + std::to_string(i));
  for (const NodeId other : {37, 43}) {
    NeedsAll failure({40, other});
    const auto part = find_failing_part(location, 40, sound, failure.check());
    ASSERT_TRUE(part.ok() && part->has_value()) << other;
    EXPECT_LE((*part)->nodes.size(), 9U);
  }
  NeedsAll never({40, 200});
  const auto none = find_failing_part(location, 40, sound, never.check());
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
}

}  // namespace
}  // namespace parallax::transform
