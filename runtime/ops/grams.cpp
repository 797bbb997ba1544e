// SPDX-License-Identifier: Apache-2.0
// TfIdfVectorizer over integers: how often each n-gram of a pool occurs in a row, words at distances up to
// max_skip_count. The host counts for every device.
#include <map>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/ops/host_families.h"
#include "runtime/ops/inner_op.h"

namespace parallax::runtime {
namespace {

struct Gram {
  int64_t index = 0;  // in the output
  float weight = 1;
};
using Pool = std::map<std::vector<int64_t>, Gram>;

struct Grams {
  Pool pool;  // of the lengths that are counted
  int64_t width = 0;
};

// The pool holds all one-grams, then all two-grams, and so on; ngram_counts says where each length begins.
Result<Grams> read_grams(const OpCall& op) {
  const Ints begins = op.find_integers("ngram_counts").value_or(Ints{});
  const Ints indexes = op.find_integers("ngram_indexes").value_or(Ints{});
  const Ints words = op.find_integers("pool_int64s").value_or(Ints{});
  const auto weights = op.find_reals("weights");
  if (weights.has_value() && static_cast<int64_t>(weights->size()) != indexes.size())
    return wrong_length("attribute 'weights'", weights->size(), "have {}, one for each entry of ngram_indexes",
                        indexes.size());
  const int64_t shortest = op.integer("min_gram_length"), longest = op.integer("max_gram_length");
  Grams grams;
  int64_t number = 0;
  for (int64_t length = 1; length <= begins.size(); ++length) {
    const int64_t begin = begins[length - 1];
    const int64_t end = length < begins.size() ? begins[length] : words.size();
    if (begin < 0 || end < begin || end > words.size() || (end - begin) % length != 0)
      return wrong_value(fmt::format("the range of {}-grams in ngram_counts", length),
                         fmt::format("[{}, {})", begin, end),
                         "be within the {} words of the pool and hold whole {}-grams", words.size(), length);
    for (int64_t at = begin; at < end; at += length, ++number) {
      if (number >= indexes.size() || indexes[number] < 0 || indexes[number] > INT32_MAX)
        return wrong_length("attribute 'ngram_indexes'", indexes.size(),
                            "have one in [0, {}] for each n-gram of the pool, of which this is number {}", INT32_MAX,
                            number);
      grams.width = std::max(grams.width, indexes[number] + 1);
      if (length < shortest || length > longest) continue;
      const float weight = weights.has_value() ? weights->data()[number] : 1.0F;
      grams.pool[{words.begin() + at, words.begin() + at + length}] = {indexes[number], weight};
    }
  }
  return grams;
}

// How often the words occur in a row; one word is counted once, not for each skip.
int64_t occurrences(const std::vector<int64_t>& gram, const int64_t* row, int64_t columns, int64_t max_skip) {
  const auto length = static_cast<int64_t>(gram.size());
  int64_t count = 0;
  for (int64_t step = 1; step <= (length == 1 ? 1 : max_skip + 1); ++step) {
    for (int64_t begin = 0; begin + (length - 1) * step < columns; ++begin) {
      int64_t word = 0;
      while (word < length && row[begin + word * step] == gram.data()[word]) ++word;
      count += word == length ? 1 : 0;
    }
  }
  return count;
}

Status tf_idf(OpContext<CompiledDevice>& op) {
  const Ints dims(op.input(0).shape());
  if (dims.empty() || dims.size() > 2) return wrong_input(op, 0, "have rank 1 or 2: [C] or [N,C]");
  const std::string mode = op.text("mode");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") return wrong_attribute("mode", mode, "be TF, IDF or TFIDF");
  const Grams grams = PX_TRY(read_grams(op));
  const int64_t columns = dims.back(), rows = dims.size() == 2 ? dims[0] : 1;
  const int64_t max_skip = std::min(op.integer("max_skip_count"), columns);  // more reaches no word
  const Ints words = all_integers(op.input(0));
  const Shape shape = PX_TRY(shape_of(dims.size() == 2 ? Ints{rows, grams.width} : Ints{grams.width}));
  Tensor y = PX_TRY(Tensor::zeros(DType::float32, shape));
  float* values = writable(y).as<float>();
  for (const auto& [gram, known] : grams.pool) {
    for (int64_t row = 0; row < rows; ++row) {
      const auto count = static_cast<float>(occurrences(gram, words.data() + row * columns, columns, max_skip));
      const float occurs = count > 0.0F ? 1.0F : 0.0F;
      values[row * grams.width + known.index] = mode == "TF" ? count : known.weight * (mode == "IDF" ? occurs : count);
    }
  }
  op.set_output(0, std::move(y));
  return {};
}

constexpr KernelRow<CompiledDevice> kGramRows[] = {
    reads_on_host<CompiledDevice>({0}, {"TfIdfVectorizer", dtype_bits({DType::int32, DType::int64}), tf_idf}),
};

}  // namespace

template <>
Rows<CompiledDevice> gram_rows() {
  return kGramRows;
}

}  // namespace parallax::runtime
