// SPDX-License-Identifier: Apache-2.0
// Reading and writing tensor messages: header fields, and which of the three fields holds the payload.
#include "inspector/model/io/tensor_proto.h"

#include <charconv>
#include <optional>

#include "inspector/base/checked_math.h"
#include "inspector/model/entries.h"
#include "inspector/model/io/proto_io.h"
#include "inspector/model/io/tensor_payload.h"
#include "inspector/model/onnx.pb.h"
#include "inspector/model/sparse.h"
#include "inspector/tensor/narrow_floats.h"

namespace parallax {
namespace {

Result<DType> element_type(const proto::TensorProto& message) {
  if (const auto dtype = dtype_from_number(message.data_type())) return *dtype;
  if (message.data_type() == 0) return invalid_model("has no element type; data_type must name one");
  const std::string name =
      proto::TensorProto::DataType_IsValid(message.data_type())
          ? proto::TensorProto::DataType_Name(static_cast<proto::TensorProto::DataType>(message.data_type()))
          : std::to_string(message.data_type());
  return unsupported("has element type " + name + ", which this version cannot hold");
}

Result<Shape> shape_of(const proto::TensorProto& message) {
  auto shape = Shape::create({message.dims().data(), static_cast<size_t>(message.dims_size())});
  if (!shape.ok() && shape.error().code != ErrorCode::unsupported) return invalid_model(shape.error().message);
  return shape;
}

struct ExternalLocation {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
};

Result<int64_t> parse_size(const std::string& key, const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0) {
    return invalid_model("external data with " + key + " '" + text + "', which is no size");
  }
  return number;
}

Result<ExternalLocation> location_of(const proto::TensorProto& message) {
  ExternalLocation location;
  for (const auto& entry : message.external_data()) {
    if (entry.key() == "location") location.location = entry.value();
    if (entry.key() == "offset") location.offset = PX_TRY(parse_size(entry.key(), entry.value()));
    if (entry.key() == "length") location.length = PX_TRY(parse_size(entry.key(), entry.value()));
  }
  return location;
}

// Drops location, offset and length; entries of other keys (a checksum) stay in the message.
void clear_location(proto::TensorProto& message) {
  auto& entries = *message.mutable_external_data();
  for (int i = entries.size() - 1; i >= 0; --i) {
    const std::string& key = entries.Get(i).key();
    if (key == "location" || key == "offset" || key == "length") entries.DeleteSubrange(i, 1);
  }
  message.clear_data_location();
}

Result<Tensor> external_payload(DType dtype, const Shape& shape, const ExternalLocation& location,
                                ExternalData& external) {
  if (dtype == DType::string) return invalid_model("strings cannot be in external data; string_data must hold them");
  const auto file = PX_TRY(external.open(location.location));
  const auto needed = static_cast<int64_t>(byte_size(dtype, shape.element_count()));
  const int64_t length = location.length.value_or(needed);
  const auto end = checked_add(location.offset, length);
  const auto available = static_cast<int64_t>(file->bytes().size());
  if (!end || *end > available) {
    return invalid_model("external data '" + location.location + "' has " + std::to_string(available) +
                         " bytes, too few for " + std::to_string(length) + " from offset " +
                         std::to_string(location.offset));
  }
  const auto bytes = file->bytes().subspan(static_cast<size_t>(location.offset), static_cast<size_t>(length));
  return adopt_payload(dtype, shape, bytes, file);
}

Result<Tensor> raw_payload(DType dtype, const Shape& shape, proto::TensorProto& message) {
  if (dtype == DType::string) return invalid_model("strings cannot be in raw_data; string_data must hold them");
  if (message.raw_data().empty()) return adopt_payload(dtype, shape, {}, nullptr);  // an empty field stays as it is
  const std::shared_ptr<const std::string> owner(message.release_raw_data());
  return adopt_payload(dtype, shape, {reinterpret_cast<const std::byte*>(owner->data()), owner->size()}, owner);
}

Result<Tensor> take_payload(DType dtype, const Shape& shape, proto::TensorProto& message, ExternalData& external,
                            StoredTensor& stored) {
  const bool is_external = message.data_location() == proto::TensorProto::EXTERNAL;
  const bool typed = has_typed_payload(message);
  if (is_external + typed + message.has_raw_data() > 1)
    return invalid_model("holds its data in more than one field; it must hold it in one");
  if (is_external) {
    const ExternalLocation location = PX_TRY(location_of(message));
    stored.external_location = location.location;
    Tensor tensor = PX_TRY(external_payload(dtype, shape, location, external));
    clear_location(message);
    return tensor;
  }
  if (message.has_raw_data()) return raw_payload(dtype, shape, message);
  stored.is_typed = typed;
  return take_typed_payload(dtype, shape, message);
}

// Sets `stored.tensor`, and takes what says so out of the message.
Status take_elements(proto::TensorProto& message, ExternalData& external, StoredTensor& stored) {
  if (message.has_segment()) return unsupported("is one segment of a tensor, which no published tool writes");
  const Shape shape = PX_TRY(shape_of(message));
  const DType dtype = PX_TRY(element_type(message));
  stored.tensor = PX_TRY(take_payload(dtype, shape, message, external, stored));
  message.clear_dims();
  message.clear_data_type();
  return {};
}

// Type and shape as far as they can be read. The message keeps what says so, and the location of the elements.
Result<Tensor> without_elements(const proto::TensorProto& message) {
  const auto shape = shape_of(message);
  const auto dtype = element_type(message);
  if (!shape.ok() || !dtype.ok()) return Tensor::zeros(DType::uint8, Shape{0});
  return *dtype == DType::string ? Tensor::zeros(*dtype, Shape{0}) : Tensor::zero_pages(*dtype, *shape);
}

}  // namespace

Result<StoredTensor> take_tensor(proto::TensorProto& message, ExternalData& external) {
  StoredTensor stored;
  if (Status taken = take_elements(message, external, stored); !taken.ok()) {
    if (!external.keeps_absent() || taken.error().code == ErrorCode::out_of_memory) return std::move(taken).error();
    stored.absence_code = taken.error().code;
    stored.absence = std::move(taken).error().message;
    stored.tensor = PX_TRY(without_elements(message));
  }
  stored.name = take(message, &proto::TensorProto::name, &proto::TensorProto::release_name);
  stored.doc = take(message, &proto::TensorProto::doc_string, &proto::TensorProto::release_doc_string);
  stored.metadata = take_entries(*message.mutable_metadata_props());
  stored.unparsed = rest_of(message);
  return stored;
}

Result<SparseTensor> take_sparse_tensor(proto::SparseTensorProto& message, ExternalData& external) {
  SparseTensor sparse;
  sparse.values = PX_TRY_CONTEXT("values", take_tensor(*message.mutable_values(), external));
  sparse.indices = PX_TRY_CONTEXT("indices", take_tensor(*message.mutable_indices(), external));
  sparse.dims.assign(message.dims().begin(), message.dims().end());
  message.clear_values();
  message.clear_indices();
  message.clear_dims();
  sparse.unparsed = rest_of(message);
  PX_TRY(check_sparse(sparse));
  return sparse;
}

Status put_tensor(const StoredTensor& stored, PayloadSink* sink, proto::TensorProto& out) {
  out.ParsePartialFromString(stored.unparsed);
  if (!stored.absence.empty()) {
    if (!out.has_data_type() || out.data_location() != proto::TensorProto::EXTERNAL)
      return invalid_model("tensor '" + stored.name + "' cannot be written: " + stored.absence);
    out.set_name(stored.name);
    if (!stored.doc.empty()) out.set_doc_string(stored.doc);
    put_entries(stored.metadata, *out.mutable_metadata_props());
    return {};
  }
  for (int64_t dim : stored.tensor.shape()) out.add_dims(dim);
  out.set_data_type(static_cast<int32_t>(stored.tensor.dtype()));
  if (!stored.name.empty()) out.set_name(stored.name);
  if (!stored.doc.empty()) out.set_doc_string(stored.doc);
  put_entries(stored.metadata, *out.mutable_metadata_props());
  if (sink != nullptr) {
    if (const auto location = PX_TRY(sink->write(stored))) {
      const std::string length = std::to_string(stored.tensor.size_bytes());
      out.set_data_location(proto::TensorProto::EXTERNAL);
      put_entries({{"location", location->location}, {"offset", std::to_string(location->offset)}, {"length", length}},
                  *out.mutable_external_data());
      return {};
    }
  }
  out.clear_external_data();
  const auto bytes = stored.tensor.view();
  if (const Tensor* source = sink == nullptr ? nullptr : sink->source_of(stored)) {
    const Tensor narrow = PX_TRY(narrow_tensor(*source, stored.tensor.dtype()));
    out.set_raw_data(narrow.view().data, narrow.size_bytes());
  } else if (stored.is_typed || stored.tensor.dtype() == DType::string) {
    put_typed_payload(bytes, out);
  } else if (bytes.size_bytes() > 0) {
    out.set_raw_data(bytes.data, bytes.size_bytes());
  }
  return {};
}

Status put_sparse_tensor(const SparseTensor& tensor, PayloadSink* sink, proto::SparseTensorProto& out) {
  out.ParsePartialFromString(tensor.unparsed);
  PX_TRY(put_tensor(tensor.values, sink, *out.mutable_values()));
  PX_TRY(put_tensor(tensor.indices, sink, *out.mutable_indices()));
  for (int64_t dim : tensor.dims) out.add_dims(dim);
  return {};
}

}  // namespace parallax
