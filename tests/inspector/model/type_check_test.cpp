// SPDX-License-Identifier: Apache-2.0
// Tests of the type check of single nodes: conflicts between inputs, and the types of outputs.
#include "inspector/model/type_check.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/model/opset/opset_registry.h"

namespace parallax {
namespace {

TypeInfo tensor(DType dtype) { return TypeInfo::tensor(dtype); }

// A node of `op` in force at `opset` with as many outputs as asked; its inputs are named a, b, c, ...
class NodeCase {
 public:
  NodeCase(std::string op, int64_t opset, std::vector<TypeInfo> inputs, size_t outputs = 1, std::string domain = "")
      : types_(std::move(inputs)) {
    node_.op_type = std::move(op);
    node_.domain = std::move(domain);
    node_.opset_version = opset;
    node_.schema = OpsetRegistry::standard().find(node_.domain, node_.op_type, opset);
    node_.outputs.assign(outputs, 0);
  }

  NodeCase& with(const std::string& name, Attribute::Value value) {
    Attribute attribute;
    attribute.name = name;
    attribute.value = std::move(value);
    node_.attributes.push_back(std::move(attribute));
    return *this;
  }

  NodeTypes check() const {
    static constexpr std::string_view kNames = "abcdefghijklmnopqrstuvwxyz";
    std::vector<TypedInput> inputs;
    for (size_t index = 0; index < types_.size(); ++index) inputs.push_back({kNames.substr(index, 1), &types_[index]});
    return check_node_types(node_, inputs);
  }
  std::string conflict() const { return check().conflict; }
  std::string output(size_t index = 0) const { return to_string(check().outputs.at(index)); }

 private:
  Node node_;
  std::vector<TypeInfo> types_;
};

TEST(TypeCheck, BindsOneTypeToAllThatShareIt) {
  EXPECT_EQ(NodeCase("Add", 13, {tensor(DType::float32), tensor(DType::float32)}).conflict(), "");
  EXPECT_EQ(NodeCase("Add", 13, {tensor(DType::float32), tensor(DType::float32)}).output(), "float32");
  EXPECT_EQ(NodeCase("Add", 13, {tensor(DType::float32), tensor(DType::int64)}).conflict(),
            "input 0 ('a') is float32 and input 1 ('b') is int64, but Add-13 wants one type for both (T)");
  EXPECT_EQ(NodeCase("Add", 13, {TypeInfo{}, tensor(DType::int64)}).output(), "int64");
  EXPECT_EQ(NodeCase("Add", 13, {TypeInfo{}, TypeInfo{}}).output(), "?");
  EXPECT_NE(NodeCase("Concat", 13, {tensor(DType::int8), tensor(DType::int8), tensor(DType::uint8)}).conflict(), "");
}

TEST(TypeCheck, RefusesATypeTheOperatorDoesNotTake) {
  EXPECT_EQ(NodeCase("Gemm", 6, {tensor(DType::bfloat16), tensor(DType::bfloat16), tensor(DType::bfloat16)}).conflict(),
            "input 0 ('a') is bfloat16, but Gemm-6 takes tensor(float|float16|double) there");
  EXPECT_EQ(NodeCase("Gemm", 13, {tensor(DType::bfloat16), tensor(DType::bfloat16)}).conflict(), "");
  EXPECT_NE(NodeCase("Reshape", 13, {tensor(DType::float32), tensor(DType::int32)}).conflict(), "");
  EXPECT_NE(NodeCase("Relu", 14, {TypeInfo::sequence(tensor(DType::float32))}).conflict(), "");
  EXPECT_NE(NodeCase("Relu", 14, {TypeInfo::sequence(TypeInfo::sequence(tensor(DType::float32)))}).conflict(), "");
  EXPECT_EQ(NodeCase("Identity", 16, {TypeInfo::sequence(tensor(DType::float32))}).output(), "seq(float32)");
}

TEST(TypeCheck, TakesOutputTypesFromAttributes) {
  const auto cast = [](int64_t opset, int64_t to) {
    return NodeCase("Cast", opset, {tensor(DType::float32)}).with("to", to);
  };
  EXPECT_EQ(cast(13, 7).output(), "int64");
  EXPECT_EQ(cast(19, 17).conflict(), "");
  EXPECT_NE(cast(13, 17).conflict().find("output 0 would be float8e4m3fn, but Cast-13 gives"), std::string::npos);
  EXPECT_EQ(cast(13, 99).conflict(), "attribute 'to' is 99, which is no element type");
  EXPECT_EQ(NodeCase("Cast", 1, {tensor(DType::float32)}).with("to", std::string("FLOAT16")).output(), "float16");
  EXPECT_EQ(NodeCase("EyeLike", 9, {tensor(DType::int32)}).output(), "int32");
  EXPECT_EQ(NodeCase("EyeLike", 9, {tensor(DType::int32)}).with("dtype", int64_t{11}).output(), "float64");
  EXPECT_EQ(NodeCase("RandomNormal", 1, {}).output(), "float32");
  EXPECT_EQ(NodeCase("ConstantOfShape", 9, {tensor(DType::int64)}).output(), "float32");
  StoredTensor value;
  value.tensor = Tensor::vector<int8_t>(std::vector<int8_t>{3});
  EXPECT_EQ(NodeCase("ConstantOfShape", 9, {tensor(DType::int64)}).with("value", value).output(), "int8");
  EXPECT_EQ(NodeCase("Constant", 13, {}).with("value", value).output(), "int8");
  EXPECT_EQ(NodeCase("Constant", 13, {}).with("value_ints", std::vector<int64_t>{1}).output(), "int64");
}

TEST(TypeCheck, TakesOutputTypesFromTheFormOfInputs) {
  const TypeInfo sequence = TypeInfo::sequence(tensor(DType::float16));
  EXPECT_EQ(NodeCase("SequenceAt", 11, {sequence, tensor(DType::int64)}).output(), "float16");
  EXPECT_EQ(NodeCase("SequenceConstruct", 11, {tensor(DType::int8), tensor(DType::int8)}).output(), "seq(int8)");
  EXPECT_EQ(NodeCase("SequenceEmpty", 11, {}).output(), "seq(float32)");
  EXPECT_EQ(NodeCase("OptionalGetElement", 18, {TypeInfo::optional(sequence)}).output(), "seq(float16)");
  EXPECT_EQ(NodeCase("OptionalGetElement", 18, {tensor(DType::bool_)}).output(), "bool");
  EXPECT_EQ(NodeCase("Optional", 15, {sequence}).output(), "optional(seq(float16))");
  EXPECT_EQ(NodeCase("ZipMap", 1, {tensor(DType::float32)}, 1, "ai.onnx.ml").output(), "seq(map(int64,float32))");
}

TEST(TypeCheck, KnowsQuantizationAndStatistics) {
  const TypeInfo f16 = tensor(DType::float16), f32 = tensor(DType::float32), i8 = tensor(DType::int8);
  EXPECT_EQ(NodeCase("QuantizeLinear", 13, {f32, f32}).output(), "uint8");
  EXPECT_EQ(NodeCase("QuantizeLinear", 13, {f32, f32, i8}).output(), "int8");
  EXPECT_EQ(NodeCase("QuantizeLinear", 21, {f32, f32}).with("output_dtype", int64_t{22}).output(), "int4");
  EXPECT_EQ(NodeCase("DequantizeLinear", 19, {i8, f16}).output(), "float16");
  EXPECT_EQ(NodeCase("LayerNormalization", 17, {f16, f16}, 3).output(0), "float16");
  EXPECT_EQ(NodeCase("LayerNormalization", 17, {f16, f16}, 3).output(2), "float32");
  EXPECT_EQ(NodeCase("Dropout", 13, {f16}, 2).output(1), "bool");
  EXPECT_EQ(NodeCase("TopK", 11, {f16, tensor(DType::int64)}, 2).output(1), "int64");
}

TEST(TypeCheck, EverySchemaAcceptsWhatItSaysItTakes) {
  for (const OpSchema& schema : OpsetRegistry::standard().all()) {
    std::vector<TypeInfo> inputs;
    for (const FormalParameter& parameter : schema.inputs) {
      for (int form = 0; form < static_cast<int>(kTypeFormCount); ++form) {
        const uint32_t elements = parameter.types->elements(static_cast<TypeForm>(form));
        if (elements == 0) continue;
        const DType first = static_cast<DType>(__builtin_ctz(elements));
        inputs.push_back(type_info_of({static_cast<TypeForm>(form), first}));
        EXPECT_EQ(schema_type_of(inputs.back()), (SchemaType{static_cast<TypeForm>(form), first}));
        break;
      }
    }
    const NodeCase node(std::string(schema.name), schema.since_version, inputs, schema.outputs.size(),
                        std::string(schema.domain));
    EXPECT_EQ(node.conflict(), "") << schema.domain << " " << schema.versioned_name();
  }
}

TEST(TypeCheck, ComparesTypesWithoutDimensions) {
  TypeInfo shaped = tensor(DType::float32);
  shaped.dims = {Dim{3, ""}};
  EXPECT_TRUE(types_agree(shaped, tensor(DType::float32)));
  EXPECT_FALSE(types_agree(shaped, tensor(DType::int32)));
  EXPECT_TRUE(types_agree(shaped, TypeInfo{}));
  EXPECT_FALSE(types_agree(shaped, TypeInfo::sequence(shaped)));
  EXPECT_FALSE(types_agree(TypeInfo::sequence(shaped), TypeInfo::sequence(tensor(DType::int8))));
  EXPECT_EQ(to_string(without_dims(TypeInfo::sequence(shaped))), "seq(float32)");
}

}  // namespace
}  // namespace parallax
