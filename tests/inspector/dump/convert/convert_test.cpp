// SPDX-License-Identifier: Apache-2.0
// Import from and export to each kind of tensor file, with and without a model and a map.
#include "inspector/dump/convert/convert.h"

#include "inspector/dump/tensor_files/npy.h"
#include "inspector/model/io/export.h"
#include "tests/inspector/dump/support.h"

namespace parallax::test {
namespace {

// y = x + w
Model add_model() {
  Model model;
  model.ir_version = 10;
  model.opset_imports = {{"", 21}};
  Graph& graph = model.graph;
  graph.name = "g";
  graph.values.resize(3);
  const TypeInfo type = type_of(Value(Tensor::zeros(DType::float32, {2, 3}).take()));
  for (size_t index = 0; index < 3; ++index) graph.values[index].type = type;
  graph.values[0].name = "x";
  graph.values[1].name = "w";
  graph.values[2].name = "y";
  graph.inputs = {0};
  graph.outputs = {2};
  StoredTensor weight;
  weight.name = "w";
  weight.tensor = random_tensor(DType::float32, {2, 3}, 5);
  graph.initializers.push_back(std::move(weight));
  graph.initializer_values = {1};
  Node node;
  node.name = "adder";
  node.op_type = "Add";
  node.inputs = {0, 1};
  node.outputs = {2};
  graph.nodes.push_back(node);
  return model;
}

class Convert : public ::testing::Test {
 protected:
  // A dump with an input, a weight, an output, values in frames, a sequence and a bfloat16 tensor.
  std::string make_dump() {
    const std::string path = folder_ / "a.plx";
    auto writer = DumpWriter::create(path, {}).take();
    Producer producer(*writer);
    EXPECT_TRUE(producer.begin().ok());
    producer.value_info("x").role = ValueInfo::Role::input;
    producer.value_info("w").role = ValueInfo::Role::initializer;
    producer.value_info("y").is_graph_output = true;
    EXPECT_TRUE(producer.show("x", x_).ok());
    EXPECT_TRUE(producer.show("w", w_).ok());
    producer.frames().push({Frame::Kind::body, "loop", 2});
    EXPECT_TRUE(producer.show("inner/1", inner_).ok());
    producer.frames().pop();
    EXPECT_TRUE(producer.show("half", half_).ok());
    EXPECT_TRUE(producer.show("list", SequenceValue{TypeInfo::tensor(DType::float32), {Value(x_)}}).ok());
    EXPECT_TRUE(producer.show("y", y_).ok());
    EXPECT_TRUE(writer->finish().ok());
    return path;
  }

  void expect_value(const DumpReader& reader, const std::string& path, const Tensor& tensor) {
    EXPECT_TRUE(same_bits(load(reader, path), Value(tensor))) << path;
  }

  TemporaryFolder folder_;
  Tensor x_ = random_tensor(DType::float32, {2, 3}, 1);
  Tensor w_ = random_tensor(DType::int64, {4}, 2);
  Tensor inner_ = random_tensor(DType::float64, {}, 3);
  Tensor half_ = random_tensor(DType::bfloat16, {7}, 4);
  Tensor y_ = random_tensor(DType::bool_, {5}, 6);
};

TEST_F(Convert, EveryKindComesBackWithItsPaths) {
  const std::string dump = make_dump();
  const struct {
    std::string destination;
    bool holds_bfloat16;
  } kinds[] = {
      {"out.npz", false}, {"out.safetensors", true}, {"out.onnx", true}, {"out.textproto", true}, {"arrays", false}};
  for (const auto& kind : kinds) {
    SCOPED_TRACE(kind.destination);
    const auto exported = export_dump(dump, folder_ / kind.destination);
    ASSERT_OK(exported);
    EXPECT_EQ(exported->values, kind.holds_bfloat16 ? 5 : 4);
    EXPECT_EQ(exported->notes.size(), kind.holds_bfloat16 ? 1U : 2U) << "the sequence, and bfloat16, are named";
    const auto imported = import_dump({folder_ / kind.destination, "", ""}, folder_ / "back.plx");
    ASSERT_OK(imported);
    EXPECT_EQ(imported->values, exported->values);
    const auto reader = open_dump(folder_ / "back.plx");
    expect_value(*reader, "x", x_);
    expect_value(*reader, "w", w_);
    expect_value(*reader, "loop.body[2]//inner/1", inner_);
    expect_value(*reader, "y", y_);
    if (kind.holds_bfloat16) expect_value(*reader, "half", half_);
    EXPECT_TRUE(check_dump(folder_ / "back.plx")->empty());
    EXPECT_EQ(reader->executions()[0].executor, "import");
  }
}

TEST_F(Convert, DataSetsHoldInputsAndOutputs) {
  const std::string dump = make_dump();
  const auto exported = export_dump(dump, folder_ / "test_data_set_0");
  ASSERT_OK(exported);
  EXPECT_EQ(exported->values, 2);
  const auto input = read_value_file(folder_ / "test_data_set_0/input_0.pb");
  ASSERT_OK(input);
  EXPECT_EQ(input->name, "x");
  ASSERT_OK(import_dump({folder_ / "test_data_set_0", "", ""}, folder_ / "back.plx"));
  const auto reader = open_dump(folder_ / "back.plx");
  expect_value(*reader, "x", x_);
  expect_value(*reader, "y", y_);
  EXPECT_EQ(reader->entries()[0].role, ValueInfo::Role::input);
  EXPECT_TRUE(reader->entries()[1].is_graph_output);
}

TEST_F(Convert, AModelGivesGraphNodesAndRoles) {
  const std::string model = folder_ / "m.onnx";
  ASSERT_OK(export_model(add_model(), model));
  const std::vector<NamedValue> values = {{"y", Value(x_)}, {"w", Value(x_)}, {"stranger", Value(x_)}};
  ASSERT_OK(write_npz(folder_ / "v.npz", values));
  const auto report = import_dump({folder_ / "v.npz", model, ""}, folder_ / "v.plx");
  ASSERT_OK(report);
  EXPECT_EQ(report->values, 3);
  EXPECT_EQ(report->matched, 2);
  ASSERT_EQ(report->notes.size(), 1U);
  EXPECT_NE(report->notes[0].find("stranger"), std::string::npos);

  const auto reader = open_dump(folder_ / "v.plx");
  const DumpEntry& y = reader->entries()[static_cast<size_t>(reader->find("y"))];
  EXPECT_EQ(y.node, "adder");
  EXPECT_EQ(y.op, "Add");
  EXPECT_TRUE(y.is_graph_output);
  EXPECT_EQ(reader->entries()[static_cast<size_t>(reader->find("w"))].role, ValueInfo::Role::initializer);
  ASSERT_EQ(reader->graphs().size(), 1U);
  const auto graph = reader->model(0);
  ASSERT_OK(graph);
  EXPECT_EQ((*graph)->graph.nodes[0].op_type, "Add");
}

std::vector<std::string> paths_of(const DumpReader& reader) {
  std::vector<std::string> paths;
  for (const DumpEntry& entry : reader.entries()) paths.push_back(entry.path);
  return paths;
}

TEST_F(Convert, ValuesOfAModelComeInTheOrderOfItsExecution) {
  write_contents(folder_ / "m.textproto", R"(ir_version: 8 opset_import { version: 17 } graph { name: "g"
    node { op_type: "Neg" name: "first" input: "x" output: "z" }
    node { op_type: "Loop" name: "loop" input: "n" input: "" input: "z" output: "a" attribute { name: "body" type: GRAPH g {
      name: "b" node { op_type: "Identity" input: "c" output: "d" } node { op_type: "Exp" input: "u" output: "t" }
      node { op_type: "Neg" input: "t" output: "s" }
      input { name: "i" } input { name: "c" } input { name: "u" } output { name: "d" } output { name: "s" } } } }
    initializer { name: "n" data_type: 7 int64_data: 2 }
    input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 3 } } } } }
    output { name: "a" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 3 } } } } } })");
  const std::vector<std::string> expected = {
      "x", "n", "z", "loop.body[0]//t", "loop.body[0]//s", "loop.body[1]//t", "loop.body[1]//s", "a", "after", "also"};
  std::vector<NamedValue> values;
  for (const size_t index : {8U, 9U, 7U, 5U, 3U, 6U, 4U, 2U, 1U, 0U}) values.push_back({expected[index], Value(x_)});
  ASSERT_OK(write_npz(folder_ / "v.npz", values));
  ASSERT_OK(import_dump({folder_ / "v.npz", folder_ / "m.textproto", ""}, folder_ / "v.plx"));
  EXPECT_EQ(paths_of(*open_dump(folder_ / "v.plx")), expected);
  ASSERT_OK(import_dump({folder_ / "v.npz", "", ""}, folder_ / "v.plx"));
  EXPECT_EQ(paths_of(*open_dump(folder_ / "v.plx")).front(), "after") << "without a model the origin's order stays";
}

TEST_F(Convert, NamesStayDifferentOrAreRefused) {
  const std::vector<NamedValue> values = {{"a/b", Value(x_)}, {"a%2Fb", Value(w_)}, {"x%2Fy", Value(y_)}};
  ASSERT_OK(write_npz(folder_ / "v.npz", values));
  ASSERT_OK(import_dump({folder_ / "v.npz", "", ""}, folder_ / "v.plx"));
  const auto reader = open_dump(folder_ / "v.plx");
  expect_value(*reader, "a/b", x_);
  expect_value(*reader, "a%252Fb", w_);
  expect_value(*reader, "x%252Fy", y_);
  // An export comes back under the same paths.
  ASSERT_OK(export_dump(folder_ / "v.plx", folder_ / "arrays"));
  ASSERT_OK(import_dump({folder_ / "arrays", "", ""}, folder_ / "again.plx"));
  expect_value(*open_dump(folder_ / "again.plx"), "a%252Fb", w_);

  ASSERT_OK(write_npz(folder_ / "same.npz", std::vector<NamedValue>{{"a//b", Value(x_)}, {"a%2F%2Fb", Value(w_)}}));
  const auto refused = import_dump({folder_ / "same.npz", "", ""}, folder_ / "same.plx");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(exit_code(refused.error().code), 3);
  EXPECT_NE(refused.error().message.find("'a//b' and 'a%2F%2Fb'"), std::string::npos) << refused.error().message;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "same.plx"));
  ASSERT_OK(write_npz(folder_ / "none.npz", std::vector<NamedValue>{{"", Value(x_)}}));
  EXPECT_EQ(exit_code(import_dump({folder_ / "none.npz", "", ""}, folder_ / "none.plx").error().code), 3);
  write_contents(folder_ / "map.json", R"({"a/b": "x", "x%2Fy": "x"})");
  EXPECT_EQ(import_dump({folder_ / "v.npz", "", folder_ / "map.json"}, folder_ / "w.plx").error().code,
            ErrorCode::usage);
}

TEST_F(Convert, ASequenceWithoutAModelSaysWhatIsMissing) {
  std::filesystem::create_directory(folder_ / "set");
  const SequenceValue list{TypeInfo::tensor(DType::float32), {Value(x_), Value(y_)}};
  ASSERT_OK(write_value_file(folder_ / "set/input_0.pb", {"list", list}));
  const auto refused = import_dump({folder_ / "set", "", ""}, folder_ / "s.plx");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("only --model can say so"), std::string::npos) << refused.error().message;
  EXPECT_EQ(refused.error().code, ErrorCode::usage);  // the file itself is sound
}

TEST_F(Convert, TheModelNamesTheFilesOfADataSet) {
  const std::string model = folder_ / "m.onnx";
  ASSERT_OK(export_model(add_model(), model));
  std::filesystem::create_directory(folder_ / "set");
  ASSERT_OK(write_value_file(folder_ / "set/input_0.pb", {"", Value(x_)}));
  ASSERT_OK(write_value_file(folder_ / "set/output_0.pb", {"elsewhere", Value(x_)}));
  ASSERT_OK(import_dump({folder_ / "set", model, ""}, folder_ / "s.plx"));
  const auto reader = open_dump(folder_ / "s.plx");
  expect_value(*reader, "x", x_);
  expect_value(*reader, "y", x_);
}

TEST_F(Convert, AMapRenamesAndIsHeldAgainstTheOrigin) {
  const std::vector<NamedValue> values = {{"model.layers.0.out", Value(x_)}, {"other", Value(w_)}};
  ASSERT_OK(write_safetensors(folder_ / "v.safetensors", values));
  write_contents(folder_ / "map.json", R"({"model.layers.0.out": "step[1]//add_3"})");
  ASSERT_OK(import_dump({folder_ / "v.safetensors", "", folder_ / "map.json"}, folder_ / "v.plx"));
  const auto reader = open_dump(folder_ / "v.plx");
  expect_value(*reader, "step[1]//add_3", x_);
  expect_value(*reader, "other", w_);
  EXPECT_EQ(reader->entries()[static_cast<size_t>(reader->find("step[1]//add_3"))].name, "add_3");

  for (const std::string map : {R"({"absent": "y"})", R"({"other": "step[1//x"})", R"({"other": 3})", "[]", "{"}) {
    write_contents(folder_ / "map.json", map);
    const auto refused = import_dump({folder_ / "v.safetensors", "", folder_ / "map.json"}, folder_ / "w.plx");
    EXPECT_TRUE(!refused.ok() && refused.error().code == ErrorCode::usage) << map;
  }
}

TEST_F(Convert, UnknownKindsAndEmptyResultsAreUsageErrors) {
  const std::string dump = make_dump();
  const auto exported = export_dump(dump, folder_ / "out.csv");
  ASSERT_FALSE(exported.ok());
  EXPECT_EQ(exported.error().code, ErrorCode::usage);
  write_contents(folder_ / "v.csv", "1,2");
  EXPECT_EQ(import_dump({folder_ / "v.csv", "", ""}, folder_ / "v.plx").error().code, ErrorCode::usage);
  EXPECT_EQ(import_dump({folder_ / "missing.npz", "", ""}, folder_ / "v.plx").error().code, ErrorCode::io);
  std::filesystem::create_directory(folder_ / "hollow");
  EXPECT_EQ(import_dump({folder_ / "hollow", "", ""}, folder_ / "v.plx").error().code, ErrorCode::usage);

  DumpWriterOptions options;
  options.level = CaptureLevel::stats;
  auto writer = DumpWriter::create(folder_ / "stats.plx", options).take();
  Producer producer(*writer);
  ASSERT_OK(producer.begin());
  ASSERT_OK(producer.show("x", x_));
  ASSERT_OK(writer->finish());
  const auto nothing = export_dump(folder_ / "stats.plx", folder_ / "out.npz");
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace parallax::test
