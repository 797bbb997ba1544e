// SPDX-License-Identifier: Apache-2.0
// A walk over the wire format (https://protobuf.dev/programming-guides/encoding) that stops at the first thing wrong.
#include "inspector/model/io/wire_diagnosis.h"

#include <cstdint>
#include <optional>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "inspector/model/io/varint.h"

namespace parallax {
namespace {

namespace pb = google::protobuf;

enum WireType : uint32_t { varint = 0, fixed64 = 1, length_delimited = 2, start_group = 3, end_group = 4, fixed32 = 5 };

// A message being walked: its type (null for an unknown group) and where it ends.
struct Level {
  const pb::Descriptor* type;
  size_t end;
  std::string field;  // of the parent
};

class WireWalk {
 public:
  WireWalk(std::span<const std::byte> bytes, const pb::Descriptor& type, size_t max_depth)
      : bytes_(bytes), root_(type), max_depth_(max_depth) {
    levels_.push_back({&type, bytes.size(), ""});
  }

  std::string run() {
    if (bytes_.empty()) return "is empty";
    while (!levels_.empty() && problem_.empty()) {
      if (at_ == levels_.back().end) {
        levels_.pop_back();
      } else {
        step();
      }
    }
    return problem_.empty() ? "is no " + root_.name() : problem_;
  }

 private:
  void step() {
    const size_t begin = at_;
    const auto tag = next_varint();
    if (!tag) return report(begin, "", "ends inside a field's tag");
    const auto number = static_cast<int>(*tag >> 3);
    const pb::Descriptor* type = levels_.back().type;
    const pb::FieldDescriptor* field = *tag >> 32 == 0 ? type->FindFieldByNumber(number) : nullptr;
    const std::string name = field == nullptr ? "field " + std::to_string(*tag >> 3) : field->name();
    if (*tag >> 3 == 0) return report(begin, "", "holds a field number 0");
    switch (*tag & 7) {
      case varint:
        if (!next_varint()) report(begin, name, "holds an integer without end");
        return;
      case fixed64:
        return skip(8, begin, name);
      case fixed32:
        return skip(4, begin, name);
      case length_delimited:
        return length_field(begin, name, field);
      default:
        return report(begin, name, "has a wire type that the format does not use");
    }
  }

  void length_field(size_t begin, const std::string& name, const pb::FieldDescriptor* field) {
    const auto length = next_varint();
    if (!length) return report(begin, name, "has no complete length");
    const size_t left = levels_.back().end - at_;
    if (*length > left) {
      return report(
          begin, name,
          "is said to hold " + std::to_string(*length) + " bytes where " + std::to_string(left) + " are left");
    }
    if (field == nullptr || field->type() != pb::FieldDescriptor::TYPE_MESSAGE) {
      at_ += *length;
      return;
    }
    if (levels_.size() > max_depth_) {
      problem_ = "nests messages more than " + std::to_string(max_depth_) + " deep";
      return;
    }
    levels_.push_back({field->message_type(), at_ + *length, name});
  }

  void skip(size_t count, size_t begin, const std::string& name) {
    if (levels_.back().end - at_ < count) return report(begin, name, "ends inside a number");
    at_ += count;
  }

  std::optional<uint64_t> next_varint() { return read_varint(bytes_, at_, levels_.back().end); }

  void report(size_t offset, const std::string& name, const std::string& what) {
    std::string path;
    for (const Level& level : levels_) {
      if (!path.empty()) path += '.';
      path += level.field;
    }
    if (!name.empty()) path += (path.empty() ? "" : ".") + name;
    problem_ = "is damaged or no " + root_.name() + ": " + (path.empty() ? root_.name() : path) + " at byte " +
               std::to_string(offset) + " " + what;
  }

  std::span<const std::byte> bytes_;
  const pb::Descriptor& root_;
  size_t max_depth_;
  size_t at_ = 0;
  std::vector<Level> levels_;
  std::string problem_;
};

}  // namespace

std::string diagnose_wire(std::span<const std::byte> bytes, const pb::Descriptor& type, int max_depth) {
  return WireWalk(bytes, type, static_cast<size_t>(max_depth)).run();
}

}  // namespace parallax
