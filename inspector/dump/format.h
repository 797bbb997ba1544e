// SPDX-License-Identifier: Apache-2.0
// The fixed layout of a dump file, as FORMAT.md gives it: file header, record header, seal, and the numbers of kinds
// and fields.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace parallax::dump {

static_assert(std::endian::native == std::endian::little,
              "dump files are mapped, so the machine must be little-endian");

constexpr uint64_t kAlignment = 64;
constexpr uint32_t kFormatVersion = 1;
constexpr uint64_t kFileHeaderBytes = 64;
constexpr uint64_t kRecordHeaderBytes = 64;
constexpr uint32_t kRecordMagic = 0x52584C50U;  // "PLXR"
constexpr uint32_t kMaxBodyBytes = 256U << 20;
constexpr unsigned char kFileMagic[8] = {0x89, 'P', 'L', 'X', '\r', '\n', 0x1A, '\n'};

enum class Kind : uint16_t { execution = 1, graph = 2, call = 3, tensor = 4, event = 5, index = 16, footer = 17 };

struct FileHeader {
  unsigned char magic[8];
  uint32_t version;
  unsigned char unused[52];
};
static_assert(sizeof(FileHeader) == kFileHeaderBytes);

struct RecordHeader {
  uint32_t magic;
  uint16_t kind;
  uint16_t flags;
  uint64_t id;
  uint64_t record_bytes;
  uint32_t body_bytes;
  uint32_t stream;
  uint64_t payload_bytes;
  uint32_t head_crc;
  uint32_t unused;
  uint64_t payload_of;
  uint32_t payload_crc;
  uint32_t seal_check;

  uint64_t payload_offset() const;  // from the start of the record
  bool is_pending() const { return payload_crc == 0 && seal_check == 0; }
};
static_assert(sizeof(RecordHeader) == kRecordHeaderBytes);

struct FooterBody {
  uint64_t index_offset;
  uint64_t index_record_bytes;
  uint64_t record_count;
  uint64_t file_bytes;
  unsigned char unused[32];
};
static_assert(sizeof(FooterBody) == 64);
constexpr uint64_t kFooterRecordBytes = kRecordHeaderBytes + sizeof(FooterBody);

constexpr uint64_t round_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

FileHeader make_file_header();
uint32_t head_crc(const RecordHeader& header, std::span<const std::byte> body);
uint32_t seal_check(const RecordHeader& header);  // from head_crc, payload_of and payload_crc

// The state of a header by itself, short of its CRC: sizes that fit each other and stay below `available` bytes from
// its start.
enum class HeaderState : uint8_t { valid, end_of_data, cut_off, damaged };
HeaderState inspect_header(const RecordHeader& header, uint64_t available_bytes);

}  // namespace parallax::dump
