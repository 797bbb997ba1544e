// Channels last: the elements of a tensor [N, C, spatial...] in the order [N, spatial..., C], as chains of convolutions
// hand them to each other. Such a tensor is marked by a device of its own, so that no function that reads payloads of
// the host takes it for row-major; its shape is the row-major one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "inspector/tensor/value.h"

namespace parallax {

inline constexpr Device kChannelsLast{static_cast<Device::Kind>(0x80), 0};

inline bool is_channels_last(const TensorView& view) { return view.device == kChannelsLast; }
inline bool is_channels_last(const Tensor& tensor) { return tensor.device() == kChannelsLast; }
inline bool is_channels_last(const Value& value) { return value.is_tensor() && is_channels_last(value.tensor()); }

// Reads a channels-last tensor by whole channels in row-major order. Elements are whole bytes; the rank is 3 or more.
class ChannelsLastReader {
 public:
  explicit ChannelsLastReader(const TensorView& view);

  int64_t channels() const { return batch_ * channels_; }  // of all of the batch, one after another
  size_t channel_bytes() const { return static_cast<size_t>(places_) * element_bytes_; }
  // Channels that share lines of the cache, two of which are fetched at once, are best read together.
  int64_t channels_of_line() const;
  int64_t line_end(int64_t channel) const;  // the first channel after `channel` that begins another line

  // Channels [first, end) to `target`, which has room for them.
  void read(int64_t first, int64_t end, std::byte* target) const;
  // All of them, by several threads where they are many.
  void read_all(std::byte* target) const;

 private:
  const std::byte* data_;
  size_t element_bytes_;
  int64_t batch_, channels_, places_;
};

// Pieces of the row-major payload of a tensor on the host of either order. What is read ahead of a piece is kept for
// the next one.
class RowMajorPieces {
 public:
  explicit RowMajorPieces(const TensorView& view);

  // Bytes [first, end); valid until the next call.
  const std::byte* read(size_t first, size_t end);

 private:
  const std::byte* read_channels(int64_t first, int64_t end);

  const std::byte* data_;
  std::optional<ChannelsLastReader> reader_;
  std::unique_ptr<std::byte[]> buffer_;
  size_t capacity_ = 0;
  int64_t first_ = 0, end_ = 0;  // the channels in the buffer
};

// The whole tensor. Errors: out_of_memory.
Result<Tensor> read_row_major(const TensorView& channels_last);

}  // namespace parallax
