// SPDX-License-Identifier: Apache-2.0
// Bytes in, bytes out; every read is checked against what is left.
#include "inspector/dump/fields.h"

#include "inspector/dump/format.h"
#include "inspector/tensor/shape.h"

namespace parallax::dump {
namespace {

constexpr int kMaxTypeDepth = 64;

bool is_number_of_dtype(uint8_t number) { return number < kDTypeCount; }

}  // namespace

void ByteWriter::text(std::string_view value) {
  number(static_cast<uint32_t>(value.size()));
  bytes(value.data(), value.size());
}

std::span<const std::byte> ByteReader::take(uint64_t size) {
  if (!ok_ || size > bytes_.size()) {
    ok_ = false;
    return {};
  }
  const auto taken = bytes_.first(static_cast<size_t>(size));
  bytes_ = bytes_.subspan(static_cast<size_t>(size));
  return taken;
}

std::string ByteReader::text() {
  const auto content = take(number<uint32_t>());
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

void write_type(ByteWriter& writer, const TypeInfo& type) {
  writer.number(type.kind);
  writer.number(type.dtype);
  writer.number(static_cast<uint8_t>(type.dims.has_value()));
  writer.number(static_cast<uint8_t>(type.inner.empty() ? 0 : 1));
  writer.number(static_cast<uint32_t>(type.dims.has_value() ? type.dims->size() : 0));
  if (type.dims.has_value()) {
    for (const Dim& dim : *type.dims) {
      writer.number(dim.value);
      writer.text(dim.name);
    }
  }
  if (!type.inner.empty()) write_type(writer, type.inner.front());
}

TypeInfo read_type(ByteReader& reader, int depth) {
  TypeInfo type;
  const auto kind = reader.number<uint8_t>();
  const auto dtype = reader.number<uint8_t>();
  const auto has_dims = reader.number<uint8_t>();
  const auto inner_count = reader.number<uint8_t>();
  const auto rank = reader.number<uint32_t>();
  if (kind > static_cast<uint8_t>(TypeInfo::Kind::opaque) || !is_number_of_dtype(dtype) || has_dims > 1 ||
      inner_count > 1 || rank > Shape::kMaxRank || (has_dims == 0 && rank > 0) || depth > kMaxTypeDepth) {
    reader.fail();
    return type;
  }
  type.kind = static_cast<TypeInfo::Kind>(kind);
  type.dtype = static_cast<DType>(dtype);
  if (has_dims == 1) type.dims.emplace();
  for (uint32_t axis = 0; axis < rank; ++axis) {
    Dim dim;
    dim.value = reader.number<int64_t>();
    dim.name = reader.text();
    if (dim.value < -1) reader.fail();
    type.dims->push_back(std::move(dim));
  }
  if (inner_count == 1 && reader.ok()) type.inner.push_back(read_type(reader, depth + 1));
  return type;
}

void FieldWriter::begin(uint16_t tag, size_t size) {
  out_.number(tag);
  out_.number(uint16_t{0});
  out_.number(static_cast<uint32_t>(size));
}

void FieldWriter::raw(uint16_t tag, const void* data, size_t size) {
  begin(tag, size);
  out_.bytes(data, size);
  out_.pad(8);
}

void FieldWriter::type(uint16_t tag, const TypeInfo& type) {
  ByteWriter content;
  write_type(content, type);
  raw(tag, content.data(), content.size());
}

void FieldWriter::pairs(uint16_t tag, const TextPairs& pairs) {
  ByteWriter content;
  content.number(static_cast<uint32_t>(pairs.size()));
  for (const auto& [first, second] : pairs) {
    content.text(first);
    content.text(second);
  }
  raw(tag, content.data(), content.size());
}

size_t FieldWriter::reserve(uint16_t tag, size_t size) {
  begin(tag, size);
  const size_t offset = out_.size();
  const std::string zeros(size, '\0');
  out_.bytes(zeros.data(), zeros.size());
  out_.pad(8);
  return offset;
}

std::optional<Fields> Fields::parse(std::span<const std::byte> body) {
  Fields fields;
  ByteReader reader(body);
  while (reader.remaining() > 0) {
    const auto tag = reader.number<uint16_t>();
    reader.number<uint16_t>();
    const auto size = reader.number<uint32_t>();
    const auto content = reader.take(size);
    reader.take(round_up(size, 8) - size);
    if (!reader.ok()) return std::nullopt;
    fields.fields_.push_back({tag, content});
  }
  return fields;
}

const Fields::Field* Fields::find(uint16_t tag) const {
  for (const Field& field : fields_) {
    if (field.tag == tag) return &field;
  }
  return nullptr;
}

std::span<const std::byte> Fields::raw(uint16_t tag) const {
  const Field* field = find(tag);
  return field == nullptr ? std::span<const std::byte>{} : field->content;
}

std::string Fields::text(uint16_t tag) const {
  const auto content = raw(tag);
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

std::optional<TextPairs> read_pairs(std::span<const std::byte> content) {
  ByteReader reader(content);
  TextPairs pairs;
  const auto count = reader.number<uint32_t>();
  for (uint32_t index = 0; index < count && reader.ok(); ++index) {
    std::string first = reader.text();
    pairs.emplace_back(std::move(first), reader.text());
  }
  if (!reader.ok()) return std::nullopt;
  return pairs;
}

}  // namespace parallax::dump
