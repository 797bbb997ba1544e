// SPDX-License-Identifier: Apache-2.0
// The query language that finds values: words and conditions, all of which must hold.
//   attn  op:MatMul  dtype:float16  shape:1x8  err>1e-3  rel>0.01  ulp>4  sev>1  cos<0.99  nan  inf  diverged  pass
//   explained  near-tie  rounding  mistrusted  missing  path:loop.body[3]
// A word of those may stand after is: (is:explained); is:weight finds the weights of a model. ? in a shape stands for
// any one dimension: shape:1x?x768. An attribute is found by its name, and by its value, also where that is the
// default: attr:axis  attr:axis=1  attr:pads=[1,1,1,1].
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gui/viewmodel/view_document.h"
#include "inspector/base/result.h"

namespace parallax {

class SearchQuery {
 public:
  // Errors: usage, naming the word that cannot be understood ("err>x", "is:large").
  static Result<SearchQuery> parse(std::string_view text);
  bool matches(const Document& document, const ValueRow& row) const;

 private:
  struct Term {
    enum class Kind : uint8_t {
      text,
      op,
      dtype,
      shape,
      path,
      attribute,
      weight,
      number,
      nan,
      inf,
      verdict,
      explained
    } kind = Kind::text;
    std::string word;  // lower case
    char relation = '>';
    bool with_equal = false;
    double limit = 0;
    double Metrics::*metric = nullptr;  // null: severity
    Verdict wanted = Verdict::pass;
  };
  static Result<Term> parse_term(std::string_view word);
  static bool holds(const Term& term, const Document& document, const ValueRow& row);
  std::vector<Term> terms_;
};

// The rows that match, in execution order.
std::vector<int32_t> find_rows(const Document& document, const SearchQuery& query);

}  // namespace parallax
