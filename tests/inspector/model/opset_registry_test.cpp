// SPDX-License-Identifier: Apache-2.0
// Tests of the operator tables and of look-up in them.
#include "inspector/model/opset/opset_registry.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/model/opset/tables.h"

namespace parallax {
namespace {

const OpsetRegistry& registry() { return OpsetRegistry::standard(); }

std::vector<int64_t> version_numbers(std::string_view domain, std::string_view op) {
  std::vector<int64_t> numbers;
  for (const OpSchema& schema : registry().versions(domain, op)) numbers.push_back(schema.since_version);
  return numbers;
}

int64_t version_at(std::string_view op, int64_t opset) {
  const OpSchema* schema = registry().find("", op, opset);
  return schema == nullptr ? 0 : schema->since_version;
}

// The error of a table that must be refused.
std::string refusal(std::string_view table) {
  const auto parsed = OpsetRegistry::parse(std::span(&table, 1));
  return parsed.ok() ? "accepted" : parsed.error().message;
}

TEST(OpsetTables, EveryTableParses) {
  const auto parsed = OpsetRegistry::parse(opset_tables());
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->all().size(), registry().all().size());
}

TEST(OpsetTables, HoldWhatThePackagesPublish) {
  std::map<std::string_view, size_t> schemas;
  std::map<std::string_view, std::set<std::string_view>> operators;
  for (const OpSchema& schema : registry().all()) {
    schemas[schema.domain] += 1;
    operators[schema.domain].insert(schema.name);
  }
  // onnx 1.23.2 publishes 629 schemas in ai.onnx; two extensions join them.
  EXPECT_EQ(schemas["ai.onnx"], 631U);
  EXPECT_EQ(schemas["ai.onnx.ml"], 25U);
  EXPECT_EQ(schemas["ai.onnx.preview"], 1U);
  EXPECT_EQ(schemas["ai.onnx.preview.training"], 4U);
  EXPECT_EQ(schemas["com.microsoft"], 136U);
  EXPECT_EQ(operators["ai.onnx.ml"].size(), 19U);
  EXPECT_TRUE(operators["com.microsoft"].contains("GroupQueryAttention"));
  EXPECT_EQ(registry().latest_opset(""), 28);
  EXPECT_EQ(registry().latest_opset("ai.onnx"), 28);
  EXPECT_EQ(registry().latest_opset("ai.onnx.ml"), 5);
  EXPECT_EQ(registry().latest_opset("com.example"), 0);
}

TEST(OpsetTables, EverySchemaIsConsistent) {
  for (const OpSchema& schema : registry().all()) {
    SCOPED_TRACE(schema.versioned_name());
    EXPECT_LE(schema.since_version, registry().latest_opset(schema.domain));
    for (const auto parameters : {schema.inputs, schema.outputs}) {
      for (const FormalParameter& parameter : parameters) {
        ASSERT_NE(parameter.types, nullptr);
        EXPECT_FALSE(parameter.types->empty());
        EXPECT_TRUE(schema.type_constraint(parameter.type) != nullptr || schema_type_from_string(parameter.type))
            << parameter.type;
        const bool last = &parameter == &parameters.back();
        EXPECT_TRUE(last || parameter.option != ParameterOption::variadic) << parameter.name;
      }
    }
    for (const AttributeSchema& attribute : schema.attributes) {
      const bool has_default = !std::holds_alternative<std::monostate>(attribute.default_value);
      EXPECT_FALSE(attribute.required && has_default) << attribute.name;
      EXPECT_EQ(schema.attribute(attribute.name), &attribute);
    }
    EXPECT_LE(schema.min_inputs, schema.max_inputs);
    EXPECT_LE(schema.min_outputs, schema.max_outputs);
    EXPECT_EQ(registry().find(schema.domain, schema.name, schema.since_version), &schema);
  }
}

TEST(OpsetRegistry, KnowsEveryVersionOfAnOperator) {
  EXPECT_EQ(version_numbers("", "Softmax"), (std::vector<int64_t>{1, 11, 13}));
  EXPECT_EQ(version_numbers("", "BatchNormalization"), (std::vector<int64_t>{1, 6, 7, 9, 14, 15}));
  EXPECT_EQ(version_numbers("", "Resize"), (std::vector<int64_t>{10, 11, 13, 18, 19}));
  EXPECT_EQ(version_numbers("", "Cast"), (std::vector<int64_t>{1, 6, 9, 13, 19, 21, 23, 24, 25, 28}));
  EXPECT_EQ(version_numbers("", "Attention"), (std::vector<int64_t>{23, 24, 25}));
  EXPECT_EQ(version_numbers("ai.onnx", "Upsample"), (std::vector<int64_t>{1, 7, 9, 10}));
  EXPECT_TRUE(version_numbers("", "NoSuchOperator").empty());
  EXPECT_TRUE(version_numbers("com.example", "Softmax").empty());
}

TEST(OpsetRegistry, FindsTheVersionInForce) {
  EXPECT_EQ(version_at("Softmax", 1), 1);
  EXPECT_EQ(version_at("Softmax", 10), 1);
  EXPECT_EQ(version_at("Softmax", 11), 11);
  EXPECT_EQ(version_at("Softmax", 12), 11);
  EXPECT_EQ(version_at("Softmax", 13), 13);
  EXPECT_EQ(version_at("Softmax", 28), 13);
  EXPECT_EQ(version_at("Softmax", 99), 13);
  EXPECT_EQ(version_at("Softmax", 0), 0);
  EXPECT_EQ(version_at("Gelu", 19), 0);
  EXPECT_EQ(version_at("Gelu", 20), 20);
  EXPECT_EQ(version_at("softmax", 13), 0);
  EXPECT_EQ(registry().find("", "Softmax", 13), registry().find("ai.onnx", "Softmax", 13));
  EXPECT_EQ(registry().find("com.microsoft", "Softmax", 1), nullptr);
}

TEST(OpsetRegistry, MarksDeprecatedFunctionsAndExtensions) {
  EXPECT_TRUE(registry().find("", "Upsample", 10)->deprecated);
  EXPECT_FALSE(registry().find("", "Upsample", 9)->deprecated);
  EXPECT_TRUE(registry().find("", "Scatter", 11)->deprecated);
  EXPECT_TRUE(registry().find("", "LayerNormalization", 17)->has_function);
  EXPECT_FALSE(registry().find("", "Conv", 11)->has_function);
  EXPECT_TRUE(registry().find("", "SimplifiedLayerNormalization", 13)->extension);
  EXPECT_FALSE(registry().find("", "LayerNormalization", 17)->extension);
}

TEST(OpsetRegistry, DerivesArityFromTheParameters) {
  const OpSchema* clip = registry().find("", "Clip", 13);
  EXPECT_EQ(clip->min_inputs, 1U);
  EXPECT_EQ(clip->max_inputs, 3U);
  EXPECT_EQ(clip->input(1)->option, ParameterOption::optional);
  EXPECT_EQ(clip->input(3), nullptr);
  const OpSchema* concat = registry().find("", "Concat", 13);
  EXPECT_EQ(concat->min_inputs, 1U);
  EXPECT_EQ(concat->max_inputs, kUnlimited);
  EXPECT_EQ(concat->input(99), &concat->inputs.back());
  EXPECT_TRUE(concat->input(0)->homogeneous);
  const OpSchema* loop = registry().find("", "Loop", 13);
  EXPECT_EQ(loop->min_inputs, 2U);
  EXPECT_EQ(loop->min_outputs, 1U);
  EXPECT_FALSE(loop->input(5)->homogeneous);
  const OpSchema* resize = registry().find("", "Resize", 11);
  EXPECT_EQ(resize->min_inputs, 3U);
  EXPECT_EQ(resize->max_inputs, 4U);
}

TEST(OpsetRegistry, HoldsAttributesWithTypesAndDefaults) {
  const auto attribute = [](std::string_view op, int64_t opset, std::string_view name) {
    return *registry().find("", op, opset)->attribute(name);
  };
  EXPECT_EQ(std::get<int64_t>(attribute("Softmax", 11, "axis").default_value), 1);
  EXPECT_EQ(std::get<int64_t>(attribute("Softmax", 13, "axis").default_value), -1);
  EXPECT_EQ(std::get<float>(attribute("BatchNormalization", 15, "epsilon").default_value), 1e-5f);
  EXPECT_EQ(std::get<float>(attribute("Clip", 6, "max").default_value), 3.4028234663852886e38f);
  EXPECT_EQ(std::get<std::string_view>(attribute("Conv", 11, "auto_pad").default_value), "NOTSET");
  EXPECT_EQ(std::get<std::vector<int64_t>>(attribute("MeanVarianceNormalization", 13, "axes").default_value),
            (std::vector<int64_t>{0, 2, 3}));
  EXPECT_EQ(std::get<std::vector<std::string_view>>(attribute("RNN", 14, "activations").default_value),
            (std::vector<std::string_view>{"Tanh", "Tanh"}));
  EXPECT_TRUE(attribute("Cast", 13, "to").required);
  EXPECT_EQ(attribute("If", 13, "then_branch").type, AttributeType::graph);
  EXPECT_EQ(attribute("Constant", 13, "value").type, AttributeType::tensor);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(attribute("Transpose", 13, "perm").default_value));
  EXPECT_EQ(registry().find("", "Softmax", 13)->attribute("axes"), nullptr);
}

TEST(OpsetRegistry, ResolvesTypeConstraints) {
  const OpSchema* matmul = registry().find("", "MatMul", 13);
  const TypeSet& operand = *matmul->input(0)->types;
  EXPECT_TRUE(operand.contains_tensor(DType::bfloat16));
  EXPECT_TRUE(operand.contains_tensor(DType::int32));
  EXPECT_FALSE(operand.contains_tensor(DType::int8));
  EXPECT_FALSE(operand.contains({TypeForm::sequence, DType::float32}));
  EXPECT_EQ(operand.size(), 8U);
  EXPECT_TRUE(registry().find("", "Reshape", 13)->input(1)->types->single() ==
              (SchemaType{TypeForm::tensor, DType::int64}));
  const TypeSet& identity = *registry().find("", "Identity", 16)->input(0)->types;
  EXPECT_TRUE(identity.contains({TypeForm::sequence, DType::string}));
  EXPECT_TRUE(identity.contains({TypeForm::optional_sequence, DType::bool_}));
  EXPECT_FALSE(registry().find("", "Identity", 13)->input(0)->types->contains({TypeForm::sequence, DType::float32}));
  EXPECT_TRUE(registry()
                  .find("ai.onnx.ml", "ZipMap", 1)
                  ->output(0)
                  ->types->contains({TypeForm::sequence_map_string, DType::float32}));
  EXPECT_TRUE(registry().find("", "Cast", 28)->input(0)->types->contains_tensor(DType::int2));
}

TEST(OpsetRegistry, SuggestsWhatAnUnknownNameMayMean) {
  EXPECT_EQ(registry().explain_missing("", "Softmx", 13),
            "no operator 'Softmx' in domain ai.onnx; did you mean Softmax?");
  EXPECT_EQ(registry().suggestions("", "relu").front(), "Relu");
  EXPECT_EQ(registry().suggestions("", "FusedMatMul").front(), "com.microsoft.FusedMatMul");
  EXPECT_EQ(registry().explain_missing("", "Gelu", 13),
            "operator 'Gelu' exists in ai.onnx from opset 20 on, but the model imports opset 13");
  EXPECT_EQ(registry().explain_missing("com.example", "Frobnicate", 1), "unknown operator domain 'com.example'");
  EXPECT_NE(registry().explain_missing("com.microsoft.nchwc", "Conv", 1).find("ORT_ENABLE_EXTENDED"),
            std::string::npos);
  EXPECT_TRUE(registry().suggestions("", std::string(1 << 20, 'R')).empty());
  EXPECT_TRUE(registry().suggestions("", "").empty());
}

TEST(OpsetRegistry, PrintsASignature) {
  EXPECT_EQ(signature_text(*registry().find("", "Clip", 6)),
            "Clip-6 (ai.onnx)\n"
            "inputs:\n  input: T\n"
            "outputs:\n  output: T\n"
            "attributes:\n  max: float = 3.4028235e+38\n  min: float = -3.4028235e+38\n"
            "types:\n  T: tensor(float|float16|double)\n");
}

TEST(OpsetParser, RefusesMalformedTables) {
  EXPECT_EQ(refusal("op Add 1\n"), "operator table line 1: operator before the domain: 'Add 1'");
  EXPECT_EQ(refusal(""), "operator table without a domain line");
  const auto refused = [](std::string_view body) { return refusal("domain d 3\n" + std::string(body)); };
  EXPECT_NE(refused("op A 1\n  in X T\n").find("neither a type nor a type parameter: 'T'"), std::string::npos);
  EXPECT_NE(refused("op A 4\nop B 1\n").find("newer than its domain: 'A-4'"), std::string::npos);
  EXPECT_NE(refused("op B 1\nop A 1\nop C 1\n").find("out of order at 'A-1'"), std::string::npos);
  EXPECT_NE(refused("op A 1\nop A 1\n").find("out of order at 'A-1'"), std::string::npos);
  EXPECT_NE(refused("op A 1\n  attr a int = 1x\n").find("line 3: not a number: '1x'"), std::string::npos);
  EXPECT_NE(refused("op A 1\n  attr a strings = \"x\"\n").find("not a list"), std::string::npos);
  EXPECT_NE(refused("op A 1\n  type T = @unknown\n").find("unknown set '@unknown'"), std::string::npos);
  EXPECT_NE(refused("op A 1\n  type T = bag(float)\n").find("unknown form of type 'bag(float)'"), std::string::npos);
  EXPECT_NE(refused("op A 1 shiny\n").find("unknown flag 'shiny'"), std::string::npos);
  EXPECT_NE(refused("  in X T\n").find("before any operator"), std::string::npos);
  EXPECT_NE(refused("domain e 1\n").find("a second domain"), std::string::npos);
}

TEST(TypeSet, ReadsAndWritesTheTypesOfSchemas) {
  for (const std::string_view text :
       {"tensor(float)", "seq(tensor(string))", "optional(tensor(bool))", "map(int64,double)",
        "optional(seq(tensor(int4)))", "seq(map(string,float))", "sparse_tensor(uint8)"}) {
    const auto type = schema_type_from_string(text);
    ASSERT_TRUE(type.has_value()) << text;
    EXPECT_EQ(to_string(*type), text);
  }
  for (const std::string_view text : {"", "tensor()", "tensor(float", "tensor(float99)", "seq(float)", "T"}) {
    EXPECT_FALSE(schema_type_from_string(text).has_value()) << text;
  }
  TypeSet types;
  EXPECT_TRUE(types.empty());
  types.insert(TypeForm::tensor, element_bit(DType::float32) | element_bit(DType::int8));
  types.insert({TypeForm::sequence, DType::int8});
  EXPECT_EQ(to_string(types), "tensor(float|int8), seq(tensor(int8))");
  EXPECT_EQ(types.single(), std::nullopt);
  TypeSet narrower;
  narrower.insert({TypeForm::sequence, DType::int8});
  types &= narrower;
  EXPECT_EQ(types, narrower);
}

}  // namespace
}  // namespace parallax
