// SPDX-License-Identifier: Apache-2.0
// Conversion of types and value listings.
#include "inspector/model/io/type_proto.h"

#include "inspector/model/entries.h"
#include "inspector/model/io/proto_io.h"
#include "inspector/model/onnx.pb.h"

namespace parallax {
namespace {

DType element_type(int32_t number) { return dtype_from_number(number).value_or(DType::undefined); }

template <class TensorType>
TypeInfo tensor_type(TypeInfo::Kind kind, const TensorType& type) {
  TypeInfo info{kind, element_type(type.elem_type()), std::nullopt, {}};
  if (!type.has_shape()) return info;
  info.dims.emplace();
  for (const auto& dim : type.shape().dim()) {
    Dim& known = info.dims->emplace_back();
    if (dim.has_dim_value() && dim.dim_value() >= 0) known.value = dim.dim_value();
    if (dim.has_dim_param()) known.name = dim.dim_param();
  }
  return info;
}

Result<TypeInfo> nested_type(TypeInfo::Kind kind, DType key, bool has_inner, const proto::TypeProto& inner,
                             int max_depth) {
  TypeInfo info{kind, key, std::nullopt, {}};
  info.inner.emplace_back();
  if (has_inner) info.inner.back() = PX_TRY(type_from_proto(inner, max_depth - 1));
  return info;
}

template <class TensorType>
void put_tensor_type(const TypeInfo& info, TensorType& type) {
  if (info.dtype != DType::undefined) type.set_elem_type(static_cast<int32_t>(info.dtype));
  if (!info.dims) return;
  auto& shape = *type.mutable_shape();
  for (const Dim& known : *info.dims) {
    auto& dim = *shape.add_dim();
    if (known.is_known()) {
      dim.set_dim_value(known.value);
    } else if (!known.name.empty()) {
      dim.set_dim_param(known.name);
    }
  }
}

}  // namespace

Result<TypeInfo> type_from_proto(const proto::TypeProto& type, int max_depth) {
  using Kind = TypeInfo::Kind;
  if (max_depth <= 0) return invalid_model("types are nested too deep");
  switch (type.value_case()) {
    case proto::TypeProto::kTensorType:
      return tensor_type(Kind::tensor, type.tensor_type());
    case proto::TypeProto::kSparseTensorType:
      return tensor_type(Kind::sparse_tensor, type.sparse_tensor_type());
    case proto::TypeProto::kSequenceType: {
      const auto& sequence = type.sequence_type();
      return nested_type(Kind::sequence, DType::undefined, sequence.has_elem_type(), sequence.elem_type(), max_depth);
    }
    case proto::TypeProto::kOptionalType: {
      const auto& optional = type.optional_type();
      return nested_type(Kind::optional, DType::undefined, optional.has_elem_type(), optional.elem_type(), max_depth);
    }
    case proto::TypeProto::kMapType: {
      const auto& map = type.map_type();
      return nested_type(Kind::map, element_type(map.key_type()), map.has_value_type(), map.value_type(), max_depth);
    }
    case proto::TypeProto::kOpaqueType:
      return TypeInfo{Kind::opaque, DType::undefined, std::nullopt, {}};
    case proto::TypeProto::VALUE_NOT_SET:
      break;
  }
  return TypeInfo{};
}

void type_to_proto(const TypeInfo& type, proto::TypeProto& out) {
  switch (type.kind) {
    case TypeInfo::Kind::unknown:
      break;
    case TypeInfo::Kind::tensor:
      return put_tensor_type(type, *out.mutable_tensor_type());
    case TypeInfo::Kind::sparse_tensor:
      return put_tensor_type(type, *out.mutable_sparse_tensor_type());
    case TypeInfo::Kind::sequence:
      return type_to_proto(type.inner.at(0), *out.mutable_sequence_type()->mutable_elem_type());
    case TypeInfo::Kind::optional:
      return type_to_proto(type.inner.at(0), *out.mutable_optional_type()->mutable_elem_type());
    case TypeInfo::Kind::map:
      out.mutable_map_type()->set_key_type(static_cast<int32_t>(type.dtype));
      return type_to_proto(type.inner.at(0), *out.mutable_map_type()->mutable_value_type());
    case TypeInfo::Kind::opaque:
      out.mutable_opaque_type();
      break;
  }
}

void update_type(const TypeInfo& type, proto::TypeProto& out) {
  constexpr int kAnyDepth = 1 << 20;  // `out` was made by this program or read under the importer's limit
  const auto before = type_from_proto(out, kAnyDepth);
  if (before.ok() && *before == type) return;
  out.Clear();
  type_to_proto(type, out);
}

bool is_covered(const TypeInfo& info, const proto::TypeProto& type) {
  proto::TypeProto again;
  type_to_proto(info, again);
  return again.SerializePartialAsString() == type.SerializePartialAsString();
}

Status take_value_info(proto::ValueInfoProto& info, int max_depth, ValueDef& value) {
  value.type = PX_TRY_CONTEXT("value '" + info.name() + "'", type_from_proto(info.type(), max_depth));
  if (info.has_type() && value.type.kind != TypeInfo::Kind::unknown && is_covered(value.type, info.type()))
    info.clear_type();
  value.doc = take(info, &proto::ValueInfoProto::doc_string, &proto::ValueInfoProto::release_doc_string);
  value.metadata = take_entries(*info.mutable_metadata_props());
  info.clear_name();
  value.unparsed = rest_of(info);
  return {};
}

void put_value_info(const ValueDef& value, proto::ValueInfoProto& out) {
  out.ParsePartialFromString(value.unparsed);
  out.set_name(value.name);
  if (value.type.kind != TypeInfo::Kind::unknown) update_type(value.type, *out.mutable_type());
  if (!value.doc.empty()) out.set_doc_string(value.doc);
  put_entries(value.metadata, *out.mutable_metadata_props());
}

}  // namespace parallax
