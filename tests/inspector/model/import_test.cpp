// SPDX-License-Identifier: Apache-2.0
// How files become graphs: names, order, bodies, display names, forms, payloads.
#include "inspector/model/io/import.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "inspector/base/hash.h"
#include "inspector/base/mapped_file.h"
#include "inspector/model/io/export.h"
#include "inspector/tensor/elements.h"
#include "tests/inspector/model/model_files.h"

namespace parallax {
namespace {

const ValueDef& value_named(const Graph& graph, std::string_view name) {
  const ValueId id = graph.find_value(name);
  EXPECT_NE(id, kNoValue) << name;
  return graph.values.at(static_cast<size_t>(id));
}

std::vector<std::string> names_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  for (ValueId id : ids) names.push_back(id == kNoValue ? "" : graph.values.at(static_cast<size_t>(id)).name);
  return names;
}

std::string float_value(const std::string& kind, const std::string& name) {
  return kind + " { name: '" + name + "' type { tensor_type { elem_type: 1 } } }\n";
}

const std::string kIo = float_value("input", "x") + float_value("output", "y");

TEST(Import, LinksProducersReadersAndIndices) {
  const auto model = model_from_text("graph { " + kIo + R"(
    initializer { name: 'w' dims: 1 data_type: 1 float_data: 2 }
    node { input: 'x' input: 'w' output: 'h' op_type: 'Mul' }
    node { input: 'h' input: 'h' output: 'y' op_type: 'Add' } })");
  const Graph& graph = model->graph;
  EXPECT_EQ(value_named(graph, "x").input_index, 0);
  EXPECT_EQ(value_named(graph, "w").initializer_index, 0);
  EXPECT_EQ(value_named(graph, "h").producer, 0);
  EXPECT_EQ(value_named(graph, "h").readers, (std::vector<NodeId>{1}));
  EXPECT_TRUE(value_named(graph, "y").is_graph_output);
  EXPECT_EQ(names_of(graph, graph.nodes[0].inputs), (std::vector<std::string>{"x", "w"}));
  EXPECT_EQ(graph.nodes[0].opset_version, 20);
  EXPECT_EQ(versioned_op_name(graph.nodes[0]), "Mul-14");
  EXPECT_EQ(to_string(value_named(graph, "w").type), "float32[1]");
}

TEST(Import, KeepsDimensionNames) {
  const auto model = model_from_text(R"(graph {
    input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_param: 'batch' } dim { dim_value: 3 } dim {} } } } }
    output { name: 'x' type { tensor_type { elem_type: 1 } } } })");
  EXPECT_EQ(to_string(model->graph.values[0].type), "float32[batch,3,?]");
}

TEST(Import, OmittedInputsAndOutputsHaveNoValue) {
  const auto model = model_from_text("graph { " + kIo + R"(
    initializer { name: 'high' data_type: 1 float_data: 2 }
    node { input: 'x' input: '' input: 'high' output: 'c' op_type: 'Clip' }
    node { input: 'c' output: 'y' output: '' op_type: 'Dropout' } })");
  EXPECT_EQ(model->graph.nodes[0].inputs[1], kNoValue);
  EXPECT_EQ(model->graph.nodes[1].outputs[1], kNoValue);
}

TEST(Import, DisplayNamesAreUnique) {
  const auto model = model_from_text("graph { " + kIo + R"(
    node { input: 'x' output: 'a' op_type: 'Relu' name: 'n' }
    node { input: 'a' output: 'b' op_type: 'Relu' }
    node { input: 'b' output: 'c' op_type: 'Relu' name: 'n' }
    node { input: 'c' output: 'd' op_type: 'Relu' name: 'Relu_1' }
    node { input: 'd' output: 'y' op_type: 'Relu' name: 'n' } })");
  std::vector<std::string> names;
  for (const Node& node : model->graph.nodes) names.push_back(node.display_name);
  EXPECT_EQ(names, (std::vector<std::string>{"n", "Relu_1", "n#2", "Relu_1#2", "n#3"}));
  EXPECT_EQ(model->graph.find_node("n#2"), 2);
}

TEST(Import, OrderIsFileOrderWhereThatIsValid) {
  const auto model = model_from_text("graph { " + kIo + float_value("output", "b") + R"(
    node { input: 'x' output: 'a' op_type: 'Relu' }
    node { input: 'x' output: 'b' op_type: 'Relu' }
    node { input: 'a' output: 'y' op_type: 'Relu' } })");
  EXPECT_EQ(model->graph.order, (std::vector<NodeId>{0, 1, 2}));
}

TEST(Import, NodesOutOfOrderAreSorted) {
  const auto model = model_from_text("graph { " + kIo + R"(
    node { input: 'b' output: 'y' op_type: 'Relu' }
    node { input: 'x' output: 'a' op_type: 'Relu' }
    node { input: 'a' output: 'b' op_type: 'Relu' } })");
  EXPECT_EQ(model->graph.order, (std::vector<NodeId>{1, 2, 0}));
}

// The inner If reads 'x' and 'late' of the main graph through the outer one, and stands before 'late' in the file.
constexpr const char* kNested = R"(graph {
  input { name: 'c' type { tensor_type { elem_type: 9 shape {} } } }
  input { name: 'x' type { tensor_type { elem_type: 1 } } }
  output { name: 'y' type { tensor_type { elem_type: 1 } } }
  node { input: 'c' output: 'y' op_type: 'If' name: 'outer'
    attribute { name: 'then_branch' type: GRAPH g {
      node { input: 'c' output: 't' op_type: 'If' name: 'inner'
        attribute { name: 'then_branch' type: GRAPH g { node { input: 'x' input: 'late' output: 'deep' op_type: 'Add' } output { name: 'deep' } } }
        attribute { name: 'else_branch' type: GRAPH g { node { input: 'late' output: 'deep' op_type: 'Neg' } output { name: 'deep' } } } }
      output { name: 't' } } }
    attribute { name: 'else_branch' type: GRAPH g { node { input: 'x' output: 'e' op_type: 'Relu' } output { name: 'e' } } } }
  node { input: 'x' output: 'late' op_type: 'Exp' } })";

TEST(Import, BodiesCaptureValuesThroughEveryGraphBetween) {
  const auto model = model_from_text(kNested);
  const Graph& graph = model->graph;
  const auto& outer = std::get<std::shared_ptr<Graph>>(find_attribute(graph.nodes[0], "then_branch")->value);
  const auto& inner = std::get<std::shared_ptr<Graph>>(find_attribute(outer->nodes[0], "then_branch")->value);
  EXPECT_EQ(names_of(*outer, outer->outer_values), (std::vector<std::string>{"c", "x", "late"}));
  EXPECT_EQ(names_of(*inner, inner->outer_values), (std::vector<std::string>{"x", "late"}));
  EXPECT_TRUE(value_named(*inner, "x").is_outer);
  EXPECT_EQ(value_named(*inner, "x").type.dtype, DType::float32);
  EXPECT_EQ(value_named(*outer, "late").readers, (std::vector<NodeId>{0}));
}

TEST(Import, WhatABodyReadsComesFirstInTheOrder) {
  const auto model = model_from_text(kNested);
  EXPECT_EQ(model->graph.order, (std::vector<NodeId>{1, 0}));
  EXPECT_EQ(value_named(model->graph, "late").readers, (std::vector<NodeId>{0}));
}

TEST(Import, ABodyMayReturnAnOuterValue) {
  const auto model = model_from_text(R"(graph {
    input { name: 'c' type { tensor_type { elem_type: 9 shape {} } } } input { name: 'x' type { tensor_type { elem_type: 1 } } }
    output { name: 'y' type { tensor_type { elem_type: 1 } } }
    node { input: 'c' output: 'y' op_type: 'If'
      attribute { name: 'then_branch' type: GRAPH g { output { name: 'x' } } }
      attribute { name: 'else_branch' type: GRAPH g { node { input: 'x' output: 'e' op_type: 'Neg' } output { name: 'e' } } } } })");
  const auto& branch = std::get<std::shared_ptr<Graph>>(find_attribute(model->graph.nodes[0], "then_branch")->value);
  EXPECT_TRUE(branch->values.at(static_cast<size_t>(branch->outputs[0])).is_outer);
}

TEST(Import, AnInitializerMayBeAnInputsDefault) {
  const auto model = model_from_text("graph { " + kIo + float_value("input", "w") + R"(
    initializer { name: 'w' dims: 2 data_type: 1 float_data: 1 float_data: 2 }
    node { input: 'x' input: 'w' output: 'y' op_type: 'Mul' } })");
  const ValueDef& weight = value_named(model->graph, "w");
  EXPECT_EQ(weight.input_index, 1);
  EXPECT_EQ(weight.initializer_index, 0);
}

// Converters keep the old listing when they change a weight's type; the weight itself is what runs.
TEST(Import, AListingThatContradictsAWeightIsOutOfDate) {
  const auto model = model_from_text("graph { " + kIo + R"(
    value_info { name: 'w' type { tensor_type { elem_type: 10 shape { dim { dim_value: 2 } } } } }
    initializer { name: 'w' dims: 2 data_type: 1 float_data: 1 float_data: 2 }
    node { input: 'x' input: 'w' output: 'y' op_type: 'Mul' } })");
  EXPECT_EQ(to_string(value_named(model->graph, "w").type), "float32[2]");
  EXPECT_TRUE(check_model(*model).empty());
}

// ---- Payloads ------------------------------------------------------------------------------------------------------

std::string tensor_model(const std::string& tensor) {
  return "graph { input { name: 'x' type { tensor_type { elem_type: 1 } } } output { name: 'x' type { tensor_type { "
         "elem_type: 1 } } } "
         "initializer { name: 't' " +
         tensor + " } }";
}

// The elements of a tensor given as text, as text.
std::string elements(const std::string& tensor) {
  const auto model = model_from_text(tensor_model(tensor));
  if (model->graph.initializers.empty()) return "";
  const Tensor& made = model->graph.initializers[0].tensor;
  std::string text(name_of(made.dtype()));
  text += made.shape().to_string() + ":";
  for (int64_t i = 0; i < made.element_count(); ++i) text += " " + element_to_string(made.view(), i);
  return text;
}

TEST(Payload, EveryTypedFieldIsRead) {
  EXPECT_EQ(elements("dims: 2 data_type: 1 float_data: 1.5 float_data: -2"), "float32[2]: 1.5 -2");
  EXPECT_EQ(elements("dims: 1 data_type: 2 int32_data: 255"), "uint8[1]: 255");
  EXPECT_EQ(elements("dims: 1 data_type: 3 int32_data: -128"), "int8[1]: -128");
  EXPECT_EQ(elements("dims: 1 data_type: 4 int32_data: 65535"), "uint16[1]: 65535");
  EXPECT_EQ(elements("dims: 1 data_type: 5 int32_data: -32768"), "int16[1]: -32768");
  EXPECT_EQ(elements("data_type: 6 int32_data: -7"), "int32[]: -7");
  EXPECT_EQ(elements("data_type: 7 int64_data: -8"), "int64[]: -8");
  EXPECT_EQ(elements("dims: 2 data_type: 8 string_data: 'a' string_data: ''"), "string[2]: \"a\" \"\"");
  EXPECT_EQ(elements("dims: 2 data_type: 9 int32_data: 1 int32_data: 0"), "bool[2]: true false");
  EXPECT_EQ(elements("data_type: 10 int32_data: 15872"), "float16[]: 1.5");
  EXPECT_EQ(elements("data_type: 11 double_data: 0.1"), "float64[]: 0.1");
  EXPECT_EQ(elements("data_type: 12 uint64_data: 4294967295"), "uint32[]: 4294967295");
  EXPECT_EQ(elements("data_type: 13 uint64_data: 18446744073709551615"), "uint64[]: 18446744073709551615");
  EXPECT_EQ(elements("data_type: 14 float_data: 1 float_data: -2"), "complex64[]: (1,-2)");
  EXPECT_EQ(elements("dims: 2 data_type: 15 double_data: 1 double_data: -2 double_data: 3 double_data: 4"),
            "complex128[2]: (1,-2) (3,4)");
  EXPECT_EQ(elements("data_type: 16 int32_data: 16320"), "bfloat16[]: 1.5");
  EXPECT_EQ(elements("data_type: 17 int32_data: 60"), "float8e4m3fn[]: 1.5");
  EXPECT_EQ(elements("dims: 3 data_type: 21 int32_data: 33 int32_data: 3"), "uint4[3]: 1 2 3");
  EXPECT_EQ(elements("dims: 3 data_type: 22 int32_data: 17 int32_data: 1"), "int4[3]: 1 1 1");
  EXPECT_EQ(elements("dims: 5 data_type: 26 int32_data: 228 int32_data: 1"), "int2[5]: 0 1 -2 -1 1");
}

TEST(Payload, RawDataIsReadAndEmptyTensorsNeedNone) {
  EXPECT_EQ(elements("dims: 2 data_type: 5 raw_data: '\\001\\000\\377\\377'"), "int16[2]: 1 -1");
  EXPECT_EQ(elements("dims: 2 dims: 0 data_type: 1"), "float32[2,0]:");
}

// Writers put a byte of two int4 as a signed number, an uint8 of 200 as -56, and any number but 0 for true.
TEST(Payload, LowBitsOfWideEntriesCount) {
  EXPECT_EQ(elements("dims: 2 data_type: 22 int32_data: -115"), "int4[2]: -3 -8");
  EXPECT_EQ(elements("dims: 2 data_type: 2 int32_data: -56 int32_data: 7"), "uint8[2]: 200 7");
  EXPECT_EQ(elements("dims: 1 data_type: 3 int32_data: 200"), "int8[1]: -56");
  EXPECT_EQ(elements("dims: 3 data_type: 9 int32_data: 2 int32_data: 0 int32_data: -1"), "bool[3]: true false true");
}

// The bits after the last element mean nothing; two equal tensors must not differ by them.
TEST(Payload, StrayBitsOfPackedTypesAreCleared) {
  const auto model = model_from_text(tensor_model("dims: 1 data_type: 21 raw_data: '\\365'"));
  EXPECT_EQ(model->graph.initializers[0].tensor.as<uint8_t>()[0], 5);
}

TEST(Payload, WrongPayloadsAreRefused) {
  const auto refuses = [](const std::string& tensor, const std::string& reason) {
    const std::string message = import_error(tensor_model(tensor));
    EXPECT_NE(message.find("'test.textproto': initializer 't': "), std::string::npos) << message;
    EXPECT_NE(message.find(reason), std::string::npos) << message;
  };
  refuses("dims: 3 data_type: 1 float_data: 1", "holds 1 entries where float32[3] needs 3");
  refuses("dims: 3 data_type: 1 raw_data: '1234'", "holds 4 bytes where float32[3] needs 12");
  refuses("dims: 3 data_type: 1", "holds 0 entries where float32[3] needs 3");
  refuses("dims: 1 data_type: 3 int32_data: 256", "holds 256 at entry 0, which is no int8");
  refuses("dims: 1 data_type: 10 int32_data: 65536", "which is no float16");
  refuses("dims: 1 data_type: 9 raw_data: '\\007'", "bool of value 7");
  refuses("dims: 1 data_type: 1 float_data: 1 raw_data: '1234'", "more than one field");
  refuses("dims: -1 data_type: 1", "dimension -1 of a tensor's shape is negative");
  refuses("dims: 4611686018427387904 dims: 4 data_type: 1", "too large");
  refuses("dims: 1099511627776 data_type: 2 int32_data: 1", "holds 1 entries");
  refuses("dims: 1 float_data: 1", "has no element type");
  refuses("dims: 1 data_type: 27 raw_data: '1'", "FLOAT6E2M3");
  refuses("dims: 1 data_type: 77 raw_data: '1'", "element type 77");
  refuses("dims: 1 data_type: 8 raw_data: '1'", "strings cannot be in raw_data");
  refuses("dims: 1 data_type: 1 float_data: 1 segment { begin: 0 end: 1 }", "segment");
}

TEST(Payload, SparseInitializersAreChecked) {
  const auto with = [](const std::string& sparse) {
    return "graph { input { name: 'x' type { tensor_type { elem_type: 1 } } } output { name: 'x' type { tensor_type { "
           "elem_type: 1 } } } "
           "sparse_initializer { " +
           sparse + " } }";
  };
  const std::string values = "values { name: 's' dims: 2 data_type: 1 float_data: 5 float_data: 6 } ";
  const auto model = model_from_text(
      with(values + "indices { dims: 2 dims: 2 data_type: 7 int64_data: [0, 1, 1, 2] } dims: 2 dims: 3"));
  EXPECT_EQ(to_string(value_named(model->graph, "s").type), "float32[2,3]");
  EXPECT_EQ(value_named(model->graph, "s").sparse_initializer_index, 0);
  const auto refuses = [&](const std::string& rest, const std::string& reason) {
    const std::string message = import_error(with(values + rest));
    EXPECT_NE(message.find("sparse initializer 's'"), std::string::npos) << message;
    EXPECT_NE(message.find(reason), std::string::npos) << message;
  };
  refuses("indices { dims: 2 data_type: 7 int64_data: [0, 6] } dims: 2 dims: 3", "is outside its shape");
  refuses("indices { dims: 2 data_type: 7 int64_data: [-1, 2] } dims: 2 dims: 3", "is outside its shape");
  refuses("indices { dims: 2 data_type: 7 int64_data: [3, 3] } dims: 2 dims: 3", "must ascend");
  refuses("indices { dims: 3 data_type: 7 int64_data: [1, 2, 3] } dims: 2 dims: 3", "have shape [3]");
  refuses("indices { dims: 2 data_type: 6 int32_data: [1, 2] } dims: 2 dims: 3", "must be int64");
}

// ---- Forms and damage ----------------------------------------------------------------------------------------------

std::string error_of(std::string_view bytes, const std::string& name = "m.onnx") {
  const auto model = import_model(std::as_bytes(std::span(bytes)), "", name);
  return model.ok() ? "" : model.error().message;
}

TEST(Import, TextIsKnownByEndingOrByContents) {
  const std::string text = "# a comment\n ir_version: 8 graph { name: 'g' } opset_import { version: 17 }";
  EXPECT_EQ(error_of(text, "m.onnx"), "");
  EXPECT_EQ(error_of(text, "m.pbtxt"), "");
  EXPECT_NE(error_of("no text", "m.txt").find("line 1, column 4"), std::string::npos) << error_of("no text", "m.txt");
}

TEST(Import, DamagedBinariesSayWhere) {
  const auto model = model_from_text(kNested);
  const std::string whole = export_model_bytes(*model).take();
  EXPECT_EQ(error_of(whole), "");
  const std::string cut = error_of(std::string_view(whole).substr(0, whole.size() / 2));
  EXPECT_NE(cut.find("'m.onnx' is damaged or no ModelProto: graph"), std::string::npos) << cut;
  EXPECT_NE(cut.find("bytes where"), std::string::npos) << cut;
  EXPECT_EQ(error_of(""), "'m.onnx' is empty");
  EXPECT_NE(error_of(std::string(64, '\xff')), "");
}

// 10,000 graphs inside each other, as bytes: the lengths are written from the inside out.
std::string deeply_nested(int depth) {
  const auto field = [](int number, const std::string& content) {
    std::string out(1, static_cast<char>(number << 3 | 2));
    for (size_t rest = content.size();; rest >>= 7) {
      out += static_cast<char>((rest & 0x7F) | (rest > 0x7F ? 0x80 : 0));
      if (rest <= 0x7F) break;
    }
    return out + content;
  };
  std::string graph;
  for (int i = 0; i < depth; ++i) graph = field(1, field(5, field(6, graph)));
  return field(7, graph);
}

TEST(Import, NestingWithoutEndIsRefused) {
  for (const int depth : {300, 10'000}) {
    const std::string message = error_of(deeply_nested(depth));
    EXPECT_NE(message.find("deep"), std::string::npos) << message;
  }
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "graph { node { attribute { g { node { attribute { ";
  EXPECT_NE(error_of(text, "m.textproto"), "");
  std::string nested = "ir_version: 8 graph { ";
  for (int i = 0; i < 10'000; ++i) nested += "node { attribute { g { ";
  EXPECT_NE(error_of(nested, "m.textproto").find("deep"), std::string::npos) << error_of(nested, "m.textproto");
}

TEST(Import, NamesInMessagesArePrintable) {
  const std::string message = import_error("graph { node { op_type: 'Bad\\377\\n' } }");
  EXPECT_NE(message.find("Bad\xEF\xBF\xBD\\n"), std::string::npos) << message;
}

// Files are read in windows of some MiB: tensors cross their borders, and one is larger than a window.
TEST(Import, LargeWeightsInsideTheFileComeBackBitForBit) {
  const TemporaryFolder folder;
  Model model;
  model.ir_version = 10;
  model.opset_imports = {{"", 20}};
  model.graph.name = "large";
  for (const int64_t count : {700'001, 1'500'003, 5'000'002}) {
    StoredTensor weight;
    weight.name = "w" + std::to_string(count);
    weight.tensor = Tensor::allocate(DType::int32, Shape{count}).take();
    int32_t next = static_cast<int32_t>(count);
    for (int32_t& element : weight.tensor.mutable_as<int32_t>()) element = next++;
    ValueDef value;
    value.name = weight.name;
    model.graph.values.push_back(value);
    model.graph.initializer_values.push_back(static_cast<ValueId>(model.graph.values.size()) - 1);
    model.graph.initializers.push_back(std::move(weight));
  }
  ASSERT_TRUE(export_model(model, folder.file("m.onnx")).ok());
  const auto imported = import_model(folder.file("m.onnx"));
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  for (size_t index = 0; index < model.graph.initializers.size(); ++index) {
    const auto wanted = model.graph.initializers[index].tensor.as<int32_t>();
    const auto given = (*imported)->graph.initializers.at(index).tensor.as<int32_t>();
    EXPECT_TRUE(std::ranges::equal(wanted, given)) << index;
  }
  const std::string bytes = read_file(folder.file("m.onnx")).take();
  EXPECT_EQ(model_sha256(**imported), sha256_hex(bytes.data(), bytes.size()));
}

TEST(Import, TheHashIsThatOfTheFile) {
  const TemporaryFolder folder;
  const std::string text = "ir_version: 8 graph { name: 'g' } opset_import { version: 17 }";
  write_bytes(folder.file("m.txt"), text);
  const auto model = import_model(folder.file("m.txt"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model_sha256(**model), sha256_hex(text.data(), text.size()));
  Model changed = **model;
  changed.file = nullptr;
  changed.graph.name = "other";
  const std::string exported = export_model_bytes(changed).take();
  EXPECT_EQ(model_sha256(changed), sha256_hex(exported.data(), exported.size()));
}

}  // namespace
}  // namespace parallax
