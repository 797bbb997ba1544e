// SPDX-License-Identifier: Apache-2.0
// Parsing and serializing by protobuf, whose exceptions, log and limits stay in here.
#include "inspector/model/io/proto_io.h"

#include <algorithm>
#include <limits>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>

#include "inspector/model/io/message_size.h"
#include "inspector/model/io/wire_diagnosis.h"

namespace parallax {
namespace {

namespace pb = google::protobuf;

constexpr size_t kMaxMessageBytes = std::numeric_limits<int>::max();  // protobuf counts in int

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Skips blanks and comments; the position of the first character of the first name.
size_t first_name(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && (is_blank(text[at]) || text[at] == '#')) {
    at = text[at] == '#' ? std::min(text.find('\n', at), text.size()) : at + 1;
  }
  return at;
}

bool starts_like_text(ByteSpan bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 4096));
  const size_t begin = first_name(text);
  size_t end = begin;
  while (end < text.size() && (is_letter(text[end]) || (end > begin && text[end] >= '0' && text[end] <= '9'))) ++end;
  if (end == begin) return false;
  while (end < text.size() && is_blank(text[end])) ++end;
  return end < text.size() && (text[end] == ':' || text[end] == '{' || text[end] == '<');
}

// Keeps the first error with its location.
class FirstError : public pb::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!text_.empty()) return;
    text_ = "line " + std::to_string(line + 1) + ", column " + std::to_string(column + 1) + ": " + message;
  }
  void AddWarning(int, int, const std::string&) override {}
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

Status parse_text(ByteSpan bytes, int max_depth, pb::Message& message) {
  FirstError errors;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(message_depth(max_depth));
  pb::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  if (parser.Parse(&stream, &message)) return {};
  if (errors.text().find("too deep") != std::string::npos) {
    return invalid_model("nests graphs or types more than " + std::to_string(max_depth) + " deep");
  }
  return invalid_model("is no text form of " + message.GetDescriptor()->name() + ": " + errors.text());
}

// A mapped file in windows, each released when the next is asked for.
class ReleasingStream final : public pb::io::ZeroCopyInputStream {
 public:
  explicit ReleasingStream(const MappedFile& file) : file_(file), bytes_(file.bytes()) {}

  bool Next(const void** data, int* size) override {
    if (at_ == bytes_.size()) return false;
    file_.release(released_, at_ - released_);
    released_ = at_;
    const size_t count = std::min(kWindow, bytes_.size() - at_);
    *data = bytes_.data() + at_;
    *size = static_cast<int>(count);
    at_ += count;
    return true;
  }
  void BackUp(int count) override { at_ -= static_cast<size_t>(count); }
  bool Skip(int count) override {
    const size_t step = std::min(static_cast<size_t>(count), bytes_.size() - at_);
    at_ += step;
    return step == static_cast<size_t>(count);
  }
  int64_t ByteCount() const override { return static_cast<int64_t>(at_); }

 private:
  static constexpr size_t kWindow = size_t{4} << 20;

  const MappedFile& file_;
  ByteSpan bytes_;
  size_t at_ = 0;
  size_t released_ = 0;
};

bool parse_stream(pb::io::CodedInputStream&& stream, int max_depth, pb::Message& message) {
  stream.SetRecursionLimit(message_depth(max_depth));
  return message.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

Status parse_binary(ByteSpan bytes, int max_depth, pb::Message& message, const MappedFile* file) {
  if (file != nullptr) {
    ReleasingStream stream(*file);
    if (parse_stream(pb::io::CodedInputStream(&stream), max_depth, message)) return {};
  } else {
    const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
    if (parse_stream(pb::io::CodedInputStream(data, static_cast<int>(bytes.size())), max_depth, message)) return {};
  }
  return invalid_model(diagnose_wire(bytes, *message.GetDescriptor(), message_depth(max_depth)));
}

bool has_unknown_fields(const pb::Message& message) {
  const pb::Reflection& reflection = *message.GetReflection();
  if (!reflection.GetUnknownFields(message).empty()) return true;
  std::vector<const pb::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    if (field->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      if (has_unknown_fields(reflection.GetMessage(message, field))) return true;
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      if (has_unknown_fields(reflection.GetRepeatedMessage(message, field, i))) return true;
    }
  }
  return false;
}

Result<std::string> serialize_text(const pb::Message& message) {
  if (has_unknown_fields(message)) {
    return unsupported(
        "holds fields that this version does not know, which the text form cannot carry; write a binary .onnx");
  }
  std::string text;
  if (!pb::TextFormat::PrintToString(message, &text)) return io_error("cannot be written as text");
  return text;
}

}  // namespace

FileForm form_of_ending(std::string_view path) {
  for (std::string_view ending : {".textproto", ".pbtxt", ".txt"}) {
    if (path.ends_with(ending)) return FileForm::text;
  }
  return FileForm::binary;
}

FileForm form_of(std::string_view path, ByteSpan bytes) {
  if (form_of_ending(path) == FileForm::text || starts_like_text(bytes)) return FileForm::text;
  return FileForm::binary;
}

Status parse_message(ByteSpan bytes, FileForm form, int max_depth, pb::Message& message, const MappedFile* file) {
  if (bytes.size() > kMaxMessageBytes) {
    return unsupported("is " + std::to_string(bytes.size()) +
                       " bytes, more than the 2 GB a protobuf message can hold; keep the weights in external data");
  }
  const pb::LogSilencer silence;  // what protobuf would say on stderr is in the error
  return form == FileForm::text ? parse_text(bytes, max_depth, message) : parse_binary(bytes, max_depth, message, file);
}

Result<MessageMemory> reserve_message(ByteSpan bytes, FileForm form, int max_depth, const pb::Descriptor& type,
                                      std::string_view what) {
  constexpr int64_t kSmallPayload = int64_t{1} << 20, kSmallStructure = int64_t{8} << 20;
  MessageMemory memory;
  if (MemoryBudget::current() == nullptr) return memory;
  const MessageBytes needed = form == FileForm::text
                                  ? text_message_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()})
                                  : binary_message_bytes(bytes, type, static_cast<size_t>(message_depth(max_depth)));
  if (needed.payload >= kSmallPayload) memory.payload = PX_TRY(MemoryBudget::reserve(needed.payload, what));
  if (needed.structure < kSmallStructure) return memory;
  const std::string structure = std::string(what) + ": its structure";
  memory.structure = PX_TRY(MemoryBudget::reserve(needed.structure, structure));
  memory.copy = PX_TRY(MemoryBudget::reserve(needed.structure, structure));
  return memory;
}

Result<std::string> serialize_message(const pb::Message& message, FileForm form) {
  const pb::LogSilencer silence;
  if (form == FileForm::text) return serialize_text(message);
  const size_t bytes = message.ByteSizeLong();
  if (bytes > kMaxMessageBytes) {
    return unsupported("would take " + std::to_string(bytes) +
                       " bytes, more than the 2 GB a protobuf message can hold; write the weights as external data");
  }
  std::string text;
  if (!message.SerializePartialToString(&text)) return io_error("cannot be serialized");
  return text;
}

}  // namespace parallax
