// SPDX-License-Identifier: Apache-2.0
// Tags and contents of the fields of every record kind.
#include "inspector/dump/records.h"

namespace parallax::dump {
namespace {

// Tags, as in FORMAT.md; the same number means different things in different kinds.
enum ExecutionTag : uint16_t { kExecutor = 1, kDevice, kSettings, kModelPath, kModelSha256, kProgram };
enum GraphTag : uint16_t { kGraphLocation = 1, kGraphName, kIsExecuted, kProvenance, kLeftOut };
enum CallTag : uint16_t { kCallLocation = 1, kCallGraph, kStep, kInputHashes };
enum ValueTag : uint16_t {
  kLocation = 1,
  kTraits,
  kPath,
  kName,
  kNode,
  kOp,
  kDomain,
  kType,
  kEarlyStatistics,
  kSample,
  kStatistics,
  kChannelsLastStatistics
};
enum EventTag : uint16_t { kEvent = 16, kText, kNumber };

struct Traits {
  uint8_t role;
  uint8_t level;
  uint8_t flags;
  uint8_t unused;
  int32_t output_index;
};
constexpr uint8_t kGraphOutputFlag = 1;
constexpr uint8_t kConstantLikeFlag = 2;
// CaptureLevel::all with a payload in channels-last order: no flag, which an older reader would ignore.
constexpr uint8_t kAllChannelsLast = static_cast<uint8_t>(CaptureLevel::all) + 1;

void encode_value(const ValueFields& value, FieldWriter& out) {
  const auto flags = static_cast<uint8_t>((value.is_graph_output ? kGraphOutputFlag : 0) |
                                          (value.is_constant_like ? kConstantLikeFlag : 0));
  const bool is_permuted = value.payload_order == ElementOrder::channels_last;
  const uint8_t level = is_permuted ? kAllChannelsLast : static_cast<uint8_t>(value.level);
  out.number(kLocation, value.location);
  out.number(kTraits, Traits{static_cast<uint8_t>(value.role), level, flags, 0, value.output_index});
  out.text(kPath, value.path);
  if (!value.name.empty()) out.text(kName, value.name);
  if (!value.node.empty()) out.text(kNode, value.node);
  if (!value.op.empty()) out.text(kOp, value.op);
  if (!value.domain.empty()) out.text(kDomain, value.domain);
}

std::string_view view_of(const Fields& fields, uint16_t tag) {
  const auto content = fields.raw(tag);
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

std::optional<ValueFields> decode_value(const Fields& fields) {
  const auto traits = fields.number<Traits>(kTraits);
  if (fields.raw(kLocation).size() != sizeof(Location) || fields.raw(kTraits).size() != sizeof(Traits))
    return std::nullopt;
  if (traits.role > static_cast<uint8_t>(ValueInfo::Role::node_output)) return std::nullopt;
  if (traits.level > kAllChannelsLast) return std::nullopt;
  ValueFields value;
  value.location = fields.number<Location>(kLocation);
  value.role = static_cast<ValueInfo::Role>(traits.role);
  const bool is_permuted = traits.level == kAllChannelsLast;
  value.level = is_permuted ? CaptureLevel::all : static_cast<CaptureLevel>(traits.level);
  if (is_permuted) value.payload_order = ElementOrder::channels_last;
  value.is_graph_output = (traits.flags & kGraphOutputFlag) != 0;
  value.is_constant_like = (traits.flags & kConstantLikeFlag) != 0;
  value.output_index = traits.output_index;
  value.path = view_of(fields, kPath);
  value.name = view_of(fields, kName);
  value.node = view_of(fields, kNode);
  value.op = view_of(fields, kOp);
  value.domain = view_of(fields, kDomain);
  return value;
}

std::optional<TensorStatistics> decode_statistics(std::span<const std::byte> content) {
  if (content.size() != kStatisticsBytes) return std::nullopt;
  ByteReader reader(content);
  TensorStatistics statistics;
  statistics.count = reader.number<int64_t>();
  for (double* number : {&statistics.min, &statistics.max, &statistics.mean, &statistics.std, &statistics.l2}) {
    *number = reader.number<double>();
  }
  for (int64_t* count : {&statistics.zeros, &statistics.nan, &statistics.positive_inf, &statistics.negative_inf}) {
    *count = reader.number<int64_t>();
  }
  for (double& projection : statistics.projections) projection = reader.number<double>();
  return statistics;
}

}  // namespace

void encode(const ExecutionRecord& record, FieldWriter& out) {
  out.text(kExecutor, record.executor);
  out.text(kDevice, record.device);
  out.pairs(kSettings, record.settings);
  out.text(kModelPath, record.model_path);
  out.text(kModelSha256, record.model_sha256);
  out.text(kProgram, "parallax");
}

void encode(const GraphRecord& record, FieldWriter& out) {
  out.number(kGraphLocation, record.location);
  out.text(kGraphName, record.name);
  out.number(kIsExecuted, static_cast<uint32_t>(record.is_executed));
  if (!record.provenance.empty()) out.pairs(kProvenance, record.provenance);
  ByteWriter left_out;
  for (const auto& [position, type] : record.left_out) {
    left_out.number(position);
    write_type(left_out, type);
  }
  if (left_out.size() > 0) out.raw(kLeftOut, left_out.data(), left_out.size());
}

void encode(const CallRecord& record, FieldWriter& out) {
  out.number(kCallLocation, record.location);
  out.text(kCallGraph, record.graph);
  out.number(kStep, record.step);
  out.raw(kInputHashes, record.input_hashes.data(), record.input_hashes.size() * sizeof(Hash128));
}

void encode(const EventRecord& record, FieldWriter& out) {
  encode_value(record.value, out);
  out.number(kEvent, record.event);
  if (!record.text.empty()) out.text(kText, record.text);
  out.number(kNumber, record.number);
}

size_t encode(const TensorRecord& record, FieldWriter& out) {
  encode_value(record.value, out);
  out.type(kType, record.type);
  if (record.sample_count.has_value()) out.number(kSample, *record.sample_count);
  if (!record.statistics.has_value()) return 0;
  const bool is_row_major = record.statistics->order == ElementOrder::row_major;
  const size_t offset = out.reserve(is_row_major ? kStatistics : kChannelsLastStatistics, kStatisticsBytes);
  encode_statistics(*record.statistics, out.at(offset));
  return offset;
}

void encode_statistics(const TensorStatistics& statistics, char* target) {
  ByteWriter content;
  content.number(statistics.count);
  for (const double number : {statistics.min, statistics.max, statistics.mean, statistics.std, statistics.l2})
    content.number(number);
  for (const int64_t count : {statistics.zeros, statistics.nan, statistics.positive_inf, statistics.negative_inf})
    content.number(count);
  for (const double projection : statistics.projections) content.number(projection);
  std::memcpy(target, content.data(), kStatisticsBytes);
}

void replace_location(std::span<std::byte> body, const Location& location) {
  std::memcpy(body.subspan(kFieldHeaderBytes).data(), &location, sizeof location);  // the first of the fields
}

std::optional<ExecutionRecord> decode_execution(const Fields& fields) {
  auto settings = read_pairs(fields.raw(kSettings));
  if (!settings.has_value()) return std::nullopt;
  return ExecutionRecord{fields.text(kExecutor), fields.text(kDevice), std::move(*settings), fields.text(kModelPath),
                         fields.text(kModelSha256)};
}

std::optional<GraphRecord> decode_graph(const Fields& fields) {
  GraphRecord record;
  record.location = fields.number<Location>(kGraphLocation);
  record.name = fields.text(kGraphName);
  record.is_executed = fields.number<uint32_t>(kIsExecuted) != 0;
  if (fields.has(kProvenance)) {
    auto provenance = read_pairs(fields.raw(kProvenance));
    if (!provenance.has_value()) return std::nullopt;
    record.provenance = std::move(*provenance);
  }
  ByteReader left_out(fields.raw(kLeftOut));
  while (left_out.ok() && left_out.remaining() > 0) {
    const auto position = left_out.number<uint32_t>();
    record.left_out.emplace_back(position, read_type(left_out));
  }
  if (!left_out.ok()) return std::nullopt;
  return record;
}

std::optional<CallRecord> decode_call(const Fields& fields) {
  const auto hashes = fields.raw(kInputHashes);
  if (hashes.size() % sizeof(Hash128) != 0) return std::nullopt;
  CallRecord record{
      fields.number<Location>(kCallLocation), fields.text(kCallGraph), fields.number<int64_t>(kStep, -1), {}};
  record.input_hashes.resize(hashes.size() / sizeof(Hash128));
  if (!hashes.empty()) std::memcpy(record.input_hashes.data(), hashes.data(), hashes.size());
  return record;
}

std::optional<TensorRecord> decode_tensor(const Fields& fields) {
  const auto value = decode_value(fields);
  ByteReader type_reader(fields.raw(kType));
  TensorRecord record;
  record.type = read_type(type_reader);
  if (!value.has_value() || !type_reader.ok()) return std::nullopt;
  record.value = *value;
  for (const ValueTag tag : {kEarlyStatistics, kStatistics, kChannelsLastStatistics}) {
    if (!fields.has(tag)) continue;
    record.statistics = decode_statistics(fields.raw(tag));
    if (!record.statistics.has_value()) return std::nullopt;
    record.statistics->has_projections = tag != kEarlyStatistics;
    if (tag == kChannelsLastStatistics) record.statistics->order = ElementOrder::channels_last;
  }
  if (fields.has(kSample)) record.sample_count = fields.number<int64_t>(kSample, -1);
  if (record.sample_count.has_value() && *record.sample_count < 0) return std::nullopt;
  return record;
}

std::optional<EventRecord> decode_event(const Fields& fields) {
  const auto value = decode_value(fields);
  const auto event = fields.number<uint32_t>(kEvent);
  if (!value.has_value() || event == 0) return std::nullopt;
  return EventRecord{*value, static_cast<EventKind>(event), fields.text(kText), fields.number<double>(kNumber)};
}

bool is_decodable(Kind kind, const Fields& fields) {
  switch (kind) {
    case Kind::execution:
      return decode_execution(fields).has_value();
    case Kind::graph:
      return decode_graph(fields).has_value();
    case Kind::call:
      return decode_call(fields).has_value();
    case Kind::tensor:
      return decode_tensor(fields).has_value();
    case Kind::event:
      return decode_event(fields).has_value();
    default:
      return true;
  }
}

}  // namespace parallax::dump
