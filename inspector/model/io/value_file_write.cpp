// SPDX-License-Identifier: Apache-2.0
// Writing values as the TensorProto, SequenceProto, OptionalProto and MapProto files of test_data_set folders.
#include "inspector/base/mapped_file.h"
#include "inspector/model/io/import.h"
#include "inspector/model/io/proto_io.h"
#include "inspector/model/io/tensor_proto.h"
#include "inspector/model/onnx.pb.h"

namespace parallax {
namespace {

using ElementKind = proto::SequenceProto::DataType;

ElementKind kind_of(const Value& value) {
  if (value.is_tensor()) return proto::SequenceProto::TENSOR;
  if (value.is_sequence()) return proto::SequenceProto::SEQUENCE;
  if (value.is_map()) return proto::SequenceProto::MAP;
  return value.is_optional() ? proto::SequenceProto::OPTIONAL : proto::SequenceProto::UNDEFINED;
}

ElementKind kind_of(const TypeInfo& type) {
  switch (type.kind) {
    case TypeInfo::Kind::tensor:
      return proto::SequenceProto::TENSOR;
    case TypeInfo::Kind::sparse_tensor:
      return proto::SequenceProto::SPARSE_TENSOR;
    case TypeInfo::Kind::sequence:
      return proto::SequenceProto::SEQUENCE;
    case TypeInfo::Kind::map:
      return proto::SequenceProto::MAP;
    case TypeInfo::Kind::optional:
      return proto::SequenceProto::OPTIONAL;
    default:
      return proto::SequenceProto::UNDEFINED;
  }
}

Status put_value(const Tensor& tensor, proto::TensorProto& out) {
  if (!tensor.device().is_host())
    return usage_error("a tensor on a device must be copied to the host before it is written");
  StoredTensor stored;
  stored.tensor = tensor;
  return put_tensor(stored, nullptr, out);
}

Status put_value(const SequenceValue& sequence, proto::SequenceProto& out);
Status put_value(const OptionalValue& optional, proto::OptionalProto& out);
Status put_value(const MapValue& map, proto::MapProto& out);

Status put_value(const SequenceValue& sequence, proto::SequenceProto& out) {
  const ElementKind kind = sequence.items.empty() ? kind_of(sequence.element_type) : kind_of(sequence.items.front());
  out.set_elem_type(kind);
  for (const Value& item : sequence.items) {
    if (kind_of(item) != kind)
      return usage_error("a sequence of values of several kinds cannot be written; all must be of one kind");
    if (item.is_tensor()) PX_TRY(put_value(item.tensor(), *out.add_tensor_values()));
    if (item.is_sequence()) PX_TRY(put_value(item.sequence(), *out.add_sequence_values()));
    if (item.is_map()) PX_TRY(put_value(item.map(), *out.add_map_values()));
    if (item.is_optional()) PX_TRY(put_value(item.optional(), *out.add_optional_values()));
  }
  return {};
}

Status put_value(const OptionalValue& optional, proto::OptionalProto& out) {
  out.set_elem_type(optional.item.empty() ? kind_of(optional.element_type) : kind_of(optional.item.front()));
  for (const Value& item : optional.item) {
    if (item.is_tensor()) PX_TRY(put_value(item.tensor(), *out.mutable_tensor_value()));
    if (item.is_sequence()) PX_TRY(put_value(item.sequence(), *out.mutable_sequence_value()));
    if (item.is_map()) PX_TRY(put_value(item.map(), *out.mutable_map_value()));
    if (item.is_optional()) PX_TRY(put_value(item.optional(), *out.mutable_optional_value()));
  }
  return {};
}

Status put_value(const MapValue& map, proto::MapProto& out) {
  out.set_key_type(static_cast<int32_t>(map.keys.dtype()));
  if (map.keys.dtype() == DType::string) {
    for (const std::string& key : map.keys.as<std::string>()) out.add_string_keys(key);
  } else if (map.keys.dtype() == DType::int64) {
    for (int64_t key : map.keys.as<int64_t>()) out.add_keys(key);
  } else {
    return usage_error("a map with " + std::string(name_of(map.keys.dtype())) +
                       " keys cannot be written; keys must be int64 or string");
  }
  return put_value(SequenceValue{map.value_type, map.values}, *out.mutable_values());
}

template <class Message, class Content>
Status write_as(const std::string& path, const std::string& name, const Content& content) {
  Message message;
  PX_TRY_CONTEXT("'" + path + "'", put_value(content, message));
  if (!name.empty()) message.set_name(name);
  const auto contents = serialize_message(message, form_of_ending(path));
  if (!contents.ok()) return make_error(contents.error().code, "'" + path + "' " + contents.error().message);
  return write_file(path, *contents);
}

}  // namespace

Status write_value_file(const std::string& path, const NamedValue& named) {
  const Value& value = named.value;
  if (value.is_tensor()) return write_as<proto::TensorProto>(path, named.name, value.tensor());
  if (value.is_sequence()) return write_as<proto::SequenceProto>(path, named.name, value.sequence());
  if (value.is_optional()) return write_as<proto::OptionalProto>(path, named.name, value.optional());
  if (value.is_map()) return write_as<proto::MapProto>(path, named.name, value.map());
  return usage_error("'" + path + "': there is no value to write");
}

}  // namespace parallax
