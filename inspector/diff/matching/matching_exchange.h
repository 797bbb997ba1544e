// SPDX-License-Identifier: Apache-2.0
// Exchanges: two values of which each model holds both, each under the other's name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "inspector/diff/matching/matching_search.h"

namespace parallax::diff {

class Exchanges {
 public:
  Exchanges(const MatchSide& a, const MatchSide& b);

  // True where reliable names say more about these two values of equal content: each model has both names, and later
  // values use them by name. Constants need no use.
  bool are_exchanged(int32_t a, int32_t b) const;

  // True where one of the two has the name of another computed value of the other model, which the same operator makes:
  // one of another layer, say. Where it is another operator, a name may have moved to a fused node; unless each has the
  // other's name, and weights that tell them apart agree with the names.
  bool belong_elsewhere(int32_t a, int32_t b) const;

 private:
  using Paths = std::unordered_map<std::string, int32_t>;
  bool share_weight(int32_t a, int32_t b) const;  // that their nodes read
  bool is_read_of_exchanged(const FlatValue& x, const FlatValue& y) const;
  static int32_t find(const Paths& paths, const std::string& path);

  const MatchSide &a_, &b_;
  Paths in_a_, in_b_;
  std::unordered_map<std::string_view, int32_t> constants_a_, constants_b_;  // by name
};

// Matches anew what names have crossed: a value of A whose producer reads other values than that of its counterpart,
// and whose consumers do too, where B has another value that agrees at both ends: the same operator on the counterparts
// of the same operands, read by the counterpart of a consumer, with nothing but the same operators in between. Where
// names agree, a value that B still makes and nothing reads is that of A's name.
void uncross(MatchSide& a, MatchSide& b, bool names_agree);

}  // namespace parallax::diff
