// SPDX-License-Identifier: Apache-2.0
// Each way a file can rot: cut at any byte, any byte changed, numbers under a right CRC. A value is either what was
// written or an error; nothing crashes; what is intact survives a repair.
#include <functional>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "inspector/base/crc32c.h"
#include "inspector/base/mapped_file.h"
#include "inspector/dump/format.h"
#include "inspector/dump/record_scan.h"
#include "tests/inspector/dump/support.h"

namespace parallax::test {
namespace {

const std::vector<std::pair<std::string, Value>>& values() {
  static const std::vector<std::pair<std::string, Value>> list = {
      {"x", Value(random_tensor(DType::float32, {5, 4}, 1))},
      {"flags", Value(random_tensor(DType::bool_, {70}, 2))},
      {"texts", Value(random_tensor(DType::string, {3}, 3))},
      {"list", Value(SequenceValue{TypeInfo::tensor(DType::int8), {Value(random_tensor(DType::int8, {9}, 4))}})},
      {"view", Value(random_tensor(DType::float32, {5, 4}, 1).reshaped({20}))},
      {"last", Value(random_tensor(DType::int64, {2}, 5))},
  };
  return list;
}

class Rot : public ::testing::Test {
 protected:
  void SetUp() override {
    auto writer = DumpWriter::create(path_, {}).take();
    Producer producer(*writer);
    ASSERT_OK(producer.begin());
    for (const auto& [name, value] : values()) ASSERT_OK(producer.show(name, value, name == "view" ? "x" : ""));
    ASSERT_OK(producer.end());
    ASSERT_OK(writer->finish());
    original_ = contents_of(path_);
  }

  // How many values the file gives back; any that is given back must be right.
  size_t expect_right_or_refused(const std::string& path) {
    const auto reader = DumpReader::open(path);
    if (!reader.ok()) {
      EXPECT_FALSE(reader.error().message.empty());
      return 0;
    }
    size_t count = 0;
    for (size_t index = 0; index < (*reader)->entries().size(); ++index) {
      const std::string& name = (*reader)->entries()[index].path;
      const auto known = std::ranges::find(values(), name, &std::pair<std::string, Value>::first);
      EXPECT_NE(known, values().end()) << name;
      const auto value = (*reader)->load(static_cast<int32_t>(index));
      if (!value.ok() || known == values().end()) continue;
      EXPECT_TRUE(same_bits(*value, known->second)) << name;
      ++count;
    }
    return count;
  }

  dump::RecordHeader header_at(size_t offset) const {
    dump::RecordHeader header;
    std::memcpy(&header, original_.data() + offset, sizeof header);
    return header;
  }
  std::vector<size_t> record_offsets() const {
    std::vector<size_t> offsets;
    for (size_t offset = 64; offset < original_.size(); offset += header_at(offset).record_bytes)
      offsets.push_back(offset);
    return offsets;
  }

  // The file with one header changed, all its CRCs made to fit, and index and footer gone.
  std::string with_header(size_t offset, const std::function<void(dump::RecordHeader&)>& change) const {
    std::string file = original_;
    dump::RecordHeader header = header_at(offset);
    change(header);
    const size_t body_bytes = std::min<size_t>(header.body_bytes, file.size() - offset - sizeof header);
    header.head_crc = head_crc(header, std::as_bytes(std::span(file)).subspan(offset + sizeof header, body_bytes));
    header.seal_check = seal_check(header);
    std::memcpy(file.data() + offset, &header, sizeof header);
    return file.substr(0, record_offsets()[record_offsets().size() - 2]);
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "a.plx";
  std::string damaged_ = folder_ / "b.plx";
  std::string repaired_ = folder_ / "c.plx";
  std::string original_;
};

TEST_F(Rot, CutAtAnyByteItHoldsAllThatWasFinishedBefore) {
  const std::vector<size_t> offsets = record_offsets();
  write_contents(damaged_, original_);
  for (size_t size = original_.size(); size-- > 0;) {
    std::filesystem::resize_file(damaged_, size);
    const auto reader = DumpReader::open(damaged_);
    ASSERT_EQ(reader.ok(), size >= 64) << size;
    if (!reader.ok()) continue;
    EXPECT_FALSE((*reader)->is_complete());
    size_t whole = 0;
    for (const size_t offset : offsets) {
      const auto header = header_at(offset);
      whole += header.kind == static_cast<uint16_t>(dump::Kind::tensor) && offset + header.record_bytes <= size;
    }
    ASSERT_EQ((*reader)->entries().size(), whole) << size;
    ASSERT_EQ(expect_right_or_refused(damaged_), whole) << size;
  }
}

TEST_F(Rot, AnyChangedByteIsNoticedOrIrrelevant) {
  write_contents(damaged_, original_);
  std::fstream file(damaged_, std::ios::in | std::ios::out | std::ios::binary);
  const auto set_byte = [&file](size_t offset, int value) {
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(value)).flush();
  };
  for (size_t offset = 0; offset < original_.size(); ++offset) {
    set_byte(offset, original_[offset] ^ (1 << (offset % 8)));
    const size_t given = expect_right_or_refused(damaged_);
    const auto problems = check_dump(damaged_);
    const bool is_noticed = !problems.ok() || !problems->empty();
    EXPECT_TRUE(is_noticed || given == values().size()) << "byte " << offset;
    set_byte(offset, original_[offset]);
  }
}

TEST_F(Rot, RepairKeepsEveryOtherRecord) {
  for (const size_t offset : record_offsets()) {
    if (header_at(offset).kind != static_cast<uint16_t>(dump::Kind::tensor)) continue;
    std::string file = original_;
    file[offset + 70] = static_cast<char>(file[offset + 70] ^ 4);
    write_contents(damaged_, file);
    const auto report = repair_dump(damaged_, repaired_);
    ASSERT_OK(report);
    EXPECT_GT(report->bytes_skipped, 0);
    const auto problems = check_dump(repaired_);
    ASSERT_OK(problems);
    EXPECT_TRUE(problems->empty());
    const bool takes_its_alias = offset == record_offsets()[2];
    EXPECT_EQ(expect_right_or_refused(repaired_), values().size() - (takes_its_alias ? 2 : 1)) << offset;
  }
}

TEST_F(Rot, RepairOfAWholeFileKeepsAll) {
  ASSERT_OK(repair_dump(path_, repaired_));
  EXPECT_EQ(expect_right_or_refused(repaired_), values().size());
  EXPECT_TRUE(open_dump(repaired_)->is_complete());
  EXPECT_FALSE(repair_dump(path_, path_).ok()) << "a file is not repaired onto itself";
}

TEST_F(Rot, NumbersThatLieUnderARightCrcAreRefused) {
  const size_t tensor = record_offsets()[2];
  const std::vector<std::function<void(dump::RecordHeader&)>> forgeries = {
      [](auto& h) { h.record_bytes = ~uint64_t{0}; },
      [](auto& h) { h.record_bytes = 0; },
      [](auto& h) { h.record_bytes += 64; },
      [](auto& h) { h.payload_bytes = ~uint64_t{0}; },
      [](auto& h) { h.payload_bytes += 1; },
      [](auto& h) {
        h.payload_bytes = 0;
        h.record_bytes = dump::round_up(h.payload_offset(), 64);
      },
      [](auto& h) { h.body_bytes = ~uint32_t{0}; },
      [](auto& h) {
        h.body_bytes -= 8;
        h.record_bytes = dump::round_up(h.payload_offset() + h.payload_bytes, 64);
      },
      [](auto& h) { h.id = 0; },
      [](auto& h) { h.id = 1; },
      [](auto& h) { h.payload_of = h.id; },
      [](auto& h) { h.payload_of = 1; },
      [](auto& h) { h.payload_of = 77; },
      [](auto& h) { h.kind = 3; },
      [](auto& h) { h.kind = 2; },
      [](auto& h) { h.kind = 999; },
  };
  for (size_t index = 0; index < forgeries.size(); ++index) {
    write_contents(damaged_, with_header(tensor, forgeries[index]));
    const size_t given = expect_right_or_refused(damaged_);
    EXPECT_LT(given, values().size()) << index;
    const auto problems = check_dump(damaged_);
    EXPECT_TRUE(!problems.ok() || !problems->empty()) << index;
    if (!repair_dump(damaged_, repaired_).ok()) continue;
    expect_right_or_refused(repaired_);
    EXPECT_TRUE(check_dump(repaired_).value().empty())
        << index << ": " << check_dump(repaired_).value().front().message;
  }
}

// The writer of a dump cuts off what it reserved and did not use, while a reader still has all of it mapped.
TEST_F(Rot, SpaceThatItsWriterCutsOffIsNotRead) {
  const size_t committed = record_offsets()[record_offsets().size() - 2];
  for (const bool has_writer : {true, false}) {
    write_contents(damaged_, original_.substr(0, committed) + std::string(size_t{1} << 20, '\0'));
    const int writer = ::open(damaged_.c_str(), O_RDWR);
    if (has_writer) {
      ASSERT_EQ(::flock(writer, LOCK_EX), 0);
    }
    const auto file = MappedFile::open(damaged_).take();
    EXPECT_EQ(file->is_being_written(), has_writer);
    std::filesystem::resize_file(damaged_, committed);
    const dump::RecordList list = dump::walk_records(*file, true);
    EXPECT_EQ(list.records.size(), record_offsets().size() - 2);
    EXPECT_TRUE(list.damages.empty());
    std::string problem;
    EXPECT_FALSE(dump::read_index(*file, problem).has_value());
    ::close(writer);
  }
}

TEST_F(Rot, WhatIsNoDumpSaysSo) {
  for (const std::string& contents :
       {std::string(), std::string("text"), std::string(4096, '\0'), std::string(4096, '\xFF')}) {
    write_contents(damaged_, contents);
    const auto reader = DumpReader::open(damaged_);
    ASSERT_FALSE(reader.ok());
    EXPECT_EQ(reader.error().code, ErrorCode::corrupt_file);
    EXPECT_NE(reader.error().message.find("not a Parallax dump"), std::string::npos) << reader.error().message;
    EXPECT_FALSE(check_dump(damaged_).ok());
    EXPECT_FALSE(repair_dump(damaged_, repaired_).ok());
  }
  std::string later = original_;
  later[8] = 2;
  write_contents(damaged_, later);
  EXPECT_NE(DumpReader::open(damaged_).error().message.find("version 2"), std::string::npos);
  EXPECT_EQ(DumpReader::open(folder_ / "none.plx").error().code, ErrorCode::io);
  EXPECT_EQ(DumpReader::open(folder_ / ".").error().code, ErrorCode::io);
}

TEST_F(Rot, AFileThatShrinksWhileOpenGivesAnError) {
  const auto reader = open_dump(path_);
  std::filesystem::resize_file(path_, 128);
  for (const auto& value : {reader->load(0), reader->load_copy(0)}) {
    ASSERT_FALSE(value.ok());
    EXPECT_NE(value.error().message.find("has changed on disk"), std::string::npos) << value.error().message;
  }
}

// As `cp` does it: the file keeps its length and its path, and has another content.
TEST_F(Rot, AFileThatIsOverwrittenWhileOpenGivesAnError) {
  const auto reader = open_dump(path_);
  ASSERT_OK(reader->load(0));
  std::filesystem::last_write_time(path_, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  ASSERT_OK(reader->load(0));  // whose payloads are what they were
  write_contents(path_, std::string(original_.size(), 'x'));
  for (const auto& value : {reader->load(0), reader->load_copy(0)}) {
    ASSERT_FALSE(value.ok());
    EXPECT_NE(value.error().message.find("has changed on disk"), std::string::npos) << value.error().message;
  }
}

// A copy outlives its source.
TEST_F(Rot, ACopyStaysWhenItsFileIsCut) {
  const auto reader = open_dump(path_);
  std::vector<Value> copies;
  for (size_t index = 0; index < reader->entries().size(); ++index) {
    auto copy = reader->load_copy(static_cast<int32_t>(index));
    ASSERT_OK(copy);
    copies.push_back(copy.take());
  }
  std::filesystem::resize_file(path_, 0);
  for (size_t index = 0; index < copies.size(); ++index) {
    const auto known =
        std::ranges::find(values(), reader->entries()[index].path, &std::pair<std::string, Value>::first);
    ASSERT_NE(known, values().end());
    EXPECT_TRUE(same_bits(copies[index], known->second)) << known->first;
  }
}

}  // namespace
}  // namespace parallax::test
