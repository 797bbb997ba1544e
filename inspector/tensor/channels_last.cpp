// SPDX-License-Identifier: Apache-2.0
// Channels are transposed as many at a time as are in lines of the cache that are fetched together.
#include "inspector/tensor/channels_last.h"

#include <algorithm>
#include <utility>

#include "inspector/base/thread_pool.h"
#include "inspector/base/transpose_block.h"

namespace parallax {
namespace {

// Two lines of the cache, a pair to the processor; one where as many rows would not stay in the second level.
constexpr int64_t kPairBytes = 128, kLineBytes = 64;
constexpr int64_t kMostPairRowsBytes = 512 << 10;
constexpr int64_t kRowsAtOnce = 4;  // are transposed in no more time than fewer

struct Bytes16 {
  uint64_t float16s[2];
};

// Calls `use` with an unsigned number of as many bytes, by which elements are moved.
template <class Use>
void with_bytes(size_t element_bytes, const Use& use) {
  switch (element_bytes) {
    case 1:
      return use(uint8_t{});
    case 2:
      return use(uint16_t{});
    case 4:
      return use(uint32_t{});
    case 8:
      return use(uint64_t{});
    default:
      PX_CHECK(element_bytes == 16);
      return use(Bytes16{});
  }
}

// target[row][column] = source[column][row].
template <class T>
void transpose(const T* source, int64_t source_stride, int64_t rows, int64_t columns, T* target) {
  if constexpr (sizeof(T) <= 8) {
    transpose_tile(target, columns, source, source_stride, rows, columns);
  } else {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column)
        target[row * columns + column] = source[column * source_stride + row];
    }
  }
}

}  // namespace

bool is_order_free(std::span<const int64_t> dims) {
  return dims[1] == 1 || std::ranges::all_of(dims.subspan(2), [](int64_t dim) { return dim == 1; });
}

bool can_be_channels_last(DType dtype, const Shape& shape) {
  return shape.rank() >= 3 && bits_of(dtype) > 0 && bits_of(dtype) % 8 == 0;
}

bool must_transpose(const TensorView& view, ElementOrder order) {
  return is_channels_last(view) != (order == ElementOrder::channels_last) && !is_order_free(view.shape);
}

TransposingReader::TransposingReader(const TensorView& view)
    : data_(view.data), element_bytes_(static_cast<size_t>(bits_of(view.dtype)) / 8), batch_(view.shape[0]) {
  PX_CHECK(can_be_channels_last(view.dtype, view.shape));
  const int64_t channels = view.shape[1], all = batch_ * channels;
  const int64_t locations = all == 0 ? 0 : view.element_count() / all;
  rows_ = is_channels_last(view) ? channels : locations;
  length_ = is_channels_last(view) ? locations : channels;
  const auto bytes = static_cast<int64_t>(element_bytes_);
  const bool is_pair_kept = kPairBytes * length_ <= kMostPairRowsBytes;
  rows_of_line_ = (is_pair_kept ? kPairBytes : kLineBytes) / bytes;
}

int64_t TransposingReader::line_end(int64_t row) const {
  const int64_t within = row % rows_;
  return row - within + std::min(rows_, (within / rows_of_line_ + 1) * rows_of_line_);
}

int64_t TransposingReader::square_end(int64_t row) const {
  const int64_t within = row % rows_;
  return row - within + std::min(rows_, (within / kRowsAtOnce + 1) * kRowsAtOnce);
}

void TransposingReader::read(int64_t first, int64_t end, std::byte* target) const {
  with_bytes(element_bytes_, [&](auto number) {
    using T = decltype(number);
    T* to = reinterpret_cast<T*>(target);
    while (first < end) {
      const int64_t batch = first / rows_, row = first % rows_;
      const int64_t count = std::min(line_end(first), end) - first;
      transpose(reinterpret_cast<const T*>(data_) + batch * rows_ * length_ + row, rows_, count, length_, to);
      to += count * length_;
      first += count;
    }
  });
}

void TransposingReader::read_all(std::byte* target) const {
  const int64_t row_tiles = (rows() + rows_of_line_ - 1) / rows_of_line_;
  parallel_for(row_tiles, rows_of_line_ * length_ / 2, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * rows_of_line_;
    read(first, std::min(end * rows_of_line_, rows()), target + static_cast<size_t>(first) * row_bytes());
  });
}

OrderedPieces::OrderedPieces(const TensorView& view, ElementOrder order, size_t end_bytes)
    : data_(view.data), end_bytes_(end_bytes) {
  if (must_transpose(view, order)) reader_.emplace(view);
}

const std::byte* OrderedPieces::read(size_t first, size_t end) {
  if (!reader_.has_value()) return data_ + first;
  if (first == end) return nullptr;
  const size_t bytes = reader_->row_bytes();
  const auto row = static_cast<int64_t>(first / bytes);
  const auto last = static_cast<int64_t>((end - 1) / bytes);
  int64_t read_end = reader_->line_end(last);
  if (end_bytes_ < static_cast<size_t>(read_end) * bytes) {
    const auto last_wanted = static_cast<int64_t>((std::max(end, end_bytes_) - 1) / bytes);
    read_end = std::min(read_end, reader_->square_end(last_wanted));
  }
  return read_rows(row, read_end) + first % bytes;
}

const std::byte* OrderedPieces::read_rows(int64_t first, int64_t end) {
  const size_t bytes = reader_->row_bytes();
  const bool is_begun = first >= first_ && first < end_;
  const size_t kept_bytes = is_begun ? static_cast<size_t>(end_ - first) * bytes : 0;
  const std::byte* const kept = buffer_.get() + (is_begun ? static_cast<size_t>(first - first_) * bytes : 0);
  const size_t wanted_bytes = std::max(static_cast<size_t>(end - first) * bytes, kept_bytes);
  if (wanted_bytes > capacity_) {
    auto larger = std::make_unique_for_overwrite<std::byte[]>(wanted_bytes);
    if (kept_bytes > 0) std::memcpy(larger.get(), kept, kept_bytes);
    buffer_ = std::move(larger);
    capacity_ = wanted_bytes;
  } else if (kept_bytes > 0) {
    std::memmove(buffer_.get(), kept, kept_bytes);
  }
  const int64_t begin = is_begun ? end_ : first;
  if (begin < end) reader_->read(begin, end, buffer_.get() + kept_bytes);
  first_ = first;
  end_ = std::max(begin, end);
  return buffer_.get();
}

Result<Tensor> read_row_major(const TensorView& channels_last) {
  Tensor made = PX_TRY(Tensor::allocate(channels_last.dtype, channels_last.shape));
  TransposingReader(channels_last).read_all(made.mutable_data());
  return made;
}

}  // namespace parallax
