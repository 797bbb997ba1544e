// Values that lie channels last: statistics, copies and records are those of the row-major tensor, to the bit.
#include "inspector/tensor/channels_last.h"

#include <cstring>

#include <gtest/gtest.h>

#include "inspector/base/crc32c.h"
#include "inspector/base/thread_pool.h"
#include "inspector/dump/statistics_write.h"
#include "tests/inspector/dump/support.h"

namespace parallax::test {
namespace {

// The same elements channels last.
Tensor turned(const Tensor& row_major) {
  const Shape& shape = row_major.shape();
  Tensor made = Tensor::zeros(row_major.dtype(), shape).take();
  const size_t bytes = static_cast<size_t>(bits_of(row_major.dtype())) / 8;
  const auto batch = static_cast<size_t>(shape[0]), channels = static_cast<size_t>(shape[1]);
  const size_t places = row_major.size_bytes() / bytes / batch / channels;
  for (size_t index = 0; index < batch * channels * places; ++index) {
    const size_t n = index / places / channels, c = index / places % channels, p = index % places;
    std::memcpy(made.mutable_data() + ((n * places + p) * channels + c) * bytes, row_major.view().data + index * bytes,
                bytes);
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

TEST(ChannelsLastDumps, StatisticsAndCopiesAreThoseOfTheRowMajorTensor) {
  for (const int threads : {1, 2, 5}) {
    set_thread_count(threads);
    for (const DType dtype : {DType::float32, DType::float16, DType::uint8, DType::int64, DType::complex64}) {
      for (const Shape& shape : shapes()) {
        const Tensor tensor = random_tensor(dtype, shape, 9);
        const Tensor given = turned(tensor);
        const TensorStatistics expected = compute_statistics(tensor);
        EXPECT_TRUE(same_statistics(compute_statistics(given), expected)) << name_of(dtype) << shape.to_string();
        Tensor copy = Tensor::zeros(dtype, shape).take();
        const CheckedCopy copied = copy_with_statistics(given, copy.mutable_data());
        EXPECT_TRUE(same_statistics(copied.statistics, expected)) << name_of(dtype) << shape.to_string();
        EXPECT_EQ(copied.crc, crc32c(tensor.view().data, tensor.size_bytes()));
        EXPECT_TRUE(same_bits(copy, tensor)) << name_of(dtype) << shape.to_string();
      }
    }
  }
  set_thread_count(0);
}

TEST(ChannelsLastDumps, NumbersTooLargeToSquareAreSummedInTheSameOrder) {
  Tensor tensor = Tensor::zeros(DType::float64, {1, 5, 7, 9}).take();
  double number = 1e300;
  for (double& element : tensor.mutable_as<double>()) element = number *= -1.001;
  EXPECT_TRUE(same_statistics(compute_statistics(turned(tensor)), compute_statistics(tensor)));
}

TEST(ChannelsLastDumps, WhatIsWrittenByCallsIsTheRowMajorTensor) {
  const Tensor tensor = random_tensor(DType::float32, {1, 24, 300, 301}, 5);
  std::vector<std::byte> seen;
  const auto written = write_with_statistics(turned(tensor), [&](uint64_t offset, std::span<const std::byte> part) {
    EXPECT_EQ(offset, seen.size());
    seen.insert(seen.end(), part.begin(), part.end());
    return Status();
  });
  ASSERT_OK(written);
  ASSERT_EQ(seen.size(), tensor.size_bytes());
  EXPECT_EQ(std::memcmp(seen.data(), tensor.view().data, seen.size()), 0);
  EXPECT_TRUE(same_statistics(written->statistics, compute_statistics(tensor)));
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
    ASSERT_OK(producer.show("turned", turned(tensor)));
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

}  // namespace
}  // namespace parallax::test
