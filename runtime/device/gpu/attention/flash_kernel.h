// SPDX-License-Identifier: Apache-2.0
// The kernel of flash_attention. A block has a key head, and 64 rows: a row is a query of one of the query heads that
// share it. Queries stay in shared memory; keys and values pass through two buffers, each chunk fetched into registers
// while the one before it is multiplied. A tile of keys that none of the rows sees is left out, unless a value of it is
// no finite number: 0 times that is NaN, which our softmax and products give, too.
#pragma once

#include "runtime/device/gpu/attention/flash_call.h"

namespace parallax::runtime::gpu {

template <class Device, class Engine>
struct FlashKernel {
  static constexpr const char* kName = "flash_attention";
  using T = typename Engine::Storage;
  FlashCall<Device, T> call;

  // One for each row of the block.
  struct Row {
    int64_t query, result;  // offsets; -1: there is no such row
    int64_t index;          // among the rows of all matrices
    int64_t changes[3];     // offsets
    int first_key, end_key;
    float sink;
  };
  struct Item {
    int64_t sample, kv_head;
    int64_t first_row;  // of the matrix
    int64_t part;
    int first_column;
  };

  static int chunks_of(int64_t columns) {
    return static_cast<int>((columns + flash::kPerChunk<T> - 1) / flash::kPerChunk<T>);
  }
  static size_t shared_bytes(int64_t size) {
    const auto queries = static_cast<size_t>(flash::kRows * Engine::query_pitch(chunks_of(size)));
    return 2 * Engine::kBufferBytes + queries + Engine::kWeightBytes + flash::kRows * sizeof(Row);
  }

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    constexpr int kSizeOfRows = flash::kRows * static_cast<int>(sizeof(Row));
    static_assert(kSizeOfRows % sizeof(Quad) == 0);
    const int chunks = (call.q.columns + flash::kPerChunk<T> - 1) / flash::kPerChunk<T>;
    const int pitch = Engine::query_pitch(chunks);
    const int bytes = 2 * Engine::kBufferBytes + flash::kRows * pitch + Engine::kWeightBytes + kSizeOfRows;
    const auto memory = launch.template shared<Quad>(bytes / static_cast<int>(sizeof(Quad)));
    Block<Launch, std::remove_const_t<decltype(memory)>> block(*this, launch, memory, chunks, pitch);
    for (int64_t index = launch.block(); index < call.items; index += launch.blocks()) block.attend(item_of(index));
  }

 private:
  // The last rows come first: causal ones have the most keys.
  PX_HD Item item_of(int64_t index) const {
    const int64_t tile = call.row_tiles - 1 - index % call.row_tiles;
    index /= call.row_tiles;
    const auto first_column = static_cast<int>(index % call.column_blocks * flash::kColumns);
    index /= call.column_blocks;
    const int64_t part = index % call.part_count, matrix = index / call.part_count;
    const int64_t kv_heads = call.heads / call.group;
    return {matrix / kv_heads, matrix % kv_heads, tile * flash::kRows, part, first_column};
  }

  // A thread's share of a block's work.
  template <class Launch, class Memory>
  struct Block {
    const FlashKernel& kernel;
    Launch& launch;
    Memory memory;
    int chunks, pitch;  // of a query
    int parity = 0;
    Quad fetched[flash::kFetched];
    int64_t key_begin, value_begin;
    int value_columns;  // of this block
    bool has_rows;      // of this warp
    bool is_one_row;    // of each thread: the others are no rows
    float highest[Engine::kRowsOfThread], total[Engine::kRowsOfThread];
    float scores[flash::kScores], sums[flash::kSums];
    typename Engine::Weights weights;

    // The rest is made by attend().
    PX_INLINED Block(const FlashKernel& all, Launch& by, const Memory& shared, int chunk_count, int query_pitch)
        : kernel(all), launch(by), memory(shared), chunks(chunk_count), pitch(query_pitch) {}

    using Part = flash::Region<Memory>;
    PX_INLINED const FlashCall<Device, T>& call() const { return kernel.call; }
    PX_INLINED Part buffer(int which) const { return {memory, which * Engine::kBufferBytes}; }
    PX_INLINED Part queries() const { return {memory, 2 * Engine::kBufferBytes}; }
    PX_INLINED Part kept_weights() const { return queries().from(flash::kRows * pitch); }
    PX_INLINED Row& row(int index) const {
      return kept_weights().template at<Row>(Engine::kWeightBytes + index * static_cast<int>(sizeof(Row)));
    }

    PX_INLINED void attend(const Item& item) {
      const FlashCall<Device, T>& given = call();
      launch.barrier();  // nobody reads the rows of the item before
      describe_rows(item);
      launch.barrier();
      put_queries();
      const int64_t head = item.kv_head * given.group;
      key_begin = given.k.at.matrix(item.sample, head);
      value_begin = given.v.at.matrix(item.sample, head);
      value_columns = given.value_size - item.first_column;
      if (value_columns > flash::kColumns) value_columns = flash::kColumns;
      begin_sums(item);
      const int64_t last_row = given.group * given.queries - 1, last = item.first_row + flash::kRows - 1;
      const SeenKeys low = given.seen(item.sample, item.first_row / given.group);
      const SeenKeys high = given.seen(item.sample, (last < last_row ? last : last_row) / given.group);
      const int64_t matrix = item.sample * (given.heads / given.group) + item.kv_head;
      const int64_t end = (item.part + 1) * given.tiles / given.part_count;
      // The windows of later queries begin and end no earlier.
      const auto next = [&](int64_t tile) {
        if (!given.unbounded) return tile;
        while (tile < end && (tile * flash::kKeys >= high.end || (tile + 1) * flash::kKeys <= low.first) &&
               given.unbounded[matrix * given.tiles + tile] == 0) {
          ++tile;
        }
        return tile;
      };
      int64_t tile = next(item.part * given.tiles / given.part_count);
      if (tile < end) fetch(true, tile, 0);
      while (tile < end) {
        const int64_t following = next(tile + 1);
        const int64_t first_key = tile * flash::kKeys;
        const bool is_all_seen = first_key >= high.first && first_key + flash::kKeys <= low.end;
        attend_tile(tile, following < end ? following : -1, item.first_column, is_all_seen);
        tile = following;
      }
      finish(item);
    }

    PX_INLINED void describe_rows(const Item& item) const {
      const FlashCall<Device, T>& given = call();
      const int index = launch.thread();
      if (index >= flash::kRows) return;
      Row& made = row(index);
      made = Row{-1, 0, 0, {0, 0, 0}, 0, 0, 0.0F};
      const int64_t of_matrix = item.first_row + index;
      if (of_matrix >= given.group * given.queries) return;
      const int64_t query = of_matrix / given.group, head = item.kv_head * given.group + of_matrix % given.group;
      made.query = given.q.at.matrix(item.sample, head) + query * given.q.at.row;
      made.result = given.y_at.matrix(item.sample, head) + query * given.y_at.row;
      made.index = (item.sample * given.heads + head) * given.queries + query;
      for (int i = 0; i < 3; ++i) {
        const HeadStrides& at = i < 2 ? given.added[i].at : given.hiding.at;
        made.changes[i] = at.matrix(item.sample, head) + query * at.row;
      }
      const SeenKeys seen = given.seen(item.sample, query);
      made.first_key = static_cast<int>(seen.first < given.keys ? seen.first : given.keys);
      made.end_key = static_cast<int>(seen.end);
      made.sink = given.sinks ? given.sinks[head] : 0.0F;
    }

    PX_INLINED void put_queries() const {
      const int quads = chunks * flash::kQuads;
      for (int i = launch.thread(); i < flash::kRows * quads; i += flash::kThreads) {
        const int index = i / quads, quad = i % quads;
        const int64_t begin = row(index).query;
        const Quad read = begin < 0 ? Quad{} : call().q.quad(begin, quad * flash::kPerQuad<T>);
        Engine::put_row(launch, queries().from(index * pitch + quad * static_cast<int>(sizeof(Quad))), read);
      }
    }

    // A sink is seen once: by the first part, in one of the lanes of each row.
    PX_INLINED void begin_sums(const Item& item) {
      const int first = launch.thread() / kWarp * kWarp;
      has_rows = row(Engine::row(first, 0)).query >= 0;
      is_one_row = row(Engine::row(first, 1)).query < 0;
      const bool is_first = launch.thread() % Engine::kLanesOfRow == 0;
      PX_UNROLL
      for (int i = 0; i < Engine::kRowsOfThread; ++i) {
        const bool has_sink = call().sinks && item.part == 0;
        highest[i] = has_sink ? row(Engine::row(launch.thread(), i)).sink : -std::numeric_limits<float>::infinity();
        total[i] = has_sink && is_first ? 1.0F : 0.0F;
      }
      PX_UNROLL
      for (float& sum : sums) sum = 0.0F;
    }

    // The next chunk: of keys from `column` on, or of values.
    PX_INLINED void fetch(bool is_keys, int64_t tile, int column) {
      const int thread = launch.thread();
      const FlashRows<Device, T>& operand = is_keys ? call().k : call().v;
      const int64_t begin = is_keys ? key_begin : value_begin;
      PX_UNROLL
      for (int i = 0; i < flash::kFetched; ++i) {
        const int in_tile = is_keys ? thread / flash::kQuads + i * 16 : Engine::fetched_key(thread, i);
        const int64_t key = tile * flash::kKeys + in_tile;
        fetched[i] = Quad{};
        if (key >= call().keys) continue;
        fetched[i] = operand.quad(begin + key * operand.at.row, column + thread % flash::kQuads * flash::kPerQuad<T>);
      }
    }
    PX_INLINED void put_keys() const {
      const int thread = launch.thread();
      PX_UNROLL
      for (int i = 0; i < flash::kFetched; ++i) {
        const int byte = (thread / flash::kQuads + i * 16) * Engine::kRowPitch + thread % flash::kQuads * 16;
        Engine::put_row(launch, buffer(parity).from(byte), fetched[i]);
      }
    }

    // One barrier for each chunk: who stores the next one has passed it, and so has everyone the products before.
    PX_INLINED void attend_tile(int64_t tile, int64_t following, int first_column, bool is_all_seen) {
      PX_UNROLL
      for (float& score : scores) score = 0.0F;
      PX_KEEP_ROLLED
      for (int chunk = 0; chunk < chunks; ++chunk) {
        put_keys();
        launch.barrier();
        const bool is_last = chunk + 1 == chunks;
        fetch(!is_last, tile, is_last ? first_column : (chunk + 1) * flash::kPerChunk<T>);
        const int bytes = (call().q.columns - chunk * flash::kPerChunk<T>)*static_cast<int>(sizeof(T));
        if (has_rows) {
          Engine::score(launch, queries().from(chunk * flash::kChunkBytes), pitch, buffer(parity),
                        bytes < flash::kChunkBytes ? bytes : flash::kChunkBytes, is_one_row, scores);
        }
        parity = 1 - parity;
      }
      if (has_rows) soften(tile, is_all_seen);
      weigh_chunks(tile, following, first_column, std::make_integer_sequence<int, kColumnChunks>());
    }

    static constexpr int kColumnChunks = flash::kColumns / flash::kPerChunk<T>;
    template <int... kChunks>
    PX_INLINED void weigh_chunks(int64_t tile, int64_t following, int first_column,
                                 std::integer_sequence<int, kChunks...>) {
      (weigh_chunk<kChunks>(tile, following, first_column), ...);
    }
    template <int kChunk>
    PX_INLINED void weigh_chunk(int64_t tile, int64_t following, int first_column) {
      constexpr int kWidth = flash::kPerChunk<T>;
      if (kChunk * kWidth >= value_columns) return;
      Engine::put_values(launch, buffer(parity), fetched);
      launch.barrier();
      const bool is_last = (kChunk + 1) * kWidth >= value_columns;
      if (!is_last || following >= 0) {
        fetch(is_last, is_last ? following : tile, is_last ? 0 : first_column + (kChunk + 1) * kWidth);
      }
      if (has_rows) {
        Engine::template weigh<kChunk>(launch, kept_weights(), weights, buffer(parity), value_columns - kChunk * kWidth,
                                       is_one_row, sums);
      }
      parity = 1 - parity;
    }

    // Scores become weights, relative to the highest score so far, which the sums are brought to.
    PX_INLINED void soften(int64_t tile, bool is_all_seen) {
      constexpr float kHidden = -std::numeric_limits<float>::infinity();
      const int first_key = static_cast<int>(tile * flash::kKeys);
      change_scores(first_key, is_all_seen);
      float before[Engine::kRowsOfThread];
      PX_UNROLL
      for (int i = 0; i < Engine::kRowsOfThread; ++i) before[i] = highest[i];
      PX_UNROLL
      for (int e = 0; e < flash::kScores; ++e) {
        float& most = highest[Engine::row_of_score(e)];
        most = math::maximum(most, scores[e]);
      }
      float factors[Engine::kRowsOfThread], shifts[Engine::kRowsOfThread];
      PX_UNROLL
      for (int i = 0; i < Engine::kRowsOfThread; ++i) {
        PX_UNROLL
        for (int lanes = 1; lanes < Engine::kLanesOfRow; lanes *= 2) {
          highest[i] = math::maximum(highest[i], launch.shuffle_xor(highest[i], lanes));
        }
        shifts[i] = highest[i] == kHidden ? 0.0F : highest[i];
        factors[i] = math::exp_nonpositive(before[i] - shifts[i]);
        total[i] *= factors[i];
      }
      PX_UNROLL
      for (int e = 0; e < flash::kScores; ++e) {
        const int i = Engine::row_of_score(e);
        scores[e] = math::exp_nonpositive(scores[e] - shifts[i]);
        total[i] += scores[e];
      }
      PX_UNROLL
      for (int s = 0; s < flash::kSums; ++s) sums[s] *= factors[Engine::row_of_sum(s)];
      Engine::keep_weights(launch, kept_weights(), scores, weights);
    }

    PX_INLINED void change_scores(int first_key, bool is_all_seen) {
      const FlashCall<Device, T>& given = call();
      PX_UNROLL
      for (float& score : scores) score *= given.scale;
      const bool is_changed = given.added[0].data != nullptr || given.hiding.data != nullptr || given.softcap > 0.0F;
      if (is_all_seen && !is_changed) return;
      constexpr int kAtOnce = 8;  // scores of the same rows as the next ones, each of the 16th key from there
      PX_KEEP_ROLLED
      for (int group = 0; group < flash::kScores / kAtOnce; ++group) {
        PX_UNROLL
        for (int e = 0; e < kAtOnce; ++e) {
          const Row& own = row(Engine::row(launch.thread(), Engine::row_of_score(e)));
          const int key = first_key + 16 * group + Engine::key_of_score(launch.thread(), e);
          const bool is_seen = key >= own.first_key && key < own.end_key;
          scores[e] = is_seen ? changed(scores[e], own, key) : -std::numeric_limits<float>::infinity();
        }
        flash::rotate<kAtOnce>(scores);
      }
    }
    PX_INLINED float changed(float score, const Row& own, int key) const {
      const FlashCall<Device, T>& given = call();
      if (given.softcap > 0.0F) score = given.softcap * math::tanh(score / given.softcap);
      PX_UNROLL
      for (int i = 0; i < 2; ++i) {
        if (given.added[i].data != nullptr)
          score += added(given.added[i], own.changes[i] + key * given.added[i].at.column);
      }
      if (given.hiding.data == nullptr) return score;
      const Elements<Device, const uint8_t> flags{reinterpret_cast<const uint8_t*>(given.hiding.data)};
      const bool is_flagged = flags[own.changes[2] + key * given.hiding.at.column] != 0;
      return is_flagged == given.hides_where ? given.hidden_value : score;
    }
    PX_INLINED static float added(const FlashChange<Device>& change, int64_t index) {
      if (std::is_same_v<T, float> || change.is_float32)
        return Elements<Device, const float>{reinterpret_cast<const float*>(change.data)}[index];
      return storage::from_storage<float>(Elements<Device, const T>{reinterpret_cast<const T*>(change.data)}[index]);
    }

    PX_INLINED void finish(const Item& item) {
      PX_UNROLL
      for (int i = 0; i < Engine::kRowsOfThread; ++i) {
        PX_UNROLL
        for (int lanes = 1; lanes < Engine::kLanesOfRow; lanes *= 2) total[i] += launch.shuffle_xor(total[i], lanes);
      }
      const FlashCall<Device, T>& given = call();
      const int thread = launch.thread();
      const bool is_whole = given.part_count == 1;
      PX_UNROLL
      for (int i = 0; i < Engine::kRowsOfThread; ++i) {
        const Row& own = row(Engine::row(thread, i));
        if (is_whole || own.query < 0 || thread % Engine::kLanesOfRow != 0) continue;
        const int64_t index = item.part * given.rows + own.index;
        given.parts.highest[index] = highest[i];
        given.parts.total[index] = total[i];
      }
      constexpr int kAtOnce = 16;  // sums of the same rows as the next ones, each of the 32nd column from there
      PX_KEEP_ROLLED
      for (int group = 0; group < flash::kSums / kAtOnce; ++group) {
        PX_UNROLL
        for (int s = 0; s < kAtOnce; ++s) {
          const int i = Engine::row_of_sum(s);
          const Row& own = row(Engine::row(thread, i));
          const int column = 32 * group + Engine::column_of_sum(thread, s);
          if (own.query < 0 || column >= value_columns) continue;
          const int64_t of_all = item.first_column + column;
          if (is_whole) {
            given.y[own.result + of_all * given.y_at.column] = given.result(sums[s], total[i]);
          } else {
            given.parts.sums[(item.part * given.rows + own.index) * given.value_size + of_all] = sums[s];
          }
        }
        flash::rotate<kAtOnce>(sums);
      }
    }
  };
};

}  // namespace parallax::runtime::gpu
