// SPDX-License-Identifier: Apache-2.0
// Captured objects: paths of modules and structures in a dump, and the model of constants they are exchanged through.
#include "inspector/dump/convert/captured_objects.h"

#include <nlohmann/json.hpp>

#include "inspector/dump/convert/convert.h"
#include "inspector/model/io/export.h"
#include "tests/inspector/dump/support.h"

namespace parallax::test {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kInputTree =
    R"({"kind":"tuple","items":[{"kind":"tuple","items":[{"kind":"tensor","name":"in/args/0"},{"kind":"none"}]},)"
    R"({"kind":"dict","keys":[{"kind":"string","value":"scale"},{"kind":"string","value":"cache"}],"items":[)"
    R"({"kind":"float","value":0.5},{"kind":"cache","class":"transformers.cache_utils:DynamicCache","layers":[)"
    R"({"class":"DynamicLayer","keys":{"kind":"tensor","name":"in/kwargs/cache/0/key"},)"
    R"("values":{"kind":"tensor","name":"in/kwargs/cache/0/value"}}]}]}]})";
constexpr const char* kOutputTree =
    R"({"kind":"record","class":"m:Out","keys":["logits","states"],"items":[{"kind":"tensor","name":"out/logits"},)"
    R"({"kind":"list","items":[]}]})";

class CapturedObjectsTest : public ::testing::Test {
 protected:
  void write(const std::string& file, bool finished = true) {
    auto recorder = TensorRecorder::create(file, {}).take();
    ASSERT_OK(recorder->begin_run({"torch", "a CPU", {}, nullptr, ""}));
    ASSERT_OK(recorder->enter_module("net.f(x)", 0, "Net"));
    show(*recorder, "in/args/0", x_);
    show(*recorder, "in/kwargs/cache/0/key", key_);
    show(*recorder, "in/kwargs/cache/0/value", value_);
    ASSERT_OK(recorder->structure("module(net.f(x)).call[0]//in", kInputTree));
    show(*recorder, "out/logits", y_);
    if (!finished) return;
    ASSERT_OK(recorder->structure("module(net.f(x)).call[0]//out", kOutputTree));
    ASSERT_OK(recorder->leave_module("net.f(x)", 0, "Net"));
    ASSERT_OK(recorder->write({{{Frame::Kind::module, "seen", -1}}, "value"}, Value(y_)));
    ASSERT_OK(recorder->structure("module(seen)//value", R"({"kind":"tensor","name":"value"})"));
    ASSERT_OK(recorder->end_run(true));
    ASSERT_OK(recorder->finish());
  }

  static void show(TensorRecorder& recorder, const std::string& name, const Tensor& tensor) {
    ASSERT_OK(recorder.write({{{Frame::Kind::module, "net.f(x)", 0}}, name}, Value(tensor)));
  }

  // A model whose outputs are Identity nodes over initializers.
  static Model constants(const std::vector<NamedValue>& outputs) {
    Model model;
    model.ir_version = 10;
    model.opset_imports = {{"", 18}};
    model.graph.name = "g";
    for (const NamedValue& output : outputs) {
      const auto next = static_cast<ValueId>(model.graph.values.size());
      model.graph.values.resize(model.graph.values.size() + 2);
      for (const ValueId id : {next, next + 1}) {
        model.graph.values[static_cast<size_t>(id)].name = (id == next ? "t_" : "") + output.name;
        model.graph.values[static_cast<size_t>(id)].type = type_of(output.value);
      }
      StoredTensor stored;
      stored.name = "t_" + output.name;
      stored.tensor = output.value.tensor();
      model.graph.initializers.push_back(stored);
      model.graph.initializer_values.push_back(next);
      Node node;
      node.op_type = "Identity";
      node.inputs = {next};
      node.outputs = {next + 1};
      model.graph.nodes.push_back(node);
      model.graph.outputs.push_back(next + 1);
    }
    return model;
  }

  CapturedObjects read(const std::vector<NamedValue>& outputs) {
    const std::string file = folder_ / "constants.onnx";
    EXPECT_TRUE(export_model(constants(outputs), file).ok());
    auto objects = read_captured_objects(file);
    EXPECT_TRUE(objects.ok()) << objects.error().message;
    return objects.ok() ? objects.take() : CapturedObjects();
  }

  static Value number(int64_t value) { return Value(Tensor::vector<int64_t>({{value}})); }
  static Value nothing() { return Value(Tensor::zeros(DType::float64, {0}).take()); }

  TemporaryFolder folder_;
  Tensor x_ = random_tensor(DType::bfloat16, {2, 3}, 1);
  Tensor key_ = random_tensor(DType::float16, {1, 2, 3, 4}, 2);
  Tensor value_ = random_tensor(DType::float32, {1, 2, 3, 4}, 3);
  Tensor y_ = random_tensor(DType::float32, {5}, 4);
};

TEST_F(CapturedObjectsTest, ADumpHoldsModulesCallsAndStructures) {
  const std::string file = folder_ / "a.plx";
  write(file);
  const auto reader = open_dump(file);
  EXPECT_TRUE(check_dump(file)->empty());
  EXPECT_TRUE(same_bits(load(*reader, "module(net.f(x)).call[0]//in/kwargs/cache/0/key"), Value(key_)));
  ASSERT_EQ(reader->structures().size(), 3U);
  EXPECT_EQ(reader->structures()[0].path, "module(net.f(x)).call[0]//in");
  EXPECT_EQ(reader->structures()[0].text, kInputTree);
  EXPECT_EQ(reader->structures()[0].entry_count, 3);
  ASSERT_EQ(reader->events().size(), 3U) << "a structure is no event between values";
  EXPECT_EQ(reader->events()[0].text, "module(net.f(x)).call[0]");
  EXPECT_EQ(reader->events()[0].op, "Net");
  EXPECT_EQ(reader->events()[1].kind, DumpEvent::Kind::leave_body);
}

TEST_F(CapturedObjectsTest, RepairKeepsStructuresAndACrashKeepsWhatWasFinished) {
  const std::string file = folder_ / "a.plx";
  write(file, false);
  const auto reader = open_dump(file);
  EXPECT_FALSE(reader->is_complete());
  EXPECT_EQ(reader->structures().size(), 1U);
  ASSERT_OK(repair_dump(file, folder_ / "b.plx"));
  const auto repaired = open_dump(folder_ / "b.plx");
  EXPECT_TRUE(repaired->is_complete());
  ASSERT_EQ(repaired->structures().size(), 1U);
  EXPECT_EQ(repaired->structures()[0].text, kInputTree);
  EXPECT_TRUE(same_bits(load(*repaired, "module(net.f(x)).call[0]//out/logits"), Value(y_)));
}

TEST_F(CapturedObjectsTest, AnExportedModelGivesBackEveryTreeAndValue) {
  write(folder_ / "a.plx");
  const auto exported = export_dump(folder_ / "a.plx", folder_ / "a.onnx");
  ASSERT_OK(exported);
  EXPECT_EQ(exported->values, 5);
  const auto model = import_model(folder_ / "a.onnx");
  ASSERT_OK(model);
  std::vector<std::string> names;
  for (const ValueId id : (*model)->graph.outputs) names.push_back(value_at((*model)->graph, id).name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "dict_((net.f(x),0,I))___tuple_0___tuple_0___tensor",
                       "dict_((net.f(x),0,I))___tuple_0___tuple_1.___empty",
                       "dict_((net.f(x),0,I))___tuple_1.___dict_scale___float",
                       "dict_((net.f(x),0,I))___tuple_1.___dict._cache___DynamicCache_key_cache___list_0.___tensor",
                       "dict_((net.f(x),0,I))___tuple_1.___dict._cache___DynamicCache._value_cache___list_0.___tensor",
                       "dict_((net.f(x),0,O))___dict_logits___tensor",
                       "dict_((net.f(x),0,O))___dict._states___list.___empty",
                       "dict._seen___tensor",
                   }));
  ASSERT_OK(import_dump({folder_ / "a.onnx", "", ""}, folder_ / "b.plx"));
  const auto first = open_dump(folder_ / "a.plx");
  const auto second = open_dump(folder_ / "b.plx");
  ASSERT_EQ(second->structures().size(), 3U);
  for (size_t index = 0; index < 3; ++index) {
    EXPECT_EQ(second->structures()[index].path, first->structures()[index].path);
    EXPECT_EQ(Json::parse(second->structures()[index].text), Json::parse(first->structures()[index].text));
  }
  ASSERT_EQ(second->entries().size(), first->entries().size());
  for (const DumpEntry& entry : first->entries())
    EXPECT_TRUE(same_bits(load(*second, entry.path), load(*first, entry.path))) << entry.path;
}

TEST_F(CapturedObjectsTest, LargeTensorsCanBeStoredNextToTheModel) {
  write(folder_ / "a.plx");
  auto objects = read_captured_objects(folder_ / "a.plx").take();
  const Tensor large = random_tensor(DType::float32, {1000}, 9);
  objects.values.back().value = Value(large);
  ASSERT_OK(write_captured_objects(objects, folder_ / "a.onnx", {.external_data = true}));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "a.onnx.data"));
  const auto back = read_captured_objects(folder_ / "a.onnx");
  ASSERT_OK(back);
  EXPECT_TRUE(same_bits(back->values.back().value, Value(large)));
}

TEST_F(CapturedObjectsTest, OtherTensorsOfACacheAreKept) {
  const std::string layer =
      R"({"class":"StaticLayer","keys":{"kind":"tensor","name":"out/0/key"},"values":)"
      R"({"kind":"tensor","name":"out/0/value"},"fields":{"n":{"kind":"tensor","name":"out/0/n"}}})";
  const CapturedObjects objects{
      {{"module(m).call[0]//out", R"({"kind":"cache","class":"t:StaticCache","layers":[)" + layer + "]}"}},
      {{"module(m).call[0]//out/0/key", Value(key_)},
       {"module(m).call[0]//out/0/value", Value(value_)},
       {"module(m).call[0]//out/0/n", Value(y_)}},
      {}};
  ASSERT_OK(write_captured_objects(objects, folder_ / "a.onnx"));
  const auto back = read_captured_objects(folder_ / "a.onnx");
  ASSERT_OK(back);
  EXPECT_EQ(back->objects[0].structure, Json::parse(objects.objects[0].structure).dump());
  ASSERT_EQ(back->values.size(), 3U);
  for (size_t index = 0; index < 3; ++index) {
    EXPECT_EQ(back->values[index].name, objects.values[index].name);
    EXPECT_TRUE(same_bits(back->values[index].value, objects.values[index].value));
  }
}

TEST_F(CapturedObjectsTest, ValuesWithoutElementsAreLeftOutOfAModel) {
  const CapturedObjects objects{
      {{"module(m).call[0]//out", R"({"kind":"list","items":[{"kind":"tensor","name":"out/0"}]})"}}, {}, {}};
  ASSERT_OK(write_captured_objects(objects, folder_ / "a.onnx"));
  const auto back = read_captured_objects(folder_ / "a.onnx");
  ASSERT_OK(back);
  EXPECT_EQ(Json::parse(back->objects[0].structure)["items"][0]["kind"], "left_out");
}

TEST_F(CapturedObjectsTest, ForeignNamesBecomePathsAndTrees) {
  const auto objects = read({{"dict_((m.n,1,I))___tuple_0___tuple_0.___tensor", Value(y_)},
                             {"dict_((m.n,1,I))___tuple_1.___dict.___empty", nothing()},
                             {"dict_((m.n,1,O))___tuple_1___array", Value(y_)},
                             {"dict_((m.n,1,O))___tuple_2.___list_0.___int", number(7)},
                             {"dict._more___StaticCache_key_cache___list_0.___tensor", Value(key_)},
                             {"dict._more___StaticCache._value_cache___list_0.___tensor", Value(value_)}});
  ASSERT_EQ(objects.objects.size(), 3U);
  EXPECT_EQ(objects.objects[0].path, "module(m.n).call[1]//in");
  EXPECT_EQ(Json::parse(objects.objects[0].structure),
            Json::parse(R"({"kind":"tuple","items":[{"kind":"tuple","items":[{"kind":"tensor","library":"torch",)"
                        R"("name":"in/args/0"}]},{"kind":"dict","keys":[],"items":[]}]})"));
  EXPECT_EQ(
      Json::parse(objects.objects[1].structure),
      Json::parse(R"({"kind":"tuple","items":[{"kind":"none"},{"kind":"tensor","library":"numpy","name":"out/1"},)"
                  R"({"kind":"list","items":[{"kind":"int","value":7}]}]})"))
      << "items that were None have no outputs";
  EXPECT_EQ(objects.objects[2].path, "module(more)//value");
  std::vector<std::string> paths;
  for (const NamedValue& value : objects.values) paths.push_back(value.name);
  EXPECT_EQ(paths, (std::vector<std::string>{"module(m.n).call[1]//in/args/0", "module(m.n).call[1]//out/1",
                                             "module(more)//value/0/key", "module(more)//value/0/value"}));
}

TEST_F(CapturedObjectsTest, AnObjectWithoutModulesIsOneValue) {
  const auto objects = read({{"tuple_0___dict_a/b___tensor", Value(y_)},
                             {"tuple_0___dict._((k,2,True))___int", number(-1)},
                             {"tuple_1.___tuple.___empty", nothing()}});
  ASSERT_EQ(objects.objects.size(), 1U);
  EXPECT_EQ(objects.objects[0].path, "value");
  EXPECT_EQ(objects.values[0].name, "value/0/a~1b");
  const Json tree = Json::parse(objects.objects[0].structure);
  EXPECT_EQ(tree["items"][0]["keys"][1]["items"][2], (Json{{"kind", "bool"}, {"value", true}}));
  EXPECT_TRUE(tree["items"][1]["items"].empty());
  ASSERT_OK(write_captured_objects(objects, folder_ / "again.onnx"));
  const auto again = read_captured_objects(folder_ / "again.onnx");
  ASSERT_OK(again);
  EXPECT_EQ(Json::parse(again->objects[0].structure), tree);
}

TEST_F(CapturedObjectsTest, NamesThatMakeNoTreeAreRefused) {
  const std::vector<std::vector<NamedValue>> cases = {
      {{"tuple_1___tensor", Value(y_)}, {"tuple_0.___tensor", Value(y_)}},
      {{"tuple_0___tensor", Value(y_)}, {"list_1.___tensor", Value(y_)}},
      {{"dict._x___int", Value(y_)}},
      {{"DynamicCache_other___list_0.___tensor", Value(y_)}},
      {{"tuple_99999999999___tensor", Value(y_)}},
  };
  for (const auto& outputs : cases) {
    ASSERT_OK(export_model(constants(outputs), folder_ / "bad.onnx"));
    const auto objects = read_captured_objects(folder_ / "bad.onnx");
    ASSERT_FALSE(objects.ok()) << outputs[0].name;
    EXPECT_EQ(objects.error().code, ErrorCode::corrupt_file) << objects.error().message;
  }
}

TEST_F(CapturedObjectsTest, OtherModelsOfConstantsStayWhatTheyWere) {
  ASSERT_OK(export_model(constants({{"weight", Value(y_)}}), folder_ / "plain.onnx"));
  ASSERT_OK(import_dump({folder_ / "plain.onnx", "", ""}, folder_ / "plain.plx"));
  EXPECT_TRUE(same_bits(load(*open_dump(folder_ / "plain.plx"), "t_weight"), Value(y_)));
  const auto objects = read_captured_objects(folder_ / "plain.onnx");
  ASSERT_FALSE(objects.ok());
  EXPECT_EQ(objects.error().code, ErrorCode::usage);
}

TEST_F(CapturedObjectsTest, KeysThatNoNameCanHoldAreRefused) {
  const CapturedObjects objects{{{"module(a___b).call[0]//out", R"({"kind":"tensor","name":"out"})"}},
                                {{"module(a___b).call[0]//out", Value(y_)}},
                                {}};
  const auto written = write_captured_objects(objects, folder_ / "bad.onnx");
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::unsupported);
}

TEST_F(CapturedObjectsTest, AStructureIsJsonUnderAPath) {
  auto recorder = TensorRecorder::create(folder_ / "a.plx", {}).take();
  ASSERT_OK(recorder->begin_run({}));
  EXPECT_FALSE(recorder->structure("module(m).call[0]//in", "{").ok());
  EXPECT_FALSE(recorder->structure("nonsense//in", "{}").ok());
}

TEST_F(CapturedObjectsTest, EqualPayloadsAreWrittenOnce) {
  const std::string file = folder_ / "shared.plx";
  const Tensor large = random_tensor(DType::float32, {10000}, 7);
  auto recorder = TensorRecorder::create(file, {}).take();
  ASSERT_OK(recorder->begin_run({}));
  ASSERT_OK(recorder->write({{}, "given"}, Value(large)));
  ASSERT_OK(recorder->write({{}, "taken"}, Value(large.clone().take())));
  Tensor other = large.clone().take();
  other.mutable_as<float>()[9999] = large.as<float>()[9999] == 0.5F ? 0.25F : 0.5F;
  ASSERT_OK(recorder->write({{}, "changed"}, Value(other)));
  ASSERT_OK(recorder->finish());
  const auto reader = open_dump(file);
  EXPECT_EQ(reader->entries()[1].alias_of, 0);
  EXPECT_EQ(reader->entries()[2].alias_of, -1);
  EXPECT_TRUE(same_bits(load(*reader, "taken"), Value(large)));
  EXPECT_TRUE(same_bits(load(*reader, "changed"), Value(other)));
  EXPECT_TRUE(same_statistics(*reader->entries()[0].statistics, *reader->entries()[1].statistics));
  EXPECT_TRUE(check_dump(file)->empty());
}

TEST_F(CapturedObjectsTest, LevelsAreChosenValueByValue) {
  const std::string file = folder_ / "levels.plx";
  DumpWriterOptions options;
  options.capture_limit_bytes = 64;
  auto recorder = TensorRecorder::create(file, options).take();
  ASSERT_OK(recorder->begin_run({}));
  ASSERT_OK(recorder->write({{}, "a"}, Value(y_), {.level = CaptureLevel::stats}));
  ASSERT_OK(recorder->write({{}, "b"}, Value(y_)));
  ASSERT_OK(recorder->write({{}, "c"}, Value(value_)));
  ASSERT_OK(recorder->finish());
  const auto reader = open_dump(file);
  EXPECT_EQ(reader->entries()[0].level, CaptureLevel::stats);
  EXPECT_TRUE(reader->entries()[0].statistics.has_value());
  EXPECT_EQ(reader->entries()[1].level, CaptureLevel::all);
  EXPECT_EQ(reader->entries()[2].level, CaptureLevel::sample) << "above the limit";
}

}  // namespace
}  // namespace parallax::test
