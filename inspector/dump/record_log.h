// SPDX-License-Identifier: Apache-2.0
// RecordLog: appends records to a dump file and seals them. The appending thread copies and commits; a second thread
// prepares space ahead of it, where a processor is free for that, and, after it, compares payloads that may be equal.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>

#include "inspector/dump/format.h"
#include "inspector/dump/growing_file.h"

namespace parallax::dump {

class RecordLog {
 public:
  struct Options {
    uint64_t ring_bytes = 0;  // most space kept prepared ahead
    bool sync = false;
  };
  // A record in the making: until commit() its payload may be filled in, and its id made larger.
  struct Draft {
    RecordHeader header{};
    uint64_t offset = 0;  // in the file
    std::byte* address = nullptr;
    std::byte* payload = nullptr;
    std::optional<uint32_t> payload_crc;  // where it is known from the copy
  };

  static Result<std::unique_ptr<RecordLog>> create(const std::string& path, const Options& options);
  ~RecordLog();  // without finish(): cuts off what was reserved too much, writes no index
  RecordLog(const RecordLog&) = delete;
  RecordLog& operator=(const RecordLog&) = delete;

  // Every draft is committed: the bytes of a dropped one would be where the next record begins. Errors (io): the disk
  // is full. The log stays usable: smaller records may still fit.
  Result<Draft> begin(Kind kind, size_t body_bytes, uint64_t payload_bytes);
  // True where a payload is better given to write() than stored at Draft::payload.
  bool prefers_writes(uint64_t payload_bytes) const;
  // Stores a part of a draft's payload. Errors (io): a disk that fails; from then on the log takes nothing more.
  Status write(const Draft& draft, uint64_t offset, std::span<const std::byte> part, GrowingFile::Caching caching);
  // Makes the record exist. From here on it survives the process. `payload_of`: as in FORMAT.md; returns the record's
  // id.
  uint64_t commit(Draft& draft, std::span<const std::byte> body, uint64_t payload_of = 0);
  // begin and commit at once.
  Result<uint64_t> append(Kind kind, std::span<const std::byte> body, std::span<const std::byte> payload = {});

  // Asks for `bytes` to be prepared ahead; expect() returns at once, prepare() when it is done, for a file in memory.
  void expect(uint64_t bytes);
  void prepare(uint64_t bytes);

  // Waits for all seals, adds index and footer, closes. `takes_name` false: an older file keeps its name, and the log
  // is next to it (GrowingFile).
  Status finish(bool takes_name = true);
  // The name that the file has now; empty where it has none yet.
  const std::string& path() const { return file_->current_path(); }

 private:
  // A payload that later ones may turn out to equal.
  struct Original {
    uint64_t id;
    uint64_t payload_offset;
    uint64_t payload_bytes;
  };
  // A committed record with a pending seal, whose payload has the size and CRC of an earlier one.
  struct Job {
    std::byte* record;
    uint64_t offset;
    uint32_t payload_crc;
    Original original;
  };

  RecordLog(std::unique_ptr<GrowingFile> file, const Options& options);
  const Original* find_original(const RecordHeader& header, uint64_t offset);
  void keep();
  bool prepares_together() const;
  void prepare_together(uint64_t end);
  uint64_t lead() const;
  uint64_t wanted_end() const;
  uint64_t releasable_end() const;
  void work();
  void seal_pending(const Job& job) const;
  void stop_thread();
  Result<std::string> collect_index() const;
  Status append_footer(uint64_t index_offset);

  std::unique_ptr<GrowingFile> file_;
  Options options_;
  uint32_t stream_;
  uint64_t next_offset_ = kFileHeaderBytes;
  uint64_t next_id_ = 1;
  uint64_t record_count_ = 0;
  std::optional<Error> failed_;  // what write() met

  std::unordered_map<uint64_t, Original> originals_;  // the first of each CRC

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  uint64_t released_end_ = 0;
  uint64_t appended_end_ = 0;   // for the second thread: how far the first one is
  uint64_t largest_bytes_ = 0;  // of all records
  uint64_t expected_end_ = 0;   // as far as was said beforehand
  bool is_waiting_ = false;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace parallax::dump
