// SPDX-License-Identifier: Apache-2.0
// The memory that a protobuf message will take, by its bytes alone. Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace google::protobuf {
class Descriptor;
}

namespace parallax {

// The bytes of one message with all it holds. A few bytes of a file may be an object of hundreds.
struct MessageBytes {
  int64_t payload = 0;    // elements of tensors in numeric fields and raw_data
  int64_t structure = 0;  // objects, texts, and numbers of other fields
};

// Estimates, within a factor of two and mostly too much; damaged bytes count as far as they can be followed.
MessageBytes binary_message_bytes(std::span<const std::byte> bytes, const google::protobuf::Descriptor& type,
                                  size_t max_depth);
MessageBytes text_message_bytes(std::string_view text);

}  // namespace parallax
