// SPDX-License-Identifier: Apache-2.0
// Strided copies: rows where both sides are contiguous, square tiles where one side walks across the other.
#include "runtime/device/cpu/copy.h"

#include <array>

#include "inspector/base/transpose_block.h"
#include "runtime/device/cpu/map.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kTile = 32;  // a tile of 8-byte elements is 8 KiB: read and written within the first-level cache

// The axes left after merging; the innermost is the one the target walks fastest.
struct Walk {
  Ints dims;
  Ints target;
  Ints source;
};

struct Offsets {
  int64_t target;
  int64_t source;
};

// The offsets at which iteration `index` over the first `axes` axes starts.
Offsets offsets_of(const Walk& walk, int64_t axes, int64_t index) {
  Offsets offsets{0, 0};
  for (int64_t axis = axes - 1; axis >= 0; --axis) {
    const int64_t position = index % walk.dims[axis];
    index /= walk.dims[axis];
    offsets.target += position * walk.target[axis];
    offsets.source += position * walk.source[axis];
  }
  return offsets;
}

template <class T>
void copy_run(T* target, int64_t target_stride, const T* source, int64_t source_stride, int64_t count) {
  if (target_stride == 1 && source_stride == 1) {
    std::memcpy(target, source, static_cast<size_t>(count) * sizeof(T));
  } else if (target_stride == 1 && source_stride == 0) {
    std::fill_n(target, count, *source);
  } else {
    for (int64_t i = 0; i < count; ++i) target[i * target_stride] = source[i * source_stride];
  }
}

template <class T>
void copy_runs(const Walk& walk, T* target, const T* source) {
  const int64_t axes = walk.dims.size() - 1;
  const int64_t run = walk.dims.back();
  parallel_for(product(walk.dims, 0, axes), 4 + run * static_cast<int64_t>(sizeof(T)) / 16,
               [&](int64_t begin, int64_t end) {
                 for (int64_t index = begin; index < end; ++index) {
                   const Offsets at = offsets_of(walk, axes, index);
                   copy_run(target + at.target, walk.target.back(), source + at.source, walk.source.back(), run);
                 }
               });
}

// target[row][column] = source[column][row] within a tile. Whole squares go through registers. The source's lines are
// read to their ends before the next ones: where its stride is a power of two, a cache holds few of them.
template <class T>
void copy_tile(T* target, int64_t target_stride, const T* source, int64_t source_stride, int64_t rows,
               int64_t columns) {
  int64_t squares_end = 0;  // of rows
  int64_t whole_columns = 0;
  if constexpr (sizeof(T) <= 8) {
    constexpr int64_t kLanes = kTransposeLanes<T>;
    squares_end = rows / kLanes * kLanes;
    whole_columns = columns / kLanes * kLanes;
    for (int64_t column = 0; column < whole_columns; column += kLanes) {
      for (int64_t row = 0; row < squares_end; row += kLanes)
        transpose_block(target + row * target_stride + column, target_stride, source + column * source_stride + row,
                        source_stride);
    }
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = row < squares_end ? whole_columns : 0; column < columns; ++column)
      target[row * target_stride + column] = source[column * source_stride + row];
  }
}

// The last two axes are a transpose: the target is contiguous along the last, the source along the one before.
template <class T>
void copy_transposed(const Walk& walk, T* target, const T* source) {
  const int64_t axes = walk.dims.size() - 2;
  const int64_t rows = walk.dims[axes];
  const int64_t columns = walk.dims[axes + 1];
  const int64_t target_stride = walk.target[axes];
  const int64_t source_stride = walk.source[axes + 1];
  const int64_t row_tiles = (rows + kTile - 1) / kTile;
  parallel_for(product(walk.dims, 0, axes) * row_tiles, kTile * columns / 8, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const Offsets at = offsets_of(walk, axes, index / row_tiles);
      const int64_t first = index % row_tiles * kTile;
      const int64_t count = std::min(rows - first, kTile);
      T* const to = target + at.target + first * target_stride;
      const T* const from = source + at.source + first;
      for (int64_t column = 0; column < columns; column += kTile)
        copy_tile(to + column, target_stride, from + column * source_stride, source_stride, count,
                  std::min(columns - column, kTile));
    }
  });
}

template <class T>
void copy_walk(const Walk& walk, std::byte* target_bytes, const std::byte* source_bytes) {
  T* target = reinterpret_cast<T*>(target_bytes);
  const T* source = reinterpret_cast<const T*>(source_bytes);
  const int64_t axes = walk.dims.size();
  if (axes >= 2 && walk.target[axes - 1] == 1 && walk.source[axes - 2] == 1 && walk.source[axes - 1] > 1) {
    copy_transposed<T>(walk, target, source);
  } else {
    copy_runs<T>(walk, target, source);
  }
}

// A transpose of more axes than two: moves the source's contiguous axis next to the last one, which changes nothing but
// the order of the copies.
void bring_contiguous_axis_inward(Walk& walk) {
  const int64_t last = walk.dims.size() - 1;
  if (walk.source[last] <= 1) return;
  for (int64_t axis = last - 1; axis >= 0; --axis) {
    if (walk.source[axis] != 1) continue;
    for (Ints* values : {&walk.dims, &walk.target, &walk.source}) {
      const int64_t value = (*values)[axis];
      values->erase(axis);
      values->insert(last - 1, value);
    }
    return;
  }
}

}  // namespace

int64_t element_bytes(DType dtype) {
  PX_CHECK(bits_of(dtype) >= 8);
  return bits_of(dtype) / 8;
}

void copy_strided(Queue<Cpu>&, int64_t bytes_per_element, const Ints& dims, const StridedTarget& target,
                  const StridedSource& source) {
  if (product(dims) == 0) return;
  constexpr int64_t kOneThread = 1 << 16;  // bytes
  if (dims.size() == 1 && target.strides[0] == 1 && source.strides[0] == 1 &&
      dims[0] * bytes_per_element < kOneThread) {
    std::memcpy(target.data + target.offset * bytes_per_element, source.data + source.offset * bytes_per_element,
                static_cast<size_t>(dims[0] * bytes_per_element));
    return;
  }
  std::array<Ints, 2> strides{target.strides, source.strides};
  Walk walk{dims, {}, {}};
  merge_axes(walk.dims, strides);
  walk.target = std::move(strides[0]);
  walk.source = std::move(strides[1]);
  bring_contiguous_axis_inward(walk);
  std::byte* to = target.data + target.offset * bytes_per_element;
  const std::byte* from = source.data + source.offset * bytes_per_element;
  switch (bytes_per_element) {
    case 1:
      return copy_walk<uint8_t>(walk, to, from);
    case 2:
      return copy_walk<uint16_t>(walk, to, from);
    case 4:
      return copy_walk<uint32_t>(walk, to, from);
    case 8:
      return copy_walk<uint64_t>(walk, to, from);
    default:
      PX_CHECK(bytes_per_element == 16);
      return copy_walk<copy_detail::Bytes16>(walk, to, from);
  }
}

void copy_bytes(Queue<Cpu>&, std::byte* target, const std::byte* source, size_t bytes) {
  constexpr int64_t kPiece = 1 << 16;
  const int64_t size = static_cast<int64_t>(bytes);
  parallel_for((size + kPiece - 1) / kPiece, kPiece / 16, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kPiece;
    std::memcpy(target + first, source + first, static_cast<size_t>(std::min(size, end * kPiece) - first));
  });
}

void copy_detail::fill_run(std::byte* target, int64_t bytes_per_element, int64_t count, const std::byte* element) {
  const size_t total = static_cast<size_t>(count * bytes_per_element);
  if (element == nullptr) {
    if (total > 0) std::memset(target, 0, total);
    return;
  }
  // Doubles the filled part until all is filled.
  size_t filled = std::min(total, static_cast<size_t>(bytes_per_element));
  std::memcpy(target, element, filled);
  while (filled < total) {
    const size_t next = std::min(filled, total - filled);
    std::memcpy(target + filled, target, next);
    filled += next;
  }
}

void fill(Queue<Cpu>&, const MutableView& out, const std::byte* element) {
  const int64_t bytes = element_bytes(out.dtype);
  parallel_for(out.element_count(), 1, [&](int64_t begin, int64_t end) {
    copy_detail::fill_run(out.data + begin * bytes, bytes, end - begin, element);
  });
}

}  // namespace parallax::runtime
