// SPDX-License-Identifier: Apache-2.0
// Value files: the TensorProto, SequenceProto and OptionalProto files of test_data_set folders.
#include <algorithm>

#include <fmt/format.h>

#include "inspector/base/mapped_file.h"
#include "inspector/model/io/import.h"
#include "inspector/model/io/proto_io.h"
#include "inspector/model/io/tensor_proto.h"
#include "inspector/model/onnx.pb.h"
#include "inspector/model/sparse.h"

namespace parallax {
namespace {

constexpr int kMaxDepth = 64;  // of sequences in sequences

class ValueReader {
 public:
  Result<Value> tensor(proto::TensorProto& message) {
    StoredTensor stored = PX_TRY(take_tensor(message, no_external_));
    return Value(std::move(stored.tensor));
  }

  // Sparse values become the dense tensors they stand for.
  Result<Value> sparse(proto::SparseTensorProto& message) {
    const SparseTensor stored = PX_TRY(take_sparse_tensor(message, no_external_));
    return Value(PX_TRY(to_dense(stored)));
  }

  Result<Value> sequence(proto::SequenceProto& message, const TypeInfo& expected);
  Result<Value> optional(proto::OptionalProto& message, const TypeInfo& expected);
  Result<Value> map(proto::MapProto& message, const TypeInfo& expected);

 private:
  template <class Messages, class Read>
  Status append(Messages& messages, std::vector<Value>& items, Read read) {
    for (auto& message : messages) {
      const std::string context = "element " + std::to_string(items.size());
      items.push_back(PX_TRY_CONTEXT(context, read(message)));
    }
    return {};
  }

  ExternalData no_external_{""};
};

TypeInfo inner_of(const TypeInfo& type) { return type.inner.empty() ? TypeInfo{} : type.inner.front(); }

// An element type that fits all items: of several tensors, what they share.
TypeInfo element_type_of(const std::vector<Value>& items, const TypeInfo& expected) {
  if (expected.kind != TypeInfo::Kind::unknown || items.empty()) return expected;
  TypeInfo type = type_of(items.front());
  for (const Value& item : items) {
    if (type_of(item) != type) type.dims.reset();
  }
  return type;
}

Result<Value> ValueReader::sequence(proto::SequenceProto& message, const TypeInfo& expected) {
  SequenceValue sequence;
  const TypeInfo inner = inner_of(expected);
  const auto read_tensor = [this](auto& item) { return tensor(item); };
  const auto read_sparse = [this](auto& item) { return sparse(item); };
  const auto read_sequence = [&](auto& item) { return this->sequence(item, inner); };
  const auto read_map = [&](auto& item) { return map(item, inner); };
  const auto read_optional = [&](auto& item) { return optional(item, inner); };
  PX_TRY(append(*message.mutable_tensor_values(), sequence.items, read_tensor));
  PX_TRY(append(*message.mutable_sparse_tensor_values(), sequence.items, read_sparse));
  PX_TRY(append(*message.mutable_sequence_values(), sequence.items, read_sequence));
  PX_TRY(append(*message.mutable_map_values(), sequence.items, read_map));
  PX_TRY(append(*message.mutable_optional_values(), sequence.items, read_optional));
  sequence.element_type = element_type_of(sequence.items, inner);
  return Value(std::move(sequence));
}

Result<Value> ValueReader::optional(proto::OptionalProto& message, const TypeInfo& expected) {
  OptionalValue optional;
  const TypeInfo inner = inner_of(expected);
  if (message.has_tensor_value()) optional.item.push_back(PX_TRY(tensor(*message.mutable_tensor_value())));
  if (message.has_sparse_tensor_value())
    optional.item.push_back(PX_TRY(sparse(*message.mutable_sparse_tensor_value())));
  if (message.has_sequence_value()) optional.item.push_back(PX_TRY(sequence(*message.mutable_sequence_value(), inner)));
  if (message.has_map_value()) optional.item.push_back(PX_TRY(map(*message.mutable_map_value(), inner)));
  if (message.has_optional_value()) {
    optional.item.push_back(PX_TRY(this->optional(*message.mutable_optional_value(), inner)));
  }
  if (optional.item.size() > 1)
    return corrupt_file(fmt::format("an optional holds {} values; it must hold one at most", optional.item.size()));
  optional.element_type = element_type_of(optional.item, inner);
  return Value(std::move(optional));
}

Result<Value> ValueReader::map(proto::MapProto& message, const TypeInfo& expected) {
  MapValue map;
  TypeInfo of_values;
  of_values.inner = {inner_of(expected)};
  Value values = PX_TRY(sequence(*message.mutable_values(), of_values));
  map.values = std::move(values.sequence().items);
  map.value_type = values.sequence().element_type;
  const bool has_strings = message.string_keys_size() > 0 || message.key_type() == static_cast<int32_t>(DType::string);
  if (has_strings) {
    const std::vector<std::string> keys(message.string_keys().begin(), message.string_keys().end());
    map.keys = Tensor::vector<std::string>(keys);
  } else {
    map.keys = Tensor::vector<int64_t>(std::span(message.keys().data(), static_cast<size_t>(message.keys_size())));
  }
  if (map.keys.element_count() != static_cast<int64_t>(map.values.size()))
    return corrupt_file(fmt::format("a map has {} keys and {} values; it must have a value for each key",
                                    map.keys.element_count(), map.values.size()));
  return Value(std::move(map));
}

// A message that reads the whole file: a message of another kind would have unknown fields.
template <class Message>
bool reads_whole(const std::string& path, ByteSpan bytes) {
  Message message;
  return parse_message(bytes, form_of_ending(path), kMaxDepth, message).ok() &&
         message.GetReflection()->GetUnknownFields(message).empty();
}

Status parse_file(const std::string& path, const MappedFile& file, google::protobuf::Message& message) {
  const FileForm form = form_of_ending(path);
  const auto reserved =
      PX_TRY(reserve_message(file.bytes(), form, kMaxDepth, *message.GetDescriptor(), "'" + path + "'"));
  Status parsed = parse_message(file.bytes(), form, kMaxDepth, message, &file);
  return parsed.ok() ? std::move(parsed) : Status(corrupt_file("'" + path + "' " + parsed.error().message));
}

template <class Message, class Read>
Result<NamedValue> read_as(const std::string& path, const MappedFile& file, Read read) {
  Message message;
  PX_TRY(parse_file(path, file, message));
  NamedValue named;
  named.name = message.name();
  auto value = read(message);
  if (!value.ok()) {
    const bool is_limit = value.error().code == ErrorCode::out_of_memory;
    return make_error(is_limit ? ErrorCode::out_of_memory : ErrorCode::corrupt_file,
                      "'" + path + "': " + value.error().message);
  }
  named.value = value.take();
  return named;
}

// Read as this message, a file of another kind would be an empty sequence, optional or map.
template <class Message, class Read>
Result<NamedValue> read_nested(const std::string& path, const MappedFile& file, const TypeInfo& expected, Read read) {
  NamedValue named = PX_TRY(read_as<Message>(path, file, read));
  if (reads_whole<Message>(path, file.bytes())) return named;
  return corrupt_file(fmt::format("'{}' holds no {}, as which it is declared", path, to_string(expected)));
}

// True where a message is an optional of `inner`, and not the value itself: their fields have numbers in common.
bool is_optional_of(const proto::OptionalProto& message, const TypeInfo& inner) {
  const struct {
    TypeInfo::Kind kind;
    proto::SequenceProto::DataType elem_type;
    bool is_held;
  } kinds[] = {
      {TypeInfo::Kind::tensor, proto::SequenceProto::TENSOR, message.has_tensor_value()},
      {TypeInfo::Kind::sparse_tensor, proto::SequenceProto::SPARSE_TENSOR, message.has_sparse_tensor_value()},
      {TypeInfo::Kind::sequence, proto::SequenceProto::SEQUENCE, message.has_sequence_value()},
      {TypeInfo::Kind::map, proto::SequenceProto::MAP, message.has_map_value()},
      {TypeInfo::Kind::optional, proto::SequenceProto::OPTIONAL, message.has_optional_value()},
  };
  if (!message.GetReflection()->GetUnknownFields(message).empty()) return false;
  const bool is_empty = std::ranges::none_of(kinds, [](const auto& row) { return row.is_held; });
  for (const auto& row : kinds) {
    if (row.kind != inner.kind) continue;
    const bool fits = message.elem_type() == proto::SequenceProto::UNDEFINED || message.elem_type() == row.elem_type;
    return row.is_held || (is_empty && fits);
  }
  return true;
}

// A file of what the optional holds stands for the optional that holds it.
Result<NamedValue> read_optional(ValueReader& reader, const std::string& path, const MappedFile& file,
                                 const TypeInfo& expected) {
  const TypeInfo inner = inner_of(expected);
  proto::OptionalProto whole;
  Status parsed = parse_file(path, file, whole);
  if (!parsed.ok() && parsed.error().code == ErrorCode::out_of_memory) return std::move(parsed).error();
  const bool is_whole = parsed.ok() && is_optional_of(whole, inner);
  whole.Clear();
  if (inner.kind != TypeInfo::Kind::unknown && !is_whole) {
    NamedValue held = PX_TRY(read_value_file(path, inner));
    OptionalValue optional{inner, {std::move(held.value)}};
    return NamedValue{std::move(held.name), Value(std::move(optional))};
  }
  return read_nested<proto::OptionalProto>(path, file, expected,
                                           [&](auto& message) { return reader.optional(message, expected); });
}

}  // namespace

bool is_nested_value_file(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file.ok()) return false;
  const ByteSpan bytes = (*file)->bytes();
  const bool is_tensor = reads_whole<proto::TensorProto>(path, bytes) && read_value_file(path).ok();
  return !is_tensor && (reads_whole<proto::SequenceProto>(path, bytes) ||
                        reads_whole<proto::OptionalProto>(path, bytes) || reads_whole<proto::MapProto>(path, bytes));
}

Result<NamedValue> read_value_file(const std::string& path, const TypeInfo& expected) {
  const auto file = PX_TRY(MappedFile::open(path));
  ValueReader reader;
  switch (expected.kind) {
    case TypeInfo::Kind::sequence:
      return read_nested<proto::SequenceProto>(path, *file, expected,
                                               [&](auto& message) { return reader.sequence(message, expected); });
    case TypeInfo::Kind::optional:
      return read_optional(reader, path, *file, expected);
    case TypeInfo::Kind::map:
      return read_nested<proto::MapProto>(path, *file, expected,
                                          [&](auto& message) { return reader.map(message, expected); });
    case TypeInfo::Kind::sparse_tensor: {
      const auto read = [&](auto& message) { return reader.sparse(message); };
      proto::SparseTensorProto message;
      PX_TRY(parse_file(path, *file, message));
      const std::string name = message.values().name();
      auto value = PX_TRY_CONTEXT("'" + path + "'", read(message));
      return NamedValue{name, std::move(value)};
    }
    default:
      return read_as<proto::TensorProto>(path, *file, [&](auto& message) { return reader.tensor(message); });
  }
}

}  // namespace parallax
