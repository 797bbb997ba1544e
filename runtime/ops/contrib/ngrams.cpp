// SPDX-License-Identifier: Apache-2.0
// com.microsoft.NGramRepeatBlock: a token that would complete an n-gram the sequence already holds gets -inf.
// Definition: ContribOperators.md.
#include <limits>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/find.h"
#include "runtime/device/cpu/scatter.h"
#include "runtime/device/cpu/select.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/ops/contrib_families.h"
#include "runtime/ops/indices.h"

namespace parallax::runtime {
namespace {

// The sequences [batch, length], and the positions [batch, positions] that an n-gram can begin at.
template <class Device>
struct Sequences {
  Elements<Device, const int64_t> tokens;
  int64_t length, locations, n;
  PX_HD int64_t first_token(int64_t location) const { return location / locations * length + location % locations; }
};

// True where the n-gram at a position begins as the sequence ends.
template <class Device>
struct BeginsAsTheEnd {
  Sequences<Device> sequences;
  PX_HD uint8_t operator()(int64_t location) const {
    const int64_t begin = sequences.first_token(location),
                  to_end = sequences.locations - location % sequences.locations;
    for (int64_t i = 0; i + 1 < sequences.n; ++i) {
      if (sequences.tokens[begin + i] != sequences.tokens[begin + to_end + i]) return 0;
    }
    return 1;
  }
};

template <class Device>
struct LastToken {
  Sequences<Device> sequences;
  Elements<Device, const int64_t> found;
  PX_HD int64_t operator()(int64_t i) const {
    return sequences.tokens[sequences.first_token(found[i]) + sequences.n - 1];
  }
};

struct OutsideVocabulary {
  int64_t size;
  PX_HD bool operator()(int64_t token, int64_t) const { return token < 0 || token >= size; }
};

// The element index of the score of a found n-gram's last token.
template <class Device>
struct ScoreIndex {
  LastToken<Device> last;
  int64_t vocabulary;
  PX_HD int64_t operator()(int64_t i) const { return last.found[i] / last.sequences.locations * vocabulary + last(i); }
};

template <class Device>
Status block_found(OpContext<Device>& op, const LastToken<Device>& last, int64_t count, const MutableView& y) {
  const int64_t vocabulary = dim_of(y.shape, 1);
  const Tensor tokens = PX_TRY(op.queue().allocate(DType::int64, Shape{count}));
  tabulate<int64_t>(op.queue(), last, writable(tokens));
  const int64_t bad = PX_TRY(find_first<int64_t>(op.queue(), OutsideVocabulary{vocabulary}, tokens.view()));
  if (bad >= 0) {
    const Tensor read = PX_TRY(op.on_host(tokens));
    return wrong_value("a token of input_ids", read.template as<int64_t>()[static_cast<size_t>(bad)],
                       "be in [0, {}), the words of scores", vocabulary);
  }
  const MutableView blocked = PX_TRY(op.scratch(DType::float32, Shape{count}));
  constexpr float kBlocked = -std::numeric_limits<float>::infinity();
  fill(op.queue(), blocked, reinterpret_cast<const std::byte*>(&kBlocked));
  scatter<float>(op.queue(), ScoreIndex<Device>{last, vocabulary}, Combine::replace, y, blocked, 1);
  return {};
}

template <class Device>
Status ngram_repeat_block(OpContext<Device>& op) {
  const Ints ids(op.input(0).shape()), scores(op.input(1).shape());
  const int64_t n = op.integer("ngram_size");
  if (n < 1 || ids.size() != 2 || scores.size() != 2 || ids[0] != scores[0])
    return wrong_input(op, 0, "be [batch,length], scores, {}, be [batch,words], and 'ngram_size', {}, be 1 or more",
                       op.input(1).shape().to_string(), n);
  const MutableView y = PX_TRY(op.make_output(0, op.input(1).dtype(), op.input(1).shape()));
  copy_bytes(op.queue(), y.data, op.input(1).view().data, op.input(1).size_bytes());
  if (ids[0] == 0 || n > ids[1]) return {};
  const Sequences<Device> sequences{
      {reinterpret_cast<const int64_t*>(op.input(0).view().data)}, ids[1], ids[1] - n + 1, n};
  const MutableView flags = PX_TRY(op.scratch(DType::bool_, Shape{ids[0], sequences.locations}));
  tabulate<uint8_t>(op.queue(), BeginsAsTheEnd<Device>{sequences}, flags);
  const Selection<Device> found = PX_TRY(select<uint8_t>(op.queue(), flags));
  return found.count == 0 ? Status{} : block_found(op, LastToken<Device>{sequences, found.locations}, found.count, y);
}

template <class Device>
constexpr KernelRow<Device> kContribNgramRows[] = {
    of_microsoft<Device>({"NGramRepeatBlock", dtype_bit(DType::int64), ngram_repeat_block<Device>}),
};

}  // namespace

template <>
Rows<CompiledDevice> contrib_ngram_rows() {
  return kContribNgramRows<CompiledDevice>;
}

}  // namespace parallax::runtime
