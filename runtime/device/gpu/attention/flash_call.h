// SPDX-License-Identifier: Apache-2.0
// The operands of the kernel of flash_attention, as it finds them in memory.
#pragma once

#include "runtime/device/gpu/attention/flash_attention.h"
#include "runtime/device/gpu/attention/flash_engine.h"
#include "runtime/device/gpu/memory.h"

namespace parallax::runtime::gpu {

// Rows of matrices in memory. `is_wide`: 16 bytes can be read at once.
template <class Device, class T>
struct FlashRows {
  const std::byte* data = nullptr;
  HeadStrides at;  // its row is the one of `columns` elements, whatever the operand's is
  int columns = 0;
  bool is_wide = false;

  PX_INLINED Quad quad(int64_t begin, int column) const {
    Quad made{};
    if (is_wide) {
      const std::byte* location = data + (begin + column) * static_cast<int64_t>(sizeof(T));
      if (column < columns) made = Elements<Device, const Quad>{reinterpret_cast<const Quad*>(location)}[0];
      return made;
    }
    const Elements<Device, const T> elements{reinterpret_cast<const T*>(data)};
    PX_KEEP_ROLLED
    for (int i = 0; i < flash::kPerQuad<T>; ++i) {  // each element enters from above
      uint32_t bits = 0;
      if (column + i < columns) bits = storage_bits(elements[begin + (column + i) * at.column]);
      uint32_t* const words = made.words;
      if constexpr (sizeof(T) == 4) {
        words[0] = words[1], words[1] = words[2], words[2] = words[3], words[3] = bits;
      } else {
        words[0] = words[0] >> 16 | words[1] << 16;
        words[1] = words[1] >> 16 | words[2] << 16;
        words[2] = words[2] >> 16 | words[3] << 16;
        words[3] = words[3] >> 16 | bits << 16;
      }
    }
    return made;
  }

 private:
  PX_INLINED static uint32_t storage_bits(T element) {
    if constexpr (sizeof(T) == 4) {
      return std::bit_cast<uint32_t>(element);
    } else {
      return element.bits;
    }
  }
};

// A tensor that changes the scores; `is_float32`, or of the operands' type.
template <class Device>
struct FlashChange {
  const std::byte* data = nullptr;
  HeadStrides at;
  bool is_float32 = false;
};

// The results of a part of the keys, for each row: a highest score, the sum of weights, and the sums of values.
template <class Device>
struct FlashParts {
  Elements<Device, float> highest, total;  // [parts, rows]
  Elements<Device, float> sums;            // [parts, rows, value_size]
};

// The operands and numbers that all instances have in common.
template <class Device, class T>
struct FlashCall {
  FlashRows<Device, T> q, k, v;
  Elements<Device, T> y;
  HeadStrides y_at;
  FlashChange<Device> added[2], hiding;  // the second only after a first
  KeyRule rule;
  Elements<Device, const int64_t> positions, ends;  // of each sample; none: 0, `keys`
  Elements<Device, const int32_t> unbounded;        // none: no tile is left out
  Elements<Device, const float> sinks;              // of each head; none: no sink
  FlashParts<Device> parts;                         // where there are several
  int64_t items, row_tiles, column_blocks, part_count, matrices, tiles;
  int64_t queries, keys, heads, group, rows;  // rows: of all matrices
  int value_size;
  float scale, softcap, hidden_value;
  bool hides_where, hidden_is_zero, no_number_is_zero;

  PX_HD SeenKeys seen(int64_t sample, int64_t query) const {
    const int64_t end = ends ? ends[sample] : keys;
    return rule.seen(query + rule.past + (positions ? positions[sample] : 0), end);
  }
  // y = sum / total
  PX_HD T result(float sum, float total) const {
    const bool is_zero = (hidden_is_zero && total == 0.0F) || (no_number_is_zero && !(total > 0.0F));
    return stored(is_zero ? 0.0F : sum / total);
  }

 private:
  PX_HD static T stored(float value) {
    if constexpr (std::is_same_v<T, float>)
      return value;
    else
      return storage::to_storage<T>(value);
  }
};

}  // namespace parallax::runtime::gpu
