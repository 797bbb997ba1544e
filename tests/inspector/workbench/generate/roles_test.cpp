// SPDX-License-Identifier: Apache-2.0
// Roles by name, by shape and by map; what does not pair is refused in one sentence.
#include "inspector/workbench/generate/roles.h"

#include <string>

#include <gtest/gtest.h>

#include "inspector/model/io/import.h"

namespace parallax::generate {
namespace {

std::string value(const std::string& kind, const std::string& name, int type, const std::vector<std::string>& dims) {
  std::string text =
      kind + " { name: '" + name + "' type { tensor_type { elem_type: " + std::to_string(type) + " shape { ";
  for (const std::string& dim : dims) {
    const bool is_number = dim.find_first_not_of("0123456789") == std::string::npos;
    text += is_number ? "dim { dim_value: " + dim + " } " : "dim { dim_param: '" + dim + "' } ";
  }
  return text + "} } } } ";
}

// A graph that returns a float of its own for each output; what it computes is irrelevant here.
std::shared_ptr<const Model> model_of(const std::string& inputs,
                                      const std::vector<std::pair<std::string, std::string>>& outputs) {
  std::string text = "ir_version: 8 opset_import { version: 17 } graph { name: 'g' " + inputs;
  for (const auto& [name, declared] : outputs) {
    text += "node { op_type: 'RandomNormal' output: '" + name +
            "' attribute { name: 'shape' type: INTS ints: 1 ints: 2 ints: 3 ints: 4 } } " + declared;
  }
  text += "}";
  ImportOptions options;
  options.checks = ModelChecks::none;
  auto model = import_model(std::as_bytes(std::span(text.data(), text.size())), "", "m.textproto", options);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.ok() ? model.take() : nullptr;
}

const std::vector<std::string> kTokens = {"batch", "sequence"}, kCache = {"batch", "2", "past", "4"},
                               kAccumulated = {"batch", "2", "total", "4"}, kLogits = {"batch", "sequence", "16"};

TEST(Roles, NamesOfExportersGiveRoles) {
  const auto model = model_of(value("input", "input_ids", 7, kTokens) + value("input", "attention_mask", 7, kTokens) +
                                  value("input", "past_key_values.0.key", 1, kCache) +
                                  value("input", "past_key_values.0.value", 1, kCache),
                              {{"present.0.value", value("output", "present.0.value", 1, kAccumulated)},
                               {"logits", value("output", "logits", 1, kLogits)},
                               {"present.0.key", value("output", "present.0.key", 1, kAccumulated)}});
  const auto roles = decoder_roles(*model, {});
  ASSERT_TRUE(roles.ok()) << roles.error().message;
  EXPECT_EQ(roles->logits, 1U);
  ASSERT_EQ(roles->past.size(), 2U);
  EXPECT_EQ(roles->past[0].axis, 2);
  EXPECT_EQ(roles->present_of_past, (std::vector<int32_t>{1, 0}));
}

TEST(Roles, CachesWithoutTellingNamesPairByPosition) {
  const auto model = model_of(
      value("input", "input_ids", 7, kTokens) + value("input", "k0", 1, kCache) + value("input", "v0", 1, kCache),
      {{"scores", value("output", "scores", 1, kLogits)},
       {"k1", value("output", "k1", 1, kAccumulated)},
       {"v1", value("output", "v1", 1, kAccumulated)}});
  const auto roles = decoder_roles(*model, {});
  ASSERT_TRUE(roles.ok()) << roles.error().message;
  EXPECT_EQ(roles->logits, 0U);
  EXPECT_EQ(roles->present_of_past, (std::vector<int32_t>{0, 1}));
}

TEST(Roles, AMapNamesWhatNamesDoNotTell) {
  const auto model =
      model_of(value("input", "tokens", 7, kTokens), {{"scores", value("output", "scores", 1, kLogits)}});
  const auto refused = decoder_roles(*model, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(exit_code(refused.error().code), 3);
  EXPECT_NE(refused.error().message.find("no input is input_ids; --map names it"), std::string::npos);
  EXPECT_TRUE(decoder_roles(*model, {{"input_ids", "tokens"}}).ok());
}

TEST(Roles, APastWithoutPresentIsRefusedButForTheEncodersKeys) {
  const std::string ids = value("input", "input_ids", 7, kTokens);
  const auto without = model_of(
      ids + value("input", "past_key_values.0.key", 1, kCache) + value("input", "past_key_values.0.value", 1, kCache),
      {{"logits", value("output", "logits", 1, kLogits)},
       {"present.0.key", value("output", "present.0.key", 1, kAccumulated)}});
  const auto refused = decoder_roles(*without, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(exit_code(refused.error().code), 3);
  EXPECT_NE(refused.error().message.find("'past_key_values.0.value'"), std::string::npos);
  const auto cross = model_of(ids + value("input", "past_key_values.0.decoder.key", 1, kCache) +
                                  value("input", "past_key_values.0.encoder.key", 1, kCache),
                              {{"logits", value("output", "logits", 1, kLogits)},
                               {"present.0.decoder.key", value("output", "present.0.decoder.key", 1, kAccumulated)}});
  const auto kept = decoder_roles(*cross, {});
  ASSERT_TRUE(kept.ok()) << kept.error().message;
  EXPECT_TRUE(kept->past[1].is_cross);
  EXPECT_EQ(kept->present_of_past, (std::vector<int32_t>{0, -1}));
}

TEST(Roles, PastAndPresentOfOtherHeadsDoNotPair) {
  const auto model =
      model_of(value("input", "input_ids", 7, kTokens) + value("input", "past_key_values.0.key", 1, kCache),
               {{"logits", value("output", "logits", 1, kLogits)},
                {"present.0.key", value("output", "present.0.key", 1, {"batch", "3", "total", "4"})}});
  const auto refused = decoder_roles(*model, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("do not pair"), std::string::npos);
}

TEST(Roles, TheOnlyMaskOfADecoderWithEncoderStatesIsTheEncoders) {
  const auto model = model_of(value("input", "input_ids", 7, kTokens) + value("input", "attention_mask", 7, kTokens) +
                                  value("input", "encoder_hidden_states", 1, {"batch", "source", "8"}),
                              {{"logits", value("output", "logits", 1, kLogits)}});
  const auto roles = decoder_roles(*model, {});
  ASSERT_TRUE(roles.ok()) << roles.error().message;
  EXPECT_EQ(roles->inputs[1], InputRole::encoder_attention_mask);
}

}  // namespace
}  // namespace parallax::generate
