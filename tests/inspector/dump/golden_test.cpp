// SPDX-License-Identifier: Apache-2.0
// The golden dump of each format version must stay readable: every record kind, every element type, every kind of
// value.
#include <cstdlib>

#include "inspector/dump/format.h"
#include "tests/inspector/dump/support.h"

namespace parallax::test {
namespace {

const std::string kGolden = PX_SOURCE_DIR "/tests/inspector/dump/golden_v1.plx";

// y = x + w with a weight large enough to be left out, and a small one that is kept.
std::shared_ptr<const Model> golden_model() {
  auto model = std::make_shared<Model>();
  model->path = "golden.onnx";
  model->ir_version = 10;
  model->opset_imports = {{"", 21}};
  Graph& graph = model->graph;
  graph.name = "golden";
  const std::vector<std::pair<std::string, Shape>> values = {
      {"x", {20, 20}}, {"w", {20, 20}}, {"b", {20}}, {"y", {20, 20}}, {"z", {20, 20}}};
  for (const auto& [name, shape] : values) {
    ValueDef& value = graph.values.emplace_back();
    value.name = name;
    value.type = type_of(Value(Tensor::zeros(DType::float32, shape).take()));
  }
  graph.inputs = {0};
  graph.outputs = {4};
  for (const ValueId id : {1, 2}) {
    StoredTensor weight;
    weight.name = values[static_cast<size_t>(id)].first;
    weight.tensor = random_tensor(DType::float32, values[static_cast<size_t>(id)].second, static_cast<uint64_t>(id));
    graph.initializers.push_back(weight);
    graph.initializer_values.push_back(id);
  }
  for (const auto& [inputs, output] :
       {std::pair(std::vector<ValueId>{0, 1}, 3), std::pair(std::vector<ValueId>{3, 2}, 4)}) {
    Node& node = graph.nodes.emplace_back();
    node.op_type = "Add";
    node.inputs = inputs;
    node.outputs = {output};
  }
  return model;
}

std::vector<std::pair<std::string, Value>> golden_values() {
  std::vector<std::pair<std::string, Value>> values;
  for (const DTypeInfo& info : all_dtypes()) {
    values.emplace_back("of_" + std::string(info.name),
                        Value(random_tensor(info.dtype, {3, 5}, static_cast<uint64_t>(info.dtype))));
  }
  const Value floats(random_tensor(DType::float32, {2}, 100));
  const SequenceValue sequence{TypeInfo::tensor(DType::float32),
                               {floats, Value(random_tensor(DType::float32, {0}, 101))}};
  values.emplace_back("sequence", sequence);
  values.emplace_back("none", OptionalValue{TypeInfo::tensor(DType::int4), {}});
  values.emplace_back("some", OptionalValue{TypeInfo::sequence(TypeInfo::tensor(DType::float32)), {Value(sequence)}});
  values.emplace_back("map",
                      MapValue{random_tensor(DType::int64, {1}, 102), TypeInfo::tensor(DType::float32), {floats}});
  return values;
}

// Writes the golden dump of the current version: run it by name, once for each new version.
TEST(Golden, DISABLED_Write) {
  const char* path = std::getenv("PARALLAX_GOLDEN");
  ASSERT_NE(path, nullptr) << "PARALLAX_GOLDEN names the file to write";
  DumpWriterOptions options;
  options.capture_limit_bytes = 2000;
  options.sample_elements = 8;
  auto writer = DumpWriter::create(path, options).take();
  ASSERT_OK(writer->begin_run(
      {"reference", "a CPU", {{"threads", "1"}, {"tf32", "off"}}, golden_model(), std::string(64, 'a')}));
  ASSERT_OK(writer->add_graph("fused", *golden_model(), true));
  Producer producer(*writer);
  const CallInfo call{"", 7};
  ASSERT_OK(writer->begin_call(call, std::vector<Value>{Value(random_tensor(DType::float32, {2}, 1))}));
  ASSERT_OK(writer->absent(producer.value_info("fused_away"), {Absence::Kind::fused, "node_fused"}));
  for (const auto& [name, value] : golden_values()) ASSERT_OK(producer.show(name, value));
  ASSERT_OK(producer.show("alias", golden_values()[0].second.tensor().reshaped({15}), "of_float32"));
  ASSERT_OK(producer.show("sampled", random_tensor(DType::float32, {1000}, 103)));
  const Frame frame{Frame::Kind::body, "loop", 2};
  ASSERT_OK(writer->enter_body({"loop", "Loop-13", nullptr, 0}, frame));
  producer.frames().push(frame);
  ASSERT_OK(producer.show("inner", Tensor::scalar<float>(2.5F)));
  ASSERT_OK(writer->node_failed({"bad", "Div-14", nullptr, 1}, producer.frames(), execution_error("division by zero")));
  producer.frames().pop();
  ASSERT_OK(writer->leave_body({"loop", "Loop-13", nullptr, 0}, frame));
  ASSERT_OK(writer->end_call(call));
  ASSERT_OK(writer->end_run(true));
  ASSERT_OK(writer->begin_run({"torch", "foreign", {}, nullptr, ""}));
  ASSERT_OK(producer.show("of_float32", Tensor::scalar<float>(-1)));
  ASSERT_OK(writer->end_run(false));
  ASSERT_OK(writer->finish());
}

TEST(Golden, Version1IsWholeAndComplete) {
  const auto problems = check_dump(kGolden);
  ASSERT_OK(problems);
  for (const DumpProblem& problem : *problems) ADD_FAILURE() << problem.where << ": " << problem.message;
  EXPECT_TRUE(open_dump(kGolden)->is_complete());
}

TEST(Golden, Version1GivesBackEveryValue) {
  const auto reader = open_dump(kGolden);
  for (const auto& [name, value] : golden_values()) EXPECT_TRUE(same_bits(load(*reader, name), value)) << name;
  EXPECT_TRUE(same_bits(load(*reader, "alias"), Value(golden_values()[0].second.tensor().reshaped({15}))));
  EXPECT_EQ(reader->entries()[static_cast<size_t>(reader->find("alias"))].alias_of, reader->find("of_float32"));
  const DumpEntry& sampled = reader->entries()[static_cast<size_t>(reader->find("sampled"))];
  EXPECT_EQ(sampled.level, CaptureLevel::sample);
  const Tensor whole = random_tensor(DType::float32, {1000}, 103);
  const Value sample = load(*reader, "sampled");
  for (int64_t k = 0; k < 8; ++k) {
    EXPECT_EQ(std::memcmp(sample.tensor().view().data + 4 * k, whole.view().data + 4 * sampled_element(k, 8, 1000), 4),
              0);
  }
  const auto has_early_statistics = [](const DumpEntry& entry) {
    return entry.statistics.has_value() && !entry.statistics->has_projections;
  };
  EXPECT_TRUE(has_early_statistics(sampled));
  EXPECT_EQ(load(*reader, "loop.body[2]//inner").tensor().as<float>()[0], 2.5F);
  EXPECT_EQ(load(*reader, "of_float32", 1).tensor().as<float>()[0], -1);
}

TEST(Golden, Version1TellsWhatHappened) {
  const auto reader = open_dump(kGolden);
  ASSERT_EQ(reader->executions().size(), 2U);
  EXPECT_EQ(reader->executions()[0].executor, "reference");
  EXPECT_EQ(reader->executions()[0].settings.at("threads"), "1");
  EXPECT_EQ(reader->executions()[0].model_path, "golden.onnx");
  EXPECT_TRUE(reader->executions()[0].completed);
  EXPECT_FALSE(reader->executions()[1].completed);
  ASSERT_EQ(reader->calls().size(), 1U);
  EXPECT_EQ(reader->calls()[0].call.step, 7);
  EXPECT_EQ(reader->calls()[0].graph, 0);
  const DumpEntry& absent = reader->entries()[0];
  ASSERT_TRUE(absent.absence.has_value());
  EXPECT_EQ(absent.absence->kind, Absence::Kind::fused);
  EXPECT_EQ(absent.absence->into, "node_fused");
  ASSERT_EQ(reader->failures().size(), 1U);
  EXPECT_EQ(reader->failures()[0].path, "loop.body[2]//");
  ASSERT_EQ(reader->events().size(), 6U);
  EXPECT_EQ(reader->events()[0].kind, DumpEvent::Kind::enter_body);
  EXPECT_EQ(reader->events()[5].kind, DumpEvent::Kind::end_run);
}

TEST(Golden, Version1HoldsItsGraphsWithoutLargeWeights) {
  const auto reader = open_dump(kGolden);
  ASSERT_EQ(reader->graphs().size(), 2U);
  EXPECT_FALSE(reader->graphs()[0].is_executed);
  EXPECT_TRUE(reader->graphs()[1].is_executed);
  EXPECT_EQ(reader->graphs()[1].name, "fused");
  const auto model = reader->model(0);
  ASSERT_OK(model);
  const Graph& graph = (*model)->graph;
  ASSERT_EQ(graph.initializers.size(), 2U);
  EXPECT_EQ(graph.initializers[0].absence, kLeftOutOfDump);
  EXPECT_EQ(graph.initializers[0].tensor.shape(), (Shape{20, 20}));
  EXPECT_EQ(graph.initializers[0].tensor.as<float>()[399], 0);
  EXPECT_EQ(graph.values[static_cast<size_t>(graph.find_value("w"))].type.dims->size(), 2U);
  EXPECT_TRUE(same_bits(graph.initializers[1].tensor, random_tensor(DType::float32, {20}, 2)));
  EXPECT_EQ(graph.nodes.size(), 2U);
}

// Writes the seeds of tests/fuzz/dump_fuzz into the folder PARALLAX_SEEDS: a small finished dump with a record of every
// kind, and the first half of it.
TEST(FuzzSeeds, DISABLED_Write) {
  const char* folder = std::getenv("PARALLAX_SEEDS");
  ASSERT_NE(folder, nullptr) << "PARALLAX_SEEDS names the folder to write to";
  const std::string path = std::string(folder) + "/mixed.plx";
  DumpWriterOptions options;
  options.capture_limit_bytes = 200;
  options.sample_elements = 4;
  auto writer = DumpWriter::create(path, options).take();
  ASSERT_OK(writer->begin_run({"reference", "a CPU", {{"threads", "1"}}, golden_model(), "00ff"}));
  Producer producer(*writer);
  ASSERT_OK(writer->begin_call({"", 1}, {}));
  const Tensor floats = random_tensor(DType::float32, {2, 3}, 1);
  ASSERT_OK(producer.show("floats", floats));
  ASSERT_OK(producer.show("alias", floats.reshaped({6}), "floats"));
  ASSERT_OK(producer.show("text", random_tensor(DType::string, {3}, 2)));
  ASSERT_OK(producer.show("int4", random_tensor(DType::int4, {5}, 3)));
  ASSERT_OK(producer.show("sampled", random_tensor(DType::float16, {200}, 4)));
  ASSERT_OK(producer.show("sequence", SequenceValue{TypeInfo::tensor(DType::float32), {Value(floats)}}));
  ASSERT_OK(writer->absent(producer.value_info("fused_away"), {Absence::Kind::fused, "node"}));
  ASSERT_OK(writer->node_failed({"bad", "Div-14", nullptr, 1}, producer.frames(), execution_error("no")));
  ASSERT_OK(writer->end_call({"", 1}));
  ASSERT_OK(writer->end_run(true));
  ASSERT_OK(writer->finish());
  const std::string whole = contents_of(path);
  write_contents(std::string(folder) + "/cut.plx", std::string_view(whole).substr(0, whole.size() / 2));
}

// A seed that is no dump any more leads the fuzzer nowhere.
TEST(FuzzSeeds, AreSmallDumps) {
  const std::string folder = PX_SOURCE_DIR "/tests/fuzz/corpus/dump_fuzz/";
  for (const std::string name : {"mixed.plx", "cut.plx"}) {
    EXPECT_LT(std::filesystem::file_size(folder + name), 32U << 10) << name;
    EXPECT_GE(open_dump(folder + name)->entries().size(), 3U) << name;
  }
  EXPECT_TRUE(check_dump(folder + "mixed.plx")->empty());
  EXPECT_FALSE(open_dump(folder + "cut.plx")->is_complete());
}

}  // namespace
}  // namespace parallax::test
