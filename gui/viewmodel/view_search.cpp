// SPDX-License-Identifier: Apache-2.0
// Parses and evaluates search words.
#include "gui/viewmodel/view_search.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include "inspector/base/text.h"
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

}  // namespace

Result<SearchQuery::Term> SearchQuery::parse_term(std::string_view word) {
  Term term;
  term.word = lower_case(word);
  const std::string_view text = term.word;
  if (text == "nan" || text == "inf") {
    term.kind = text == "nan" ? Term::Kind::nan : Term::Kind::inf;
    return term;
  }
  if (text.starts_with("is:")) {
    const Term inner = PX_TRY(parse_term(word.substr(3)));
    if (inner.kind >= Term::Kind::nan) return inner;
    return usage_error(
        fmt::format("search: '{}' is no state of a value; write is: with diverged, pass, explained, near-tie, "
                    "rounding, mistrusted, "
                    "missing, nan or inf",
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
  constexpr std::array<std::pair<std::string_view, Term::Kind>, 4> kFields = {{{"op:", Term::Kind::op},
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
      return row.shape == term.word || row.shape.starts_with(term.word + "x");
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
