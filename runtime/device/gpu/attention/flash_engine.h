// SPDX-License-Identifier: Apache-2.0
// The two products of attention for a tile of 64 queries and 64 keys, by a block of four warps, each of which has 16
// queries: by fused multiply-adds (FmaEngine), or by the matrix units (MmaEngine; launch.h has what they compute).
// Rows of queries, keys and values come in chunks of 128 bytes. Which thread has which score and which sum of values
// is the engine's; the order of each sum does not depend on anything else.
#pragma once

#include "runtime/device/cpu/math.h"
#include "runtime/device/gpu/launch.h"
#include "runtime/device/gpu/memory.h"

#ifdef __CUDACC__
#define PX_UNROLL _Pragma("unroll")
#define PX_KEEP_ROLLED _Pragma("unroll 1")
#define PX_INLINED PX_HD __forceinline__  // arrays of its caller are registers
#else
#define PX_UNROLL
#define PX_KEEP_ROLLED
#define PX_INLINED
#endif

namespace parallax::runtime::gpu {

// 8 and 16 bytes that are moved at once.
struct alignas(8) Pair {
  uint32_t x, y;
};
struct alignas(16) Quad {
  uint32_t words[4];
};

namespace flash {

constexpr int kThreads = 128, kRows = 64, kKeys = 64;                                   // of a block, of its tile
constexpr int kChunkBytes = 128;                                                        // of a row
constexpr int kQuads = kChunkBytes / static_cast<int>(sizeof(Quad));                    // of a row's chunk
constexpr int kFetched = kKeys * kQuads / kThreads;                                     // of a chunk, for each thread
constexpr int kColumns = 128;                                                           // of the values, at a time
constexpr int kScores = kRows * kKeys / kThreads, kSums = kRows * kColumns / kThreads;  // of a thread

template <class T>
constexpr int kPerQuad = static_cast<int>(sizeof(Quad) / sizeof(T));
template <class T>
constexpr int kPerChunk = kChunkBytes / static_cast<int>(sizeof(T));

// A part of a block's shared memory, from `base` on, in bytes.
template <class Memory>
struct Region {
  Memory memory;
  int base;
  template <class W>
  PX_HD W& at(int byte) const {
    return memory.template at<W>(base + byte);
  }
  PX_HD Region from(int byte) const { return {memory, base + byte}; }
};

// Element i + kBy becomes element i: loops over arrays of registers go on with the next `kBy` so without being
// unrolled.
template <int kBy, int kCount>
PX_INLINED void rotate(float (&values)[kCount]) {
  float first[kBy];
  PX_UNROLL
  for (int i = 0; i < kBy; ++i) first[i] = values[i];
  PX_UNROLL
  for (int i = 0; i < kCount; ++i) values[i] = i + kBy < kCount ? values[(i + kBy) % kCount] : first[i + kBy - kCount];
}

}  // namespace flash

// Each thread has 4 rows and 8 keys, then the same rows and 4 of each chunk's values. Weights pass through shared
// memory: a warp reads only what it has written, after the next barrier.
struct FmaEngine {
  using Storage = float;
  static constexpr int kRowsOfThread = 4, kLanesOfRow = 8;
  static constexpr int kRowPitch = flash::kChunkBytes + 16;  // rows of neighboring lanes are in different banks
  static constexpr int kBufferBytes = flash::kKeys * kRowPitch;
  static constexpr int kWeightPitch = flash::kKeys * static_cast<int>(sizeof(float)) + 16;
  static constexpr int kWeightBytes = flash::kRows * kWeightPitch;
  struct Weights {};

  PX_HD static int query_pitch(int chunks) { return chunks * flash::kChunkBytes + 16; }
  PX_HD static int row(int thread, int i) { return thread / kWarp * 16 + thread % kWarp / 8 + 4 * i; }
  PX_HD static int row_of_score(int e) { return e % 4; }
  PX_HD static int key_of_score(int thread, int e) { return thread % 8 + 8 * (e / 4); }
  PX_HD static int row_of_sum(int s) { return s / 4 % 4; }
  PX_HD static int column_of_sum(int thread, int s) { return s / 16 * 32 + thread % 8 * 4 + s % 4; }

  template <class Launch, class Memory>
  PX_INLINED static void put_row(Launch&, const flash::Region<Memory>& target, const Quad& quad) {
    target.template at<Quad>(0) = quad;
  }
  PX_HD static int fetched_key(int thread, int i) { return thread / flash::kQuads + i * 16; }
  template <class Launch, class Memory>
  PX_INLINED static void put_values(Launch& launch, const flash::Region<Memory>& buffer, const Quad (&fetched)[4]) {
    const int thread = launch.thread();
    PX_UNROLL
    for (int i = 0; i < flash::kFetched; ++i) {
      const int byte = fetched_key(thread, i) * kRowPitch + thread % flash::kQuads * 16;
      buffer.template at<Quad>(byte) = fetched[i];
    }
  }

  // scores += queries keys of one chunk, of which `bytes` of each row are there. Only the first row of each thread is
  // used where `is_one_row`.
  template <class Launch, class Memory>
  PX_INLINED static void score(Launch& launch, const flash::Region<Memory>& queries, int pitch,
                               const flash::Region<Memory>& keys, int bytes, bool is_one_row,
                               float (&scores)[flash::kScores]) {
    if (is_one_row) {
      score_rows<1>(launch.thread(), queries, pitch, keys, bytes, scores);
    } else {
      score_rows<kRowsOfThread>(launch.thread(), queries, pitch, keys, bytes, scores);
    }
  }

  template <class Launch, class Memory>
  PX_INLINED static void keep_weights(Launch& launch, const flash::Region<Memory>& kept,
                                      const float (&weights)[flash::kScores], Weights&) {
    const int thread = launch.thread();
    PX_UNROLL
    for (int e = 0; e < flash::kScores; ++e) {
      const int byte = row(thread, row_of_score(e)) * kWeightPitch + key_of_score(thread, e) * 4;
      kept.template at<float>(byte) = weights[e];
    }
  }

  // sums += weights values of chunk kChunk.
  template <int kChunk, class Launch, class Memory>
  PX_INLINED static void weigh(Launch& launch, const flash::Region<Memory>& kept, const Weights&,
                               const flash::Region<Memory>& values, int, bool is_one_row, float (&sums)[flash::kSums]) {
    if (is_one_row) {
      weigh_rows<kChunk, 1>(launch.thread(), kept, values, sums);
    } else {
      weigh_rows<kChunk, kRowsOfThread>(launch.thread(), kept, values, sums);
    }
  }

 private:
  template <int kUsed, class Memory>
  PX_INLINED static void score_rows(int thread, const flash::Region<Memory>& queries, int pitch,
                                    const flash::Region<Memory>& keys, int bytes, float (&scores)[flash::kScores]) {
    PX_KEEP_ROLLED
    for (int byte = 0; byte < bytes; byte += 16) {
      Quad q[kUsed];
      PX_UNROLL
      for (int i = 0; i < kUsed; ++i) q[i] = queries.template at<Quad>(row(thread, i) * pitch + byte);
      PX_UNROLL
      for (int j = 0; j < 8; ++j) {
        const Quad k = keys.template at<Quad>((thread % 8 + 8 * j) * kRowPitch + byte);
        PX_UNROLL
        for (int i = 0; i < kUsed; ++i) add_products(q[i], k, scores[j * 4 + i]);
      }
    }
  }

  template <int kChunk, int kUsed, class Memory>
  PX_INLINED static void weigh_rows(int thread, const flash::Region<Memory>& kept, const flash::Region<Memory>& values,
                                    float (&sums)[flash::kSums]) {
    PX_KEEP_ROLLED
    for (int key = 0; key < flash::kKeys; key += 4) {
      Quad weights[kUsed];
      PX_UNROLL
      for (int i = 0; i < kUsed; ++i) weights[i] = kept.template at<Quad>(row(thread, i) * kWeightPitch + key * 4);
      PX_UNROLL
      for (int k = 0; k < 4; ++k) {
        const Quad v = values.template at<Quad>((key + k) * kRowPitch + thread % 8 * 16);
        PX_UNROLL
        for (int i = 0; i < kUsed; ++i) {
          PX_UNROLL
          for (int m = 0; m < 4; ++m) {
            float& sum = sums[kChunk * 16 + i * 4 + m];
            sum = std::fma(std::bit_cast<float>(weights[i].words[k]), std::bit_cast<float>(v.words[m]), sum);
          }
        }
      }
    }
  }
  PX_INLINED static void add_products(const Quad& a, const Quad& b, float& sum) {
    PX_UNROLL
    for (int k = 0; k < 4; ++k) sum = std::fma(std::bit_cast<float>(a.words[k]), std::bit_cast<float>(b.words[k]), sum);
  }
};

// Products of fragments (PTX ISA, "Matrix Fragments for mma.m16n8k16" and ".m16n8k8"). The order of the numbers along
// the sum is free: a thread takes its share of both operands from 8 contiguous bytes, so that each fragment is one
// load. Values are interleaved for that as they are stored: 8 bytes hold what one thread needs of one column.
template <class T>
struct MmaEngine {
  using Storage = T;
  static constexpr bool kIsWide = sizeof(T) == 4;  // TF32
  static constexpr int kRowsOfThread = 2, kLanesOfRow = 4;
  static constexpr int kRowPitch = flash::kChunkBytes + 32;  // 16 lanes read 8 bytes each from all banks
  static constexpr int kKeysAtOnce = kIsWide ? 8 : 16;       // summed by one product
  static constexpr int kTiles = flash::kPerChunk<T> / 8;     // of 8 values
  static constexpr int kValuePitch = flash::kPerChunk<T> * 8 + 32;
  static constexpr int kBufferBytes = flash::kKeys * kRowPitch;
  static constexpr int kWeightBytes = 0;
  static constexpr int kWords = flash::kScores * static_cast<int>(sizeof(T)) / 4;
  struct Weights {
    uint32_t words[kWords];
  };
  static_assert(flash::kKeys * static_cast<int>(sizeof(T)) / 8 * kValuePitch <= kBufferBytes);

  PX_HD static int query_pitch(int chunks) { return chunks * flash::kChunkBytes + 32; }
  PX_HD static int row(int thread, int i) { return thread / kWarp * 16 + thread % kWarp / 4 + 8 * i; }
  PX_HD static int row_of_score(int e) { return e / 2 % 2; }
  PX_HD static int key_of_score(int thread, int e) { return e / 4 * 8 + thread % 4 * 2 + e % 2; }
  PX_HD static int row_of_sum(int s) { return s / 2 % 2; }
  PX_HD static int column_of_sum(int thread, int s) { return s / 4 * 8 + thread % 4 * 2 + s % 2; }

  template <class Launch, class Memory>
  PX_INLINED static void put_row(Launch& launch, const flash::Region<Memory>& target, const Quad& quad) {
    target.template at<Quad>(0) = rounded(launch, quad);
  }
  // The keys whose values a thread holds are those that one lane needs at once: 2 t, 2 t + 1, and for 16 keys also
  // 2 t + 8, 2 t + 9.
  PX_HD static int fetched_key(int thread, int i) {
    const int group = thread / flash::kQuads + (kIsWide ? i / 2 * 16 : 0);
    return group / 4 * kKeysAtOnce + group % 4 * 2 + i % 2 + (kIsWide ? 0 : i / 2 * 8);
  }
  template <class Launch, class Memory>
  PX_INLINED static void put_values(Launch& launch, const flash::Region<Memory>& buffer, const Quad (&fetched)[4]) {
    const int group = launch.thread() / flash::kQuads, quad = launch.thread() % flash::kQuads;
    PX_UNROLL
    for (int m = 0; m < 4; ++m) {
      if constexpr (kIsWide) {
        const Quad a = rounded(launch, fetched[m / 2 * 2]), b = rounded(launch, fetched[m / 2 * 2 + 1]);
        const int k = m % 2 * 2;
        put_pairs(buffer, group + m / 2 * 16, quad * 2 + m % 2,
                  {{a.words[k], b.words[k], a.words[k + 1], b.words[k + 1]}});
      } else {
        const uint32_t a = fetched[0].words[m], b = fetched[1].words[m];
        const uint32_t c = fetched[2].words[m], d = fetched[3].words[m];
        put_pairs(buffer, group, quad * 4 + m, {{lower(a, b), lower(c, d), upper(a, b), upper(c, d)}});
      }
    }
  }

  template <class Launch, class Memory>
  PX_INLINED static void score(Launch& launch, const flash::Region<Memory>& queries, int pitch,
                               const flash::Region<Memory>& keys, int bytes, bool, float (&scores)[flash::kScores]) {
    const int thread = launch.thread(), lane = thread % kWarp;
    const auto first = queries.from(row(thread, 0) * pitch + lane % 4 * 8);
    const auto own = keys.from(lane / 4 * kRowPitch + lane % 4 * 8);
    PX_UNROLL
    for (int step = 0; step < flash::kChunkBytes / 32; ++step) {
      if (step * 32 >= bytes) break;
      const Pair low = first.template at<Pair>(step * 32), high = first.template at<Pair>(8 * pitch + step * 32);
      const uint32_t a[4] = {low.x, high.x, low.y, high.y};
      PX_UNROLL
      for (int n = 0; n < flash::kKeys / 8; ++n) {
        const Pair b = own.template at<Pair>(n * 8 * kRowPitch + step * 32);
        launch.template multiply_add<T>(scores + n * 4, a, b.x, b.y);
      }
    }
  }

  template <class Launch, class Memory>
  PX_INLINED static void keep_weights(Launch& launch, const flash::Region<Memory>&,
                                      const float (&weights)[flash::kScores], Weights& kept) {
    PX_UNROLL
    for (int i = 0; i < kWords; ++i) {
      if constexpr (kIsWide) {
        kept.words[i] = launch.to_tf32(weights[i]);
      } else {
        kept.words[i] = launch.template pack<T>(weights[2 * i], weights[2 * i + 1]);
      }
    }
  }

  template <int kChunk, class Launch, class Memory>
  PX_INLINED static void weigh(Launch& launch, const flash::Region<Memory>&, const Weights& weights,
                               const flash::Region<Memory>& values, int columns, bool, float (&sums)[flash::kSums]) {
    const int lane = launch.thread() % kWarp;
    const auto own = values.from(lane % 4 * kValuePitch + lane / 4 % 2 * 8);
    PX_UNROLL
    for (int group = 0; group < flash::kKeys / kKeysAtOnce; ++group) {
      const uint32_t* w = weights.words + group * 4;
      // of TF32 the numbers along the sum are 2 t and 2 t + 1, which are two of the first row, then two of the other
      const uint32_t a[4] = {w[0], kIsWide ? w[2] : w[1], kIsWide ? w[1] : w[2], w[3]};
      PX_UNROLL
      for (int n = 0; n < kTiles; ++n) {
        if (n * 8 >= columns) break;
        const int pair = n * 4 + (lane / 8 ^ n / 2);
        const Pair b = own.template at<Pair>(group * 4 * kValuePitch + pair * 16);
        launch.template multiply_add<T>(sums + (kChunk * kTiles + n) * 4, a, b.x, b.y);
      }
    }
  }

 private:
  PX_HD static uint32_t lower(uint32_t a, uint32_t b) { return (a & 0xFFFFU) | (b << 16); }
  PX_HD static uint32_t upper(uint32_t a, uint32_t b) { return (a >> 16) | (b & 0xFFFF0000U); }
  // Two neighboring columns of the values. Pairs are exchanged within groups of four so that 8 lanes fill all banks.
  template <class Memory>
  PX_INLINED static void put_pairs(const flash::Region<Memory>& buffer, int group, int pair, const Quad& quad) {
    buffer.template at<Quad>(group * kValuePitch + (pair ^ pair / 8) * 16) = quad;
  }
  template <class Launch>
  PX_INLINED static Quad rounded(Launch& launch, Quad quad) {
    if constexpr (kIsWide) {
      PX_UNROLL
      for (uint32_t& word : quad.words) word = launch.to_tf32(std::bit_cast<float>(word));
    }
    return quad;
  }
};

}  // namespace parallax::runtime::gpu
