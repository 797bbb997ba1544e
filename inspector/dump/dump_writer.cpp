// SPDX-License-Identifier: Apache-2.0
// From events to records: levels, aliases, graphs. RecordLog does the rest.
#include "inspector/dump/dump_writer.h"

#include <chrono>
#include <unordered_map>

#include <fmt/format.h>

#include "inspector/base/hash.h"
#include "inspector/dump/graph_payload.h"
#include "inspector/dump/host_copy.h"
#include "inspector/dump/payload.h"
#include "inspector/dump/record_log.h"
#include "inspector/dump/records.h"
#include "inspector/dump/sample.h"
#include "inspector/dump/statistics/statistics_write.h"
#include "inspector/exec/feature_maps.h"
#include "inspector/tensor/channels_last.h"

namespace parallax {

using dump::Kind;
using dump::RecordLog;
using Clock = std::chrono::steady_clock;

class DumpWriter::Impl {
 public:
  Impl(std::unique_ptr<RecordLog> log, const DumpWriterOptions& options) : log_(std::move(log)), options_(options) {}

  CaptureLevel wants(const ValueInfo& value_info);
  bool is_wanted(const std::string& path) const;
  Status begin_run(const RunInfo& run);
  Status begin_call(const CallInfo& call, std::span<const Value> inputs);
  Status observe(const Observation& observation);
  Status observe_anew(const Observation& observation, CaptureLevel wanted);
  Status end_call();
  Status end_run(bool completed);
  Status add_graph(const std::string& name, const Model& model, bool is_executed, const dump::TextPairs& provenance);
  Status event(dump::EventKind kind, const dump::ValueFields& value, std::string text, double number = 0);
  Status absent(const ValueInfo& value_info, const Absence& absence);
  dump::ValueFields fields_of(const ValueInfo& value_info, std::string_view path) const;

  RecordLog& log() { return *log_; }

 private:
  // The known properties of a payload that was seen before.
  struct Stored {
    uint64_t id = 0;  // of the record that holds all of it; 0: none does
    DType dtype = DType::undefined;
    Shape shape = {};
    size_t size_bytes = 0;
    ElementOrder payload_order = ElementOrder::row_major;
    std::optional<TensorStatistics> statistics = {};
  };
  struct ContentHash {
    size_t operator()(const Hash128& content) const { return static_cast<size_t>(content.low); }
  };

  // The last record of a value in the current call, by which later values can say that they share its payload.
  struct LastRecord {
    std::string prefix;
    Stored stored;
  };

  // The part of a weight's record that is written with every call, and differs by the call alone.
  struct WeightRecord {
    std::string name;
    const std::byte* data = nullptr;
    std::vector<std::byte> body;
    uint64_t payload_of = 0;
    Stored stored;
  };

  WeightRecord* known_weight(const Observation& observation);
  Status repeat(const Observation& observation, WeightRecord& weight);
  void keep_weight(const Observation& observation, const Stored& stored);
  Status store(const Observation& observation, const Value& value, CaptureLevel level);
  static std::optional<TensorStatistics> known_statistics(const Stored& stored, const Tensor& tensor,
                                                          ElementOrder order);
  Status store_tensor(dump::TensorRecord& record, const Tensor& tensor, ElementOrder order, Stored& stored);
  Status store_summary(const Observation& observation, dump::TensorRecord& record, const Tensor& tensor);
  Status store_other(dump::TensorRecord& record, const Value& value);
  Status store_alias(dump::TensorRecord& record, const Tensor& tensor, ElementOrder order, const Stored& original);
  Stored seen_before(const Observation& observation, const Tensor& tensor) const;
  std::optional<Hash128> content_of(const Tensor& tensor) const;
  void remember(const Observation& observation, const Stored& stored);

  std::unique_ptr<RecordLog> log_;
  DumpWriterOptions options_;
  dump::FieldWriter body_;
  std::string path_;
  dump::Location location_;
  Clock::time_point run_begin_;
  std::unordered_map<std::string, uint64_t> graphs_;           // of the current run, by name
  std::vector<LastRecord> last_records_;                       // by value id
  std::unordered_map<Hash128, Stored, ContentHash> contents_;  // of values to be looked up by content
  std::shared_ptr<const Model> model_;                         // keeps the keys of weights_ meaningful
  std::vector<WeightRecord> weight_records_;                   // by value id
  std::unordered_map<const std::byte*, Stored> weights_;       // the model's own payloads; id 0 until one is captured
};

CaptureLevel DumpWriter::Impl::wants(const ValueInfo& value_info) {
  if (options_.only.empty() || value_info.is_graph_output) return options_.level;
  const std::string path = value_info.scope + value_info.escaped_name;
  for (const std::string& glob : options_.only) {
    if (glob_matches(static_glob(glob), path)) return options_.level;
  }
  return CaptureLevel::none;
}

// True for an iteration or step that the globs name.
bool DumpWriter::Impl::is_wanted(const std::string& path) const {
  const auto matches = [&](const std::string& glob) { return glob_matches(glob, path); };
  return options_.only.empty() || std::any_of(options_.only.begin(), options_.only.end(), matches);
}

Status DumpWriter::Impl::begin_run(const RunInfo& run) {
  run_begin_ = Clock::now();
  graphs_.clear();
  weights_.clear();
  weight_records_.clear();
  last_records_.clear();
  location_ = {};
  dump::ExecutionRecord record{run.executor,
                               run.device,
                               {run.settings.begin(), run.settings.end()},
                               run.model ? run.model->path : "",
                               run.model_sha256};
  body_.clear();
  encode(record, body_);
  location_.execution = PX_TRY(log_->append(Kind::execution, body_.body()));
  model_ = run.model;
  if (model_ == nullptr) return {};
  size_t weight_bytes = 0;
  for (const StoredTensor& weight : model_->graph.initializers) {
    if (!weight.tensor.defined() || !weight.tensor.device().is_host() || weight.tensor.dtype() == DType::string)
      continue;
    const Tensor& tensor = weight.tensor;
    weights_.try_emplace(tensor.view().data, Stored{0, tensor.dtype(), tensor.shape(), tensor.size_bytes()});
    weight_bytes += weight.tensor.size_bytes();
  }
  if (options_.level == CaptureLevel::all && options_.only.empty() && options_.capture_limit_bytes == 0)
    log_->expect(weight_bytes);
  return options_.include_graph ? add_graph("", *model_, false, {}) : Status();
}

Status DumpWriter::Impl::add_graph(const std::string& name, const Model& model, bool is_executed,
                                   const dump::TextPairs& provenance) {
  const dump::GraphPayload payload = PX_TRY_CONTEXT("the graph for the dump", dump::encode_graph(model));
  body_.clear();
  encode(dump::GraphRecord{location_, name, is_executed, provenance, payload.left_out}, body_);
  const uint64_t id = PX_TRY(log_->append(Kind::graph, body_.body(), std::as_bytes(std::span(payload.bytes))));
  if (!is_executed) graphs_[name] = id;
  return {};
}

Status DumpWriter::Impl::begin_call(const CallInfo& call, std::span<const Value> inputs) {
  last_records_.clear();
  const auto named = graphs_.find(call.graph);
  const auto only = graphs_.size() == 1 ? graphs_.begin() : graphs_.end();
  const auto graph = named != graphs_.end() ? named : only;
  location_.graph = graph != graphs_.end() ? graph->second : 0;
  location_.call = 0;
  dump::CallRecord record{location_, call.graph, call.step, {}};
  for (const Value& input : inputs) {
    const bool is_hashed =
        input.is_tensor() && input.tensor().device().is_host() && input.tensor().dtype() != DType::string;
    record.input_hashes.push_back(is_hashed ? hash128(input.tensor().view().data, input.tensor().size_bytes())
                                            : Hash128{});
  }
  body_.clear();
  encode(record, body_);
  location_.call = PX_TRY(log_->append(Kind::call, body_.body()));
  return {};
}

Status DumpWriter::Impl::event(dump::EventKind kind, const dump::ValueFields& value, std::string text, double number) {
  dump::EventRecord record{value, kind, std::move(text), number};
  record.value.location = location_;
  body_.clear();
  encode(record, body_);
  PX_TRY(log_->append(Kind::event, body_.body()));
  return {};
}

Status DumpWriter::Impl::end_call() {
  PX_TRY(event(dump::EventKind::end_call, {}, ""));
  location_.call = 0;
  location_.graph = 0;
  last_records_.clear();
  return {};
}

Status DumpWriter::Impl::end_run(bool completed) {
  const double wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - run_begin_).count();
  return event(dump::EventKind::end_run, {}, completed ? "completed" : "", wall_ms);
}

dump::ValueFields DumpWriter::Impl::fields_of(const ValueInfo& value_info, std::string_view path) const {
  dump::ValueFields fields;
  fields.location = location_;
  fields.role = value_info.role;
  fields.is_graph_output = value_info.is_graph_output;
  fields.is_constant_like = value_info.is_constant_like;
  fields.output_index = value_info.output_index;
  fields.path = path;
  fields.name = value_info.name;
  fields.node = value_info.node;
  fields.op = value_info.op;
  fields.domain = value_info.domain;
  return fields;
}

Status DumpWriter::Impl::absent(const ValueInfo& value_info, const Absence& absence) {
  if (wants(value_info) == CaptureLevel::none) return {};
  const std::string path = value_info.scope + value_info.escaped_name;
  return event(dump::EventKind::absent, fields_of(value_info, path), absence.into, static_cast<double>(absence.kind));
}

Status DumpWriter::Impl::observe(const Observation& observation) {
  const CaptureLevel wanted = wants(observation.value_info);
  if (wanted == CaptureLevel::none) return {};
  if (WeightRecord* const weight = known_weight(observation)) return repeat(observation, *weight);
  return observe_anew(observation, wanted);
}

DumpWriter::Impl::WeightRecord* DumpWriter::Impl::known_weight(const Observation& observation) {
  const auto value_info = static_cast<size_t>(observation.value_info.id);
  if (value_info >= weight_records_.size() || weight_records_[value_info].data == nullptr) return nullptr;
  WeightRecord& known = weight_records_[value_info];
  const bool is_same = observation.value_info.name == known.name && observation.value.is_tensor() &&
                       observation.value.tensor().view().data == known.data &&
                       observation.value.tensor().size_bytes() == known.stored.size_bytes;
  return is_same ? &known : nullptr;
}

Status DumpWriter::Impl::repeat(const Observation& observation, WeightRecord& weight) {
  dump::replace_location(weight.body, location_);
  RecordLog::Draft draft = PX_TRY(log_->begin(Kind::tensor, weight.body.size(), 0));
  log_->commit(draft, weight.body, weight.payload_of);
  remember(observation, weight.stored);
  return {};
}

// After it was written; with its payload it is the first that later ones share.
void DumpWriter::Impl::keep_weight(const Observation& observation, const Stored& stored) {
  const bool is_weight =
      observation.value_info.role == ValueInfo::Role::initializer && observation.frames.prefix().empty();
  const std::byte* const data = observation.value.tensor().view().data;
  if (!is_weight || !weights_.contains(data)) return;
  const auto value_info = static_cast<size_t>(observation.value_info.id);
  if (value_info >= weight_records_.size()) weight_records_.resize(value_info + 1);
  const auto body = body_.body();
  weight_records_[value_info] = {
      std::string(observation.value_info.name), data, {body.begin(), body.end()}, stored.id, stored};
}

Status DumpWriter::Impl::observe_anew(const Observation& observation, CaptureLevel wanted) {
  path_ = observation.path();
  if (!observation.value_info.is_graph_output && !is_wanted(path_)) return {};
  const bool is_summed_up = wanted == CaptureLevel::stats && observation.statistics != nullptr;
  if (wanted == CaptureLevel::shape || is_summed_up) return store(observation, observation.value, wanted);
  const Value value = PX_TRY_CONTEXT("value '" + path_ + "'",
                                     dump::on_host(observation.value, observation.stream, options_.copy_from_device));
  const bool is_large =
      options_.capture_limit_bytes > 0 && payload_bytes(value) > static_cast<size_t>(options_.capture_limit_bytes);
  return store(observation, value, wanted == CaptureLevel::all && is_large ? CaptureLevel::sample : wanted);
}

Status DumpWriter::Impl::store(const Observation& observation, const Value& value, CaptureLevel level) {
  dump::TensorRecord record;
  record.value = fields_of(observation.value_info, path_);
  record.value.level = level;
  record.type = type_of(value);
  if (level == CaptureLevel::shape || value.is_absent()) {
    record.value.level = CaptureLevel::shape;
    return store_other(record, Value());
  }
  if (!value.is_tensor()) return store_other(record, value);
  const Tensor& tensor = value.tensor();
  if (level != CaptureLevel::all) return store_summary(observation, record, tensor);
  Stored stored = seen_before(observation, tensor);
  const auto content = stored.id == 0 ? content_of(tensor) : std::nullopt;
  if (content.has_value() && contents_.contains(*content)) stored = contents_[*content];
  const ElementOrder order = counting_order(observation.value_info, tensor);
  // Under another shape, channels-last bytes are no tensor's.
  const bool is_sharable = stored.payload_order == ElementOrder::row_major ||
                           (stored.shape == tensor.shape() && stored.dtype == tensor.dtype());
  if (stored.id != 0 && is_sharable) {
    PX_TRY(store_alias(record, tensor, order, stored));
    stored.dtype = tensor.dtype();
    stored.shape = tensor.shape();
    stored.statistics = record.statistics;
  } else {
    PX_TRY(store_tensor(record, tensor, order, stored));
    if (content.has_value()) contents_[*content] = stored;
  }
  keep_weight(observation, stored);
  remember(observation, stored);
  return {};
}

// The known statistics of a payload, where they were taken of such elements in that order.
std::optional<TensorStatistics> DumpWriter::Impl::known_statistics(const Stored& stored, const Tensor& tensor,
                                                                   ElementOrder order) {
  const bool is_same = stored.statistics.has_value() && stored.dtype == tensor.dtype() &&
                       stored.statistics->order == order &&
                       (order == ElementOrder::row_major || stored.shape == tensor.shape());
  return is_same ? stored.statistics : std::nullopt;
}

Status DumpWriter::Impl::store_tensor(dump::TensorRecord& record, const Tensor& tensor, ElementOrder order,
                                      Stored& stored) {
  const uint64_t size = dump::stored_bytes(tensor);
  record.statistics.emplace().order = order;
  record.value.payload_order = payload_order(tensor, order);
  body_.clear();
  const size_t statistics_offset = encode(record, body_);
  RecordLog::Draft draft = PX_TRY(log_->begin(Kind::tensor, body_.body().size(), size));
  if (tensor.dtype() == DType::string) {
    record.statistics = compute_statistics(tensor);
    dump::write_tensor(tensor, draft.payload);
  } else {
    // A weight's bytes are in the model's file too, which is more likely to be read again.
    const auto caching = record.value.role == ValueInfo::Role::initializer ? dump::GrowingFile::Caching::dropped
                                                                           : dump::GrowingFile::Caching::kept;
    const auto write = [&](uint64_t offset, std::span<const std::byte> part) {
      return log_->write(draft, offset, part, caching);
    };
    const CheckedCopy copy = log_->prefers_writes(size) ? PX_TRY(write_with_statistics(tensor, write, order))
                                                        : copy_with_statistics(tensor, draft.payload, order);
    record.statistics = copy.statistics;
    draft.payload_crc = copy.crc;
  }
  dump::encode_statistics(*record.statistics, body_.at(statistics_offset));
  const uint64_t id = log_->commit(draft, body_.body());
  stored = {id, tensor.dtype(), tensor.shape(), size, record.value.payload_order, record.statistics};
  return {};
}

Status DumpWriter::Impl::store_alias(dump::TensorRecord& record, const Tensor& tensor, ElementOrder order,
                                     const Stored& original) {
  record.value.payload_order = original.payload_order;
  record.statistics = known_statistics(original, tensor, order);
  if (!record.statistics.has_value()) record.statistics = compute_statistics(tensor, order);
  body_.clear();
  encode(record, body_);
  RecordLog::Draft draft = PX_TRY(log_->begin(Kind::tensor, body_.body().size(), 0));
  log_->commit(draft, body_.body(), original.id);
  return {};
}

// Statistics, and a sample where that is the level.
Status DumpWriter::Impl::store_summary(const Observation& observation, dump::TensorRecord& record,
                                       const Tensor& tensor) {
  const Stored seen = seen_before(observation, tensor);
  if (observation.statistics != nullptr) {
    record.statistics = *observation.statistics;
  } else {
    const ElementOrder order = counting_order(observation.value_info, tensor);
    record.statistics = known_statistics(seen, tensor, order);
    if (!record.statistics.has_value()) record.statistics = compute_statistics(tensor, order);
  }
  Value sample;
  if (record.value.level == CaptureLevel::sample) {
    const Tensor row_major = is_channels_last(tensor) ? PX_TRY(read_row_major(tensor)) : tensor;
    sample = Value(PX_TRY(dump::take_sample(row_major, options_.sample_elements)));
    record.sample_count = sample.tensor().element_count();
  }
  PX_TRY(store_other(record, sample));
  const Stored summary{seen.id,          tensor.dtype(), tensor.shape(), tensor.size_bytes(), seen.payload_order,
                       record.statistics};
  if (record.value.level == CaptureLevel::stats && seen.id == 0) keep_weight(observation, summary);
  remember(observation, summary);
  return {};
}

// Everything that is no whole tensor: no payload, a sample, or a nested value.
Status DumpWriter::Impl::store_other(dump::TensorRecord& record, const Value& value) {
  const bool is_nested = !value.is_absent() && !value.is_tensor();
  if (is_nested && record.value.level != CaptureLevel::all) {
    record.value.level = CaptureLevel::stats;
    record.statistics = value_statistics(value);
  }
  const bool has_payload = record.value.level >= CaptureLevel::sample;
  body_.clear();
  encode(record, body_);
  const dump::PayloadLayout layout(value);
  RecordLog::Draft draft =
      PX_TRY(log_->begin(Kind::tensor, body_.body().size(), has_payload ? layout.size_bytes() : 0));
  if (has_payload) layout.write(draft.payload);
  log_->commit(draft, body_.body());
  return {};
}

// The payload that this value shares with an earlier one; an empty answer where there is none.
DumpWriter::Impl::Stored DumpWriter::Impl::seen_before(const Observation& observation, const Tensor& tensor) const {
  if (tensor.dtype() == DType::string || tensor.size_bytes() == 0) return {};
  if (observation.alias_of != nullptr) {
    const auto id = static_cast<size_t>(observation.alias_of->id);
    if (id >= last_records_.size()) return {};
    const LastRecord& last = last_records_[id];
    const bool is_same = last.prefix == observation.frames.prefix() && last.stored.size_bytes == tensor.size_bytes();
    return is_same ? last.stored : Stored();
  }
  // A weight of the model is captured with every call, and is the same each time: the model is immutable and kept
  // alive.
  const auto weight = weights_.find(tensor.view().data);
  return weight != weights_.end() && weight->second.size_bytes == tensor.size_bytes() ? weight->second : Stored();
}

// Small payloads are not worth the look; nothing for them.
std::optional<Hash128> DumpWriter::Impl::content_of(const Tensor& tensor) const {
  constexpr size_t kLeastShared = 4096;
  const bool is_plain = tensor.dtype() != DType::string && tensor.device().is_host() && !is_channels_last(tensor);
  if (!options_.share_equal || !is_plain || tensor.size_bytes() < kLeastShared) return std::nullopt;
  return hash128(tensor.view().data, tensor.size_bytes());
}

void DumpWriter::Impl::remember(const Observation& observation, const Stored& stored) {
  const auto value_info = static_cast<size_t>(observation.value_info.id);
  if (value_info >= last_records_.size()) last_records_.resize(value_info + 1);
  last_records_[value_info] = {observation.frames.prefix(), stored};
  if (!observation.value.is_tensor()) return;
  const auto weight = weights_.find(observation.value.tensor().view().data);
  if (weight != weights_.end() && weight->second.size_bytes == stored.size_bytes && weight->second.id == 0)
    weight->second = stored;
}

// ---- The public class ----------------------------------------------------------------------------------------------

Result<std::unique_ptr<DumpWriter>> DumpWriter::create(const std::string& path, const DumpWriterOptions& options) {
  if (options.sample_elements <= 0 || options.capture_limit_bytes < 0)
    return usage_error(
        fmt::format("a dump is to keep samples of {} elements and values up to {} bytes; samples need 1 or more, the "
                    "limit 0 or more",
                    options.sample_elements, options.capture_limit_bytes));
  auto log = PX_TRY(RecordLog::create(path, {options.ring_bytes, options.sync}));
  return std::unique_ptr<DumpWriter>(new DumpWriter(std::make_unique<Impl>(std::move(log), options)));
}

DumpWriter::DumpWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DumpWriter::~DumpWriter() = default;

CaptureLevel DumpWriter::wants(const ValueInfo& value_info) { return impl_->wants(value_info); }
Status DumpWriter::begin_run(const RunInfo& run) { return impl_->begin_run(run); }
Status DumpWriter::begin_call(const CallInfo& call, std::span<const Value> inputs) {
  return impl_->begin_call(call, inputs);
}
Status DumpWriter::absent(const ValueInfo& value_info, const Absence& absence) {
  return impl_->absent(value_info, absence);
}
Status DumpWriter::observe(const Observation& observation) { return impl_->observe(observation); }
Status DumpWriter::end_call(const CallInfo&) { return impl_->end_call(); }
Status DumpWriter::end_run(bool completed) { return impl_->end_run(completed); }

Status DumpWriter::enter_body(const NodeLocation& node, const Frame& frame) {
  dump::ValueFields fields;
  fields.node = node.node;
  fields.op = node.op;
  return impl_->event(dump::EventKind::enter_body, fields, to_string(frame));
}

Status DumpWriter::leave_body(const NodeLocation& node, const Frame& frame) {
  dump::ValueFields fields;
  fields.node = node.node;
  fields.op = node.op;
  return impl_->event(dump::EventKind::leave_body, fields, to_string(frame));
}

Status DumpWriter::node_failed(const NodeLocation& node, const FrameStack& frames, const Error& error) {
  dump::ValueFields fields;
  fields.path = frames.prefix();
  fields.node = node.node;
  fields.op = node.op;
  return impl_->event(dump::EventKind::node_failed, fields, error.message);
}

Status DumpWriter::record(const Observation& observation, CaptureLevel level) {
  return level == CaptureLevel::none ? Status() : impl_->observe_anew(observation, level);
}

Status DumpWriter::structure(std::string_view path, std::string_view text) {
  dump::ValueFields fields;
  fields.path = path;
  return impl_->event(dump::EventKind::structure, fields, std::string(text));
}

Status DumpWriter::add_graph(const std::string& name, const Model& model, bool is_executed,
                             const std::vector<std::pair<std::string, std::string>>& provenance) {
  return impl_->add_graph(name, model, is_executed, provenance);
}

void DumpWriter::prepare(size_t bytes) { impl_->log().prepare(bytes); }
const std::string& DumpWriter::path() const { return impl_->log().path(); }
Status DumpWriter::finish(bool takes_name) { return impl_->log().finish(takes_name); }

}  // namespace parallax
