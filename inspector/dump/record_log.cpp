// SPDX-License-Identifier: Apache-2.0
// Order of stores is what makes a record whole or absent: payload, body, header, and the magic word last.
#include "inspector/dump/record_log.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>

#include "inspector/base/check.h"
#include "inspector/base/crc32c.h"
#include "inspector/base/signal_cleanup.h"
#include "inspector/base/thread_pool.h"

namespace parallax::dump {
namespace {

constexpr uint64_t kLeastSharedBytes = 64 << 10;   // looking for equal ones pays from here on
constexpr uint64_t kLeastWrittenBytes = 64 << 10;  // fewer are stored sooner than a call is made
constexpr uint64_t kLeastAheadBytes = 1 << 20;     // prepared before anything is known of what comes
constexpr uint64_t kReleaseDistanceBytes =
    16 << 20;  // mappings are kept at least this long: unmapping in large steps is cheaper

uint32_t random_stream() {
  std::random_device device;
  uint32_t stream = 0;
  while (stream == 0) stream = device();
  return stream;
}

template <class T>
void store_released(T& target, T value) {
  std::atomic_ref<T>(target).store(value, std::memory_order_release);
}

// Both words of the seal in one store: a reader of a file that was cut off sees all of it or none.
void store_seal(std::byte* record, const RecordHeader& header) {
  std::memcpy(record + offsetof(RecordHeader, payload_of), &header.payload_of, sizeof header.payload_of);
  const uint64_t seal = uint64_t{header.payload_crc} | uint64_t{header.seal_check} << 32;
  store_released(*reinterpret_cast<uint64_t*>(record + offsetof(RecordHeader, payload_crc)), seal);
}

}  // namespace

Result<std::unique_ptr<RecordLog>> RecordLog::create(const std::string& path, const Options& options) {
  note_output(path, false);
  auto created = GrowingFile::create(path);
  if (!created.ok()) {
    forget_output(path);
    return std::move(created).error();
  }
  std::unique_ptr<GrowingFile> file = std::move(created).take();
  if (!file->is_published()) forget_output(path);  // there is another yet
  std::byte* const target = PX_TRY(file->reserve(0, kFileHeaderBytes));
  const FileHeader header = make_file_header();
  std::memcpy(target, &header, sizeof header);
  return std::unique_ptr<RecordLog>(new RecordLog(std::move(file), options));
}

RecordLog::RecordLog(std::unique_ptr<GrowingFile> file, const Options& options)
    : file_(std::move(file)), options_(options), stream_(random_stream()) {
  thread_ = std::thread([this] { work(); });
}

RecordLog::~RecordLog() {
  if (!thread_.joinable()) return;
  stop_thread();
  static_cast<void>(file_->finish(next_offset_, false));
}

Result<RecordLog::Draft> RecordLog::begin(Kind kind, size_t body_bytes, uint64_t payload_bytes) {
  PX_CHECK(body_bytes <= kMaxBodyBytes);
  if (failed_.has_value()) return *failed_;
  Draft draft;
  RecordHeader& header = draft.header;
  header.magic = kRecordMagic;
  header.kind = static_cast<uint16_t>(kind);
  header.id = next_id_;
  header.body_bytes = static_cast<uint32_t>(body_bytes);
  header.stream = stream_;
  header.payload_bytes = payload_bytes;
  header.record_bytes = round_up(header.payload_offset() + payload_bytes, kAlignment);
  draft.offset = next_offset_;
  // A header more: the next record's magic is in reserved space, so a scan finds its zero.
  const uint64_t end = draft.offset + header.record_bytes + kRecordHeaderBytes;
  if (prepares_together()) prepare_together(end);
  draft.address = PX_TRY(file_->reserve(draft.offset, end));
  draft.payload = draft.address + header.payload_offset();
  return draft;
}

bool RecordLog::prefers_writes(uint64_t payload_bytes) const {
  return payload_bytes >= kLeastWrittenBytes && file_->prefers_writes();
}

// The magic of a draft whose payload failed stays zero, so that the file ends before it.
Status RecordLog::write(const Draft& draft, uint64_t offset, std::span<const std::byte> part,
                        GrowingFile::Caching caching) {
  PX_CHECK(offset + part.size() <= draft.header.payload_bytes);
  Status written = file_->write(draft.offset + draft.header.payload_offset() + offset, part, caching);
  if (!written.ok()) failed_ = written.error();
  return written;
}

uint64_t RecordLog::commit(Draft& draft, std::span<const std::byte> body, uint64_t payload_of) {
  RecordHeader& header = draft.header;
  PX_CHECK(body.size() == header.body_bytes && draft.offset == next_offset_);
  std::ranges::copy(body, draft.address + kRecordHeaderBytes);
  header.head_crc = head_crc(header, body);
  header.payload_of = payload_of;
  header.payload_crc = draft.payload_crc.has_value() ? *draft.payload_crc : crc32c(draft.payload, header.payload_bytes);
  const Original* original = find_original(header, draft.offset);
  std::optional<Job> job;
  if (original != nullptr) {
    job = {draft.address, draft.offset, header.payload_crc, *original};
    header.payload_crc = 0;  // the seal follows when the two have been compared
  } else {
    header.seal_check = seal_check(header);
  }
  std::memcpy(draft.address + sizeof header.magic, reinterpret_cast<const std::byte*>(&header) + sizeof header.magic,
              sizeof header - sizeof header.magic);
  store_released(*reinterpret_cast<uint32_t*>(draft.address), header.magic);
  next_offset_ += header.record_bytes;
  next_id_ = header.id + 1;
  ++record_count_;
  keep();

  const uint64_t prepared = file_->prepared_end();
  const std::lock_guard lock(mutex_);
  appended_end_ = next_offset_;
  largest_bytes_ = std::max(largest_bytes_, header.record_bytes);
  if (job.has_value()) jobs_.push_back(*job);
  if (is_waiting_ && (job.has_value() || prepared < wanted_end() || releasable_end() > 0)) wake_.notify_all();
  return header.id;
}

// From its first record on a dump outlives its process, next to an older one.
void RecordLog::keep() {
  if (failed_.has_value()) return;
  if (Status kept = file_->keep(); !kept.ok()) failed_ = kept.error();
}

// An earlier payload of this size and CRC; when there is none, this one is remembered.
const RecordLog::Original* RecordLog::find_original(const RecordHeader& header, uint64_t offset) {
  if (header.kind != static_cast<uint16_t>(Kind::tensor) || header.payload_bytes < kLeastSharedBytes) return nullptr;
  const Original own{header.id, offset + header.payload_offset(), header.payload_bytes};
  const uint64_t key = uint64_t{header.payload_crc} << 32 ^ header.payload_bytes;
  const auto [found, is_new] = originals_.try_emplace(key, own);
  return is_new || found->second.payload_bytes != own.payload_bytes ? nullptr : &found->second;
}

Result<uint64_t> RecordLog::append(Kind kind, std::span<const std::byte> body, std::span<const std::byte> payload) {
  Draft draft = PX_TRY(begin(kind, body.size(), payload.size()));
  if (!payload.empty()) std::memcpy(draft.payload, payload.data(), payload.size());
  return commit(draft, body);
}

void RecordLog::expect(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  expected_end_ = std::max(expected_end_, appended_end_ + bytes);
  wake_.notify_all();
}

void RecordLog::prepare(uint64_t bytes) {
  const bool has_pages_to_touch = !file_->prefers_writes();
  if (!has_pages_to_touch || bytes > file_->available_bytes() / 2) return;  // what was foreseen may be too much
  const uint64_t end = next_offset_ + bytes;
  if (prepares_together()) return file_->prepare_together(end);
  expect(bytes);
  file_->prepare(end);
}

// With a thread of the pool on every processor, the second thread would take turns with one of them, for which the
// others wait at the end of each loop: then the pool prepares, all its threads at once.
bool RecordLog::prepares_together() const {
  static const auto processors = static_cast<int>(std::thread::hardware_concurrency());
  return thread_count() > 1 && thread_count() >= processors && !file_->prefers_writes() && options_.ring_bytes != 0;
}

// The range has at least one step; with as many ahead of it, if the lead allows, each thread has one to do.
void RecordLog::prepare_together(uint64_t end) {
  if (end <= file_->prepared_end()) return;
  const uint64_t steps = static_cast<uint64_t>(thread_count() - 1) * GrowingFile::kStepBytes;
  file_->prepare_together(end + std::min(steps, lead()));
}

// How far ahead space is prepared: room for what may come next, yet no large part of what is there already. Where it is
// more than caches hold, pages that were cleared have left them before they are written past them, which is faster.
uint64_t RecordLog::lead() const {
  return std::min(options_.ring_bytes, std::max({kLeastAheadBytes, 2 * largest_bytes_, appended_end_ / 4}));
}

// As far as space shall be prepared at least: what was said to come; where nothing was, or more came, half the lead.
uint64_t RecordLog::wanted_end() const {
  if (options_.ring_bytes == 0 || prepares_together()) return 0;
  if (appended_end_ < expected_end_) return std::min(expected_end_, appended_end_ + options_.ring_bytes);
  return appended_end_ + lead() / 2;
}

// Up to where nobody needs the mapping any more; 0 while that is not worth a call.
uint64_t RecordLog::releasable_end() const {
  const uint64_t settled = jobs_.empty() ? appended_end_ : jobs_.front().offset;
  return settled > released_end_ + 2 * kReleaseDistanceBytes ? settled - kReleaseDistanceBytes : 0;
}

void RecordLog::work() {
  std::unique_lock lock(mutex_);
  uint64_t asked = 0;
  while (true) {
    if (const uint64_t end = releasable_end(); end > 0) file_->release(released_end_ = end);
    if (!is_stopping_ && asked < wanted_end()) {
      asked = appended_end_ < expected_end_ ? wanted_end() : appended_end_ + lead();
      lock.unlock();
      file_->prepare(asked);
      lock.lock();
    } else if (!jobs_.empty()) {
      const Job job = jobs_.front();
      lock.unlock();
      seal_pending(job);
      lock.lock();
      jobs_.pop_front();
    } else if (is_stopping_) {
      return;
    } else {
      is_waiting_ = true;
      wake_.wait(lock);
      is_waiting_ = false;
    }
  }
}

// Equal CRCs are no proof: the payloads are compared.
void RecordLog::seal_pending(const Job& job) const {
  RecordHeader header;
  std::memcpy(&header, job.record, sizeof header);
  header.payload_crc = job.payload_crc;
  const uint64_t begin = job.offset + header.payload_offset();
  const bool is_equal =
      file_->holds(job.original.payload_offset, {job.record + header.payload_offset(), header.payload_bytes});
  if (is_equal) header.payload_of = job.original.id;
  header.seal_check = seal_check(header);
  store_seal(job.record, header);
  if (is_equal) file_->punch(begin, begin + header.payload_bytes);
}

void RecordLog::stop_thread() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

namespace {

// Bytes of a file here and there, most of them close to the ones before.
class NearbyBytes {
 public:
  NearbyBytes(const GrowingFile& file, uint64_t end) : file_(file), end_(end) {}

  // Valid until the next call.
  Result<std::span<const std::byte>> read(uint64_t offset, size_t size_bytes) {
    constexpr uint64_t kReadAheadBytes = 16 << 10;
    if (offset < begin_ || offset + size_bytes > begin_ + bytes_.size()) {
      bytes_.resize(std::max<size_t>(size_bytes, std::min(kReadAheadBytes, end_ - offset)));
      begin_ = offset;
      PX_TRY(file_.read(offset, bytes_));
    }
    return std::span<const std::byte>(bytes_).subspan(offset - begin_, size_bytes);
  }

 private:
  const GrowingFile& file_;
  uint64_t end_;
  uint64_t begin_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace

// The index repeats headers and bodies as they are in the file, so it is collected from there: memory holds no second
// copy while capturing. Not through a mapping, of which every header would bring its neighbors into memory, up to a
// huge page.
Result<std::string> RecordLog::collect_index() const {
  std::string index;
  NearbyBytes bytes(*file_, next_offset_);
  for (uint64_t offset = kFileHeaderBytes; offset < next_offset_;) {
    RecordHeader header;
    std::memcpy(&header, PX_TRY(bytes.read(offset, sizeof header)).data(), sizeof header);
    PX_CHECK(inspect_header(header, next_offset_ - offset) == HeaderState::valid);
    const std::span record = PX_TRY(bytes.read(offset, kRecordHeaderBytes + header.body_bytes));
    index.append(reinterpret_cast<const char*>(&offset), sizeof offset);
    index.append(reinterpret_cast<const char*>(record.data()), record.size());
    index.resize(round_up(index.size(), 8));
    offset += header.record_bytes;
  }
  return index;
}

Status RecordLog::append_footer(uint64_t index_offset) {
  FooterBody footer{};
  footer.index_offset = index_offset;
  footer.index_record_bytes = next_offset_ - index_offset;
  footer.record_count = record_count_ - 1;  // all but the index
  footer.file_bytes = next_offset_ + kFooterRecordBytes;
  PX_TRY(append(Kind::footer, std::as_bytes(std::span(&footer, 1))));
  return {};
}

Status RecordLog::finish(bool takes_name) {
  stop_thread();
  const uint64_t index_offset = next_offset_;
  Status status = [&]() -> Status {
    const std::string index = PX_TRY(collect_index());
    Draft draft = PX_TRY(begin(Kind::index, 0, index.size()));
    std::memcpy(draft.payload, index.data(), index.size());
    commit(draft, {});
    return append_footer(index_offset);
  }();
  Status closed = file_->finish(next_offset_, options_.sync);
  if (!status.ok() || !closed.ok()) return status.ok() ? std::move(closed) : std::move(status);
  if (!takes_name && !file_->is_published()) return {};
  PX_TRY(file_->publish());
  note_output(file_->path(), true);
  return {};
}

}  // namespace parallax::dump
