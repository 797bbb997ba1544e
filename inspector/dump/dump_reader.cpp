// SPDX-License-Identifier: Apache-2.0
// Turns records into executions, graphs, calls, entries and events once; payloads are touched when they are asked for.
#include "inspector/dump/dump_reader.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>

#include <fmt/format.h>

#include "inspector/base/check.h"
#include "inspector/base/crc32c.h"
#include "inspector/base/mapped_file.h"
#include "inspector/base/memory_budget.h"
#include "inspector/dump/graph_payload.h"
#include "inspector/dump/record_scan.h"
#include "inspector/dump/records.h"
#include "inspector/dump/stored_value.h"

namespace parallax {
namespace {

using dump::Kind;
using dump::Record;

// The location of an entry's payload, as far as its own record says.
struct Location {
  uint64_t id = 0;
  uint64_t payload_of = 0;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  uint32_t crc = 0;
  bool is_pending = false;
  int64_t sample_count = -1;
  ElementOrder order = ElementOrder::row_major;
};

class Reader final : public DumpReader {
 public:
  Reader(std::shared_ptr<const MappedFile> file, bool is_complete)
      : file_(std::move(file)), is_complete_(is_complete) {}
  Status add(const Record& record);
  void finish();

  const std::string& path() const override { return file_->path(); }
  bool is_complete() const override { return is_complete_; }
  std::span<const DumpExecution> executions() const override { return executions_; }
  std::span<const DumpGraph> graphs() const override { return graphs_; }
  std::span<const DumpCall> calls() const override { return calls_; }
  std::span<const DumpEntry> entries() const override { return entries_; }
  std::span<const DumpEvent> events() const override { return events_; }
  std::span<const NodeFailure> failures() const override { return failures_; }
  std::span<const DumpStructure> structures() const override { return structures_; }
  int32_t find(std::string_view path, int32_t execution) const override;
  Result<Value> load(int32_t entry) const override { return load_from(entry, &Reader::payload); }
  Result<Value> load_copy(int32_t entry) const override { return load_from(entry, &Reader::copied_payload); }
  Result<std::shared_ptr<const Model>> model(int32_t graph) const override;

 private:
  struct GraphLocation {
    Location payload;
    dump::GraphRecord record;
  };

  Status add_graph(const Record& record, const dump::Fields& fields);
  Status add_tensor(const Record& record, const dump::Fields& fields);
  Status add_event(const Record& record, const dump::Fields& fields);
  DumpEntry entry_of(const dump::ValueFields& value);
  int32_t execution_of(uint64_t id);
  int32_t call_of(uint64_t id) const;
  int32_t entry_with_id(uint64_t id) const;
  Error broken(const Record& record) const;
  using Payload = dump::StoredPayload;
  using PayloadSource = Result<Payload> (Reader::*)(const Location&, std::atomic<bool>&) const;
  Result<Payload> payload(const Location& location, std::atomic<bool>& is_checked) const;
  Result<Payload> copied_payload(const Location& location, std::atomic<bool>& is_checked) const;
  Result<Value> load_from(int32_t index, PayloadSource source) const;
  Status check_payload(std::span<const std::byte> bytes, const Location& location, std::atomic<bool>& is_checked) const;
  Error changed() const;

  std::shared_ptr<const MappedFile> file_;
  bool is_complete_;
  std::vector<DumpExecution> executions_;
  std::vector<DumpGraph> graphs_;
  std::vector<DumpCall> calls_;
  std::vector<DumpEntry> entries_;
  std::vector<DumpEvent> events_;
  std::vector<NodeFailure> failures_;
  std::vector<DumpStructure> structures_;
  std::vector<Location> locations_;  // by entry
  std::vector<GraphLocation> graph_locations_;
  std::unordered_map<uint64_t, int32_t> execution_ids_;
  std::unordered_map<uint64_t, int32_t> graph_ids_;
  std::unordered_map<uint64_t, int32_t> call_ids_;
  mutable std::vector<std::atomic<bool>> checked_;  // by entry, then by graph
  mutable std::once_flag paths_once_;
  mutable std::unordered_map<std::string_view, std::vector<int32_t>> paths_;
};

Location location_of(const Record& record) {
  Location location{record.header.id,
                    0,
                    record.offset + record.header.payload_offset(),
                    record.header.payload_bytes,
                    record.header.payload_crc,
                    record.header.is_pending(),
                    -1,
                    ElementOrder::row_major};
  if (!location.is_pending) location.payload_of = record.header.payload_of;
  return location;
}

Error Reader::broken(const Record& record) const {
  return corrupt_file(fmt::format("'{}': the {} record at offset {} breaks its format", path(),
                                  kind_name(record.header), record.offset));
}

Status Reader::add(const Record& record) {
  const auto fields = dump::Fields::parse(record.body);
  if (!fields.has_value()) return broken(record);
  switch (record.kind()) {
    case Kind::execution: {
      auto execution = decode_execution(*fields);
      if (!execution.has_value()) return broken(record);
      execution_ids_[record.header.id] = static_cast<int32_t>(executions_.size());
      executions_.push_back({execution->executor,
                             execution->device,
                             {execution->settings.begin(), execution->settings.end()},
                             execution->model_path,
                             execution->model_sha256});
      return {};
    }
    case Kind::graph:
      return add_graph(record, *fields);
    case Kind::call: {
      const auto call = decode_call(*fields);
      if (!call.has_value()) return broken(record);
      const auto graph = graph_ids_.find(call->location.graph);
      call_ids_[record.header.id] = static_cast<int32_t>(calls_.size());
      calls_.push_back({execution_of(call->location.execution),
                        graph == graph_ids_.end() ? -1 : graph->second,
                        {call->graph, call->step}});
      return {};
    }
    case Kind::tensor:
      return add_tensor(record, *fields);
    case Kind::event:
      return add_event(record, *fields);
    default:
      return {};  // of a later program
  }
}

Status Reader::add_graph(const Record& record, const dump::Fields& fields) {
  auto graph = decode_graph(fields);
  if (!graph.has_value()) return broken(record);
  graph_ids_[record.header.id] = static_cast<int32_t>(graphs_.size());
  graphs_.push_back({graph->name, graph->is_executed, graph->provenance});
  graph_locations_.push_back({location_of(record), std::move(*graph)});
  return {};
}

// A repaired dump may have lost the record of an execution whose values it still has.
int32_t Reader::execution_of(uint64_t id) {
  const auto [found, is_new] = execution_ids_.try_emplace(id, static_cast<int32_t>(executions_.size()));
  if (is_new) executions_.push_back({"unknown", "unknown", {}, "", ""});
  return found->second;
}

int32_t Reader::call_of(uint64_t id) const {
  const auto found = call_ids_.find(id);
  return found == call_ids_.end() ? -1 : found->second;
}

DumpEntry Reader::entry_of(const dump::ValueFields& value) {
  DumpEntry entry;
  entry.execution = execution_of(value.location.execution);
  entry.call = call_of(value.location.call);
  entry.path = value.path;
  entry.name = value.name;
  entry.node = value.node;
  entry.op = value.op;
  entry.role = value.role;
  entry.is_graph_output = value.is_graph_output;
  entry.is_constant_like = value.is_constant_like;
  entry.level = value.level;
  return entry;
}

Status Reader::add_tensor(const Record& record, const dump::Fields& fields) {
  auto tensor = decode_tensor(fields);
  if (!tensor.has_value()) return broken(record);
  DumpEntry entry = entry_of(tensor->value);
  entry.type = std::move(tensor->type);
  entry.statistics = tensor->statistics;
  entries_.push_back(std::move(entry));
  locations_.push_back(location_of(record));
  locations_.back().sample_count = tensor->sample_count.value_or(-1);
  locations_.back().order = tensor->value.payload_order;
  return {};
}

Status Reader::add_event(const Record& record, const dump::Fields& fields) {
  const auto event = decode_event(fields);
  if (!event.has_value()) return broken(record);
  const dump::ValueFields& value = event->value;
  if (event->event == dump::EventKind::absent) {
    const bool is_known = event->number >= 0 && event->number <= static_cast<double>(Absence::Kind::removed);
    DumpEntry entry = entry_of(value);
    entry.absence = Absence{
        is_known ? static_cast<Absence::Kind>(static_cast<int>(event->number)) : Absence::Kind::removed, event->text};
    entries_.push_back(std::move(entry));
    locations_.emplace_back();
    locations_.back().id = record.header.id;
    return {};
  }
  if (event->event == dump::EventKind::structure) {
    structures_.push_back({execution_of(value.location.execution), call_of(value.location.call),
                           static_cast<int32_t>(entries_.size()), std::string(value.path), event->text});
    return {};
  }
  DumpEvent out{DumpEvent::Kind::enter_body,
                execution_of(value.location.execution),
                call_of(value.location.call),
                static_cast<int32_t>(entries_.size()),
                std::string(value.node),
                std::string(value.op),
                event->text};
  switch (event->event) {
    case dump::EventKind::enter_body:
      break;
    case dump::EventKind::leave_body:
      out.kind = DumpEvent::Kind::leave_body;
      break;
    case dump::EventKind::node_failed:
      out.kind = DumpEvent::Kind::node_failed;
      failures_.push_back({out.node, out.op, std::string(value.path), event->text});
      break;
    case dump::EventKind::end_call:
      out.kind = DumpEvent::Kind::end_call;
      break;
    case dump::EventKind::end_run: {
      out.kind = DumpEvent::Kind::end_run;
      DumpExecution& execution = executions_[static_cast<size_t>(out.execution)];
      execution.wall_ms = event->number;
      execution.completed = event->text == "completed";
      break;
    }
    default:
      return {};  // of a later program
  }
  events_.push_back(std::move(out));
  return {};
}

void Reader::finish() {
  checked_ = std::vector<std::atomic<bool>>(entries_.size() + graphs_.size());
  for (size_t index = 0; index < entries_.size(); ++index) {
    Location& location = locations_[index];
    // Ids of what is shared are smaller, so the entry that is referred to has been resolved before.
    const int32_t original = location.payload_of == 0 ? -1 : entry_with_id(location.payload_of);
    if (original < 0) continue;
    const int32_t further = entries_[static_cast<size_t>(original)].alias_of;
    entries_[index].alias_of = further >= 0 ? further : original;
  }
}

int32_t Reader::entry_with_id(uint64_t id) const {
  const auto found = std::ranges::lower_bound(locations_, id, {}, &Location::id);
  return found != locations_.end() && found->id == id ? static_cast<int32_t>(found - locations_.begin()) : -1;
}

int32_t Reader::find(std::string_view path, int32_t execution) const {
  std::call_once(paths_once_, [this] {
    for (size_t index = 0; index < entries_.size(); ++index)
      paths_[entries_[index].path].push_back(static_cast<int32_t>(index));
  });
  const auto found = paths_.find(path);
  if (found == paths_.end()) return -1;
  for (auto entry = found->second.rbegin(); entry != found->second.rend(); ++entry) {
    if (entries_[static_cast<size_t>(*entry)].execution == execution) return *entry;
  }
  return -1;
}

Error Reader::changed() const {
  return corrupt_file(fmt::format("'{}' has changed on disk since it was opened: open it again", path()));
}

// Each payload is checked once, and again where the file has been written to since it was opened.
Status Reader::check_payload(std::span<const std::byte> bytes, const Location& location,
                             std::atomic<bool>& is_checked) const {
  if (location.is_pending) return {};
  const bool has_changed = file_->has_changed();
  if (is_checked.load(std::memory_order_relaxed) && !has_changed) return {};
  if (crc32c(bytes.data(), bytes.size()) != location.crc) {
    if (has_changed) return changed();
    return corrupt_file(
        fmt::format("'{}': the payload at offset {} is damaged: its CRC is wrong", path(), location.offset));
  }
  is_checked.store(true, std::memory_order_relaxed);
  return {};
}

// A payload that counts as memory while it is held: its pages go with it.
struct HeldPayload {
  std::shared_ptr<const MappedFile> file;
  std::span<const std::byte> bytes;
  MemoryBudget::Reservation reservation;

  HeldPayload(std::shared_ptr<const MappedFile> of, std::span<const std::byte> its_bytes,
              MemoryBudget::Reservation reserved)
      : file(std::move(of)), bytes(its_bytes), reservation(std::move(reserved)) {}
  HeldPayload(const HeldPayload&) = delete;
  HeldPayload& operator=(const HeldPayload&) = delete;
  ~HeldPayload() { file->release(static_cast<size_t>(bytes.data() - file->bytes().data()), bytes.size()); }
};

Result<Reader::Payload> Reader::payload(const Location& location, std::atomic<bool>& is_checked) const {
  if (!file_->is_intact()) return changed();
  const auto bytes =
      file_->bytes().subspan(static_cast<size_t>(location.offset), static_cast<size_t>(location.size_bytes));
  std::shared_ptr<const void> owner = file_;
  auto reserved = PX_TRY(MemoryBudget::reserve(static_cast<int64_t>(bytes.size()), "its data"));
  if (!reserved.is_empty()) owner = std::make_shared<HeldPayload>(file_, bytes, std::move(reserved));
  PX_TRY(check_payload(bytes, location, is_checked));
  return Payload{bytes, owner};
}

Result<Reader::Payload> Reader::copied_payload(const Location& location, std::atomic<bool>& is_checked) const {
  Tensor copy = PX_TRY(Tensor::allocate(DType::uint8, Shape{static_cast<int64_t>(location.size_bytes)}));
  const std::span target(copy.mutable_data(), static_cast<size_t>(location.size_bytes));
  if (!file_->read(static_cast<size_t>(location.offset), target).ok()) return changed();
  PX_TRY(check_payload(target, location, is_checked));
  return Payload{target, copy.storage()};
}

Result<Value> Reader::load_from(int32_t index, PayloadSource source) const {
  PX_CHECK(index >= 0 && static_cast<size_t>(index) < entries_.size());
  const DumpEntry& entry = entries_[static_cast<size_t>(index)];
  const Location& own = locations_[static_cast<size_t>(index)];
  const std::string context = fmt::format("value '{}'", entry.path);
  if (entry.absence.has_value())
    return usage_error(context + " did not exist in the executed plan; --observe-all computes every value");
  if (entry.level < CaptureLevel::sample)
    return usage_error(context + " was captured without its elements; capture it with --capture all");
  if (own.payload_of != 0 && entry.alias_of < 0)
    return corrupt_file(
        fmt::format("'{}': {} shares the payload of a record that is lost; capture the run again", path(), context));
  const auto holder = static_cast<size_t>(entry.alias_of >= 0 ? entry.alias_of : index);
  if (locations_[holder].payload_of != 0)
    return corrupt_file(fmt::format("'{}': {} shares a payload that is lost; capture the run again", path(), context));
  const Payload stored = PX_TRY_CONTEXT(context, (this->*source)(locations_[holder], checked_[holder]));
  const std::string in_file = fmt::format("'{}': {}", path(), context);
  return add_context(dump::stored_value({entry.type, entry.level, own.order, own.sample_count}, stored), in_file);
}

Result<std::shared_ptr<const Model>> Reader::model(int32_t graph) const {
  PX_CHECK(graph >= 0 && static_cast<size_t>(graph) < graphs_.size());
  const GraphLocation& location = graph_locations_[static_cast<size_t>(graph)];
  const auto stored = PX_TRY(copied_payload(location.payload, checked_[entries_.size() + static_cast<size_t>(graph)]));
  return dump::decode_graph_payload(stored.bytes, location.record.left_out,
                                    fmt::format("{} (graph {})", path(), graph));
}

}  // namespace

Result<Shape> captured_shape(const TypeInfo& type) {
  std::vector<int64_t> dims;
  for (const Dim& dim : type.dims.value_or(std::vector<Dim>{})) dims.push_back(dim.value);
  return Shape::create(dims);
}

Result<std::shared_ptr<const DumpReader>> DumpReader::open(const std::string& path) {
  const auto file = PX_TRY(dump::open_dump_file(path));
  const std::string context = "'" + path + "'";
  std::string problem;
  auto list = dump::read_index(*file, problem);
  if (!list.has_value()) list = dump::walk_records(*file, false);
  if (!list->damages.empty()) {
    const dump::Damage& damage = list->damages.front();
    return corrupt_file(
        fmt::format("{}: the record at offset {} is damaged: {}; 'parallax repair' keeps what is intact", context,
                    damage.offset, damage.message));
  }
  auto reader = std::make_shared<Reader>(file, list->is_complete);
  for (const Record& record : list->records) PX_TRY(reader->add(record));
  reader->finish();
  return std::shared_ptr<const DumpReader>(std::move(reader));
}

}  // namespace parallax
