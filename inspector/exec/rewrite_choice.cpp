// SPDX-License-Identifier: Apache-2.0
// Reads the text form of RewriteChoice.
#include "inspector/exec/rewrite_choice.h"

#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "inspector/base/text.h"

namespace parallax {
namespace {

using Base = RewriteChoice::Base;
constexpr std::array<std::pair<std::string_view, Base>, 6> kRewriteBases{{{"default", Base::default_},
                                                                          {"none", Base::none},
                                                                          {"all", Base::all},
                                                                          {"standard", Base::standard},
                                                                          {"standard+microsoft", Base::microsoft},
                                                                          {"standard+microsoft+own", Base::default_}}};

std::optional<Base> base_named(std::string_view word) {
  for (const auto& [name, base] : kRewriteBases) {
    if (word == name) return base;
  }
  return std::nullopt;
}

bool is_change(std::string_view word) { return word.size() > 1 && (word[0] == '-' || word[0] == '+'); }

}  // namespace

Result<RewriteChoice> parse_rewrite_choice(std::string_view option, std::string_view text) {
  RewriteChoice choice;
  for (const std::string_view part : split(text, ',')) {
    if (const auto base = base_named(part)) {
      choice.base = *base;
      continue;
    }
    if (!is_change(part))
      return usage_error(fmt::format(
          "{}: '{}' is none of default, none, all, standard, standard+microsoft, standard+microsoft+own, -NAME, +NAME",
          option, part));
    choice.changes.emplace_back(part.substr(1), part[0] == '+');
  }
  return choice;
}

Result<RewriteChoice> parse_patterns(std::string_view option, std::string_view text) {
  RewriteChoice choice;
  bool has_set = false, has_name = false;
  for (const std::string_view word : split(text, ',')) {
    if (word.empty()) return usage_error(fmt::format("{} names no pattern in '{}'", option, text));
    if (const auto base = base_named(word)) {
      if (has_set) return usage_error(fmt::format("{}: '{}' is a second set; name one set", option, word));
      choice.base = *base;
      has_set = true;
      continue;
    }
    const bool is_signed = is_change(word);
    choice.changes.emplace_back(is_signed ? word.substr(1) : word, !is_signed || word[0] == '+');
    has_name = has_name || !is_signed;
  }
  if (choice.changes.empty() && !has_set) return usage_error(fmt::format("{} names no pattern", option));
  if (has_name && !has_set) choice.base = Base::none;
  return choice;
}

}  // namespace parallax
