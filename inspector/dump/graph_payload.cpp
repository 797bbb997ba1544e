// SPDX-License-Identifier: Apache-2.0
// Tensors above 1 KiB are written with shape [0]; reading gives them their shape back over pages of zeros that take no
// memory.
#include "inspector/dump/graph_payload.h"

#include <functional>
#include <optional>

#include "inspector/dump/dump_reader.h"
#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"

namespace parallax::dump {
namespace {

constexpr size_t kKeptBytes = 1024;

using Visit = std::function<Status(StoredTensor&)>;

Status visit_graph(Graph& graph, const Visit& visit);

Status visit_attribute(Attribute& attribute, const Visit& visit) {
  if (auto* tensor = std::get_if<StoredTensor>(&attribute.value)) return visit(*tensor);
  if (auto* tensors = std::get_if<std::vector<StoredTensor>>(&attribute.value)) {
    for (StoredTensor& tensor : *tensors) PX_TRY(visit(tensor));
  }
  if (auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) return visit_graph(**graph, visit);
  if (auto* graphs = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
    for (const auto& graph : *graphs) PX_TRY(visit_graph(*graph, visit));
  }
  return {};
}

Status visit_graph(Graph& graph, const Visit& visit) {
  for (StoredTensor& tensor : graph.initializers) PX_TRY(visit(tensor));
  for (Node& node : graph.nodes) {
    for (Attribute& attribute : node.attributes) PX_TRY(visit_attribute(attribute, visit));
  }
  return {};
}

// The order of tensors: initializers, then attributes node by node with their bodies, then the functions.
Status visit_model(Model& model, const Visit& visit) {
  PX_TRY(visit_graph(model.graph, visit));
  for (const auto& function : model.functions) PX_TRY(visit_graph(function->body, visit));
  return {};
}

// Copies of a graph share its bodies; these do not. What could not be read cannot be written.
void own_bodies(Graph& graph) {
  const auto own = [](std::shared_ptr<Graph>& body) {
    body = std::make_shared<Graph>(*body);
    own_bodies(*body);
  };
  for (Node& node : graph.nodes) {
    std::erase_if(node.attributes, [](const Attribute& attribute) { return !attribute.absence.empty(); });
    for (Attribute& attribute : node.attributes) {
      if (auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) own(*body);
      if (auto* bodies = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
        for (auto& body : *bodies) own(body);
      }
    }
  }
}

Result<Tensor> absent_tensor(const TypeInfo& type) {
  std::vector<int64_t> dims;
  for (const Dim& dim : type.dims.value_or(std::vector<Dim>{})) dims.push_back(dim.value);
  const Shape shape = PX_TRY(Shape::create(dims));
  if (type.kind != TypeInfo::Kind::tensor || bits_of(type.dtype) == 0)
    return corrupt_file("a weight without a type; it must be a tensor of a numeric type");
  return Tensor::zero_pages(type.dtype, shape);
}

// The values of initializers take their type from them.
void refresh_initializer_types(Graph& graph) {
  for (size_t index = 0; index < graph.initializers.size() && index < graph.initializer_values.size(); ++index) {
    const StoredTensor& stored = graph.initializers[index];
    const ValueId value = graph.initializer_values[index];
    if (value != kNoValue && !stored.absence.empty())
      graph.values[static_cast<size_t>(value)].type = type_of(stored.tensor);
  }
}

}  // namespace

Result<GraphPayload> encode_graph(const Model& model) {
  Model copy = model;
  own_bodies(copy.graph);
  for (auto& function : copy.functions) {
    function = std::make_shared<Function>(*function);
    own_bodies(function->body);
  }
  GraphPayload payload;
  uint32_t position = 0;
  const auto leave_out = [&](StoredTensor& stored) -> Status {
    const uint32_t own_position = position++;
    const bool is_small = stored.absence.empty() && stored.tensor.size_bytes() <= kKeptBytes;
    if (!stored.tensor.defined() || stored.tensor.dtype() == DType::string || is_small) return {};
    payload.left_out.emplace_back(own_position, type_of(stored.tensor));
    stored.tensor = PX_TRY(Tensor::allocate(stored.tensor.dtype(), Shape{0}));
    stored.external_location.clear();
    if (!stored.absence.empty()) stored.unparsed.clear();  // the location of the elements
    stored.absence.clear();
    return {};
  };
  PX_TRY(visit_model(copy, leave_out));
  payload.bytes = PX_TRY(export_model_bytes(copy));
  return payload;
}

Result<std::shared_ptr<const Model>> decode_graph_payload(std::span<const std::byte> bytes, const LeftOut& left_out,
                                                          const std::string& description) {
  ImportOptions options;
  options.checks = ModelChecks::none;
  auto imported = import_model(bytes, "", description, options);
  if (!imported.ok()) return corrupt_file(imported.error().message);
  const auto model = std::const_pointer_cast<Model>(imported.take());  // fresh: nobody else has seen it
  uint32_t position = 0;
  auto next = left_out.begin();
  const auto restore = [&](StoredTensor& stored) -> Status {
    if (next == left_out.end() || next->first != position++) return {};
    stored.tensor = PX_TRY(absent_tensor(next->second));
    stored.absence = kLeftOutOfDump;
    ++next;
    return {};
  };
  PX_TRY_CONTEXT(description, visit_model(*model, restore));
  refresh_initializer_types(model->graph);
  record_problems(*model);
  return std::shared_ptr<const Model>(model);
}

}  // namespace parallax::dump
