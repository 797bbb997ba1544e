// SPDX-License-Identifier: Apache-2.0
// repair_dump: copies what is intact into a fresh file, with ids kept, so that references still hold.
#include <algorithm>
#include <cstring>

#include "inspector/base/mapped_file.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/dump/record_log.h"
#include "inspector/dump/record_scan.h"

namespace parallax {
namespace {

using dump::Record;

class Repairer {
 public:
  Repairer(std::span<const std::byte> file, dump::RecordLog& log) : file_(file), log_(log) {}

  Result<RepairReport> run() {
    const dump::RecordList list = dump::walk_records(file_, true);
    for (const dump::Damage& damage : list.damages) report_.bytes_skipped += static_cast<int64_t>(damage.bytes);
    for (const Record& record : list.records) {
      if (is_intact(record)) {
        PX_TRY(copy(record));
        ++report_.records_kept;
      } else {
        report_.bytes_skipped += static_cast<int64_t>(record.header.record_bytes);
        ++report_.records_dropped;
      }
    }
    PX_TRY(log_.finish());
    return report_;
  }

 private:
  bool is_intact(const Record& record) const {
    if (!dump::has_valid_payload(file_, record)) return false;
    const uint64_t original = record.header.is_pending() ? 0 : record.header.payload_of;
    return original == 0 || std::ranges::binary_search(kept_ids_, original);
  }

  Status copy(const Record& record) {
    const bool is_shared = !record.header.is_pending() && record.header.payload_of != 0;
    const auto payload = is_shared ? std::span<const std::byte>{} : dump::own_payload(file_, record);
    dump::RecordLog::Draft draft = PX_TRY(log_.begin(record.kind(), record.body.size(), payload.size()));
    draft.header.id = record.header.id;
    draft.header.flags = record.header.flags;
    if (!payload.empty()) std::memcpy(draft.payload, payload.data(), payload.size());
    log_.commit(draft, record.body, is_shared ? record.header.payload_of : 0);
    kept_ids_.push_back(record.header.id);
    return {};
  }

  std::span<const std::byte> file_;
  dump::RecordLog& log_;
  std::vector<uint64_t> kept_ids_;  // increasing
  RepairReport report_;
};

}  // namespace

Result<RepairReport> repair_dump(const std::string& path, const std::string& target) {
  const auto file = PX_TRY(MappedFile::open(path));
  PX_TRY_CONTEXT("'" + path + "'", dump::check_file_header(file->bytes()));
  const auto log = PX_TRY(dump::RecordLog::create(target, {}));
  return Repairer(file->bytes(), *log).run();
}

}  // namespace parallax
