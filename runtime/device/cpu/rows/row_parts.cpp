// SPDX-License-Identifier: Apache-2.0
// Long parts are copied one by one, each by several threads; of short ones each thread takes whole rows.
#include "runtime/device/cpu/rows/row_parts.h"

#include <cstring>

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/copy.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kLongRow = 1 << 18;  // bytes

template <class Part>
int64_t total_bytes(std::span<const Part> parts) {
  int64_t bytes = 0;
  for (const Part& part : parts) bytes += part.row_bytes;
  return bytes;
}

void copy_part(std::byte* target, const std::byte* source, int64_t bytes) {
  if (bytes > 0) std::memcpy(target, source, static_cast<size_t>(bytes));
}

// Calls copy(part, row, offset), for all of them, the offset being that of the part within the rows of `row_bytes`.
template <class Part, class Copy>
void for_each_part(int64_t rows, std::span<const Part> parts, int64_t row_bytes, const Copy& copy) {
  const int64_t work = row_bytes / 16 + 8 * static_cast<int64_t>(parts.size());
  parallel_for(rows, work, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t offset = row * row_bytes;
      for (const Part& part : parts) {
        copy(part, row, offset);
        offset += part.row_bytes;
      }
    }
  });
}

}  // namespace

void join_rows(Queue<Cpu>& queue, int64_t rows, std::span<const SourcePart> sources, std::byte* target) {
  const int64_t row_bytes = total_bytes(sources);
  if (row_bytes < kLongRow) {
    return for_each_part(rows, sources, row_bytes, [=](const SourcePart& part, int64_t row, int64_t offset) {
      copy_part(target + offset, part.data + row * part.row_bytes, part.row_bytes);
    });
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (const SourcePart& part : sources) {
      copy_bytes(queue, target, part.data + row * part.row_bytes, static_cast<size_t>(part.row_bytes));
      target += part.row_bytes;
    }
  }
}

void split_rows(Queue<Cpu>& queue, int64_t rows, const std::byte* source, std::span<const TargetPart> targets) {
  const int64_t row_bytes = total_bytes(targets);
  if (row_bytes < kLongRow) {
    return for_each_part(rows, targets, row_bytes, [=](const TargetPart& part, int64_t row, int64_t offset) {
      copy_part(part.data + row * part.row_bytes, source + offset, part.row_bytes);
    });
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (const TargetPart& part : targets) {
      copy_bytes(queue, part.data + row * part.row_bytes, source, static_cast<size_t>(part.row_bytes));
      source += part.row_bytes;
    }
  }
}

}  // namespace parallax::runtime
