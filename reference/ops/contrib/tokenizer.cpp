// SPDX-License-Identifier: Apache-2.0
// com.microsoft's Tokenizer: texts cut into words, by expressions that separate them, by one that they match, or letter
// by letter.
#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <re2/re2.h>

#include "inspector/base/shown_text.h"
#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"

namespace parallax::reference {
namespace {

// -1: it is not UTF-8.
int64_t character_count(std::string_view text) {
  int64_t count = 0;
  for (; !text.empty(); ++count) {
    const size_t bytes = utf8_length(text);
    if (bytes == 0) return -1;
    text.remove_prefix(bytes);
  }
  return count;
}

using Words = std::vector<std::string_view>;

Words characters_of(std::string_view text) {
  Words words;
  for (size_t location = 0; location < text.size(); location += words.back().size())
    words.push_back(text.substr(location, utf8_length(text.substr(location))));
  return words;
}

Result<std::unique_ptr<RE2>> compile(const std::string& pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_longest_match(true);
  auto expression = std::make_unique<RE2>(pattern, options);
  if (!expression->ok())
    return wrong_value("an expression", fmt::format("'{}'", pattern), "be a regular expression of RE2: {}",
                       expression->error());
  return expression;
}

struct Tokenizer {
  std::vector<std::unique_ptr<RE2>> separators;  // each cuts what those before it left whole
  std::unique_ptr<RE2> word;                     // null: separators
  bool by_character = false;
  int64_t least_characters = 1;

  bool is_long_enough(std::string_view word_found) const { return character_count(word_found) >= least_characters; }

  // Collects the text between matches. An empty match takes the character after it for a separator.
  void cut(const RE2& separator, std::string_view text, Words& words) const {
    size_t begin = 0;
    re2::StringPiece match;
    const re2::StringPiece all(text.data(), text.size());
    while (begin < text.size() && separator.Match(all, begin, text.size(), RE2::UNANCHORED, &match, 1)) {
      const auto end = static_cast<size_t>(match.data() - text.data());
      if (end > begin && is_long_enough(text.substr(begin, end - begin)))
        words.push_back(text.substr(begin, end - begin));
      begin = end + match.size();
      if (match.empty() && begin < text.size()) begin += utf8_length(text.substr(begin));
    }
    if (begin < text.size() && is_long_enough(text.substr(begin))) words.push_back(text.substr(begin));
  }

  // Collects the matches, each the longest at the first position; after a match that is too short the search goes on
  // one character further.
  void find(std::string_view text, Words& words) const {
    size_t begin = 0;
    re2::StringPiece match;
    const re2::StringPiece all(text.data(), text.size());
    while (begin < text.size() && word->Match(all, begin, text.size(), RE2::UNANCHORED, &match, 1)) {
      begin = static_cast<size_t>(match.data() - text.data());
      const std::string_view found = text.substr(begin, match.size());
      if (!found.empty() && is_long_enough(found)) {
        words.push_back(found);
        begin += found.size();
      } else if (begin < text.size()) {
        begin += utf8_length(text.substr(begin));
      }
    }
  }

  Words words_of(std::string_view text) const {
    if (by_character) return characters_of(text);
    Words words;
    if (word != nullptr) return find(text, words), words;
    words.push_back(text);
    for (const auto& separator : separators) {
      Words parts;
      for (const std::string_view part : words) cut(*separator, part, parts);
      words = std::move(parts);
    }
    return words;
  }
};

Result<Tokenizer> read_tokenizer(const OpContext& op) {
  Tokenizer tokenizer;
  tokenizer.least_characters = op.int_attribute("mincharnum");
  if (tokenizer.least_characters < 1) return wrong_attribute("mincharnum", tokenizer.least_characters, "be 1 or more");
  const auto separators = op.find_strings("separators").value_or(std::vector<std::string>{});
  const auto expression = op.find_string("tokenexp");
  if (separators.empty() && expression.value_or("").empty())
    return execution_error("attributes 'separators' and 'tokenexp' are missing; one of them must be given");
  if (separators.empty()) {
    tokenizer.word = PX_TRY(compile(*expression));
    return tokenizer;
  }
  tokenizer.by_character = separators.size() == 1 && separators[0].empty();
  if (tokenizer.by_character && tokenizer.least_characters > 1)
    return wrong_attribute("mincharnum", tokenizer.least_characters,
                           "be 1 where 'separators' cuts text into characters");
  if (tokenizer.by_character) return tokenizer;
  for (const std::string& separator : separators) tokenizer.separators.push_back(PX_TRY(compile(separator)));
  return tokenizer;
}

// X of shape [C] or [N, C] gains an axis as long as the most words of a text, its marks (2 and 3) included; `pad_value`
// fills the others up. Where no text has a word that axis is 0 long, marks or not.
Status op_contrib_tokenizer(OpContext& op) {
  const Tensor& input = op.input(0);
  const Shape& shape = input.shape();
  if (shape.rank() != 1 && shape.rank() != 2) return wrong_input(op, 0, "have rank 1 or 2: [C] or [N,C]");
  const Tokenizer tokenizer = PX_TRY(read_tokenizer(op));
  const auto texts = input.as<std::string>();
  std::vector<Words> rows;
  size_t longest = 0;
  for (const std::string& text : texts) {
    if (character_count(text) < 0) return broken_rule("an element is not UTF-8", "be UTF-8 text");
    rows.push_back(tokenizer.words_of(text));
    longest = std::max(longest, rows.back().size());
  }
  if (texts.empty()) {
    const Shape none = shape.rank() == 1 ? Shape{0} : Shape{shape[0], 0};
    return op.set_output(0, PX_TRY(op.allocate(DType::string, none)));
  }
  const bool is_marked = op.int_attribute("mark") != 0 && longest > 0;
  const size_t width = longest + (is_marked ? 2 : 0);
  std::vector<int64_t> dims(shape.begin(), shape.end());
  dims.push_back(static_cast<int64_t>(width));
  const Shape shape_of_tokens = PX_TRY(Shape::create(dims));
  Tensor output = PX_TRY(op.allocate(DType::string, shape_of_tokens));
  const auto tokens = output.mutable_as<std::string>();
  std::ranges::fill(tokens, op.string_attribute("pad_value"));
  for (size_t row = 0; row < rows.size(); ++row) {
    auto to = tokens.begin() + static_cast<ptrdiff_t>(row * width);
    if (is_marked) *to++ = "\x02";
    to = std::copy(rows[row].begin(), rows[row].end(), to);
    if (is_marked) *to = "\x03";
  }
  return op.set_output(0, std::move(output));
}

constexpr OpRow kContribTokenizerRows[] = {
    {"Tokenizer", kMicrosoft, 1, 1, op_contrib_tokenizer},
};

}  // namespace

OpRows contrib_tokenizer_rows() { return kContribTokenizerRows; }

}  // namespace parallax::reference
