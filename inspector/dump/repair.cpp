// SPDX-License-Identifier: Apache-2.0
// repair_dump: copies what is intact into a fresh file, with ids kept, so that references still hold.
#include <cstring>
#include <filesystem>
#include <optional>
#include <unordered_map>

#include "inspector/base/mapped_file.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/dump/record_log.h"
#include "inspector/dump/record_scan.h"
#include "inspector/dump/records.h"
#include "inspector/dump/stored_value.h"

namespace parallax {
namespace {

using dump::Kind;
using dump::Record;

class Repairer {
 public:
  Repairer(const MappedFile& file, dump::RecordLog& log) : mapped_(file), file_(file.bytes()), log_(log) {}

  Result<RepairReport> run() {
    const dump::RecordList list = dump::walk_records(mapped_, true);
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
  // As check_dump() judges it: a record whose CRCs are right may still say what its payload is not.
  bool is_intact(const Record& record) const {
    if (!dump::has_valid_payload(file_, record)) return false;
    const auto fields = dump::Fields::parse(record.body);
    if (!fields.has_value() || !dump::is_decodable(record.kind(), *fields)) return false;
    switch (record.kind()) {
      case Kind::graph:
        return is_intact_graph(record, *decode_graph(*fields));
      case Kind::tensor:
        return is_intact_tensor(record, *decode_tensor(*fields));
      case Kind::execution:
      case Kind::call:
      case Kind::event:
        return true;
      default:
        return original_of(record) == 0;  // of a later program
    }
  }

  bool is_intact_graph(const Record& record, const dump::GraphRecord& graph) const {
    if (original_of(record) != 0) return false;
    return dump::decode_graph_payload(dump::own_payload(file_, record), graph.left_out, "graph").ok();
  }

  bool is_intact_tensor(const Record& record, const dump::TensorRecord& tensor) const {
    const auto payload = payload_of(record);
    if (!payload.has_value()) return false;
    const dump::ValueFields& value = tensor.value;
    if (value.level < CaptureLevel::sample) return true;
    return dump::stored_value({tensor.type, value.level, value.payload_order, tensor.sample_count.value_or(-1)},
                              {*payload, nullptr})
        .ok();
  }

  static uint64_t original_of(const Record& record) {
    return record.header.is_pending() ? 0 : record.header.payload_of;
  }

  // The record's own payload, or that of the record whose payload it shares; nothing where that one is dropped.
  std::optional<std::span<const std::byte>> payload_of(const Record& record) const {
    if (original_of(record) == 0) return dump::own_payload(file_, record);
    const auto original = kept_payloads_.find(original_of(record));
    return original == kept_payloads_.end() ? std::nullopt : std::optional(original->second);
  }

  Status copy(const Record& record) {
    const bool is_shared = original_of(record) != 0;
    const auto payload = is_shared ? std::span<const std::byte>{} : dump::own_payload(file_, record);
    dump::RecordLog::Draft draft = PX_TRY(log_.begin(record.kind(), record.body.size(), payload.size()));
    draft.header.id = record.header.id;
    draft.header.flags = record.header.flags;
    if (!payload.empty()) std::memcpy(draft.payload, payload.data(), payload.size());
    log_.commit(draft, record.body, is_shared ? record.header.payload_of : 0);
    if (record.kind() == Kind::tensor) kept_payloads_[record.header.id] = *payload_of(record);
    return {};
  }

  const MappedFile& mapped_;
  std::span<const std::byte> file_;
  dump::RecordLog& log_;
  std::unordered_map<uint64_t, std::span<const std::byte>> kept_payloads_;  // of Tensor records, by id
  RepairReport report_;
};

}  // namespace

Result<RepairReport> repair_dump(const std::string& path, const std::string& target) {
  std::error_code unknown;
  if (std::filesystem::equivalent(path, target, unknown))
    return usage_error("'" + target + "' cannot be repaired onto itself; name another file with -o");
  const auto file = PX_TRY(dump::open_dump_file(path));
  const auto log = PX_TRY(dump::RecordLog::create(target, {}));
  return Repairer(*file, *log).run();
}

}  // namespace parallax
