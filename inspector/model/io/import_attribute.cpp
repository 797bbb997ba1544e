// SPDX-License-Identifier: Apache-2.0
// Attributes: exactly the field that the type names is read; a file that sets another one is refused.
#include <cmath>

#include "inspector/model/io/import_graph.h"
#include "inspector/model/io/proto_io.h"
#include "inspector/model/io/tensor_proto.h"
#include "inspector/model/io/type_proto.h"
#include "inspector/model/onnx.pb.h"

namespace parallax {
namespace {

// The value fields that are set, as types. More than one is an error, none is the zero value of a scalar or an empty
// list.
std::vector<AttributeType> fields_set(const proto::AttributeProto& message) {
  const std::pair<bool, AttributeType> fields[] = {
      {message.has_f(), AttributeType::float_},
      {message.has_i(), AttributeType::int_},
      {message.has_s(), AttributeType::string},
      {message.has_t(), AttributeType::tensor},
      {message.has_g(), AttributeType::graph},
      {message.has_sparse_tensor(), AttributeType::sparse_tensor},
      {message.has_tp(), AttributeType::type_proto},
      {message.floats_size() > 0, AttributeType::floats},
      {message.ints_size() > 0, AttributeType::ints},
      {message.strings_size() > 0, AttributeType::strings},
      {message.tensors_size() > 0, AttributeType::tensors},
      {message.graphs_size() > 0, AttributeType::graphs},
      {message.sparse_tensors_size() > 0, AttributeType::sparse_tensors},
      {message.type_protos_size() > 0, AttributeType::type_protos},
  };
  std::vector<AttributeType> set;
  for (const auto& [is_set, type] : fields) {
    if (is_set) set.push_back(type);
  }
  return set;
}

// The type the message gives, or that of its only field where an old or sparse writer left the type out.
Result<AttributeType> type_of(const proto::AttributeProto& message) {
  const auto set = fields_set(message);
  const auto stated = static_cast<AttributeType>(message.type());
  if (!message.ref_attr_name().empty()) {
    if (set.empty()) return stated;
    return invalid_model("both refers to attribute '" + message.ref_attr_name() +
                         "' and holds a value; it must do one of them");
  }
  for (AttributeType type : set) {
    if (type == stated || (stated == AttributeType::undefined && set.size() == 1)) continue;
    return invalid_model("is of type " + std::string(name_of(stated)) + " but holds " + std::string(name_of(type)) +
                         "; both must agree");
  }
  if (stated != AttributeType::undefined) return stated;
  if (set.empty()) return invalid_model("has neither type nor value; it must have a value");
  return set.front();
}

bool is_list(AttributeType type) {
  switch (type) {
    case AttributeType::floats:
    case AttributeType::ints:
    case AttributeType::strings:
    case AttributeType::tensors:
    case AttributeType::graphs:
    case AttributeType::sparse_tensors:
    case AttributeType::type_protos:
      return true;
    default:
      return false;
  }
}

Error no_value(AttributeType type) {
  return invalid_model("is of type " + std::string(name_of(type)) +
                       " but holds none; it must hold a value of its type");
}

}  // namespace

Result<Attribute> GraphImporter::read_attribute(proto::AttributeProto& message) {
  using Message = proto::AttributeProto;
  const std::string context = "attribute '" + message.name() + "'";
  Attribute attribute;
  if (Status read = read_any_value(message, attribute); !read.ok()) {
    if (!external_.keeps_absent() || read.error().code == ErrorCode::out_of_memory)
      return std::move(read).error().with_context(context);
    attribute.value = {};
    attribute.absence = std::move(read).error().message;
  }
  message.clear_type();
  attribute.name = take(message, &Message::name, &Message::release_name);
  attribute.ref_attr_name = take(message, &Message::ref_attr_name, &Message::release_ref_attr_name);
  attribute.doc = take(message, &Message::doc_string, &Message::release_doc_string);
  attribute.unparsed = rest_of(message);
  return attribute;
}

Status GraphImporter::read_any_value(proto::AttributeProto& message, Attribute& attribute) {
  attribute.type = PX_TRY(type_of(message));
  if (!message.ref_attr_name().empty()) return {};
  return is_list(attribute.type) ? read_value_list(attribute.type, message, attribute)
                                 : read_value(attribute.type, message, attribute);
}

Status GraphImporter::read_value(AttributeType type, proto::AttributeProto& message, Attribute& attribute) {
  switch (type) {
    case AttributeType::float_:
      attribute.value = message.f();
      message.clear_f();
      return {};
    case AttributeType::int_:
      attribute.value = message.i();
      message.clear_i();
      return {};
    case AttributeType::string:
      attribute.value = message.s();
      message.clear_s();
      return {};
    case AttributeType::tensor:
      if (!message.has_t()) return no_value(type);
      attribute.value = PX_TRY(take_tensor(*message.mutable_t(), external_));
      message.clear_t();
      return {};
    case AttributeType::graph:
      if (!message.has_g()) return no_value(type);
      attribute.value = PX_TRY(read_nested(*message.mutable_g()));
      message.clear_g();
      return {};
    case AttributeType::sparse_tensor:
      if (!message.has_sparse_tensor()) return no_value(type);
      attribute.value = PX_TRY(take_sparse_tensor(*message.mutable_sparse_tensor(), external_));
      message.clear_sparse_tensor();
      return {};
    case AttributeType::type_proto: {
      if (!message.has_tp()) return no_value(type);
      TypeInfo info = PX_TRY(type_from_proto(message.tp(), depth_left_));
      if (is_covered(info, message.tp())) message.clear_tp();
      attribute.value = std::move(info);
      return {};
    }
    default:
      return invalid_model("has type number " + std::to_string(static_cast<int>(type)) +
                           ", which the format does not define");
  }
}

template <class Value, class Messages, class Read>
Result<std::vector<Value>> GraphImporter::read_list(Messages& messages, Read read) {
  std::vector<Value> values;
  values.reserve(static_cast<size_t>(messages.size()));
  for (auto& message : messages) values.push_back(PX_TRY(read(message)));
  messages.Clear();
  return values;
}

Status GraphImporter::read_value_list(AttributeType type, proto::AttributeProto& message, Attribute& attribute) {
  const auto tensor = [this](proto::TensorProto& item) { return take_tensor(item, external_); };
  const auto sparse = [this](proto::SparseTensorProto& item) { return take_sparse_tensor(item, external_); };
  const auto graph = [this](proto::GraphProto& item) { return read_nested(item); };
  switch (type) {
    case AttributeType::floats:
      attribute.value = std::vector<float>(message.floats().begin(), message.floats().end());
      message.clear_floats();
      return {};
    case AttributeType::ints:
      attribute.value = std::vector<int64_t>(message.ints().begin(), message.ints().end());
      message.clear_ints();
      return {};
    case AttributeType::strings:
      attribute.value = std::vector<std::string>(message.strings().begin(), message.strings().end());
      message.clear_strings();
      return {};
    case AttributeType::tensors:
      attribute.value = PX_TRY(read_list<StoredTensor>(*message.mutable_tensors(), tensor));
      return {};
    case AttributeType::graphs:
      attribute.value = PX_TRY(read_list<std::shared_ptr<Graph>>(*message.mutable_graphs(), graph));
      return {};
    case AttributeType::sparse_tensors:
      attribute.value = PX_TRY(read_list<SparseTensor>(*message.mutable_sparse_tensors(), sparse));
      return {};
    default: {
      std::vector<TypeInfo> types;
      bool covered = true;
      for (const auto& item : message.type_protos()) {
        types.push_back(PX_TRY(type_from_proto(item, depth_left_)));
        covered = covered && is_covered(types.back(), item);
      }
      if (covered) message.clear_type_protos();
      attribute.value = std::move(types);
      return {};
    }
  }
}

}  // namespace parallax
