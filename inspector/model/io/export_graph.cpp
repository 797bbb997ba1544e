// SPDX-License-Identifier: Apache-2.0
// Writing graphs, nodes and attributes.
#include "inspector/model/io/export_graph.h"

#include <unordered_map>
#include <unordered_set>

#include "inspector/model/blocked_operators.h"
#include "inspector/model/entries.h"
#include "inspector/model/io/type_proto.h"
#include "inspector/model/onnx.pb.h"

namespace parallax {
namespace {

// ---- Attributes ----------------------------------------------------------------------------------------------------

// Puts one attribute's value into its field.
struct PutValue {
  PayloadSink* sink;
  proto::AttributeProto& out;

  Status operator()(std::monostate) const { return {}; }
  Status operator()(float value) const { return out.set_f(value), Status(); }
  Status operator()(int64_t value) const { return out.set_i(value), Status(); }
  Status operator()(const std::string& value) const { return out.set_s(value), Status(); }
  Status operator()(const StoredTensor& value) const { return put_tensor(value, sink, *out.mutable_t()); }
  Status operator()(const std::shared_ptr<Graph>& value) const { return put_graph(*value, sink, *out.mutable_g()); }
  Status operator()(const SparseTensor& value) const {
    return put_sparse_tensor(value, sink, *out.mutable_sparse_tensor());
  }
  Status operator()(const TypeInfo& value) const { return update_type(value, *out.mutable_tp()), Status(); }
  Status operator()(const std::vector<float>& values) const {
    return out.mutable_floats()->Add(values.begin(), values.end()), Status();
  }
  Status operator()(const std::vector<int64_t>& values) const {
    return out.mutable_ints()->Add(values.begin(), values.end()), Status();
  }
  Status operator()(const std::vector<std::string>& values) const {
    for (const std::string& value : values) out.add_strings(value);
    return {};
  }
  Status operator()(const std::vector<StoredTensor>& values) const {
    for (const StoredTensor& value : values) PX_TRY(put_tensor(value, sink, *out.add_tensors()));
    return {};
  }
  Status operator()(const std::vector<std::shared_ptr<Graph>>& values) const {
    for (const auto& value : values) PX_TRY(put_graph(*value, sink, *out.add_graphs()));
    return {};
  }
  Status operator()(const std::vector<SparseTensor>& values) const {
    for (const SparseTensor& value : values) PX_TRY(put_sparse_tensor(value, sink, *out.add_sparse_tensors()));
    return {};
  }
  Status operator()(const std::vector<TypeInfo>& values) const {
    auto& messages = *out.mutable_type_protos();  // what import left here says the same and more
    if (static_cast<size_t>(messages.size()) != values.size()) messages.Clear();
    for (size_t i = 0; i < values.size(); ++i) {
      update_type(values[i],
                  static_cast<size_t>(messages.size()) > i ? *messages.Mutable(static_cast<int>(i)) : *messages.Add());
    }
    return {};
  }
};

Status put_attribute(const Attribute& attribute, PayloadSink* sink, proto::AttributeProto& out) {
  if (!attribute.absence.empty())
    return invalid_model("attribute '" + attribute.name + "' cannot be written: " + attribute.absence);
  out.ParsePartialFromString(attribute.unparsed);
  if (!attribute.name.empty()) out.set_name(attribute.name);
  if (attribute.type != AttributeType::undefined) {
    out.set_type(static_cast<proto::AttributeProto::AttributeType>(attribute.type));
  }
  if (!attribute.ref_attr_name.empty()) out.set_ref_attr_name(attribute.ref_attr_name);
  if (!attribute.doc.empty()) out.set_doc_string(attribute.doc);
  return std::visit(PutValue{sink, out}, attribute.value);
}

// ---- Nodes ---------------------------------------------------------------------------------------------------------

const std::string& name_of(const Graph& graph, ValueId id) {
  static const std::string kOmitted;
  return id == kNoValue ? kOmitted : graph.values[static_cast<size_t>(id)].name;
}

Status put_node(const Graph& graph, const Node& node, PayloadSink* sink, proto::NodeProto& out) {
  out.ParsePartialFromString(node.unparsed);
  for (ValueId id : node.inputs) out.add_input(name_of(graph, id));
  for (ValueId id : node.outputs) out.add_output(name_of(graph, id));
  if (!node.name.empty()) out.set_name(node.name);
  if (!node.op_type.empty()) out.set_op_type(node.op_type);
  if (!node.domain.empty()) out.set_domain(node.domain);
  if (!node.overload.empty() && node.domain != kBlockedDomain) out.set_overload(node.overload);
  if (!node.doc.empty()) out.set_doc_string(node.doc);
  put_entries(node.metadata, *out.mutable_metadata_props());
  for (const Attribute& attribute : node.attributes) PX_TRY(put_attribute(attribute, sink, *out.add_attribute()));
  return {};
}

// ---- Values --------------------------------------------------------------------------------------------------------

using Listings = google::protobuf::RepeatedPtrField<proto::ValueInfoProto>;

// True where a listing that import kept unchanged still agrees with the value.
bool agrees(const proto::ValueInfoProto& listing, const ValueDef& value) {
  const auto type = type_from_proto(listing.type(), 1 << 20);
  return type.ok() &&
         (type->kind == TypeInfo::Kind::unknown || (type->kind == value.type.kind && type->dtype == value.type.dtype));
}

// Outputs in order. One that has been listed before, as input or output, takes the other listing that import kept.
void put_outputs(const Graph& graph, proto::GraphProto& out) {
  Listings kept;
  kept.Swap(out.mutable_output());
  std::unordered_set<ValueId> listed(graph.inputs.begin(), graph.inputs.end());
  for (ValueId id : graph.outputs) {
    const ValueDef& value = graph.values[static_cast<size_t>(id)];
    auto found = kept.end();
    if (!listed.insert(id).second) {
      found = std::find_if(kept.begin(), kept.end(),
                           [&](const auto& info) { return info.name() == value.name && agrees(info, value); });
    }
    if (found == kept.end()) {
      put_value_info(value, *out.add_output());
    } else {
      out.add_output()->Swap(&*found);
      kept.erase(found);
    }
  }
}

// The values that were listed, then what import kept: values that the graph no longer has, and second listings.
void put_value_infos(const Graph& graph, Listings& out) {
  Listings kept;
  kept.Swap(&out);
  for (const ValueDef& value : graph.values) {
    if (value.has_value_info) put_value_info(value, *out.Add());
  }
  if (kept.empty()) return;
  std::unordered_map<std::string_view, const ValueDef*> values;
  for (const ValueDef& value : graph.values) values.emplace(value.name, &value);
  for (auto& info : kept) {
    const auto known = values.find(info.name());
    if (known == values.end() || agrees(info, *known->second)) out.Add()->Swap(&info);
  }
}

}  // namespace

Status put_graph(const Graph& graph, PayloadSink* sink, proto::GraphProto& out) {
  out.ParsePartialFromString(graph.unparsed);
  if (!graph.name.empty()) out.set_name(graph.name);
  if (!graph.doc.empty()) out.set_doc_string(graph.doc);
  put_entries(graph.metadata, *out.mutable_metadata_props());
  for (ValueId id : graph.inputs) put_value_info(graph.values[static_cast<size_t>(id)], *out.add_input());
  put_outputs(graph, out);
  put_value_infos(graph, *out.mutable_value_info());
  for (const StoredTensor& tensor : graph.initializers) PX_TRY(put_tensor(tensor, sink, *out.add_initializer()));
  for (const SparseTensor& tensor : graph.sparse_initializers) {
    PX_TRY(put_sparse_tensor(tensor, sink, *out.add_sparse_initializer()));
  }
  for (const Node& node : graph.nodes) PX_TRY(put_node(graph, node, sink, *out.add_node()));
  return {};
}

Status put_function(const Function& function, PayloadSink* sink, proto::FunctionProto& out) {
  out.ParsePartialFromString(function.unparsed);
  if (!function.domain.empty()) out.set_domain(function.domain);
  if (!function.name.empty()) out.set_name(function.name);
  if (!function.overload.empty()) out.set_overload(function.overload);
  if (!function.doc.empty()) out.set_doc_string(function.doc);
  put_entries(function.metadata, *out.mutable_metadata_props());
  for (const std::string& name : function.attribute_names) out.add_attribute(name);
  for (const Attribute& attribute : function.attribute_defaults) {
    PX_TRY(put_attribute(attribute, sink, *out.add_attribute_proto()));
  }
  for (const OpsetImport& import : function.opset_imports) {
    auto& message = *out.add_opset_import();
    message.set_domain(import.domain);
    message.set_version(import.version);
  }
  const Graph& body = function.body;
  for (ValueId id : body.inputs) out.add_input(name_of(body, id));
  for (ValueId id : body.outputs) out.add_output(name_of(body, id));
  put_value_infos(body, *out.mutable_value_info());
  for (const Node& node : body.nodes) PX_TRY(put_node(body, node, sink, *out.add_node()));
  return {};
}

}  // namespace parallax
