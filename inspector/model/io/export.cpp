// SPDX-License-Identifier: Apache-2.0
// Whole models to files: which weights go outside, the model's own fields, the two forms.
#include "inspector/model/io/export.h"

#include <filesystem>

#include <google/protobuf/stubs/logging.h>

#include "inspector/base/input_files.h"
#include "inspector/base/output_file.h"
#include "inspector/base/output_group.h"
#include "inspector/model/blocked_operators.h"
#include "inspector/model/entries.h"
#include "inspector/model/io/export_graph.h"
#include "inspector/model/io/external_writer.h"
#include "inspector/model/io/proto_io.h"
#include "inspector/model/link.h"
#include "inspector/model/onnx.pb.h"

namespace parallax {
namespace {

// Above this many bytes of inline weights the message would come near protobuf's 2 GB; then all but small ones go
// outside.
constexpr size_t kMaxInlineBytes = size_t{1900} << 20;
constexpr size_t kSmallTensorBytes = 1024;

Status put_model(const Model& model, PayloadSink* sink, proto::ModelProto& out) {
  out.ParsePartialFromString(model.unparsed);
  if (model.ir_version != 0) out.set_ir_version(model.ir_version);
  if (model.model_version != 0) out.set_model_version(model.model_version);
  for (const OpsetImport& import : model.opset_imports) {
    auto& message = *out.add_opset_import();
    message.set_domain(import.domain);
    message.set_version(import.version);
  }
  if (!model.producer_name.empty()) out.set_producer_name(model.producer_name);
  if (!model.producer_version.empty()) out.set_producer_version(model.producer_version);
  if (!model.domain.empty()) out.set_domain(model.domain);
  if (!model.doc.empty()) out.set_doc_string(model.doc);
  put_entries(model.metadata, *out.mutable_metadata_props());
  PX_TRY(put_graph(model.graph, sink, *out.mutable_graph()));
  for (const auto& function : model.functions) {
    if (function->domain != kBlockedDomain) PX_TRY(put_function(*function, sink, *out.add_functions()));
  }
  return {};
}

// Bytes of the weights of a graph and its bodies that `writer` leaves inline.
size_t inline_bytes(const Graph& graph, const ExternalWriter& writer) {
  size_t bytes = 0;
  const auto add = [&](const StoredTensor& tensor) { bytes += writer.takes(tensor) ? 0 : tensor.tensor.size_bytes(); };
  for (const StoredTensor& tensor : graph.initializers) add(tensor);
  for (const Node& node : graph.nodes) {
    for (const Attribute& attribute : node.attributes) {
      if (const auto* tensor = std::get_if<StoredTensor>(&attribute.value)) add(*tensor);
    }
    for (const Graph* body : bodies_of(node)) bytes += inline_bytes(*body, writer);
  }
  return bytes;
}

constexpr std::string_view kExternalEnding = ".data";

Result<std::string> external_name(const std::string& path, const ExportOptions& options) {
  const std::string name = options.external_file.empty()
                               ? std::filesystem::path(path).filename().string() + std::string(kExternalEnding)
                               : options.external_file;
  if (std::filesystem::path(name).filename().string() == name) return name;
  return usage_error("external data file '" + name + "' must be a plain name: the file is next to the model");
}

}  // namespace

Status admit_model(const std::string& path) {
  PX_TRY(admit_output(path));
  return admit_output(path + std::string(kExternalEnding));
}

Status export_model(const Model& model, const std::string& path, const ExportOptions& options) {
  const std::string context = "'" + path + "'";
  OutputGroup group;
  const auto file = PX_TRY(OutputFile::create(path));  // before anything is written next to it
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const std::string folder = parent.empty() ? "." : parent;
  const std::string name = PX_TRY(external_name(path, options));
  size_t threshold = options.external_threshold_bytes;
  const ExternalWriter as_asked(folder, name, threshold, options.keep_external, options.deferred);
  if (inline_bytes(model.graph, as_asked) > kMaxInlineBytes) threshold = std::min(threshold, kSmallTensorBytes);

  const google::protobuf::LogSilencer silence;
  ExternalWriter writer(folder, name, threshold, options.keep_external, options.deferred);
  proto::ModelProto message;
  PX_TRY_CONTEXT(context, put_model(model, &writer, message));
  const auto contents = serialize_message(message, form_of_ending(path));
  if (!contents.ok()) return make_error(contents.error().code, context + " " + contents.error().message);
  PX_TRY(file->write(*contents));
  PX_TRY(writer.finish());
  PX_TRY(file->finish());
  return group.finish();
}

Result<std::string> export_model_bytes(const Model& model) {
  const google::protobuf::LogSilencer silence;
  proto::ModelProto message;
  PX_TRY(put_model(model, nullptr, message));
  auto bytes = serialize_message(message, FileForm::binary);
  if (!bytes.ok()) return make_error(bytes.error().code, "the model " + bytes.error().message);
  return bytes;
}

}  // namespace parallax
