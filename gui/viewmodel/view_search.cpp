// SPDX-License-Identifier: Apache-2.0
// Parses and evaluates search words.
#include "gui/viewmodel/view_search.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include "gui/viewmodel/two_models/view_two_models.h"
#include "inspector/base/text.h"
#include "inspector/exec/path_parts.h"
#include "inspector/exec/value_path.h"
#include "inspector/model/opset/op_schema.h"
#include "inspector/render/graph_labels.h"
#include "inspector/render/severity_style.h"

namespace parallax {
namespace {

struct Number {
  std::string_view name;
  double Metrics::*metric;
};
constexpr std::array<Number, 9> kNumbers = {{{"err", &Metrics::max_abs},
                                             {"abs", &Metrics::max_abs},
                                             {"rel", &Metrics::max_rel},
                                             {"ulp", &Metrics::max_ulp},
                                             {"rmse", &Metrics::rmse},
                                             {"l2", &Metrics::rel_l2},
                                             {"cos", &Metrics::cosine},
                                             {"snr", &Metrics::snr_db},
                                             {"sev", nullptr}}};

struct Word {
  std::string_view name;
  Verdict verdict;
};
constexpr std::array<Word, 5> kVerdicts = {{{"diverged", Verdict::diverged},
                                            {"pass", Verdict::pass},
                                            {"mistrusted", Verdict::mistrusted},
                                            {"missing", Verdict::not_compared},
                                            {"not_compared", Verdict::not_compared}}};

// Words for the reason that explains a value beyond its limit: a part of Acceptance::reason.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kExplained = {
    {{"explained", ""}, {"accepted", ""}, {"near-tie", "near tie"}, {"rounding", "rounding"}}};

// True where the values hold NaN (or an infinity) on any side: from the comparison, else from the dumps' statistics.
bool has_special(const Document& document, const ValueRow& row, bool nan) {
  if (row.comparison >= 0) {
    const auto& metrics = document.comparison->values[static_cast<size_t>(row.comparison)].metrics;
    if (metrics.has_value() && (nan ? metrics->nan_a + metrics->nan_b : metrics->inf_a + metrics->inf_b) > 0) {
      return true;
    }
  }
  for (const TensorStatistics* s : {document.statistics_a(row), document.statistics_b(row)}) {
    if (s != nullptr && (nan ? s->nan : s->positive_inf + s->negative_inf) > 0) return true;
  }
  return false;
}

bool contains(const std::string& text, const std::string& word) {
  return lower_case(text).find(word) != std::string::npos;
}

// The word holds the first dimensions, "?" for any of them.
bool has_shape(const ValueRow& row, std::string_view word) {
  for (const std::string& dim : row.dims) {
    const std::string name = lower_case(dim);
    if (word.starts_with('?')) {
      word.remove_prefix(1);
    } else if (word.starts_with(name)) {
      word.remove_prefix(name.size());
    } else {
      return false;
    }
    if (word.empty()) return true;
    if (!word.starts_with('x')) return false;
    word.remove_prefix(1);
  }
  return row.dims.empty() && word.empty();
}

// Lower case without blanks and quotes, as a word of the search can be written.
std::string attribute_word(std::string_view text) {
  std::string word = lower_case(text);
  std::erase_if(word, [](char c) { return c == ' ' || c == '"' || c == '\''; });
  return word;
}

// True where the node that makes the value has the attribute ("axis"), or has this value of it ("axis=1").
bool has_attribute(const Document& document, const ValueRow& row, std::string_view word) {
  if (document.items == nullptr || row.item < 0) return false;
  const GraphItem& item = document.items->item(row.item);
  if (item.kind != GraphItem::Kind::node) return false;
  const Node& node = item.graph->nodes[static_cast<size_t>(item.node)];
  const std::string name = unescape_name(std::string_view(row.path).substr(name_begin(row.path)));
  const bool is_made = std::ranges::any_of(
      node.outputs, [&](ValueId id) { return id != kNoValue && value_at(*item.graph, id).name == name; });
  if (!is_made) return false;
  const std::string wanted = attribute_word(word);
  for (const Attribute& attribute : node.attributes) {
    if (lower_case(attribute.name) == wanted || attribute_word(attribute_text(attribute)) == wanted) return true;
  }
  if (node.schema == nullptr || wanted.find('=') == std::string::npos) return false;
  return std::ranges::any_of(node.schema->attributes, [&](const AttributeSchema& attribute) {
    return find_attribute(node, attribute.name) == nullptr &&
           attribute_word(fmt::format("{}={}", attribute.name, to_string(attribute.default_value))) == wanted;
  });
}

bool is_weight(const Document& document, const ValueRow& row) {
  const auto holds_it = [](const DumpReader* dump, int32_t entry) {
    return dump != nullptr && entry >= 0 && dump->entries()[static_cast<size_t>(entry)].is_constant_like;
  };
  if (row.is_only_b) return document.models->b->rows[static_cast<size_t>(row.row_b)].weight >= 0;
  return row.weight >= 0 || holds_it(document.a.get(), row.entry_a) || holds_it(document.b.get(), row.entry_b);
}

}  // namespace

Result<SearchQuery::Term> SearchQuery::parse_term(std::string_view word) {
  Term term;
  term.word = lower_case(word);
  const std::string_view text = term.word;
  if (text == "nan" || text == "inf") {
    term.kind = text == "nan" ? Term::Kind::nan : Term::Kind::inf;
    return term;
  }
  if (text == "is:weight") {
    term.kind = Term::Kind::weight;
    return term;
  }
  if (text.starts_with("is:")) {
    const Term inner = PX_TRY(parse_term(word.substr(3)));
    if (inner.kind >= Term::Kind::nan) return inner;
    return usage_error(
        fmt::format("search: '{}' is no state of a value; write is: with diverged, pass, explained, near-tie, "
                    "rounding, mistrusted, missing, nan, inf or weight",
                    word));
  }
  for (const auto& [name, reason] : kExplained) {
    if (text != name) continue;
    term.kind = Term::Kind::explained;
    term.word = reason;
    return term;
  }
  for (const Word& verdict : kVerdicts) {
    if (text != verdict.name) continue;
    term.kind = Term::Kind::verdict;
    term.wanted = verdict.verdict;
    return term;
  }
  constexpr std::array<std::pair<std::string_view, Term::Kind>, 5> kFields = {{{"op:", Term::Kind::op},
                                                                               {"attr:", Term::Kind::attribute},
                                                                               {"dtype:", Term::Kind::dtype},
                                                                               {"shape:", Term::Kind::shape},
                                                                               {"path:", Term::Kind::path}}};
  for (const auto& [prefix, kind] : kFields) {
    if (!text.starts_with(prefix)) continue;
    term.kind = kind;
    term.word = term.word.substr(prefix.size());
    return term;
  }
  const size_t at = text.find_first_of("<>");
  if (at == std::string_view::npos) return term;
  for (const Number& number : kNumbers) {
    if (text.substr(0, at) != number.name) continue;
    std::string_view digits = text.substr(at + 1);
    term.with_equal = digits.starts_with('=');
    if (term.with_equal) digits.remove_prefix(1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), term.limit);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      return usage_error(fmt::format("search: '{}' needs a number after '{}'", word, text[at]));
    }
    term.kind = Term::Kind::number;
    term.metric = number.metric;
    term.relation = text[at];
    return term;
  }
  return term;  // a name may hold < and >
}

Result<SearchQuery> SearchQuery::parse(std::string_view text) {
  SearchQuery query;
  for (std::string_view word : split(text, ' ')) {
    if (!word.empty()) query.terms_.push_back(PX_TRY(parse_term(word)));
  }
  return query;
}

bool SearchQuery::holds(const Term& term, const Document& document, const ValueRow& row) {
  const ValueComparison* compared =
      row.comparison < 0 ? nullptr : &document.comparison->values[static_cast<size_t>(row.comparison)];
  switch (term.kind) {
    case Term::Kind::text:
      return contains(row.path, term.word) || contains(row.node, term.word) || contains(row.op, term.word) ||
             contains(row.dtype, term.word) || contains(row.shape, term.word);
    case Term::Kind::op:
      return lower_case(row.op) == term.word;
    case Term::Kind::dtype:
      return lower_case(row.dtype) == term.word;
    case Term::Kind::shape:
      return has_shape(row, term.word);
    case Term::Kind::attribute:
      return has_attribute(document, row, term.word);
    case Term::Kind::weight:
      return is_weight(document, row);
    case Term::Kind::path:
      return contains(row.path, term.word);
    case Term::Kind::nan:
    case Term::Kind::inf:
      return has_special(document, row, term.kind == Term::Kind::nan);
    case Term::Kind::verdict:
      return compared != nullptr && compared->verdict == term.wanted;
    case Term::Kind::explained:
      return compared != nullptr && is_explained(*compared) && contains(compared->accepted->reason, term.word);
    case Term::Kind::number: {
      if (compared == nullptr || compared->verdict == Verdict::not_compared) return false;
      if (term.metric != nullptr && !compared->metrics.has_value()) return false;
      const double value = term.metric == nullptr ? compared->severity : (*compared->metrics).*term.metric;
      if (term.with_equal && value == term.limit) return true;
      return term.relation == '>' ? value > term.limit : value < term.limit;
    }
  }
  return false;
}

bool SearchQuery::matches(const Document& document, const ValueRow& row) const {
  return std::ranges::all_of(terms_, [&](const Term& term) { return holds(term, document, row); });
}

std::vector<int32_t> find_rows(const Document& document, const SearchQuery& query) {
  std::vector<int32_t> rows;
  for (size_t i = 0; i < document.rows.size(); ++i) {
    if (query.matches(document, document.rows[i])) rows.push_back(static_cast<int32_t>(i));
  }
  return rows;
}

}  // namespace parallax
