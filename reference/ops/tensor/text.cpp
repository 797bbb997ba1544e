// SPDX-License-Identifier: Apache-2.0
// Text: StringNormalizer, StringConcat, StringSplit, RegexFullMatch, TfIdfVectorizer.
#include <algorithm>
#include <climits>
#include <cwchar>
#include <cwctype>
#include <map>
#include <memory>

#include <locale.h>
#include <re2/re2.h>

#include "inspector/base/memory_budget.h"
#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

// The case rules of one locale, in force for the calling thread as long as it lives.
class CaseRules {
 public:
  // `name` as in the attribute locale. The default, en_US, changes letters as Unicode says, one for one: C.UTF-8 does
  // that on every system.
  static Result<std::unique_ptr<CaseRules>> create(const std::string& name) {
    const bool plain = name.empty() || name.starts_with("en_") || name == "C";
    const std::string wanted = plain ? "C.UTF-8" : name.find('.') == std::string::npos ? name + ".UTF-8" : name;
    locale_t rules = newlocale(LC_CTYPE_MASK, wanted.c_str(), static_cast<locale_t>(nullptr));
    if (rules == static_cast<locale_t>(nullptr))
      return unsupported(
          fmt::format("the locale '{}' is not installed; install it, or use another in attribute 'locale'", wanted));
    return std::unique_ptr<CaseRules>(new CaseRules(rules));
  }
  CaseRules(const CaseRules&) = delete;
  CaseRules& operator=(const CaseRules&) = delete;
  ~CaseRules() {
    uselocale(previous_);
    freelocale(rules_);
  }

  // Errors: text that is not UTF-8.
  Result<std::string> change(const std::string& text, bool upper) const {
    std::string changed;
    std::mbstate_t read{};
    std::mbstate_t written{};
    for (size_t location = 0; location < text.size();) {
      wchar_t character = 0;
      const size_t used = std::mbrtowc(&character, text.data() + location, text.size() - location, &read);
      if (used > text.size()) return broken_rule("an element is not UTF-8", "be UTF-8 text");
      location += std::max<size_t>(1, used);  // 0 for the character 0
      const auto other = static_cast<wchar_t>(upper ? std::towupper(static_cast<std::wint_t>(character))
                                                    : std::towlower(static_cast<std::wint_t>(character)));
      char bytes[MB_LEN_MAX];
      const size_t count = std::wcrtomb(bytes, other, &written);
      if (count > sizeof bytes) return broken_rule("a letter has no UTF-8 form in another case", "have one");
      changed.append(bytes, count);
    }
    return changed;
  }

 private:
  explicit CaseRules(locale_t rules) : rules_(rules), previous_(uselocale(rules)) {}

  locale_t rules_;
  locale_t previous_;
};

// Stop words are taken out first, then the case is changed. Nothing left gives one empty string.
Status op_string_normalizer(OpContext& op) {
  const Tensor& input = op.input(0);
  const Shape& shape = input.shape();
  const std::string action = op.string_attribute("case_change_action");
  const bool sensitive = op.int_attribute("is_case_sensitive") != 0;
  if (!(shape.rank() == 1 || (shape.rank() == 2 && shape[0] == 1))) return wrong_input(op, 0, "be [C] or [1,C]");
  if (action != "LOWER" && action != "UPPER" && action != "NONE")
    return wrong_attribute("case_change_action", action, "be LOWER, UPPER or NONE");
  const auto rules = PX_TRY(CaseRules::create(op.find_string("locale").value_or("")));
  std::vector<std::string> stopwords;
  for (const std::string& word : op.find_strings("stopwords").value_or(std::vector<std::string>{}))
    stopwords.push_back(sensitive ? word : PX_TRY(rules->change(word, false)));
  std::vector<std::string> kept;
  for (const std::string& text : input.as<std::string>()) {
    const std::string folded = sensitive ? text : PX_TRY(rules->change(text, false));
    if (std::find(stopwords.begin(), stopwords.end(), folded) != stopwords.end()) continue;
    kept.push_back(action == "NONE" ? text : PX_TRY(rules->change(text, action == "UPPER")));
  }
  if (kept.empty()) kept.emplace_back();
  const auto count = static_cast<int64_t>(kept.size());
  const Shape result = shape.rank() == 1 ? Shape{count} : Shape{1, count};
  return op.set_output(0, Tensor::from<std::string>(result, kept));
}

// The expressions are those of RE2, which the specification names; so RE2 reads them.
Status op_regex_full_match(OpContext& op) {
  const auto pattern = op.find_string("pattern");
  if (!pattern.has_value()) return broken_rule("attribute 'pattern' is missing", "be given");
  RE2::Options options;
  options.set_log_errors(false);
  const RE2 expression(*pattern, options);
  if (!expression.ok())
    return wrong_attribute("pattern", *pattern, "be a regular expression of RE2: {}", expression.error());
  const auto texts = op.input(0).as<std::string>();
  Tensor output = PX_TRY(op.allocate(DType::bool_, op.input(0).shape()));
  auto matches = output.mutable_as<bool>();
  for (size_t index = 0; index < texts.size(); ++index) matches[index] = RE2::FullMatch(texts[index], expression);
  return op.set_output(0, std::move(output));
}

Status op_string_concat(OpContext& op) {
  const Tensor& x = op.input(0);
  const Tensor& y = op.input(1);
  const Shape shape = PX_TRY(broadcast_shapes(x.shape(), y.shape()));
  Tensor output = PX_TRY(op.allocate(DType::string, shape));
  const auto strides_x = broadcast_strides(x.shape(), shape);
  const auto strides_y = broadcast_strides(y.shape(), shape);
  const auto part = [](const Tensor& tensor, int64_t offset) -> const std::string& {
    return tensor.as<std::string>()[static_cast<size_t>(offset)];
  };
  int64_t bytes = 0;
  Walk<2> sizes(shape.dims(), {strides_x, strides_y});
  for (int64_t index = 0; index < shape.element_count(); ++index, sizes.next())
    bytes += static_cast<int64_t>(part(x, sizes.offset(0)).size() + part(y, sizes.offset(1)).size());
  PX_TRY(MemoryBudget::check(bytes, "its texts"));
  Walk<2> walk(shape.dims(), {strides_x, strides_y});
  for (std::string& text : output.mutable_as<std::string>()) {
    text = part(x, walk.offset(0)) + part(y, walk.offset(1));
    walk.next();
  }
  return op.set_output(0, std::move(output));
}

// Without a delimiter runs of white space separate, and none stands at the ends. At most `limit` cuts (-1: no limit).
std::vector<std::string> split_text(const std::string& text, const std::string& delimiter, int64_t limit) {
  std::vector<std::string> parts;
  const std::string blanks = " \t\n\r\f\v";
  if (delimiter.empty()) {
    size_t begin = text.find_first_not_of(blanks);
    while (begin != std::string::npos) {
      if (limit >= 0 && static_cast<int64_t>(parts.size()) == limit) {
        parts.push_back(text.substr(begin, text.find_last_not_of(blanks) + 1 - begin));
        break;
      }
      const size_t end = std::min(text.find_first_of(blanks, begin), text.size());
      parts.push_back(text.substr(begin, end - begin));
      begin = text.find_first_not_of(blanks, end);
    }
    return parts;
  }
  if (text.empty()) return parts;
  size_t begin = 0;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t end = text.find(delimiter, begin);
    if (end == std::string::npos) break;
    parts.push_back(text.substr(begin, end - begin));
    begin = end + delimiter.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

// Y has one more axis, as long as the longest split; shorter ones are filled with empty strings. Z counts the parts.
Status op_string_split(OpContext& op) {
  const Tensor& x = op.input(0);
  const std::string delimiter = op.find_string("delimiter").value_or("");
  const int64_t limit = op.find_int("maxsplit").value_or(-1);
  std::vector<std::vector<std::string>> splits;
  std::vector<int64_t> counts;
  for (const std::string& text : x.as<std::string>()) {
    splits.push_back(split_text(text, delimiter, limit));
    counts.push_back(static_cast<int64_t>(splits.back().size()));
  }
  const int64_t longest = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  std::vector<int64_t> dims(x.shape().begin(), x.shape().end());
  dims.push_back(longest);
  const Shape shape = PX_TRY(Shape::create(dims));
  Tensor output = PX_TRY(op.allocate(DType::string, shape));
  const auto texts = output.mutable_as<std::string>();
  for (size_t row = 0; row < splits.size(); ++row) {
    std::move(splits[row].begin(), splits[row].end(), texts.begin() + static_cast<ptrdiff_t>(row) * longest);
  }
  PX_TRY(op.set_output(0, std::move(output)));
  return op.set_output(1, DType::int64, x.shape(), std::span<const int64_t>(counts));
}

// The pool of n-grams: for each, its words (as text) and the output position and weight.
struct Gram {
  std::vector<std::string> words;
  int64_t index;
  double weight;
};

Result<std::vector<Gram>> read_grams(const OpContext& op) {
  const auto counts = op.find_ints("ngram_counts").value_or(std::vector<int64_t>{});
  const auto indexes = op.find_ints("ngram_indexes").value_or(std::vector<int64_t>{});
  std::vector<std::string> pool = op.find_strings("pool_strings").value_or(std::vector<std::string>{});
  for (int64_t number : op.find_ints("pool_int64s").value_or(std::vector<int64_t>{}))
    pool.push_back(std::to_string(number));
  const std::vector<double> weights = op.find_floats("weights").value_or(std::vector<double>(indexes.size(), 1.0));
  if (weights.size() != indexes.size())
    return wrong_length("attribute 'weights'", weights.size(), "have {}, one for each entry of ngram_indexes",
                        indexes.size());
  std::vector<Gram> grams;
  for (size_t length = 1; length <= counts.size(); ++length) {
    const int64_t begin = counts[length - 1];
    const int64_t end = length < counts.size() ? counts[length] : static_cast<int64_t>(pool.size());
    if (begin < 0 || end < begin || end > static_cast<int64_t>(pool.size()) ||
        static_cast<size_t>(end - begin) % length != 0)
      return wrong_value(fmt::format("the range of {}-grams in ngram_counts", length),
                         fmt::format("[{}, {})", begin, end),
                         "be within the {} words of the pool and hold whole {}-grams", pool.size(), length);
    for (auto at = static_cast<size_t>(begin); at < static_cast<size_t>(end); at += length) {
      constexpr int64_t kMostColumns = int64_t{1} << 31;
      if (grams.size() >= indexes.size() || indexes[grams.size()] < 0 || indexes[grams.size()] >= kMostColumns)
        return wrong_length("attribute 'ngram_indexes'", indexes.size(),
                            "have one in [0, {}) for each n-gram of the pool, of which this is number {}", kMostColumns,
                            grams.size());
      grams.push_back({{pool.begin() + static_cast<ptrdiff_t>(at), pool.begin() + static_cast<ptrdiff_t>(at + length)},
                       indexes[grams.size()],
                       weights[grams.size()]});
    }
  }
  return grams;
}

// Counts the n-grams of the pool in each row, words at distances up to max_skip_count. One-grams are counted once, not
// for each skip.
Status op_tf_idf_vectorizer(OpContext& op) {
  const Tensor& x = op.input(0);
  const Shape& shape = x.shape();
  if (shape.rank() < 1 || shape.rank() > 2) return wrong_input(op, 0, "have rank 1 or 2: [C] or [N,C]");
  const std::vector<Gram> grams = PX_TRY(read_grams(op));
  const auto shortest = static_cast<size_t>(op.int_attribute("min_gram_length"));
  const auto longest = static_cast<size_t>(op.int_attribute("max_gram_length"));
  const int64_t max_skip = std::min(op.int_attribute("max_skip_count"), x.element_count());  // more reaches no word
  const std::string mode = op.string_attribute("mode");
  int64_t width = 0;
  std::map<std::vector<std::string>, const Gram*> pool;
  for (const Gram& gram : grams) {
    width = std::max(width, gram.index + 1);
    if (gram.words.size() >= shortest && gram.words.size() <= longest) pool[gram.words] = &gram;
  }
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") return wrong_attribute("mode", mode, "be TF, IDF or TFIDF");
  const int64_t rows = shape.rank() == 2 ? shape[0] : 1;
  const int64_t columns = shape[shape.rank() - 1];
  const std::array<int64_t, 2> dims{rows, width};
  const Shape result = PX_TRY(Shape::create(std::span(dims).subspan(shape.rank() == 2 ? 0 : 1)));
  std::vector<double> values(static_cast<size_t>(rows * width), 0.0);
  std::vector<std::string> words;
  for (int64_t index = 0; index < x.element_count(); ++index) {
    words.push_back(x.dtype() == DType::string ? x.as<std::string>()[static_cast<size_t>(index)]
                                               : std::to_string(element_as_int64(x, index)));
  }
  for (const auto& [gram_words, gram] : pool) {
    const auto length = static_cast<int64_t>(gram_words.size());
    for (int64_t row = 0; row < rows; ++row) {
      double count = 0;
      for (int64_t skip = 0; skip <= (length == 1 ? 0 : max_skip); ++skip) {
        for (int64_t begin = 0; begin + (length - 1) * (skip + 1) < columns; ++begin) {
          bool found = true;
          for (int64_t word = 0; found && word < length; ++word) {
            found = words[static_cast<size_t>(row * columns + begin + word * (skip + 1))] ==
                    gram_words[static_cast<size_t>(word)];
          }
          count += found ? 1.0 : 0.0;
        }
      }
      const double weight = mode == "TF" ? 1.0 : gram->weight;
      values[static_cast<size_t>(row * width + gram->index)] =
          mode == "IDF" ? (count > 0 ? weight : 0.0) : count * weight;
    }
  }
  return op.set_output(0, DType::float32, result, std::span<const double>(values));
}

constexpr OpRow kTextRows[] = {
    {"RegexFullMatch", kOnnx, 20, 20, op_regex_full_match},    {"StringConcat", kOnnx, 20, 20, op_string_concat},
    {"StringNormalizer", kOnnx, 10, 10, op_string_normalizer}, {"StringSplit", kOnnx, 20, 20, op_string_split},
    {"TfIdfVectorizer", kOnnx, 9, 9, op_tf_idf_vectorizer},
};

}  // namespace

OpRows text_rows() { return kTextRows; }

}  // namespace parallax::reference
