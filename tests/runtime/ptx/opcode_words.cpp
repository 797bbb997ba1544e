// SPDX-License-Identifier: Apache-2.0
// The words after an opcode's name, as a table.
#include "tests/runtime/ptx/opcode_words.h"

#include <algorithm>
#include <iterator>

namespace parallax::ptx {
namespace {

// A word of an opcode after its name, where it does not depend on the opcode.
struct Modifier {
  std::string_view word;
  void (*apply)(Instruction& instruction);
};
#define PX_SETS(word, member, value)               \
  {                                                \
    word, [](Instruction& i) { i.member = value; } \
  }
constexpr Modifier kModifiers[] = {PX_SETS("global", space, Space::global),
                                   PX_SETS("shared", space, Space::shared),
                                   PX_SETS("shared::cta", space, Space::shared),
                                   PX_SETS("local", space, Space::local),
                                   PX_SETS("param", space, Space::param),
                                   PX_SETS("param::entry", space, Space::param),
                                   PX_SETS("param::func", space, Space::param),
                                   PX_SETS("const", space, Space::constant),
                                   PX_SETS("v2", vector, 2),
                                   PX_SETS("v4", vector, 4),
                                   PX_SETS("to", to_space, true),
                                   PX_SETS("volatile", is_strong, true),
                                   PX_SETS("relaxed", is_strong, true),
                                   PX_SETS("acquire", is_strong, true),
                                   PX_SETS("release", is_strong, true),
                                   PX_SETS("acq_rel", is_strong, true),
                                   PX_SETS("wide", is_wide, true),
                                   PX_SETS("hi", is_high, true),
                                   PX_SETS("ftz", flushes, true),
                                   PX_SETS("sat", saturates, true),
                                   PX_SETS("cc", has_carry, true),
                                   PX_SETS("NaN", keeps_nan, true),
                                   PX_SETS("approx", is_approximate, true),
                                   PX_SETS("full", is_approximate, true),
                                   PX_SETS("l", is_left, true),
                                   PX_SETS("clamp", clamps, true),
                                   PX_SETS("shiftamt", is_high, true),
                                   PX_SETS("red", is_reduction, true),
                                   PX_SETS("rn", rounding, Rounding::nearest),
                                   PX_SETS("rna", rounding, Rounding::nearest_away),
                                   PX_SETS("rz", rounding, Rounding::zero),
                                   PX_SETS("rm", rounding, Rounding::down),
                                   PX_SETS("rp", rounding, Rounding::up),
                                   PX_SETS("rni", rounding, Rounding::nearest_integer),
                                   PX_SETS("rzi", rounding, Rounding::zero_integer),
                                   PX_SETS("rmi", rounding, Rounding::down_integer),
                                   PX_SETS("rpi", rounding, Rounding::up_integer),
                                   PX_SETS("down", mode, Mode::down),
                                   PX_SETS("up", mode, Mode::up),
                                   PX_SETS("bfly", mode, Mode::bfly),
                                   PX_SETS("idx", mode, Mode::idx),
                                   PX_SETS("ballot", mode, Mode::ballot),
                                   PX_SETS("any", mode, Mode::any),
                                   PX_SETS("all", mode, Mode::all),
                                   PX_SETS("uni", mode, Mode::uni),
                                   PX_SETS("add", mode, Mode::add),
                                   PX_SETS("exch", mode, Mode::exch),
                                   PX_SETS("cas", mode, Mode::cas),
                                   PX_SETS("min", mode, Mode::min),
                                   PX_SETS("max", mode, Mode::max),
                                   PX_SETS("and", mode, Mode::and_),
                                   PX_SETS("or", mode, Mode::or_),
                                   PX_SETS("xor", mode, Mode::xor_),
                                   PX_SETS("inc", mode, Mode::inc),
                                   PX_SETS("dec", mode, Mode::dec),
                                   PX_SETS("finite", mode, Mode::finite),
                                   PX_SETS("infinite", mode, Mode::infinite),
                                   PX_SETS("number", mode, Mode::number),
                                   PX_SETS("notanumber", mode, Mode::notanumber),
                                   PX_SETS("normal", mode, Mode::normal),
                                   PX_SETS("subnormal", mode, Mode::subnormal),
                                   PX_SETS("popc", mode, Mode::popc),
                                   PX_SETS("m16n8k16", mode, Mode::m16n8k16),
                                   PX_SETS("m16n8k8", mode, Mode::m16n8k8)};
#undef PX_SETS

// Words that change nothing here: caches, order (threads run one after the other), forms of one and the same.
constexpr std::string_view kIgnored[] = {"lo",   "r",  "wrap", "sync", "aligned", "gpu",         "cta", "sys", "nc",
                                         "weak", "cg", "ca",   "cs",   "lu",      "cv",          "wb",  "wt",  "sc",
                                         "gl",   "L1", "L2",   "warp", "arrive",  "no_allocate", "row", "col"};

constexpr std::string_view kCompares[] = {"",    "eq",  "ne",  "lt",  "le",  "gt",  "ge", "equ",
                                          "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
constexpr std::pair<std::string_view, Compare> kUnsignedCompares[] = {
    {"lo", Compare::lt}, {"ls", Compare::le}, {"hi", Compare::gt}, {"hs", Compare::ge}};

bool compares(std::string_view opcode) { return opcode == "setp" || opcode == "set"; }

// True where the word belongs to comparisons.
bool apply_compare(Instruction& instruction, std::string_view word) {
  for (size_t i = 1; i < std::size(kCompares); ++i) {
    if (word == kCompares[i]) instruction.compare = static_cast<Compare>(i);
    if (word == kCompares[i]) return true;
  }
  for (const auto& [name, compare] : kUnsignedCompares) {
    if (word == name) instruction.compare = compare;
    if (word == name) return true;
  }
  if (word == "and") instruction.combine = Combine::and_;
  if (word == "or") instruction.combine = Combine::or_;
  if (word == "xor") instruction.combine = Combine::xor_;
  return instruction.combine != Combine::none && (word == "and" || word == "or" || word == "xor");
}

}  // namespace

std::vector<std::string> words_of(std::string_view opcode) {
  std::vector<std::string> words(1);
  for (size_t at = 0; at < opcode.size(); ++at) {
    if (opcode.compare(at, 2, "::") == 0) {
      words.back() += "::";
      ++at;
    } else if (opcode[at] == '.') {
      words.emplace_back();
    } else {
      words.back() += opcode[at];
    }
  }
  return words;
}

bool apply_modifier(Instruction& instruction, std::string_view opcode, std::string_view word) {
  if (compares(opcode) && apply_compare(instruction, word)) return true;
  const auto* modifier = std::find_if(std::begin(kModifiers), std::end(kModifiers),
                                      [&](const Modifier& each) { return each.word == word; });
  if (modifier != std::end(kModifiers)) {
    modifier->apply(instruction);
    return true;
  }
  return word.starts_with("L1::") || word.starts_with("L2::") ||
         std::find(std::begin(kIgnored), std::end(kIgnored), word) != std::end(kIgnored);
}

}  // namespace parallax::ptx
