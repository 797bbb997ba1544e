// SPDX-License-Identifier: Apache-2.0
// The bodies of the record kinds as structs, and their coding. FORMAT.md gives tags and meaning.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inspector/base/hash.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/dump/fields.h"
#include "inspector/dump/format.h"
#include "inspector/dump/graph_payload.h"
#include "inspector/dump/statistics/statistics.h"

namespace parallax::dump {

// Ids of the records that a record belongs to; 0 where there is none.
struct Location {
  uint64_t execution = 0;
  uint64_t graph = 0;
  uint64_t call = 0;
};

struct ExecutionRecord {
  std::string executor;
  std::string device;
  TextPairs settings;
  std::string model_path;
  std::string model_sha256;
};

struct GraphRecord {
  Location location;
  std::string name;
  bool is_executed = false;
  TextPairs provenance;
  LeftOut left_out;
};

struct CallRecord {
  Location location;
  std::string graph;
  int64_t step = -1;
  std::vector<Hash128> input_hashes;
};

// The fields that say which value a record speaks of, shared by Tensor records and events. Views lead into the coded
// body, or into whatever the writer is shown.
struct ValueFields {
  Location location;
  ValueInfo::Role role = ValueInfo::Role::node_output;
  CaptureLevel level = CaptureLevel::none;
  ElementOrder payload_order = ElementOrder::row_major;
  bool is_graph_output = false;
  bool is_constant_like = false;
  int32_t output_index = 0;
  std::string_view path;
  std::string_view name;
  std::string_view node;
  std::string_view op;
  std::string_view domain;
};

struct TensorRecord {
  ValueFields value;
  TypeInfo type;
  std::optional<TensorStatistics> statistics;
  std::optional<int64_t> sample_count;
};

enum class EventKind : uint32_t {
  enter_body = 1,
  leave_body = 2,
  node_failed = 3,
  absent = 4,
  end_call = 5,
  end_run = 6,
  structure = 7
};

struct EventRecord {
  ValueFields value;
  EventKind event = EventKind::enter_body;
  std::string text;
  double number = 0;
};

void encode(const ExecutionRecord& record, FieldWriter& out);
void encode(const GraphRecord& record, FieldWriter& out);
void encode(const CallRecord& record, FieldWriter& out);
void encode(const EventRecord& record, FieldWriter& out);
// Returns the offset of the statistics in the body, 0 when there are none: they may be filled in when the copy has made
// them.
size_t encode(const TensorRecord& record, FieldWriter& out);
void encode_statistics(const TensorStatistics& statistics, char* target);
// In an encoded TensorRecord.
void replace_location(std::span<std::byte> body, const Location& location);
constexpr size_t kStatisticsBytes = (10 + kProjectionCount) * 8;

// Nothing when the body breaks its format.
std::optional<ExecutionRecord> decode_execution(const Fields& fields);
std::optional<GraphRecord> decode_graph(const Fields& fields);
std::optional<CallRecord> decode_call(const Fields& fields);
std::optional<TensorRecord> decode_tensor(const Fields& fields);
std::optional<EventRecord> decode_event(const Fields& fields);
// True where the body has the format of its kind; always of kinds that a later program writes.
bool is_decodable(Kind kind, const Fields& fields);

}  // namespace parallax::dump
