// SPDX-License-Identifier: Apache-2.0
// The helpers' bodies.
#include "tests/inspector/model/model_files.h"

#include <algorithm>
#include <fstream>

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <stdlib.h>

#include "inspector/base/mapped_file.h"

namespace parallax {
namespace {

void normalize(proto::GraphProto& graph);

void normalize(proto::AttributeProto& attribute) {
  using Message = proto::AttributeProto;
  if (attribute.ref_attr_name().empty()) {  // writers may leave out a zero
    if (attribute.type() == Message::FLOAT) attribute.set_f(attribute.f());
    if (attribute.type() == Message::INT) attribute.set_i(attribute.i());
    if (attribute.type() == Message::STRING) attribute.set_s(attribute.s());
  }
  if (attribute.has_g()) normalize(*attribute.mutable_g());
  for (auto& body : *attribute.mutable_graphs()) normalize(body);
}

template <class Message>
void normalize_nodes(Message& message) {
  for (auto& node : *message.mutable_node()) {
    for (auto& attribute : *node.mutable_attribute()) normalize(attribute);
  }
  auto& infos = *message.mutable_value_info();
  std::sort(infos.pointer_begin(), infos.pointer_end(),
            [](const auto* a, const auto* b) { return a->name() < b->name(); });
}

void normalize(proto::GraphProto& graph) { normalize_nodes(graph); }

template <class Message>
void normalize_imports(Message& message) {
  for (auto& import : *message.mutable_opset_import()) import.set_domain(import.domain());
}

}  // namespace

Result<std::shared_ptr<const Model>> import_text(const std::string& model_text, const ImportOptions& options) {
  std::string text = model_text;
  if (text.find("ir_version") == std::string::npos) text = "ir_version: 10\n" + text;
  if (text.find("opset_import") == std::string::npos) text += "\nopset_import { domain: '' version: 20 }";
  return import_model(std::as_bytes(std::span(text)), "", "test.textproto", options);
}

std::shared_ptr<const Model> model_from_text(const std::string& model_text) {
  auto model = import_text(model_text);
  if (model.ok()) return *model;
  ADD_FAILURE() << model.error().message;
  return std::make_shared<const Model>();
}

std::string import_error(const std::string& model_text) {
  const auto model = import_text(model_text);
  return model.ok() ? std::string() : model.error().message;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "parallax-model-test-XXXXXX").string();
  path_ = ::mkdtemp(name.data());
}

TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

void write_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream stream(path, std::ios::binary);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

proto::ModelProto parse_proto(std::string_view bytes) {
  proto::ModelProto message;
  EXPECT_TRUE(message.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())));
  return message;
}

std::string differences(proto::ModelProto before, proto::ModelProto after) {
  for (proto::ModelProto* message : {&before, &after}) {
    normalize(*message->mutable_graph());
    normalize_imports(*message);
    for (auto& function : *message->mutable_functions()) {
      normalize_nodes(function);
      normalize_imports(function);
    }
  }
  std::string report;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&report);
  return differencer.Compare(before, after) ? std::string() : report;
}

std::vector<std::string> files_below(const std::string& folder, std::string_view ending) {
  std::vector<std::string> files;
  if (!std::filesystem::is_directory(folder)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().string().ends_with(ending)) files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace parallax
