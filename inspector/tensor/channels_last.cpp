// Channels are turned as many at a time as lie in lines of the cache that are fetched together.
#include "inspector/tensor/channels_last.h"

#include <algorithm>
#include <utility>

#include "inspector/base/thread_pool.h"
#include "inspector/base/transpose_block.h"

namespace parallax {
namespace {

constexpr int64_t kLineBytes = 128;  // two lines of the cache, a pair to the processor

struct Bytes16 {
  uint64_t halves[2];
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

// target[channel][place] = source[place][channel].
template <class T>
void turn(const T* source, int64_t source_stride, int64_t channels, int64_t places, T* target) {
  if constexpr (sizeof(T) <= 8) {
    transpose_tile(target, places, source, source_stride, channels, places);
  } else {
    for (int64_t channel = 0; channel < channels; ++channel) {
      for (int64_t place = 0; place < places; ++place)
        target[channel * places + place] = source[place * source_stride + channel];
    }
  }
}

}  // namespace

ChannelsLastReader::ChannelsLastReader(const TensorView& view)
    : data_(view.data), element_bytes_(static_cast<size_t>(bits_of(view.dtype)) / 8) {
  PX_CHECK(is_channels_last(view) && view.shape.rank() >= 3 && bits_of(view.dtype) % 8 == 0);
  batch_ = view.shape[0];
  channels_ = view.shape[1];
  const int64_t all = batch_ * channels_;
  places_ = all == 0 ? 0 : view.element_count() / all;
}

int64_t ChannelsLastReader::channels_of_line() const { return kLineBytes / static_cast<int64_t>(element_bytes_); }

int64_t ChannelsLastReader::line_end(int64_t channel) const {
  const int64_t together = channels_of_line();
  const int64_t within = channel % channels_;
  return channel - within + std::min(channels_, (within / together + 1) * together);
}

void ChannelsLastReader::read(int64_t first, int64_t end, std::byte* target) const {
  with_bytes(element_bytes_, [&](auto number) {
    using T = decltype(number);
    T* to = reinterpret_cast<T*>(target);
    while (first < end) {
      const int64_t batch = first / channels_, channel = first % channels_;
      const int64_t count = std::min(line_end(first), end) - first;
      turn(reinterpret_cast<const T*>(data_) + batch * channels_ * places_ + channel, channels_, count, places_, to);
      to += count * places_;
      first += count;
    }
  });
}

void ChannelsLastReader::read_all(std::byte* target) const {
  const int64_t together = channels_of_line();
  const int64_t strips = (channels() + together - 1) / together;
  parallel_for(strips, together * places_ / 2, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * together;
    read(first, std::min(end * together, channels()), target + static_cast<size_t>(first) * channel_bytes());
  });
}

RowMajorPieces::RowMajorPieces(const TensorView& view) : data_(view.data) {
  if (is_channels_last(view)) reader_.emplace(view);
}

const std::byte* RowMajorPieces::read(size_t first, size_t end) {
  if (!reader_.has_value()) return data_ + first;
  if (first == end) return nullptr;
  const size_t bytes = reader_->channel_bytes();
  const auto channel = static_cast<int64_t>(first / bytes);
  const auto last = static_cast<int64_t>((end - 1) / bytes);
  return read_channels(channel, reader_->line_end(last)) + first % bytes;
}

const std::byte* RowMajorPieces::read_channels(int64_t first, int64_t end) {
  const size_t bytes = reader_->channel_bytes();
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
  ChannelsLastReader(channels_last).read_all(made.mutable_data());
  return made;
}

}  // namespace parallax
