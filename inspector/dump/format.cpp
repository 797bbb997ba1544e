// SPDX-License-Identifier: Apache-2.0
// CRCs and plausibility of record headers.
#include "inspector/dump/format.h"

#include <cstring>

#include "inspector/base/crc32c.h"

namespace parallax::dump {

uint64_t RecordHeader::payload_offset() const { return round_up(kRecordHeaderBytes + body_bytes, kAlignment); }

FileHeader make_file_header() {
  FileHeader header{};
  std::memcpy(header.magic, kFileMagic, sizeof kFileMagic);
  header.version = kFormatVersion;
  return header;
}

uint32_t head_crc(const RecordHeader& header, std::span<const std::byte> body) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&header);
  constexpr size_t kBegin = offsetof(RecordHeader, kind);
  constexpr size_t kEnd = offsetof(RecordHeader, head_crc);
  return crc32c(body.data(), body.size(), crc32c(bytes + kBegin, kEnd - kBegin));
}

uint32_t seal_check(const RecordHeader& header) {
  uint32_t crc = crc32c(&header.head_crc, sizeof header.head_crc);
  crc = crc32c(&header.payload_of, sizeof header.payload_of, crc);
  return crc32c(&header.payload_crc, sizeof header.payload_crc, crc) | 1U;
}

HeaderState inspect_header(const RecordHeader& header, uint64_t available_bytes) {
  if (header.magic == 0) return HeaderState::end_of_data;
  if (header.magic != kRecordMagic || header.body_bytes > kMaxBodyBytes) return HeaderState::damaged;
  const uint64_t begin = header.payload_offset();
  constexpr uint64_t kMaxPayloadBytes = uint64_t{1} << 60;
  if (header.payload_bytes > kMaxPayloadBytes) return HeaderState::damaged;
  if (header.record_bytes != round_up(begin + header.payload_bytes, kAlignment)) return HeaderState::damaged;
  return header.record_bytes > available_bytes ? HeaderState::cut_off : HeaderState::valid;
}

}  // namespace parallax::dump
