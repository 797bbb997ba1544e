// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a dump. Each input is read as it is, and once more with its checksums put right, since
// random changes would otherwise never come past them.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "inspector/base/check.h"
#include "inspector/base/crc32c.h"
#include "inspector/dump/dump_reader.h"
#include "tests/fuzz/memory_file.h"

namespace parallax {
namespace {

// Offsets of inspector/dump/FORMAT.md, "Record".
constexpr size_t kHeaderBytes = 64;
constexpr size_t kRecordAlignment = 64;
constexpr uint32_t kRecordMagic = 0x52584C50;  // "PLXR"

template <class T>
T get(const std::vector<std::byte>& bytes, size_t offset) {
  T value{};
  std::memcpy(&value, &bytes[offset], sizeof value);
  return value;
}

void put(std::vector<std::byte>& bytes, size_t offset, uint32_t value) {
  std::memcpy(&bytes[offset], &value, sizeof value);
}

// Puts right the checksums of the record at `offset`, as far as its sizes are within the file.
void mend_record(std::vector<std::byte>& bytes, size_t offset) {
  const uint64_t body_bytes = get<uint32_t>(bytes, offset + 24);
  const uint64_t payload_bytes = get<uint64_t>(bytes, offset + 32);
  const uint64_t left = bytes.size() - offset - kHeaderBytes;
  if (body_bytes > left) return;
  const uint32_t head_crc = crc32c(&bytes[offset + 4], 36);
  put(bytes, offset + 40, crc32c(bytes.data() + offset + kHeaderBytes, body_bytes, head_crc));
  const uint64_t payload_begin = (body_bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
  if (payload_begin <= left && payload_bytes <= left - payload_begin) {
    put(bytes, offset + 56, crc32c(bytes.data() + offset + kHeaderBytes + payload_begin, payload_bytes));
  }
  const uint32_t seal = crc32c(&bytes[offset + 48], 12, crc32c(&bytes[offset + 40], 4));
  put(bytes, offset + 60, seal | 1U);
}

std::vector<std::byte> mended(std::span<const std::byte> input) {
  std::vector<std::byte> bytes(input.begin(), input.end());
  for (size_t offset = kHeaderBytes; offset + kHeaderBytes <= bytes.size(); offset += kRecordAlignment) {
    if (get<uint32_t>(bytes, offset) == kRecordMagic) mend_record(bytes, offset);
  }
  return bytes;
}

void read_all(std::span<const std::byte> bytes) {
  const MemoryFile file(bytes);
  const auto problems = check_dump(file.path());
  const auto dump = DumpReader::open(file.path());
  if (!dump.ok()) {
    PX_CHECK(!problems.ok() || !problems->empty());
    return;
  }
  const auto count = static_cast<int32_t>((*dump)->entries().size());
  for (int32_t entry = 0; entry < count; ++entry) {
    const DumpEntry& row = (*dump)->entries()[static_cast<size_t>(entry)];
    PX_CHECK(row.alias_of < count);
    (void)(*dump)->find(row.path, row.execution);
    const auto value = (*dump)->load(entry);
    if (value.ok()) (void)payload_bytes(*value);
  }
  for (size_t graph = 0; graph < (*dump)->graphs().size(); ++graph) (void)(*dump)->model(static_cast<int32_t>(graph));
}

}  // namespace
}  // namespace parallax

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  parallax::read_all(bytes);
  parallax::read_all(parallax::mended(bytes));
  return 0;
}
