// SPDX-License-Identifier: Apache-2.0
// check_dump: reads every byte and says everything that is wrong.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "inspector/base/mapped_file.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/dump/record_scan.h"
#include "inspector/dump/records.h"

namespace parallax {
namespace {

using dump::Record;

constexpr size_t kMaxProblems = 1000;

class Checker {
 public:
  explicit Checker(const MappedFile& file) : file_(file) {}

  std::vector<DumpProblem> run(const std::string& path) {
    const dump::RecordList walked = dump::walk_records(file_, true);
    for (const dump::Damage& damage : walked.damages) {
      add(fmt::format("{} bytes at offset {}", damage.bytes, damage.offset), "no valid record: " + damage.message);
    }
    check_index(walked);
    for (const Record& record : walked.records) check_record(record);
    if (problems_.empty()) check_values(path);
    return std::move(problems_);
  }

 private:
  void add(std::string where, std::string message) {
    if (problems_.size() < kMaxProblems) problems_.push_back({std::move(where), std::move(message)});
  }

  void check_index(const dump::RecordList& walked) {
    std::string problem;
    const auto indexed = dump::read_index(file_, problem);
    if (!indexed.has_value()) {
      add("end of the file", fmt::format("{}; it holds {} records that are whole", problem, walked.records.size()));
      return;
    }
    is_complete_ = true;
    const auto is_same = [](const Record& a, const Record& b) {
      return a.offset == b.offset && std::memcmp(&a.header, &b.header, sizeof a.header) == 0 &&
             std::ranges::equal(a.body, b.body);
    };
    if (!std::ranges::equal(walked.records, indexed->records, is_same))
      add("index", "it does not repeat the records of the file");
  }

  static std::string where(const Record& record, const std::optional<dump::Fields>& fields) {
    std::string name;
    if (fields.has_value() && record.kind() == dump::Kind::tensor) {
      const auto tensor = decode_tensor(*fields);
      if (tensor.has_value()) name = fmt::format(" '{}'", tensor->value.path);
    }
    return fmt::format("record at offset {} ({}{})", record.offset, kind_name(record.header), name);
  }

  void check_record(const Record& record) {
    const auto fields = dump::Fields::parse(record.body);
    if (!fields.has_value() || !dump::is_decodable(record.kind(), *fields)) {
      add(where(record, fields), "its body breaks its format");
      return;
    }
    if (is_complete_ && record.header.is_pending()) add(where(record, fields), "its seal is missing");
    if (!dump::has_valid_payload(file_.bytes(), record)) add(where(record, fields), "the CRC of its payload is wrong");
    const bool is_missing =
        record.header.payload_of != 0 && !std::ranges::binary_search(tensor_ids_, record.header.payload_of);
    if (is_missing)
      add(where(record, fields),
          fmt::format("it shares the payload of record {}, which is not there", record.header.payload_of));
    if (record.kind() == dump::Kind::tensor) tensor_ids_.push_back(record.header.id);
  }

  // Checks across records: shapes against payloads, nested values, graphs.
  void check_values(const std::string& path) {
    const auto reader = DumpReader::open(path);
    if (!reader.ok()) return add("file", reader.error().message);
    const auto entries = (*reader)->entries();
    for (size_t index = 0; index < entries.size(); ++index) {
      if (entries[index].absence.has_value() || entries[index].level < CaptureLevel::sample) continue;
      const auto value = (*reader)->load(static_cast<int32_t>(index));
      if (!value.ok()) add(fmt::format("value '{}'", entries[index].path), value.error().message);
    }
    for (size_t graph = 0; graph < (*reader)->graphs().size(); ++graph) {
      const auto model = (*reader)->model(static_cast<int32_t>(graph));
      if (!model.ok()) add(fmt::format("graph {}", graph), model.error().message);
    }
  }

  const MappedFile& file_;
  std::vector<DumpProblem> problems_;
  std::vector<uint64_t> tensor_ids_;  // increasing
  bool is_complete_ = false;
};

}  // namespace

Result<std::vector<DumpProblem>> check_dump(const std::string& path) {
  const auto file = PX_TRY(dump::open_dump_file(path));
  return Checker(*file).run(path);
}

}  // namespace parallax
