// SPDX-License-Identifier: Apache-2.0
// Dumps over 4 GB. Reading one is tested on a file with a hole. Writing one, and every export of it, takes some minutes
// and 25 GB of disk: PARALLAX_LARGE=1 asks for it, TMPDIR says where.
#include <cstdlib>

#include "inspector/dump/convert/convert.h"
#include "inspector/dump/format.h"
#include "tests/inspector/dump/support.h"

namespace parallax::test {
namespace {

constexpr uint64_t kHoleBytes = uint64_t{5} << 30;

// A record of a kind that no reader knows, with a payload that is a hole.
dump::RecordHeader hole_record(uint64_t id, uint32_t stream) {
  dump::RecordHeader header{};
  header.magic = dump::kRecordMagic;
  header.kind = 999;
  header.id = id;
  header.stream = stream;
  header.payload_bytes = kHoleBytes;
  header.record_bytes = dump::kRecordHeaderBytes + kHoleBytes;
  header.head_crc = head_crc(header, {});
  return header;
}

// An unfinished dump with 5 GB of hole before its first value: its records of values are after 2^32.
void write_with_hole(const std::string& path, const std::string& small) {
  std::string file = contents_of(small);
  std::ofstream target(path, std::ios::binary);
  target.write(file.data(), dump::kFileHeaderBytes);
  uint64_t raised_from = 0;  // id of the first value; from there on the hole's record makes each id larger by one
  for (uint64_t offset = dump::kFileHeaderBytes; offset + dump::kRecordHeaderBytes <= file.size();) {
    dump::RecordHeader header;
    std::memcpy(&header, &file[offset], sizeof header);
    if (header.magic != dump::kRecordMagic) break;
    if (raised_from == 0 && header.kind == static_cast<uint16_t>(dump::Kind::tensor)) {
      raised_from = header.id;
      const dump::RecordHeader hole = hole_record(header.id, header.stream);
      target.write(reinterpret_cast<const char*>(&hole), sizeof hole);
      target.seekp(static_cast<std::streamoff>(kHoleBytes), std::ios::cur);
    }
    if (raised_from != 0) {
      ++header.id;
      if (header.payload_of != 0) ++header.payload_of;
      const auto body = std::as_bytes(std::span(file)).subspan(offset + dump::kRecordHeaderBytes, header.body_bytes);
      header.head_crc = head_crc(header, body);
      header.seal_check = seal_check(header);
      std::memcpy(&file[offset], &header, sizeof header);
    }
    target.write(&file[offset], static_cast<std::streamsize>(header.record_bytes));
    offset += header.record_bytes;
  }
}

TEST(Large, ReadsRecordsAfterFourGigabytes) {
  const TemporaryFolder folder;
  const Tensor tensor = random_tensor(DType::float32, {100, 100}, 1);
  {
    const auto writer = DumpWriter::create(folder / "small.plx", {}).take();
    Producer producer(*writer);
    ASSERT_OK(producer.begin());
    ASSERT_OK(producer.show("x", tensor));
    ASSERT_OK(producer.show("same", tensor, "x"));
  }
  write_with_hole(folder / "large.plx", folder / "small.plx");
  ASSERT_GT(std::filesystem::file_size(folder / "large.plx"), kHoleBytes);
  const auto reader = open_dump(folder / "large.plx");
  ASSERT_NE(reader, nullptr);
  ASSERT_EQ(reader->entries().size(), 2U);
  EXPECT_TRUE(same_bits(load(*reader, "x"), Value(tensor)));
  EXPECT_TRUE(same_bits(load(*reader, "same"), Value(tensor)));
  const auto problems = check_dump(folder / "large.plx");
  ASSERT_OK(problems);
  ASSERT_EQ(problems->size(), 1U);  // it has no footer, and nothing else is wrong
  EXPECT_NE((*problems)[0].message.find("5 records that are whole"), std::string::npos) << (*problems)[0].message;
}

// ---- The long form -------------------------------------------------------------------------------------------------

// 2.25 GB, another number in every element.
Tensor large_tensor(uint32_t seed) {
  Tensor tensor = Tensor::allocate(DType::float32, {9, 67108864}).take();
  uint32_t state = seed;
  for (float& value : tensor.mutable_as<float>()) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(state >> 8);
  }
  return tensor;
}

void expect_origin(const std::string& folder, const std::string& origin, const Tensor& first, const Tensor& second) {
  SCOPED_TRACE(origin);
  const std::string target = folder + "/imported.plx";
  ASSERT_OK(import_dump({origin, "", ""}, target));
  const auto reader = open_dump(target);
  EXPECT_TRUE(same_bits(load(*reader, "first"), Value(first)));
  EXPECT_TRUE(same_bits(load(*reader, "second"), Value(second)));
  std::filesystem::remove(target);
}

void write_large_dump(const std::string& path, const Tensor& first, const Tensor& second) {
  const auto writer = DumpWriter::create(path, {}).take();
  Producer producer(*writer);
  ASSERT_OK(producer.begin());
  producer.value_info("first").is_graph_output = true;
  ASSERT_OK(producer.show("first", first));
  ASSERT_OK(producer.show("second", second));
  ASSERT_OK(producer.show("again", first));  // equal payloads of this size are found
  ASSERT_OK(producer.show("last", Tensor::scalar<float>(1)));
  ASSERT_OK(producer.end());
  ASSERT_OK(writer->finish());
}

TEST(Large, EveryExportOfTensorsOverTwoGigabytes) {
  if (std::getenv("PARALLAX_LARGE") == nullptr) GTEST_SKIP() << "PARALLAX_LARGE=1 asks for it: 25 GB of disk";
  const TemporaryFolder folder;
  const std::string path = folder / "large.plx";
  const Tensor first = large_tensor(1);
  const Tensor second = large_tensor(2);
  write_large_dump(path, first, second);
  EXPECT_TRUE(check_dump(path)->empty());
  {
    const auto reader = open_dump(path);
    EXPECT_TRUE(same_bits(load(*reader, "second"), Value(second)));
    EXPECT_EQ(reader->entries()[2].alias_of, 0);
    EXPECT_EQ(load(*reader, "last").tensor().as<float>()[0], 1);
  }
  ASSERT_OK(repair_dump(path, folder / "repaired.plx"));
  EXPECT_TRUE(same_bits(load(*open_dump(folder / "repaired.plx"), "second"), Value(second)));
  std::filesystem::remove(folder / "repaired.plx");
  for (const std::string kind : {"all.npz", "all.safetensors", "all.onnx", "arrays"}) {
    ASSERT_OK(export_dump(path, folder / kind));
    expect_origin(folder / ".", folder / kind, first, second);
    std::filesystem::remove_all(folder / kind);
  }
  const auto data_set = export_dump(path, folder / "test_data_set_0");
  ASSERT_FALSE(data_set.ok());  // its files are single protobuf messages
  EXPECT_NE(data_set.error().message.find("2 GB"), std::string::npos) << data_set.error().message;
}

}  // namespace
}  // namespace parallax::test
