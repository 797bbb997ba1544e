// SPDX-License-Identifier: Apache-2.0
// copy, fill and index_map: primitives that move elements without reading them, by element size alone.
#pragma once

#include <algorithm>
#include <cstring>

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/ints.h"
#include "runtime/device/cpu/queue_cpu.h"

namespace parallax::runtime {

// Bytes of one element; only types of whole bytes can be moved one by one.
int64_t element_bytes(DType dtype);

// A position in a payload and its strides: strides in elements, which may be negative or 0.
struct StridedSource {
  const std::byte* data = nullptr;
  Ints strides;
  int64_t offset = 0;
};
struct StridedTarget {
  std::byte* data = nullptr;
  Ints strides;
  int64_t offset = 0;
};

// target[i...] = source[i...] for all i within dims: transpose, slice, expand, concat, split and crops are this.
void copy_strided(Queue<Cpu>&, int64_t bytes_per_element, const Ints& dims, const StridedTarget& target,
                  const StridedSource& source);

void copy_bytes(Queue<Cpu>&, std::byte* target, const std::byte* source, size_t bytes);

// Every element of `out` becomes the one at `element` (of out's type); null: zero.
void fill(Queue<Cpu>&, const MutableView& out, const std::byte* element);

// Block i of `out` is block f(i) of `source`, or the fill element repeated where f(i) < 0. Blocks are runs of
// `block_elements`.
template <class F>
void index_map(Queue<Cpu>&, const F& f, const MutableView& out, const std::byte* source, int64_t block_elements,
               const std::byte* fill_element = nullptr);

// The columns of a row that come from neighboring elements, those from `source` on. All others are filled.
struct Run {
  int64_t begin, end;
  int64_t source;
};

// index_map by rows of `columns` elements: f.row(i) knows what the elements of row i have in common, and says where the
// one in a column comes from. A row that is a Run says so by run(), whose ends may be outside of it.
template <class F>
void index_rows(Queue<Cpu>&, const F& f, const MutableView& out, const std::byte* source, int64_t columns,
                const std::byte* fill_element = nullptr);

namespace copy_detail {
void fill_run(std::byte* target, int64_t bytes_per_element, int64_t count, const std::byte* element);

template <class T, class F>
void index_elements(const F& f, std::byte* target, const std::byte* source, const std::byte* fill_element,
                    int64_t begin, int64_t end) {
  T fill_value{};
  if (fill_element != nullptr) std::memcpy(&fill_value, fill_element, sizeof(T));
  const T* from = reinterpret_cast<const T*>(source);
  T* to = reinterpret_cast<T*>(target);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t index = f(i);
    to[i] = index < 0 ? fill_value : from[index];
  }
}

template <class T, class F>
void index_row_elements(const F& f, std::byte* target, const std::byte* source, const std::byte* fill_element,
                        int64_t columns, int64_t begin, int64_t end) {
  T fill_value{};
  if (fill_element != nullptr) std::memcpy(&fill_value, fill_element, sizeof(T));
  const T* from = reinterpret_cast<const T*>(source);
  T* to = reinterpret_cast<T*>(target) + begin * columns;
  for (int64_t i = begin; i < end; ++i, to += columns) {
    const auto row = f.row(i);
    if constexpr (requires { row.run(); }) {
      const Run run = row.run();
      const int64_t first = std::clamp<int64_t>(run.begin, 0, columns);
      const int64_t last = std::clamp(run.end, first, columns);
      std::fill(to, to + first, fill_value);
      std::copy_n(from + run.source + (first - run.begin), last - first, to + first);
      std::fill(to + last, to + columns, fill_value);
      continue;
    }
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t index = row(column);
      to[column] = index < 0 ? fill_value : from[index];
    }
  }
}

struct Bytes16 {
  uint64_t words[2];
};
}  // namespace copy_detail

template <class F>
void index_rows(Queue<Cpu>&, const F& f, const MutableView& out, const std::byte* source, int64_t columns,
                const std::byte* fill_element) {
  const int64_t rows = columns == 0 ? 0 : out.element_count() / columns;
  parallel_for(rows, 10 + 2 * columns, [&](int64_t begin, int64_t end) {
    const auto run = [&]<class T>(T /*element*/) {
      copy_detail::index_row_elements<T>(f, out.data, source, fill_element, columns, begin, end);
    };
    switch (element_bytes(out.dtype)) {
      case 1:
        return run(uint8_t{});
      case 2:
        return run(uint16_t{});
      case 4:
        return run(uint32_t{});
      case 8:
        return run(uint64_t{});
      default:
        return run(copy_detail::Bytes16{});
    }
  });
}

template <class F>
void index_map(Queue<Cpu>&, const F& f, const MutableView& out, const std::byte* source, int64_t block_elements,
               const std::byte* fill_element) {
  const int64_t bytes = element_bytes(out.dtype);
  const int64_t blocks = block_elements == 0 ? 0 : out.element_count() / block_elements;
  const int64_t block_bytes = bytes * block_elements;
  parallel_for(blocks, 2 + block_bytes / 16, [&](int64_t begin, int64_t end) {
    if (bytes == 1 && block_elements == 1)
      return copy_detail::index_elements<uint8_t>(f, out.data, source, fill_element, begin, end);
    if (bytes == 2 && block_elements == 1)
      return copy_detail::index_elements<uint16_t>(f, out.data, source, fill_element, begin, end);
    if (bytes == 4 && block_elements == 1)
      return copy_detail::index_elements<uint32_t>(f, out.data, source, fill_element, begin, end);
    if (bytes == 8 && block_elements == 1) {
      return copy_detail::index_elements<uint64_t>(f, out.data, source, fill_element, begin, end);
    }
    for (int64_t i = begin; i < end; ++i) {
      const int64_t index = f(i);
      std::byte* target = out.data + i * block_bytes;
      if (index < 0) {
        copy_detail::fill_run(target, bytes, block_elements, fill_element);
      } else {
        std::memcpy(target, source + index * block_bytes, static_cast<size_t>(block_bytes));
      }
    }
  });
}

}  // namespace parallax::runtime
