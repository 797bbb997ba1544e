// SPDX-License-Identifier: Apache-2.0
// Graphs, nodes and names. Definitions come first, so that a file whose nodes are out of order resolves like any other.
#include "inspector/model/io/import_graph.h"

#include <fmt/core.h>

#include "inspector/model/entries.h"
#include "inspector/model/io/proto_io.h"
#include "inspector/model/io/tensor_proto.h"
#include "inspector/model/io/type_proto.h"
#include "inspector/model/link.h"
#include "inspector/model/onnx.pb.h"

namespace parallax {
namespace {

TypeInfo type_of_tensor(const Tensor& tensor) {
  TypeInfo type = TypeInfo::tensor(tensor.dtype());
  type.dims.emplace();
  for (int64_t dim : tensor.shape()) type.dims->push_back({dim, {}});
  return type;
}

std::string named(std::string_view kind, const std::string& name) { return std::string(kind) + " '" + name + "'"; }

// The name of a node in an error raised before display names exist.
std::string name_in_file(const proto::NodeProto& node, size_t index) {
  return node.name().empty() ? node.op_type() + "_" + std::to_string(index) : node.name();
}

}  // namespace

Result<Graph> GraphImporter::read(proto::GraphProto& message) {
  if (depth_left_ <= 0) return invalid_model("graphs are nested too deep");
  PX_TRY(read_inputs(message));
  PX_TRY(read_initializers(message));
  PX_TRY(read_sparse_initializers(message));
  define_outputs(message);
  PX_TRY(read_outputs(message));
  PX_TRY(read_value_infos(message));
  PX_TRY(read_nodes(message));
  graph_.name = take(message, &proto::GraphProto::name, &proto::GraphProto::release_name);
  graph_.doc = take(message, &proto::GraphProto::doc_string, &proto::GraphProto::release_doc_string);
  graph_.metadata = take_entries(*message.mutable_metadata_props());
  graph_.unparsed = rest_of(message);
  link_graph(graph_);
  return std::move(graph_);
}

Result<Graph> GraphImporter::read_body(proto::FunctionProto& message) {
  for (const std::string& name : message.input()) graph_.inputs.push_back(define_new(name));
  message.clear_input();
  define_outputs(message);
  for (const std::string& name : message.output()) graph_.outputs.push_back(resolve(name));
  message.clear_output();
  PX_TRY(read_value_infos(message));
  PX_TRY(read_nodes(message));
  link_graph(graph_);
  return std::move(graph_);
}

// ---- Names ---------------------------------------------------------------------------------------------------------

ValueId GraphImporter::define_new(const std::string& name) {
  const auto id = static_cast<ValueId>(graph_.values.size());
  graph_.values.emplace_back().name = name;
  listed_.push_back(false);
  names_.emplace(name, id);  // the first definition of a name is the one that readers get
  return id;
}

ValueId GraphImporter::define(const std::string& name) {
  const auto known = names_.find(name);
  return known != names_.end() ? known->second : define_new(name);
}

ValueId GraphImporter::resolve(const std::string& name) {
  if (const auto known = names_.find(name); known != names_.end()) return known->second;
  if (!provide(name)) return define(name);  // dangling
  return names_.at(name);
}

// Makes `name` known here if this graph or an enclosing one defines it: every graph between gets it as an outer value.
bool GraphImporter::provide(const std::string& name) {
  if (names_.contains(name)) return true;
  if (enclosing_ == nullptr || !enclosing_->provide(name)) return false;
  const ValueId id = define(name);
  value(id).is_outer = true;
  value(id).type = enclosing_->find(name)->type;
  graph_.outer_values.push_back(id);
  return true;
}

const ValueDef* GraphImporter::find(const std::string& name) const {
  return &graph_.values[static_cast<size_t>(names_.at(name))];
}

// ---- Listings ------------------------------------------------------------------------------------------------------

// A value's first listing is read into it. A later one that says the same is dropped (true), any other stays in the
// message, where export finds it again.
Result<bool> GraphImporter::read_listing(ValueId id, proto::ValueInfoProto& info) {
  if (listed_[static_cast<size_t>(id)]) {
    proto::ValueInfoProto same;
    put_value_info(value(id), same);
    return same.SerializePartialAsString() == info.SerializePartialAsString();
  }
  listed_[static_cast<size_t>(id)] = true;
  const TypeInfo of_tensor = value(id).type;
  PX_TRY(take_value_info(info, depth_left_, value(id)));
  if (value(id).type.kind == TypeInfo::Kind::unknown) value(id).type = of_tensor;
  return true;
}

Status GraphImporter::read_inputs(proto::GraphProto& message) {
  for (auto& info : *message.mutable_input()) {
    graph_.inputs.push_back(define_new(info.name()));
    PX_TRY(read_listing(graph_.inputs.back(), info));
  }
  message.clear_input();
  return {};
}

Status GraphImporter::read_outputs(proto::GraphProto& message) {
  auto& infos = *message.mutable_output();
  google::protobuf::RepeatedPtrField<proto::ValueInfoProto> left;
  for (auto& info : infos) {
    const ValueId id = resolve(info.name());
    graph_.outputs.push_back(id);
    if (!PX_TRY(read_listing(id, info))) left.Add()->Swap(&info);
  }
  infos.Swap(&left);
  return {};
}

// The tensor itself says what an initializer is; a listing of another type or shape is out of date, as programs leave
// it that change weights. What is an input too must be as it is declared.
Result<bool> GraphImporter::is_outdated(ValueId id, const proto::ValueInfoProto& info) const {
  const ValueDef& known = graph_.values[static_cast<size_t>(id)];
  proto::ValueInfoProto copy = info;
  ValueDef listed;
  PX_TRY(take_value_info(copy, depth_left_, listed));
  if (listed.type.kind != TypeInfo::Kind::tensor) return listed.type.kind != TypeInfo::Kind::unknown;
  if (listed.type.dtype != DType::undefined && listed.type.dtype != known.type.dtype) return true;
  return listed.type.dims.has_value() && listed.type.dims != known.type.dims;
}

template <class Message>
Status GraphImporter::read_value_infos(Message& message) {
  auto& infos = *message.mutable_value_info();
  google::protobuf::RepeatedPtrField<proto::ValueInfoProto> left;
  std::vector<bool> only_stored(graph_.values.size(), false);
  for (const ValueId id : graph_.initializer_values) only_stored[static_cast<size_t>(id)] = true;
  for (const ValueId id : graph_.inputs) only_stored[static_cast<size_t>(id)] = false;
  for (auto& info : infos) {
    const auto known = names_.find(info.name());
    const bool is_first = known != names_.end() && !value(known->second).has_value_info;
    const bool is_initializer = is_first && only_stored[static_cast<size_t>(known->second)];
    const bool counts = is_first && !(is_initializer && PX_TRY(is_outdated(known->second, info)));
    if (counts && PX_TRY(read_listing(known->second, info))) {
      value(known->second).has_value_info = true;
    } else {
      left.Add()->Swap(&info);  // of a value that is not in the graph, or a second opinion
    }
  }
  infos.Swap(&left);
  return {};
}

// ---- Initializers --------------------------------------------------------------------------------------------------

Status GraphImporter::read_initializers(proto::GraphProto& message) {
  std::vector<bool> has_default(graph_.values.size(), false);
  for (auto& tensor : *message.mutable_initializer()) {
    const int type = tensor.data_type();
    StoredTensor stored = PX_TRY_CONTEXT(named("initializer", tensor.name()), take_tensor(tensor, external_));
    const auto known = names_.find(stored.name);
    const bool is_default = known != names_.end() && static_cast<size_t>(known->second) < has_default.size() &&
                            !has_default[static_cast<size_t>(known->second)];
    const ValueId id = is_default ? known->second : define_new(stored.name);
    if (is_default) has_default[static_cast<size_t>(id)] = true;
    const bool is_typed = stored.absence.empty() || stored.tensor.dtype() == dtype_from_number(type);
    if (value(id).type.kind == TypeInfo::Kind::unknown && is_typed) value(id).type = type_of_tensor(stored.tensor);
    graph_.initializer_values.push_back(id);
    graph_.initializers.push_back(std::move(stored));
  }
  message.clear_initializer();
  return {};
}

Status GraphImporter::read_sparse_initializers(proto::GraphProto& message) {
  for (auto& tensor : *message.mutable_sparse_initializer()) {
    const std::string name = tensor.values().name();
    auto taken = add_context(take_sparse_tensor(tensor, external_), named("sparse initializer", name));
    if (!taken.ok()) {
      if (!external_.keeps_absent() || taken.error().code == ErrorCode::out_of_memory) return std::move(taken).error();
      StoredTensor& absent = graph_.initializers.emplace_back();
      absent.name = name;
      absent.absence_code = taken.error().code;
      absent.absence = std::move(taken).error().message;
      absent.tensor = PX_TRY(Tensor::zeros(DType::uint8, Shape{0}));
      graph_.initializer_values.push_back(define(name));
      continue;
    }
    SparseTensor sparse = std::move(taken).take();
    const auto known = names_.find(name);
    const bool is_input = known != names_.end() && static_cast<size_t>(known->second) < graph_.inputs.size();
    const ValueId id = is_input ? known->second : define_new(name);
    if (value(id).type.kind == TypeInfo::Kind::unknown) {
      value(id).type = TypeInfo::tensor(sparse.values.tensor.dtype());
      value(id).type.dims.emplace();
      for (int64_t dim : sparse.dims) value(id).type.dims->push_back({dim, {}});
    }
    graph_.sparse_initializer_values.push_back(id);
    graph_.sparse_initializers.push_back(std::move(sparse));
  }
  message.clear_sparse_initializer();
  return {};
}

// ---- Nodes ---------------------------------------------------------------------------------------------------------

template <class Message>
void GraphImporter::define_outputs(Message& message) {
  graph_.nodes.resize(static_cast<size_t>(message.node_size()));
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    for (const std::string& name : message.node(static_cast<int>(n)).output()) {
      graph_.nodes[n].outputs.push_back(name.empty() ? kNoValue : define_new(name));
    }
  }
}

template <class Message>
Status GraphImporter::read_nodes(Message& message) {
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    proto::NodeProto& node = *message.mutable_node(static_cast<int>(n));
    const std::string name = name_in_file(node, n);
    const std::string op = node.op_type();
    Status status = read_node(node, graph_.nodes[n]);
    if (!status.ok()) {
      const std::string context = fmt::format("node '{}' ({})", name, op);
      return std::move(status).error().with_context(context).at_node(name, op);
    }
  }
  message.clear_node();
  return {};
}

Status GraphImporter::read_node(proto::NodeProto& message, Node& node) {
  using Message = proto::NodeProto;
  for (const std::string& name : message.input()) node.inputs.push_back(name.empty() ? kNoValue : resolve(name));
  for (auto& attribute : *message.mutable_attribute()) node.attributes.push_back(PX_TRY(read_attribute(attribute)));
  node.name = take(message, &Message::name, &Message::release_name);
  node.op_type = take(message, &Message::op_type, &Message::release_op_type);
  node.domain = take(message, &Message::domain, &Message::release_domain);
  node.overload = take(message, &Message::overload, &Message::release_overload);
  node.doc = take(message, &Message::doc_string, &Message::release_doc_string);
  node.metadata = take_entries(*message.mutable_metadata_props());
  message.clear_input();
  message.clear_output();
  message.clear_attribute();
  node.unparsed = rest_of(message);
  return {};
}

Result<std::shared_ptr<Graph>> GraphImporter::read_nested(proto::GraphProto& message) {
  return std::make_shared<Graph>(PX_TRY(GraphImporter(external_, depth_left_ - 1, this).read(message)));
}

}  // namespace parallax
