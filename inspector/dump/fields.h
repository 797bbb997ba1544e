// SPDX-License-Identifier: Apache-2.0
// The fields of a record's body (tag, size, content), and the plain byte streams inside a field.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/tensor/type_info.h"

namespace parallax::dump {

// Appends numbers and text to a byte string.
class ByteWriter {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    bytes(&value, sizeof value);
  }
  void text(std::string_view value);  // u32 size, bytes
  void bytes(const void* data, size_t size) { out_.append(static_cast<const char*>(data), size); }
  void pad(size_t alignment) { out_.resize((out_.size() + alignment - 1) / alignment * alignment); }
  void clear() { out_.clear(); }

  size_t size() const { return out_.size(); }
  char* data() { return out_.data(); }
  std::string_view view() const { return out_; }
  std::span<const std::byte> span() const { return {reinterpret_cast<const std::byte*>(out_.data()), out_.size()}; }

 private:
  std::string out_;
};

// Reads what ByteWriter wrote. After the first read beyond the end everything reads as zero and ok() is false.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T number() {
    T value{};
    const auto source = take(sizeof value);
    if (!source.empty()) std::memcpy(&value, source.data(), sizeof value);
    return value;
  }
  std::string text();
  std::span<const std::byte> take(uint64_t size);

  bool ok() const { return ok_; }
  void fail() { ok_ = false; }
  size_t remaining() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

void write_type(ByteWriter& writer, const TypeInfo& type);
TypeInfo read_type(ByteReader& reader, int depth = 0);  // fails the reader on nonsense and below depth 64

using TextPairs = std::vector<std::pair<std::string, std::string>>;

constexpr size_t kFieldHeaderBytes = 8;  // of each field: u16 tag, u16 0, u32 size

// Builds a body, field by field.
class FieldWriter {
 public:
  void clear() { out_.clear(); }
  void text(uint16_t tag, std::string_view value) { raw(tag, value.data(), value.size()); }
  template <class T>
  void number(uint16_t tag, T value) {
    raw(tag, &value, sizeof value);
  }
  void raw(uint16_t tag, const void* data, size_t size);
  void type(uint16_t tag, const TypeInfo& type);
  void pairs(uint16_t tag, const TextPairs& pairs);
  // Room for `size` bytes that are filled in later; returns their offset in the body.
  size_t reserve(uint16_t tag, size_t size);

  std::span<const std::byte> body() const { return out_.span(); }
  char* at(size_t offset) { return out_.data() + offset; }

 private:
  void begin(uint16_t tag, size_t size);
  ByteWriter out_;
};

// The fields of a body, found by tag. Views lead into the body.
class Fields {
 public:
  static std::optional<Fields> parse(std::span<const std::byte> body);  // nothing when the fields do not fill the body

  bool has(uint16_t tag) const { return find(tag) != nullptr; }
  std::span<const std::byte> raw(uint16_t tag) const;  // empty when absent
  std::string text(uint16_t tag) const;
  // The field's bytes as T; `fallback` when absent or of another size.
  template <class T>
  T number(uint16_t tag, T fallback = {}) const {
    const auto bytes = raw(tag);
    if (bytes.size() == sizeof(T)) std::memcpy(&fallback, bytes.data(), sizeof(T));
    return fallback;
  }

 private:
  struct Field {
    uint16_t tag;
    std::span<const std::byte> content;
  };
  const Field* find(uint16_t tag) const;
  std::vector<Field> fields_;
};

std::optional<TextPairs> read_pairs(std::span<const std::byte> content);

}  // namespace parallax::dump
