// SPDX-License-Identifier: Apache-2.0
// Channels-last values: statistics, copies and records are those of the row-major tensor, to the bit.
#include "inspector/tensor/channels_last.h"

#include <cstring>

#include <gtest/gtest.h>

#include "inspector/base/crc32c.h"
#include "inspector/base/thread_pool.h"
#include "inspector/dump/statistics/statistics_write.h"
#include "tests/inspector/dump/support.h"

namespace parallax::test {
namespace {

// The tensor's elements in channels-last order.
Tensor permuted(const Tensor& row_major) {
  const Shape& shape = row_major.shape();
  Tensor made = Tensor::zeros(row_major.dtype(), shape).take();
  const size_t bytes = static_cast<size_t>(bits_of(row_major.dtype())) / 8;
  const auto batch = static_cast<size_t>(shape[0]), channels = static_cast<size_t>(shape[1]);
  const size_t locations = row_major.size_bytes() / bytes / batch / channels;
  for (size_t index = 0; index < batch * channels * locations; ++index) {
    const size_t n = index / locations / channels, c = index / locations % channels, p = index % locations;
    std::memcpy(made.mutable_data() + ((n * locations + p) * channels + c) * bytes,
                row_major.view().data + index * bytes, bytes);
  }
  return Tensor::wrap(made.dtype(), shape, made.storage(), kChannelsLast);
}

// Channels smaller than a chunk and larger, that end within chunks and with them; some in several batches.
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{Shape{1, 3, 5},        Shape{2, 70, 14, 14}, Shape{1, 512, 7, 7},
                                      Shape{3, 24, 37, 41},  Shape{1, 16, 32, 32}, Shape{1, 20, 112, 112},
                                      Shape{2, 3, 150, 151}, Shape{1, 100, 1, 200}};
  return all;
}

// Both orders of elements, of tensors stored in either: the same bits for the same order.
TEST(ChannelsLastDumps, StatisticsAndCopiesDoNotDependOnHowATensorLies) {
  for (const int threads : {1, 2, 5}) {
    set_thread_count(threads);
    for (const DType dtype : {DType::float32, DType::float16, DType::uint8, DType::int64, DType::complex64}) {
      for (const Shape& shape : shapes()) {
        const Tensor tensor = random_tensor(dtype, shape, 9);
        const Tensor last = permuted(tensor);
        for (const ElementOrder order : {ElementOrder::row_major, ElementOrder::channels_last}) {
          // Channels last, the elements are counted as stored.
          TensorStatistics expected = compute_statistics(
              order == ElementOrder::row_major ? tensor : Tensor::wrap(dtype, shape, last.storage()));
          expected.order = order;
          for (const Tensor& given : {tensor, last}) {
            EXPECT_TRUE(same_statistics(compute_statistics(given, order), expected))
                << name_of(dtype) << shape.to_string() << static_cast<int>(order);
            Tensor copy = Tensor::zeros(dtype, shape).take();
            const CheckedCopy copied = copy_with_statistics(given, copy.mutable_data(), order);
            EXPECT_TRUE(same_statistics(copied.statistics, expected)) << name_of(dtype) << shape.to_string();
            const Tensor& wanted = payload_order(given, order) == ElementOrder::row_major ? tensor : last;
            EXPECT_EQ(copied.crc, crc32c(wanted.view().data, tensor.size_bytes()));
            EXPECT_EQ(std::memcmp(copy.view().data, wanted.view().data, copy.size_bytes()), 0)
                << name_of(dtype) << shape.to_string();
          }
        }
      }
    }
  }
  set_thread_count(0);
}

TEST(ChannelsLastDumps, NumbersTooLargeToSquareAreSummedInTheSameOrder) {
  Tensor tensor = Tensor::zeros(DType::float64, {1, 5, 7, 9}).take();
  double number = 1e300;
  for (double& element : tensor.mutable_as<double>()) element = number *= -1.001;
  for (const ElementOrder order : {ElementOrder::row_major, ElementOrder::channels_last})
    EXPECT_TRUE(same_statistics(compute_statistics(permuted(tensor), order), compute_statistics(tensor, order)));
}

TEST(ChannelsLastDumps, APayloadStaysAsItLiesWhereItIsCountedSo) {
  const Tensor tensor = random_tensor(DType::float32, {1, 24, 5, 7}, 5),
               pooled = random_tensor(DType::float32, {1, 24, 1, 1}, 5);
  EXPECT_EQ(payload_order(permuted(tensor), ElementOrder::channels_last), ElementOrder::channels_last);
  EXPECT_EQ(payload_order(permuted(tensor), ElementOrder::row_major), ElementOrder::row_major);
  EXPECT_EQ(payload_order(tensor, ElementOrder::channels_last), ElementOrder::row_major);
  EXPECT_EQ(payload_order(permuted(pooled), ElementOrder::channels_last), ElementOrder::row_major);
}

TEST(ChannelsLastDumps, WhatIsWrittenByCallsIsThePayload) {
  const Tensor tensor = random_tensor(DType::float32, {1, 24, 300, 301}, 5);
  for (const ElementOrder order : {ElementOrder::row_major, ElementOrder::channels_last}) {
    for (const Tensor& given : {tensor, permuted(tensor)}) {
      std::vector<std::byte> seen;
      const auto write = [&](uint64_t offset, std::span<const std::byte> part) {
        EXPECT_EQ(offset, seen.size());
        seen.insert(seen.end(), part.begin(), part.end());
        return Status();
      };
      const auto written = write_with_statistics(given, write, order);
      ASSERT_OK(written);
      ASSERT_EQ(seen.size(), tensor.size_bytes());
      const Tensor wanted = payload_order(given, order) == ElementOrder::row_major ? tensor : permuted(tensor);
      EXPECT_EQ(std::memcmp(seen.data(), wanted.view().data, seen.size()), 0);
      EXPECT_EQ(written->crc, crc32c(seen.data(), seen.size()));
      EXPECT_TRUE(same_statistics(written->statistics, compute_statistics(tensor, order)));
    }
  }
}

TEST(ChannelsLastDumps, EveryLevelKeepsWhatItKeepsOfTheRowMajorTensor) {
  const TemporaryFolder folder;
  const Tensor tensor = random_tensor(DType::float32, {2, 24, 37, 41}, 3);
  for (const CaptureLevel level : {CaptureLevel::shape, CaptureLevel::stats, CaptureLevel::sample, CaptureLevel::all}) {
    DumpWriterOptions options;
    options.level = level;
    const std::string path = folder / "levels.plx";
    auto writer = DumpWriter::create(path, options).take();
    ASSERT_TRUE(writer->takes_channels_last());
    Producer producer(*writer);
    ASSERT_OK(producer.begin());
    ASSERT_OK(producer.show("rows", tensor));
    ASSERT_OK(producer.show("transposed", permuted(tensor)));
    ASSERT_OK(producer.end());
    ASSERT_OK(writer->finish());
    const auto reader = open_dump(path);
    const DumpEntry &rows = reader->entries()[0], &last = reader->entries()[1];
    EXPECT_EQ(last.level, level);
    EXPECT_EQ(last.type, rows.type);
    ASSERT_EQ(last.statistics.has_value(), level != CaptureLevel::shape);
    if (level != CaptureLevel::shape) {
      EXPECT_TRUE(same_statistics(*last.statistics, *rows.statistics));
    }
    if (level < CaptureLevel::sample) continue;
    const auto a = reader->load(0), b = reader->load(1);
    ASSERT_OK(a);
    ASSERT_OK(b);
    EXPECT_TRUE(same_bits(*a, *b)) << static_cast<int>(level);
  }
}

// A feature map is stored as it is, and read row-major; it is shared by a value of its shape, and by no other.
TEST(ChannelsLastDumps, ImagesAreReadAsTheyAreMeant) {
  const TemporaryFolder folder;
  const Tensor tensor = random_tensor(DType::float32, {2, 24, 37, 41}, 3);
  const Tensor flat = Tensor::wrap(DType::float32, {2, 24 * 37 * 41}, tensor.storage());
  for (const bool by_calls : {false, true}) {
    DumpWriterOptions options;
    options.level = CaptureLevel::all;
    if (by_calls) options.ring_bytes = 0;
    const std::string path = folder / (by_calls ? "calls.plx" : "ring.plx");
    auto writer = DumpWriter::create(path, options).take();
    Producer producer(*writer);
    ASSERT_OK(producer.begin());
    for (const char* name : {"rows", "transposed"}) producer.value_info(name).is_feature_map = true;
    ASSERT_OK(producer.show("rows", tensor));
    ASSERT_OK(producer.show("transposed", permuted(tensor)));
    ASSERT_OK(producer.show("flat", flat, "transposed"));
    producer.value_info("again").is_feature_map = true;
    ASSERT_OK(producer.show("again", tensor, "transposed"));
    ASSERT_OK(producer.show("bytes", Tensor::wrap(DType::float32, tensor.shape(), permuted(tensor).storage())));
    ASSERT_OK(producer.end());
    ASSERT_OK(writer->finish());
    const auto reader = open_dump(path);
    for (const int32_t index : {0, 1, 3}) {
      const auto loaded = reader->load(index), copied = reader->load_copy(index);
      ASSERT_OK(loaded);
      ASSERT_OK(copied);
      EXPECT_TRUE(same_bits(loaded->tensor(), tensor)) << index;
      EXPECT_TRUE(same_bits(copied->tensor(), tensor)) << index;
      const TensorStatistics expected = compute_statistics(tensor, ElementOrder::channels_last);
      EXPECT_TRUE(same_statistics(*reader->entries()[static_cast<size_t>(index)].statistics, expected)) << index;
    }
    EXPECT_EQ(reader->entries()[2].alias_of, 0);  // found to be the same bytes as those of "rows"
    EXPECT_EQ(reader->entries()[3].alias_of, 1);
    const auto flattened = reader->load(2), bytes = reader->load(4);
    ASSERT_OK(flattened);
    ASSERT_OK(bytes);
    EXPECT_TRUE(same_bits(flattened->tensor(), flat));
    EXPECT_TRUE(same_statistics(*reader->entries()[2].statistics, compute_statistics(flat)));
    // A row-major tensor with the bytes of a channels-last one is another tensor.
    EXPECT_EQ(std::memcmp(bytes->tensor().view().data, permuted(tensor).view().data, tensor.size_bytes()), 0);
  }
}

}  // namespace
}  // namespace parallax::test
