// SPDX-License-Identifier: Apache-2.0
// An imported model is written again unchanged: real files, and fields that the IR does not model.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "inspector/base/mapped_file.h"
#include "inspector/model/io/export.h"
#include "tests/inspector/model/model_files.h"

namespace parallax {
namespace {

constexpr const char* kOnnxTestData = "/usr/share/libonnx-testdata/data";

std::string export_bytes(const Model& model) {
  auto bytes = export_model_bytes(model);
  EXPECT_TRUE(bytes.ok()) << bytes.error().message;
  return bytes.ok() ? *bytes : std::string();
}

// All of libonnx-testdata and of this tree's samples.
std::vector<std::string> real_files() {
  std::vector<std::string> files = files_below(kOnnxTestData, ".onnx");
  for (const std::string& file : files_below(std::string(PX_SOURCE_DIR) + "/samples", ".onnx")) files.push_back(file);
  return files;
}

TEST(RoundTrip, RealFilesComeBackAsTheyWere) {
  const auto files = real_files();
  ASSERT_GT(files.size(), 1000u) << "install libonnx-testdata";
  for (const std::string& file : files) {
    const auto model = import_model(file);
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ(differences(parse_proto(read_file(file).take()), parse_proto(export_bytes(**model))), "") << file;
  }
}

TEST(RoundTrip, TheTextFormSaysTheSame) {
  const TemporaryFolder folder;
  const auto files = real_files();
  for (size_t i = 0; i < files.size(); i += 7) {  // text is slow to read
    const auto model = import_model(files[i]);
    ASSERT_TRUE(model.ok()) << model.error().message;
    ASSERT_TRUE(export_model(**model, folder.file("m.textproto")).ok());
    const auto again = import_model(folder.file("m.textproto"));
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(export_bytes(**again), export_bytes(**model)) << files[i];
  }
}

constexpr const char* kEverything = R"(
ir_version: 10 producer_name: 'maker' producer_version: '1.2' domain: 'org.example' model_version: 7 doc_string: 'doc'
graph {
  name: 'g' doc_string: 'graph doc' metadata_props { key: 'graph' value: '1' }
  input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_param: 'N' denotation: 'BATCH' } dim { } dim { dim_value: 3 } } } denotation: 'IMAGE' }
          doc_string: 'the input' metadata_props { key: 'a' value: 'b' } }
  output { name: 'y' type { tensor_type { elem_type: 1 } } }
  output { name: 'x' type { tensor_type { elem_type: 1 } } doc_string: 'also an output' }
  value_info { name: 'gone' type { tensor_type { elem_type: 7 } } }
  value_info { name: 'h' type { sequence_type { elem_type { tensor_type { elem_type: 1 } } } } metadata_props { key: 'k' value: 'v' } }
  value_info { name: 'x' type { tensor_type { elem_type: 1 shape { dim { } dim { } dim { dim_value: 3 } } } } }
  initializer { name: 'w' dims: 2 data_type: 1 float_data: 1.5 float_data: -2 doc_string: 'weight' metadata_props { key: 'p' value: 'q' } }
  initializer { name: 'r' dims: 2 data_type: 7 raw_data: '\001\000\000\000\000\000\000\000\002\000\000\000\000\000\000\000' }
  initializer { name: 's' dims: 1 data_type: 8 string_data: 'text' }
  initializer { name: 'c' dims: 1 data_type: 15 double_data: 1 double_data: -1 }
  initializer { name: 'i' dims: 3 data_type: 22 int32_data: 17 int32_data: 1 }
  initializer { name: 'e' dims: 0 data_type: 1 raw_data: '' }
  sparse_initializer { values { name: 'sp' dims: 1 data_type: 1 float_data: 4 } indices { dims: 1 data_type: 7 int64_data: 5 } dims: 2 dims: 3 }
  quantization_annotation { tensor_name: 'x' quant_parameter_tensor_names { key: 'SCALE_TENSOR' value: 'w' } }
  node { input: 'x' input: '' input: 'w' output: 'y' name: '' op_type: 'Clip' doc_string: 'node doc' metadata_props { key: 'namespace' value: 'a.b' }
         device_configurations { configuration_id: 'two' pipeline_stage: 1 sharding_spec { tensor_name: 'x' device: 0 } } }
  node { input: 'x' output: 'h' op_type: 'SplitToSequence' attribute { name: 'axis' i: 1 type: INT doc_string: 'which' } }
}
training_info { initialization { name: 'init' } update_binding { key: 'w' value: 'y' } }
configuration { name: 'two' num_devices: 2 device: 'a' device: 'b' }
functions { name: 'F' domain: 'my' overload: 'o' input: 'a' output: 'b' attribute: 'alpha' attribute_proto { name: 'beta' f: 2 type: FLOAT }
  node { input: 'a' output: 'b' op_type: 'Elu' attribute { name: 'alpha' ref_attr_name: 'alpha' type: FLOAT } }
  value_info { name: 'a' type { tensor_type { elem_type: 1 } } } opset_import { domain: '' version: 20 } metadata_props { key: 'f' value: 'm' } }
metadata_props { key: 'whole' value: 'model' }
opset_import { domain: '' version: 20 } opset_import { domain: 'my' version: 1 }
)";

TEST(RoundTrip, EveryFieldOfTheFormatIsKept) {
  const auto model = model_from_text(kEverything);
  const std::string text = std::string(kEverything);
  const auto once = export_bytes(*model);
  proto::ModelProto before;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &before));
  EXPECT_EQ(differences(before, parse_proto(once)), "");
}

// The other tests here rest on this: a change anywhere is seen.
TEST(RoundTrip, TheComparisonSeesOneChangedField) {
  proto::ModelProto before;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kEverything, &before));
  proto::ModelProto weight = before, metadata = before, unknown = before;
  weight.mutable_graph()->mutable_initializer(0)->set_float_data(1, -2.0000002f);
  metadata.mutable_graph()->mutable_node(0)->mutable_metadata_props(0)->set_value("a.c");
  unknown.GetReflection()->MutableUnknownFields(&unknown)->AddVarint(900, 1);
  for (const proto::ModelProto* changed : {&weight, &metadata, &unknown}) EXPECT_NE(differences(before, *changed), "");
}

// Fields of a format newer than ours, at every level.
TEST(RoundTrip, UnknownFieldsAreKept) {
  proto::ModelProto before;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kEverything, &before));
  const auto mark = [](google::protobuf::Message& message, uint64_t number) {
    message.GetReflection()->MutableUnknownFields(&message)->AddVarint(900, number);
  };
  mark(before, 1);
  mark(*before.mutable_graph(), 2);
  mark(*before.mutable_graph()->mutable_node(0), 3);
  mark(*before.mutable_graph()->mutable_node(1)->mutable_attribute(0), 4);
  mark(*before.mutable_graph()->mutable_initializer(0), 5);
  mark(*before.mutable_graph()->mutable_input(0), 6);
  mark(*before.mutable_graph()->mutable_sparse_initializer(0), 7);
  mark(*before.mutable_functions(0), 8);
  mark(*before.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type(), 9);
  const std::string bytes = before.SerializeAsString();
  const auto model = import_model(std::as_bytes(std::span(bytes)), "", "test.onnx");
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(differences(before, parse_proto(export_bytes(**model))), "");

  const TemporaryFolder folder;
  const Status text = export_model(**model, folder.file("m.textproto"));
  ASSERT_FALSE(text.ok());
  EXPECT_NE(text.error().message.find("write a binary .onnx"), std::string::npos) << text.error().message;
}

}  // namespace
}  // namespace parallax
