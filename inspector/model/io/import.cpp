// SPDX-License-Identifier: Apache-2.0
// Whole models: the file, its form, the model's own fields, functions, and the checks that follow.
#include "inspector/model/io/import.h"

#include <algorithm>
#include <filesystem>
#include <future>

#include <google/protobuf/stubs/logging.h>

#include "inspector/base/hash.h"
#include "inspector/base/memory_budget.h"
#include "inspector/model/blocked_operators.h"
#include "inspector/model/entries.h"
#include "inspector/model/io/check_report.h"
#include "inspector/model/io/export.h"
#include "inspector/model/io/foreign_file.h"
#include "inspector/model/io/import_graph.h"
#include "inspector/model/io/proto_io.h"
#include "inspector/model/link.h"
#include "inspector/model/onnx.pb.h"

namespace parallax {
namespace {

std::vector<OpsetImport> take_imports(google::protobuf::RepeatedPtrField<proto::OperatorSetIdProto>& messages) {
  std::vector<OpsetImport> imports;
  for (auto& message : messages) imports.push_back({message.domain(), message.version()});
  messages.Clear();
  return imports;
}

// The name of a function in messages.
std::string title_of(const proto::FunctionProto& function) { return "function '" + function.name() + "'"; }

Result<std::shared_ptr<Function>> read_function(proto::FunctionProto& message, ExternalData& external, int max_depth) {
  using Message = proto::FunctionProto;
  auto function = std::make_shared<Function>();
  function->attribute_names.assign(message.attribute().begin(), message.attribute().end());
  message.clear_attribute();
  GraphImporter defaults(external, max_depth);
  for (auto& attribute : *message.mutable_attribute_proto()) {
    function->attribute_defaults.push_back(PX_TRY(defaults.read_attribute(attribute)));
  }
  message.clear_attribute_proto();
  function->opset_imports = take_imports(*message.mutable_opset_import());
  function->body = PX_TRY(GraphImporter(external, max_depth).read_body(message));
  function->domain = take(message, &Message::domain, &Message::release_domain);
  function->name = take(message, &Message::name, &Message::release_name);
  function->overload = take(message, &Message::overload, &Message::release_overload);
  function->body.name = function->name;
  function->doc = take(message, &Message::doc_string, &Message::release_doc_string);
  function->metadata = take_entries(*message.mutable_metadata_props());
  function->unparsed = rest_of(message);
  return function;
}

// The fields besides graph and functions. Numbers that are 0 stay in the message, which keeps their presence.
void take_header(proto::ModelProto& message, Model& model) {
  using Message = proto::ModelProto;
  model.ir_version = message.ir_version();
  if (model.ir_version != 0) message.clear_ir_version();
  model.model_version = message.model_version();
  if (model.model_version != 0) message.clear_model_version();
  model.opset_imports = take_imports(*message.mutable_opset_import());
  model.producer_name = take(message, &Message::producer_name, &Message::release_producer_name);
  model.producer_version = take(message, &Message::producer_version, &Message::release_producer_version);
  model.domain = take(message, &Message::domain, &Message::release_domain);
  model.doc = take(message, &Message::doc_string, &Message::release_doc_string);
  model.metadata = take_entries(*message.mutable_metadata_props());
}

// True where graphs nest at most `levels` deep: checked beforehand, so that the answer need not name every node on the
// way down.
bool nests_within(const proto::GraphProto& graph, int levels) {
  if (levels <= 0) return false;
  const auto fits = [&](const proto::AttributeProto& attribute) {
    if (attribute.has_g() && !nests_within(attribute.g(), levels - 1)) return false;
    return std::ranges::all_of(attribute.graphs(), [&](const auto& body) { return nests_within(body, levels - 1); });
  };
  return std::ranges::all_of(graph.node(),
                             [&](const auto& node) { return std::ranges::all_of(node.attribute(), fits); });
}

Result<std::shared_ptr<Model>> read_model(proto::ModelProto& message, const std::string& directory,
                                          const ImportOptions& options) {
  const int max_depth = options.max_depth;
  auto model = std::make_shared<Model>();
  ExternalData external(directory, options.checks == ModelChecks::recorded);
  take_header(message, *model);
  if (!message.has_graph()) return invalid_model("holds no graph; is it an ONNX model?");
  if (!nests_within(message.graph(), max_depth)) {
    return invalid_model("nests graphs more than " + std::to_string(max_depth) + " deep");
  }
  model->graph = PX_TRY(GraphImporter(external, max_depth).read(*message.mutable_graph()));
  message.clear_graph();
  for (auto& function : *message.mutable_functions()) {
    const std::string title = title_of(function);
    model->functions.push_back(PX_TRY_CONTEXT(title, read_function(function, external, max_depth)));
  }
  message.clear_functions();
  model->unparsed = rest_of(message);
  define_blocked_operators(*model);
  resolve_operators(*model);
  PX_TRY(check_calls(*model));
  return model;
}

// Names of a damaged file may hold any bytes; messages go to terminals and JSON.
Error reported_error(Error error) {
  for (std::string* text : {&error.message, &error.node, &error.op}) *text = reported(*text);
  return error;
}

// Bytes to import, and the file that holds them, or null.
struct Source {
  ByteSpan bytes;
  const MappedFile* file = nullptr;
};

// A model that holds the memory of its structure in the budget.
std::shared_ptr<Model> with_reservation(std::shared_ptr<Model> model, MemoryBudget::Reservation reserved) {
  struct Held {
    std::shared_ptr<Model> model;
    MemoryBudget::Reservation reserved;
  };
  if (reserved.is_empty()) return model;
  const auto held = std::make_shared<Held>(Held{std::move(model), std::move(reserved)});
  return {held, held->model.get()};
}

Result<std::shared_ptr<Model>> read_source(const Source& source, const std::string& directory,
                                           const std::string& description, const ImportOptions& options) {
  const ByteSpan bytes = source.bytes;
  const std::string context = "'" + description + "'";
  if (bytes.empty()) return invalid_model(context + " is empty");
  const FileForm form = form_of(description, bytes);
  MessageMemory reserved =
      PX_TRY(reserve_message(bytes, form, options.max_depth, *proto::ModelProto::descriptor(), context));
  proto::ModelProto message;
  Status parsed = parse_message(bytes, form, options.max_depth, message, source.file);
  if (!parsed.ok() || !message.has_graph()) {
    if (const std::string kind = kind_of_foreign_file(bytes); !kind.empty()) return invalid_model(context + " " + kind);
  }
  if (!parsed.ok()) return make_error(parsed.error().code, context + " " + parsed.error().message);
  reserved.payload = {};  // each weight is charged by itself
  auto model =
      with_reservation(PX_TRY_CONTEXT(context, read_model(message, directory, options)), std::move(reserved.copy));
  model->path = description;
  if (options.checks == ModelChecks::none) return model;
  if (options.checks == ModelChecks::recorded) {
    record_problems(*model);
    return model;
  }
  ModelTypes types;
  const auto problems = check_model(*model, types);
  if (!problems.empty()) return error_of(problems.front()).with_context(context);
  fill_types(*model, types);
  return model;
}

Result<std::shared_ptr<Model>> import_source(const Source& source, const std::string& directory,
                                             const std::string& description, const ImportOptions& options) {
  const google::protobuf::LogSilencer
      silence;  // what protobuf would say of a damaged file's strings is of no use to anyone
  auto model = read_source(source, directory, description, options);
  if (!model.ok()) return reported_error(std::move(model).error());
  return model;
}

std::string hash_of(ByteSpan bytes) { return sha256_hex(bytes.data(), bytes.size()); }

std::string hash_of(const MappedFile& file) {
  constexpr size_t kPiece = size_t{4} << 20;
  const ByteSpan bytes = file.bytes();
  Sha256 hash;
  for (size_t at = 0; at < bytes.size(); at += kPiece) {
    const size_t count = std::min(kPiece, bytes.size() - at);
    hash.add(bytes.data() + at, count);
    file.release(at, count);
  }
  return hash.hex();
}

// A file as large as this has its hash taken by another thread.
constexpr size_t kLeastHashedAlongside = size_t{16} << 20;

}  // namespace

Result<std::shared_ptr<const Model>> import_model(const std::string& path, const ImportOptions& options) {
  const auto file = PX_TRY(MappedFile::open(path));
  std::future<std::string> hash;
  if (options.hash && file->bytes().size() >= kLeastHashedAlongside) {
    const auto policy = std::launch::async | std::launch::deferred;  // where no thread is to be had, by this one
    hash = std::async(policy, [&file] { return hash_of(*file); });
  }
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const auto model = PX_TRY(import_source({file->bytes(), file.get()}, parent.empty() ? "." : parent, path, options));
  model->file = file;
  if (hash.valid()) model->sha256 = hash.get();
  return std::shared_ptr<const Model>(model);
}

Result<std::shared_ptr<const Model>> import_model(std::span<const std::byte> bytes, const std::string& directory,
                                                  const std::string& description, const ImportOptions& options) {
  const auto model = PX_TRY(import_source({bytes, nullptr}, directory, description, options));
  model->sha256 = hash_of(bytes);
  return std::shared_ptr<const Model>(model);
}

std::string model_sha256(const Model& model) {
  if (!model.sha256.empty()) return model.sha256;
  if (model.file != nullptr && model.file->is_intact()) return hash_of(*model.file);
  const auto bytes = export_model_bytes(model);
  return bytes.ok() ? sha256_hex(bytes->data(), bytes->size()) : std::string();
}

}  // namespace parallax
