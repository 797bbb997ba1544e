// SPDX-License-Identifier: Apache-2.0
// Every offset and size is held against the file before it is followed.
#include "inspector/dump/record_scan.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "inspector/base/crc32c.h"

namespace parallax::dump {
namespace {

constexpr size_t kMaxDamages = 1000;

// The end of such a file may be cut off at any time; one that was cut since it was mapped is no better.
bool is_changing(const MappedFile& file) { return file.is_being_written() || !file.is_intact(); }

RecordHeader header_at(std::span<const std::byte> file, uint64_t offset) {
  RecordHeader header;
  std::memcpy(&header, file.data() + offset, sizeof header);
  return header;
}

std::span<const std::byte> body_at(std::span<const std::byte> file, uint64_t offset, const RecordHeader& header) {
  return file.subspan(static_cast<size_t>(offset + kRecordHeaderBytes), header.body_bytes);
}

// One record at a known offset, with everything but its payload verified.
std::optional<Record> record_at(std::span<const std::byte> file, uint64_t offset, Kind kind) {
  if (offset < kFileHeaderBytes || offset % kAlignment != 0 || offset > file.size() ||
      file.size() - offset < kRecordHeaderBytes) {
    return std::nullopt;
  }
  Record record{offset, header_at(file, offset), {}};
  if (inspect_header(record.header, file.size() - offset) != HeaderState::valid || record.kind() != kind)
    return std::nullopt;
  record.body = body_at(file, offset, record.header);
  if (record.header.head_crc != head_crc(record.header, record.body) || !has_valid_seal(record.header))
    return std::nullopt;
  return record;
}

std::optional<FooterBody> read_footer(std::span<const std::byte> file) {
  if (file.size() < kFileHeaderBytes + kFooterRecordBytes) return std::nullopt;
  const auto record = record_at(file, file.size() - kFooterRecordBytes, Kind::footer);
  if (!record.has_value() || record->body.size() != sizeof(FooterBody)) return std::nullopt;
  FooterBody footer;
  std::memcpy(&footer, record->body.data(), sizeof footer);
  return footer;
}

// The entries of an index payload whose CRC is right.
bool parse_index(std::span<const std::byte> index, uint64_t records_end, std::vector<Record>& records) {
  uint64_t last_id = 0;
  while (!index.empty()) {
    if (index.size() < sizeof(uint64_t) + kRecordHeaderBytes) return false;
    Record record;
    std::memcpy(&record.offset, index.data(), sizeof record.offset);
    std::memcpy(&record.header, index.data() + sizeof record.offset, sizeof record.header);
    const uint64_t size = round_up(sizeof(uint64_t) + kRecordHeaderBytes + record.header.body_bytes, 8);
    if (size > index.size() || record.offset < kFileHeaderBytes || record.offset % kAlignment != 0 ||
        record.offset >= records_end)
      return false;
    if (inspect_header(record.header, records_end - record.offset) != HeaderState::valid ||
        !has_valid_seal(record.header))
      return false;
    if (record.header.id <= last_id) return false;
    last_id = record.header.id;
    record.body = index.subspan(sizeof(uint64_t) + kRecordHeaderBytes, record.header.body_bytes);
    index = index.subspan(static_cast<size_t>(size));
    records.push_back(record);
  }
  return true;
}

class Walker {
 public:
  Walker(const MappedFile& file, bool search_on)
      : mapped_(file), file_(file.bytes()), is_changing_(is_changing(file)), search_on_(search_on && !is_changing_) {}

  RecordList run() {
    uint64_t offset = kFileHeaderBytes;
    while (file_.size() - offset >= kRecordHeaderBytes) {
      const RecordHeader header = next_header(offset);
      const HeaderState state = inspect_header(header, file_.size() - offset);
      std::string message = state == HeaderState::valid ? take(header, offset) : "its header makes no sense";
      if (message.empty()) {
        offset += header.record_bytes;
        continue;
      }
      list_.is_cut_off = list_.is_cut_off || state == HeaderState::cut_off;
      if (state == HeaderState::damaged || state == HeaderState::valid) add_damage(offset, std::move(message));
      if (!search_on_) break;
      const uint64_t next = find_next(offset + kAlignment);
      if (state == HeaderState::damaged || state == HeaderState::valid) {
        damaged_bytes(next - offset);
      } else if (next < file_.size()) {
        add_damage(offset, state == HeaderState::cut_off ? "it is longer than the file, but records follow"
                                                         : "zeros, but records follow");
        damaged_bytes(next - offset);
      }
      offset = next;
    }
    return std::move(list_);
  }

 private:
  // Bytes that are not committed may go at any moment, so they are read and not touched. Zeros where it is gone.
  RecordHeader next_header(uint64_t offset) const {
    if (!is_changing_) return header_at(file_, offset);
    RecordHeader header{};
    const bool is_there = mapped_.read(static_cast<size_t>(offset), std::as_writable_bytes(std::span(&header, 1))).ok();
    return is_there ? header : RecordHeader{};
  }

  // Adds the record unless something is wrong with it; then says what.
  std::string take(const RecordHeader& header, uint64_t offset) {
    const auto body = body_at(file_, offset, header);
    if (header.head_crc != head_crc(header, body)) return "the CRC of its header and body is wrong";
    if (stream_ != 0 && header.stream != stream_) return "it belongs to another dump";
    if (header.id <= last_id_) return "its number is not larger than that of the record before";
    if (!has_valid_seal(header)) return "its seal is wrong";
    stream_ = header.stream;
    last_id_ = header.id;
    if (header.kind != static_cast<uint16_t>(Kind::index) && header.kind != static_cast<uint16_t>(Kind::footer)) {
      list_.records.push_back({offset, header, body});
    }
    return {};
  }

  uint64_t find_next(uint64_t offset) const {
    for (; offset < file_.size() && file_.size() - offset >= kRecordHeaderBytes; offset += kAlignment) {
      const RecordHeader header = header_at(file_, offset);
      if (header.magic != kRecordMagic || header.id <= last_id_ || (stream_ != 0 && header.stream != stream_)) continue;
      if (inspect_header(header, file_.size() - offset) != HeaderState::valid) continue;
      if (header.head_crc == head_crc(header, body_at(file_, offset, header)) && has_valid_seal(header)) return offset;
    }
    return file_.size();
  }

  void add_damage(uint64_t offset, std::string message) {
    if (list_.damages.size() < kMaxDamages) list_.damages.push_back({offset, 0, std::move(message)});
  }
  void damaged_bytes(uint64_t bytes) { list_.damages.back().bytes += bytes; }

  const MappedFile& mapped_;
  std::span<const std::byte> file_;
  bool is_changing_;
  bool search_on_;
  RecordList list_;
  uint32_t stream_ = 0;
  uint64_t last_id_ = 0;
};

Status check_file_header(const MappedFile& file) {
  FileHeader header{};
  const size_t size = file.bytes().size();
  if (size < sizeof header)
    return corrupt_file(fmt::format("it is not a Parallax dump (.plx): {} bytes are too few", size));
  PX_TRY(file.read(0, std::as_writable_bytes(std::span(&header, 1))));
  if (std::memcmp(header.magic, kFileMagic, sizeof kFileMagic) != 0)
    return corrupt_file("it is not a Parallax dump (.plx): its first bytes are not those of one");
  if (header.version != kFormatVersion) {
    return corrupt_file(fmt::format("it is a dump of format version {}, this program reads version {}", header.version,
                                    kFormatVersion));
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> open_dump_file(const std::string& path) {
  auto file = PX_TRY(MappedFile::open(path));
  // Its writer may have ended after it was mapped: then its reserved space is gone.
  const bool has_just_ended = !file->is_being_written() && !file->is_intact();
  if (has_just_ended) file = PX_TRY(MappedFile::open(path));
  PX_TRY_CONTEXT("'" + path + "'", check_file_header(*file));
  return file;
}

std::optional<RecordList> read_index(const MappedFile& mapped, std::string& problem) {
  if (is_changing(mapped)) {
    problem = "it has no footer: it is being written, or was cut while it was read";
    return std::nullopt;
  }
  const auto file = mapped.bytes();
  const auto footer = read_footer(file);
  if (!footer.has_value()) {
    problem = "it has no footer: it was cut off";
    return std::nullopt;
  }
  const auto index = record_at(file, footer->index_offset, Kind::index);
  const bool is_placed = index.has_value() && footer->file_bytes == file.size() &&
                         footer->index_offset + index->header.record_bytes == file.size() - kFooterRecordBytes;
  if (!is_placed || index->header.is_pending() || !has_valid_payload(file, *index)) {
    problem = "its index is damaged";
    return std::nullopt;
  }
  RecordList list;
  list.is_complete = true;
  if (!parse_index(own_payload(file, *index), footer->index_offset, list.records) ||
      list.records.size() != footer->record_count) {
    problem = "its index does not fit its records";
    return std::nullopt;
  }
  return list;
}

RecordList walk_records(const MappedFile& file, bool search_on) { return Walker(file, search_on).run(); }

bool has_valid_seal(const RecordHeader& header) {
  if (header.is_pending()) return true;
  return header.seal_check == seal_check(header) && header.payload_of < header.id;
}

bool has_valid_payload(std::span<const std::byte> file, const Record& record) {
  if (record.header.is_pending() || record.header.payload_of != 0) return true;
  const auto payload = own_payload(file, record);
  return crc32c(payload.data(), payload.size()) == record.header.payload_crc;
}

std::string kind_name(const RecordHeader& header) {
  switch (static_cast<Kind>(header.kind)) {
    case Kind::execution:
      return "Execution";
    case Kind::graph:
      return "Graph";
    case Kind::call:
      return "Call";
    case Kind::tensor:
      return "Tensor";
    case Kind::event:
      return "Event";
    case Kind::index:
      return "Index";
    case Kind::footer:
      return "Footer";
  }
  return fmt::format("kind {}", header.kind);
}

}  // namespace parallax::dump
