// SPDX-License-Identifier: Apache-2.0
// A walk over the fields that reads no more than their tags and lengths, and a count of a text's braces and colons.
#include "inspector/model/io/message_size.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "inspector/model/io/varint.h"
#include "inspector/model/onnx.pb.h"

namespace parallax {
namespace {

namespace pb = google::protobuf;

constexpr int64_t kHeapBlock = 24;  // the allocator's own bytes, and the pointer to the block
constexpr int64_t kStringBytes = sizeof(std::string) + kHeapBlock;
constexpr size_t kInlineText = 15;  // bytes of a text within its std::string
constexpr int64_t kGrowth = 2;      // of a repeated field, whose capacity is doubled

int64_t string_bytes(size_t length) {
  return kStringBytes + (length > kInlineText ? static_cast<int64_t>(length) + kHeapBlock : 0);
}

int64_t element_bytes(const pb::FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_INT64:
    case pb::FieldDescriptor::CPPTYPE_UINT64:
    case pb::FieldDescriptor::CPPTYPE_DOUBLE:
      return 8;
    default:
      return 4;
  }
}

// A type of messages, as the walk needs it.
struct Type {
  const pb::Descriptor* descriptor;
  int64_t object_bytes;
  bool is_tensor;
};

class Walk {
 public:
  Walk(std::span<const std::byte> bytes, const pb::Descriptor& type, size_t max_depth)
      : bytes_(bytes), max_depth_(max_depth) {
    enter(type, bytes.size());
  }

  MessageBytes run() {
    while (!levels_.empty()) {
      if (at_ >= levels_.back().end) {
        levels_.pop_back();
      } else if (!step()) {
        break;
      }
    }
    return counted_;
  }

 private:
  struct Level {
    const Type* type;
    size_t end;
  };

  const Type& known(const pb::Descriptor& descriptor) {
    const auto [found, is_new] = types_.try_emplace(&descriptor);
    if (is_new) {
      const pb::Message* const empty = pb::MessageFactory::generated_factory()->GetPrototype(&descriptor);
      found->second = {&descriptor, static_cast<int64_t>(empty->SpaceUsedLong()) + kHeapBlock,
                       &descriptor == proto::TensorProto::descriptor()};
    }
    return found->second;
  }

  void enter(const pb::Descriptor& descriptor, size_t end) {
    const Type& type = known(descriptor);
    counted_.structure += type.object_bytes;
    levels_.push_back({&type, end});
  }

  // False where the bytes break off.
  bool step() {
    const auto tag = next_varint();
    if (!tag) return false;
    const Type& type = *levels_.back().type;
    const auto* field = *tag >> 32 == 0 ? type.descriptor->FindFieldByNumber(static_cast<int>(*tag >> 3)) : nullptr;
    switch (*tag & 7) {
      case 0:
        count_numbers(type, field, 1, kGrowth);
        return next_varint().has_value();
      case 1:
        count_numbers(type, field, 1, kGrowth);
        return skip(8);
      case 2: {
        const auto length = next_varint();
        return length && *length <= levels_.back().end - at_ && take(type, field, static_cast<size_t>(*length));
      }
      case 5:
        count_numbers(type, field, 1, kGrowth);
        return skip(4);
      default:
        return false;
    }
  }

  // `field` is null where this version does not know it.
  void count_numbers(const Type& type, const pb::FieldDescriptor* field, int64_t count, int64_t growth) {
    const bool is_single = field != nullptr && !field->is_repeated();
    if (is_single) return;  // it is within the object
    const int64_t bytes = count * growth * (field == nullptr ? kHeapBlock : element_bytes(*field));
    const bool is_payload =
        type.is_tensor && field != nullptr && field->number() != proto::TensorProto::kDimsFieldNumber;
    (is_payload ? counted_.payload : counted_.structure) += bytes;
  }

  bool take(const Type& type, const pb::FieldDescriptor* field, size_t length) {
    if (field != nullptr && field->type() == pb::FieldDescriptor::TYPE_MESSAGE) {
      if (levels_.size() >= max_depth_) return false;
      enter(*field->message_type(), at_ + length);
      return true;
    }
    const bool is_text = field == nullptr || field->cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING;
    const bool is_raw_data =
        type.is_tensor && field != nullptr && field->number() == proto::TensorProto::kRawDataFieldNumber;
    if (is_raw_data) {
      counted_.payload += static_cast<int64_t>(length);
    } else if (is_text) {
      counted_.structure += string_bytes(length);
    } else {
      count_packed(type, *field, bytes_.subspan(at_, length));
    }
    return skip(length);
  }

  // A number of variable length ends with its first byte below 128.
  void count_packed(const Type& type, const pb::FieldDescriptor& field, std::span<const std::byte> bytes) {
    const auto wire_type = pb::FieldDescriptor::TypeName(field.type());
    const bool is_fixed = field.cpp_type() == pb::FieldDescriptor::CPPTYPE_FLOAT ||
                          field.cpp_type() == pb::FieldDescriptor::CPPTYPE_DOUBLE ||
                          std::string_view(wire_type).find("fixed") != std::string_view::npos;
    if (is_fixed) return count_numbers(type, &field, static_cast<int64_t>(bytes.size()) / element_bytes(field), 1);
    count_numbers(type, &field, std::ranges::count_if(bytes, [](std::byte byte) { return byte < std::byte{0x80}; }),
                  kGrowth);
  }

  bool skip(size_t count) {
    if (levels_.back().end - at_ < count) return false;
    at_ += count;
    return true;
  }

  std::optional<uint64_t> next_varint() { return read_varint(bytes_, at_, levels_.back().end); }

  std::span<const std::byte> bytes_;
  size_t max_depth_;
  size_t at_ = 0;
  std::vector<Level> levels_;
  std::unordered_map<const pb::Descriptor*, Type> types_;
  MessageBytes counted_;
};

}  // namespace

MessageBytes binary_message_bytes(std::span<const std::byte> bytes, const pb::Descriptor& type, size_t max_depth) {
  return Walk(bytes, type, max_depth).run();
}

MessageBytes text_message_bytes(std::string_view text) {
  constexpr int64_t kObject = 400;  // of an AttributeProto, the largest that there are many of
  constexpr int64_t kNumber = 8 * kGrowth;
  MessageBytes counted{static_cast<int64_t>(text.size()), 0};
  char quote = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != 0) {
      if (c == '\\') ++at;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
      counted.structure += kStringBytes;
    } else if (c == '{' || c == '<') {
      counted.structure += kObject;
    } else if (c == ':' || c == ',') {
      counted.payload += kNumber;
    }
  }
  return counted;
}

}  // namespace parallax
