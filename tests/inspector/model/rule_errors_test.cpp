// SPDX-License-Identifier: Apache-2.0
// The form of errors that say what was seen and the rule, and the names of inputs in them.
#include "inspector/model/rule_errors.h"

#include <gtest/gtest.h>

#include "inspector/model/opset/opset_registry.h"

namespace parallax {
namespace {

Node node_of(std::string_view op) {
  Node node;
  node.schema = OpsetRegistry::standard().find("", op, 13);
  return node;
}

TEST(RuleErrors, SayWhatWasSeenAndTheRule) {
  EXPECT_EQ(wrong_attribute("mode", "x", "be {} or {}", "DCR", "CRD").message,
            "attribute 'mode' is 'x'; it must be DCR or CRD");
  EXPECT_EQ(wrong_attribute("group", 0, "be 1 or more").message, "attribute 'group' is 0; it must be 1 or more");
  EXPECT_EQ(wrong_shape("X", Shape{2, 3}, "have rank {}", 3).message, "X has shape [2,3]; it must have rank 3");
  EXPECT_EQ(wrong_length("input 'sizes'", 1, "have 2").message, "input 'sizes' has 1 entry; it must have 2");
  EXPECT_EQ(wrong_length("input 'sizes'", 3, "have 2").message, "input 'sizes' has 3 entries; it must have 2");
  EXPECT_EQ(wrong_value("k", 5, "be at most {}", 4).code, ErrorCode::execution);
  EXPECT_EQ(as_invalid_model(wrong_value("k", 5, "be at most {}", 4)).code, ErrorCode::invalid_model);
}

TEST(RuleErrors, NameInputsAsTheSpecificationDoes) {
  EXPECT_EQ(input_name(node_of("Conv"), size_t{1}), "input 'W'");
  EXPECT_EQ(input_name(node_of("Concat"), size_t{2}), "input 2 ('inputs')");
  EXPECT_EQ(input_name(Node(), size_t{2}), "input 2");
}

TEST(RuleErrors, SayWhatAnInputIs) {
  const Value matrix(Tensor::zeros(DType::float64, Shape{2, 3}).take());
  EXPECT_EQ(input_seen(node_of("Conv"), 1, &matrix), "input 'W' is float64[2,3]");
  EXPECT_EQ(input_seen(node_of("Conv"), 1, &matrix, false), "input 'W' has shape [2,3]");
  EXPECT_EQ(input_seen(node_of("Conv"), 2, nullptr), "input 'B' is missing");
}

}  // namespace
}  // namespace parallax
