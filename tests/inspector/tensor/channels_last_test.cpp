// SPDX-License-Identifier: Apache-2.0
// Tensors read in the order in which they are not stored: whole rows of it, and pieces that begin and end anywhere.
#include "inspector/tensor/channels_last.h"

#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/base/thread_pool.h"

namespace parallax {
namespace {

struct Pair {
  Tensor row_major, channels_last;
};

// Bytes in no order, and the same elements moved one by one.
Pair pair_of(DType dtype, const Shape& shape) {
  Pair made{Tensor::zeros(dtype, shape).take(), {}};
  Tensor permuted = Tensor::zeros(dtype, shape).take();
  const size_t bytes = static_cast<size_t>(bits_of(dtype)) / 8;
  std::mt19937 random(7);
  for (size_t at = 0; at < made.row_major.size_bytes(); ++at)
    made.row_major.mutable_data()[at] = static_cast<std::byte>(random() & 0xFFU);
  const auto batch = static_cast<size_t>(shape[0]), channels = static_cast<size_t>(shape[1]);
  const size_t locations = made.row_major.size_bytes() / bytes / batch / channels;
  for (size_t n = 0; n < batch; ++n) {
    for (size_t c = 0; c < channels; ++c) {
      for (size_t p = 0; p < locations; ++p) {
        std::memcpy(permuted.mutable_data() + ((n * locations + p) * channels + c) * bytes,
                    made.row_major.view().data + ((n * channels + c) * locations + p) * bytes, bytes);
      }
    }
  }
  made.channels_last = Tensor::wrap(dtype, shape, permuted.storage(), kChannelsLast);
  return made;
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{Shape{1, 1, 1},      Shape{2, 3, 5},      Shape{1, 16, 4, 4},
                                      Shape{3, 33, 3, 7},  Shape{1, 64, 9, 11}, Shape{2, 130, 2, 17},
                                      Shape{1, 5, 40, 41}, Shape{2, 40, 31, 33}};
  return all;
}

constexpr DType kTypes[] = {DType::uint8, DType::float16, DType::float32, DType::float64, DType::complex128};

TEST(TransposingReader, ReadsWhatMovingOneByOneGives) {
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    for (const DType dtype : kTypes) {
      for (const Shape& shape : shapes()) {
        const Pair given = pair_of(dtype, shape);
        const auto read = read_row_major(given.channels_last);
        ASSERT_TRUE(read.ok());
        EXPECT_EQ(std::memcmp(read->view().data, given.row_major.view().data, read->size_bytes()), 0)
            << name_of(dtype) << shape.to_string();
      }
    }
  }
  set_thread_count(0);
}

TEST(TransposingReader, LinesEndWithinTheBatch) {
  const Pair given = pair_of(DType::float32, {2, 40, 3});
  const TransposingReader reader(given.channels_last);
  ASSERT_EQ(reader.rows_of_line(), 32);
  EXPECT_EQ(reader.line_end(0), 32);
  EXPECT_EQ(reader.line_end(31), 32);
  EXPECT_EQ(reader.line_end(32), 40);
  EXPECT_EQ(reader.line_end(40), 72);
  EXPECT_EQ(reader.line_end(79), 80);
}

TEST(TransposingReader, ElementsOfARowMajorTensorAreReadWithTheirChannels) {
  for (const DType dtype : kTypes) {
    for (const Shape& shape : shapes()) {
      const Pair given = pair_of(dtype, shape);
      Tensor read = Tensor::zeros(dtype, shape).take();
      TransposingReader(given.row_major).read_all(read.mutable_data());
      EXPECT_EQ(std::memcmp(read.view().data, given.channels_last.view().data, read.size_bytes()), 0)
          << name_of(dtype) << shape.to_string();
    }
  }
}

// One after another, as they are asked for; overlapping, with gaps, and backwards.
TEST(OrderedPieces, AnyPieceInAnyOrder) {
  std::mt19937 random(11);
  for (const DType dtype : kTypes) {
    for (const Shape& shape : shapes()) {
      const Pair given = pair_of(dtype, shape);
      const size_t size = given.row_major.size_bytes();
      for (const ElementOrder order : {ElementOrder::row_major, ElementOrder::channels_last}) {
        const bool is_row_major = order == ElementOrder::row_major;
        const Tensor& direct = is_row_major ? given.row_major : given.channels_last;
        const Tensor& other = is_row_major ? given.channels_last : given.row_major;
        OrderedPieces pieces(other, order), plain(direct, order);
        const auto expect_piece = [&](OrderedPieces& permuted, size_t first, size_t end) {
          const std::byte* const wanted = direct.view().data + first;
          EXPECT_EQ(plain.read(first, end), wanted);
          EXPECT_EQ(std::memcmp(permuted.read(first, end), wanted, end - first), 0)
              << name_of(dtype) << shape.to_string() << " " << first << " " << end;
        };
        const size_t step = size / 7 + 1;
        for (size_t first = 0; first < size; first += step) expect_piece(pieces, first, std::min(size, first + step));
        for (int round = 0; round < 20; ++round) {
          const size_t first = random() % size, end = first + 1 + random() % (size - first);
          expect_piece(pieces, first, end);
          OrderedPieces ending(other, order, end);  // reads nothing ahead of there
          const size_t middle = first + (end - first) / 2;
          if (middle > first) expect_piece(ending, first, middle);
          expect_piece(ending, middle, end);
        }
      }
    }
  }
}

}  // namespace
}  // namespace parallax
