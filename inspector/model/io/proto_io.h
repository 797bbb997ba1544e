// SPDX-License-Identifier: Apache-2.0
// Bytes to protobuf messages and back, binary and text, with errors a person can act on. Private to this folder.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "inspector/base/mapped_file.h"
#include "inspector/base/memory_budget.h"
#include "inspector/base/result.h"

namespace google::protobuf {
class Descriptor;
class Message;
}  // namespace google::protobuf

namespace parallax {

using ByteSpan = std::span<const std::byte>;

enum class FileForm { binary, text };

// By the ending (.textproto, .pbtxt, .txt), else by whether the contents start like text: `name:` or `name {`.
FileForm form_of(std::string_view path, ByteSpan bytes);
FileForm form_of_ending(std::string_view path);

// `max_depth` bounds the nesting of graphs and types. `file`, when not null, holds the bytes and is asked to release
// them as they are read: a model with its weights inside is then in memory once, not twice. Errors say what is wrong
// and where in the bytes or text, without the file's name.
Status parse_message(ByteSpan bytes, FileForm form, int max_depth, google::protobuf::Message& message,
                     const MappedFile* file = nullptr);

// The memory that a message takes of the budget; small shares are not worth it, and count as the program's own.
struct MessageMemory {
  MemoryBudget::Reservation payload;    // until its tensors are charged one by one
  MemoryBudget::Reservation structure;  // as long as the message is there
  MemoryBudget::Reservation copy;       // of the structure, for what is made of the message
};
// Reserves what a message of this type, read from these bytes, will take, before it is read. `what` names the file in
// the refusal. Without a budget nothing is looked at. Errors: out_of_memory.
Result<MessageMemory> reserve_message(ByteSpan bytes, FileForm form, int max_depth,
                                      const google::protobuf::Descriptor& type, std::string_view what);

// Errors: unsupported above protobuf's 2 GB, and for text when the message has fields unknown to this version.
Result<std::string> serialize_message(const google::protobuf::Message& message, FileForm form);

// How deep messages may nest so that graphs (three messages a level) and types (two) may nest `max_depth` deep.
constexpr int message_depth(int max_depth) { return 4 * max_depth + 16; }

// The fields of a message that were not read, serialized: the `unparsed` of the IR. Message is a generated class.
template <class Message>
std::string rest_of(const Message& message) {
  return message.SerializePartialAsString();
}

// Takes a string field's content out of a message. An empty string is left as it is, so that rest_of keeps its
// presence.
template <class Message>
std::string take(Message& message, const std::string& (Message::*get)() const, std::string* (Message::*release)()) {
  if ((message.*get)().empty()) return {};
  const std::unique_ptr<std::string> content((message.*release)());
  return std::move(*content);
}

}  // namespace parallax
