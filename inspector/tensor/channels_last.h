// SPDX-License-Identifier: Apache-2.0
// Channels last: the elements of a tensor [N, C, spatial...] in the order [N, spatial..., C], as chains of convolutions
// hand them to each other. Such a tensor is marked by a device of its own, so that no function that reads payloads of
// the host takes it for row-major; its shape is the row-major one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "inspector/tensor/element_order.h"
#include "inspector/tensor/value.h"

namespace parallax {

inline constexpr Device kChannelsLast{static_cast<Device::Kind>(0x80), 0};

inline bool is_channels_last(const TensorView& view) { return view.device == kChannelsLast; }
inline bool is_channels_last(const Tensor& tensor) { return tensor.device() == kChannelsLast; }
inline bool is_channels_last(const Value& value) { return value.is_tensor() && is_channels_last(value.tensor()); }

// True where both orders of dimensions [N, C, spatial...] are the same: one channel, or one spatial element.
bool is_order_free(std::span<const int64_t> dims);

// True where such tensors can be channels last: of rank 3 and more, and elements of whole bytes.
bool can_be_channels_last(DType dtype, const Shape& shape);

// Reads a tensor in the order of the two in which it is not stored, by whole rows of that order: the channels of a
// channels-last one, the spatial positions of a row-major one. Elements are whole bytes; the rank is 3 or more.
class TransposingReader {
 public:
  explicit TransposingReader(const TensorView& view);

  int64_t rows() const { return batch_ * rows_; }  // of all of the batch, one after another
  size_t row_bytes() const { return static_cast<size_t>(length_) * element_bytes_; }
  // Rows that share lines of the cache are best read together.
  int64_t rows_of_line() const { return rows_of_line_; }
  int64_t line_end(int64_t row) const;    // the first row after `row` that begins another line
  int64_t square_end(int64_t row) const;  // and another of the squares that are transposed at once

  // Rows [first, end) to `target`, which has room for them.
  void read(int64_t first, int64_t end, std::byte* target) const;
  // All of them, by several threads where they are many.
  void read_all(std::byte* target) const;

 private:
  const std::byte* data_;
  size_t element_bytes_;
  int64_t batch_, rows_, length_, rows_of_line_;
};

// Pieces of a tensor's payload in one of the orders, in whichever it is stored on the host. What is read ahead of a
// piece is kept for the next one; `end_bytes`: no piece goes beyond, so that nothing is read ahead of there.
class OrderedPieces {
 public:
  OrderedPieces(const TensorView& view, ElementOrder order, size_t end_bytes = SIZE_MAX);

  // Bytes [first, end); valid until the next call.
  const std::byte* read(size_t first, size_t end);

 private:
  const std::byte* read_rows(int64_t first, int64_t end);

  const std::byte* data_;
  std::optional<TransposingReader> reader_;
  size_t end_bytes_;
  std::unique_ptr<std::byte[]> buffer_;
  size_t capacity_ = 0;
  int64_t first_ = 0, end_ = 0;  // the rows in the buffer
};

// True where a tensor must be transposed to be read in that order.
bool must_transpose(const TensorView& view, ElementOrder order);

// The whole tensor. Errors: out_of_memory.
Result<Tensor> read_row_major(const TensorView& channels_last);

}  // namespace parallax
