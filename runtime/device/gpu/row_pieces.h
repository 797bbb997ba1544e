// SPDX-License-Identifier: Apache-2.0
// Rows that are cut in pieces, so that few long ones keep a whole device busy: a block, or of a column a thread, makes
// a state of each piece, then a block for each row merges the states. Where rows are cut follows from the shape alone,
// so that a sum has the same bits on every GPU.
#pragma once

#include "runtime/device/gpu/block.h"
#include "runtime/device/gpu/row_team.h"

namespace parallax::runtime::gpu {

// The sizes are estimates: no GPU has measured them.
constexpr int64_t kFewRows = 512;           // an H100 runs about a thousand blocks of 256 threads at once
constexpr int64_t kPieceElements = 4096;    // four packs of float32 a thread: more than a launch costs
constexpr int64_t kMostPieces = 4096;       // of a row, whose states one block merges
constexpr int64_t kFewColumns = 32768;      // threads that keep an H100 busy by themselves
constexpr int64_t kColumnPiece = 128;       // elements that a thread folds of a column
constexpr int64_t kColumnStates = 1 << 18;  // of all columns: as many threads as an H100 runs at once

struct Pieces {
  int64_t count = 1;
  int64_t length = 0;  // of each but the last
};
constexpr Pieces pieces_of(int64_t length, int64_t unit, int64_t most) {
  const int64_t units = (length + unit - 1) / unit;
  const int64_t each = (units + most - 1) / most * unit;
  return {(length + each - 1) / each, each};
}
constexpr Pieces row_pieces(int64_t rows, int64_t length) {
  if (rows >= kFewRows || length < 2 * kPieceElements) return {1, length};
  return pieces_of(length, kPieceElements, kMostPieces);
}
constexpr Pieces column_pieces(int64_t columns, int64_t length) {
  if (columns >= kFewColumns || length < 2 * kColumnPiece) return {1, length};
  const int64_t most = kColumnStates / columns;
  return pieces_of(length, kColumnPiece, most < kMostPieces ? most : kMostPieces);
}

// The states of pieces are [row][piece].
template <class Device, class C, class Fold>
struct FoldPiecesKernel {
  static constexpr const char* kName = "fold_pieces";
  using State = decltype(std::declval<const Fold&>().template init<C>());
  Fold fold;
  Source in;
  Elements<Device, State> states;
  int64_t rows, length;
  Pieces pieces;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    const auto slots = launch.template shared<Slot>(launch.threads() / kWarp);
    for (int64_t item = launch.block(); item < rows * pieces.count; item += launch.blocks()) {
      const int64_t begin = item % pieces.count * pieces.length, left = length - begin;
      State state = fold.template init<C>();
      for_each_of_row<Device, C>(launch, in, item / pieces.count * length + begin,
                                 left < pieces.length ? left : pieces.length,
                                 [&](C value, int64_t i) { state = folded(fold, state, value, begin + i); });
      state = merge_block(launch, slots, state, [&](const State& a, const State& b) { return fold.merge(a, b); });
      if (launch.thread() == 0) states[item] = state;
    }
  }
};

template <class Device, class C, class Fold>
struct FoldColumnPiecesKernel {
  static constexpr const char* kName = "fold_column_pieces";
  using State = decltype(std::declval<const Fold&>().template init<C>());
  Fold fold;
  Source in;
  Elements<Device, State> states;
  int64_t rows, length, inner;
  Pieces pieces;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, rows * pieces.count, [&](int64_t item) {
      const int64_t row = item % rows, piece = item / rows;  // neighboring threads have neighboring columns
      const int64_t start = row / inner * length * inner + row % inner;
      const int64_t begin = piece * pieces.length;
      const int64_t end = begin + pieces.length < length ? begin + pieces.length : length;
      State state = fold.template init<C>();
      for (int64_t i = begin; i < end; ++i) state = folded(fold, state, load<Device, C>(in, start + i * inner), i);
      states[row * pieces.count + piece] = state;
    });
  }
};

// The merge of a row's states, the same for all threads of the block.
template <class Launch, class Slots, class States, class State, class Merge>
PX_HD State merge_states(Launch& launch, const Slots& slots, const States& states, int64_t first, int64_t count,
                         State state, const Merge& merge) {
  for (int64_t i = launch.thread(); i < count; i += launch.threads()) state = merge(state, states[first + i]);
  return merge_block(launch, slots, state, merge);
}

template <class Device, class C, class Fold>
struct MergePiecesKernel {
  static constexpr const char* kName = "merge_pieces";
  using State = decltype(std::declval<const Fold&>().template init<C>());
  Fold fold;
  Elements<Device, State> states;
  Target out;
  int64_t rows, length, pieces;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    const auto slots = launch.template shared<Slot>(launch.threads() / kWarp);
    for (int64_t row = launch.block(); row < rows; row += launch.blocks()) {
      const State state = merge_states(launch, slots, states, row * pieces, pieces, fold.template init<C>(),
                                       [&](const State& a, const State& b) { return fold.merge(a, b); });
      if (launch.thread() == 0) store<Device>(out, row, fold.finish(state, length));
    }
  }
};

// Memory for the states of all pieces.
template <class State, GpuDevice Gpu>
Result<Tensor> piece_states(Queue<Gpu>& queue, int64_t count) {
  return queue.allocate(DType::uint8, Shape{count * static_cast<int64_t>(sizeof(State))});
}

template <class C, class Fold, GpuDevice Gpu>
Status fold_in_pieces(Queue<Gpu>& queue, const Fold& fold, const RowLayout& layout, const Pieces& pieces,
                      const Target& out, const Source& in) {
  using State = typename MergePiecesKernel<Gpu, C, Fold>::State;
  const int64_t rows = layout.row_count();
  const Tensor memory = PX_TRY(piece_states<State>(queue, rows * pieces.count));
  const Elements<Gpu, State> states{reinterpret_cast<State*>(memory.storage().get())};
  if (layout.inner == 1) {
    const FoldPiecesKernel<Gpu, C, Fold> kernel{fold, in, states, rows, layout.length, pieces};
    launch(queue, kernel, size_for_blocks(queue, rows * pieces.count, pieces.length / kRowPack));
  } else {
    const FoldColumnPiecesKernel<Gpu, C, Fold> kernel{fold, in, states, rows, layout.length, layout.inner, pieces};
    launch(queue, kernel, size_for_items(queue, rows * pieces.count));
  }
  const MergePiecesKernel<Gpu, C, Fold> kernel{fold, states, out, rows, layout.length, pieces.count};
  launch(queue, kernel, size_for_blocks(queue, rows, pieces.count));
  return {};
}

}  // namespace parallax::runtime::gpu
