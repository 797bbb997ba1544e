// SPDX-License-Identifier: Apache-2.0
// Finding the records of a mapped dump: from its index, or by walking the file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inspector/base/mapped_file.h"
#include "inspector/base/result.h"
#include "inspector/dump/format.h"

namespace parallax::dump {

struct Record {
  uint64_t offset = 0;  // in the file
  RecordHeader header{};
  std::span<const std::byte> body;  // in the file, or in its index

  Kind kind() const { return static_cast<Kind>(header.kind); }
};

// A stretch of the file that holds no valid record.
struct Damage {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::string message;
};

struct RecordList {
  std::vector<Record> records;  // without index and footer
  std::vector<Damage> damages;  // found by walking
  bool is_complete = false;     // found through index and footer
  bool is_cut_off = false;      // walking ended inside a record
};

// A dump that is being written is mapped with the space that its writer reserved, and loses it at the end. Errors: io;
// corrupt_file when this is no dump or of another version.
Result<std::shared_ptr<const MappedFile>> open_dump_file(const std::string& path);

// The records by the index; nothing when there is no footer, or index or footer are wrong (`problem` then says what).
std::optional<RecordList> read_index(const MappedFile& file, std::string& problem);

// The records by walking; `search_on`: after damage and after the end of the data searches for more records, otherwise
// stops there, as it does in a dump that is being written: only what its writer committed stays.
RecordList walk_records(const MappedFile& file, bool search_on);

// The payload bytes that are in the record itself.
inline std::span<const std::byte> own_payload(std::span<const std::byte> file, const Record& record) {
  return file.subspan(static_cast<size_t>(record.offset + record.header.payload_offset()),
                      static_cast<size_t>(record.header.payload_bytes));
}
bool has_valid_seal(const RecordHeader& header);  // pending counts as valid
bool has_valid_payload(std::span<const std::byte> file,
                       const Record& record);  // reads the payload; a shared or pending one is valid

std::string kind_name(const RecordHeader& header);

}  // namespace parallax::dump
