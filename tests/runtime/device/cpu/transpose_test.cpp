// SPDX-License-Identifier: Apache-2.0
// Strided copies that are transposes, square by square and at ragged edges, for every element size.
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/queue_cpu.h"

namespace parallax::runtime::transpose_test {
namespace {

// A byte for each element, none like its neighbors of any row or column.
std::vector<std::byte> counted_bytes(int64_t count) {
  std::vector<std::byte> bytes(static_cast<size_t>(count));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 251);
  return bytes;
}

// source: [batch, columns, source_stride >= rows]; target: [batch, rows, target_stride >= columns].
struct Case {
  int64_t batch, rows, columns, source_stride, target_stride;
};

void expect_transposed(const Case& c, int64_t size) {
  Queue<Cpu> queue(BufferPool::create({}));
  const std::vector<std::byte> source = counted_bytes(c.batch * c.columns * c.source_stride * size);
  std::vector<std::byte> expected(static_cast<size_t>(c.batch * c.rows * c.target_stride * size), std::byte{0xEE});
  std::vector<std::byte> found = expected;
  for (int64_t batch = 0; batch < c.batch; ++batch) {
    for (int64_t row = 0; row < c.rows; ++row) {
      for (int64_t column = 0; column < c.columns; ++column) {
        const int64_t to = (batch * c.rows + row) * c.target_stride + column;
        const int64_t from = (batch * c.columns + column) * c.source_stride + row;
        std::memcpy(&expected[static_cast<size_t>(to * size)], &source[static_cast<size_t>(from * size)],
                    static_cast<size_t>(size));
      }
    }
  }
  copy_strided(queue, size, {c.batch, c.rows, c.columns},
               {found.data(), {c.rows * c.target_stride, c.target_stride, 1}, 0},
               {source.data(), {c.columns * c.source_stride, 1, c.source_stride}, 0});
  EXPECT_EQ(found, expected) << size << " bytes: " << c.batch << " x " << c.rows << " x " << c.columns << ", strides "
                             << c.source_stride << " and " << c.target_stride;
}

TEST(Transpose, OfEverySizeAndShape) {
  for (const int64_t size : {1, 2, 4, 8, 16}) {
    for (const int64_t rows : {2, 3, 4, 7, 16, 31, 32, 33, 65}) {
      for (const int64_t columns : {2, 4, 5, 8, 15, 17, 32, 64, 67}) {
        expect_transposed({1, rows, columns, rows, columns}, size);
        expect_transposed({3, rows, columns, rows + 3, columns + 1}, size);  // nothing next to them is touched
      }
    }
  }
}

TEST(Transpose, OfManyElementsByAllThreads) {
  for (const int64_t size : {1, 2, 4, 8, 16}) expect_transposed({2, 333, 1025, 512, 1025}, size);
}

}  // namespace
}  // namespace parallax::runtime::transpose_test
