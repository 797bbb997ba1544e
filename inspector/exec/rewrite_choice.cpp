// Reads the text form of RewriteChoice.
#include "inspector/exec/rewrite_choice.h"

#include <array>
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

}  // namespace

Result<RewriteChoice> parse_rewrite_choice(std::string_view option, std::string_view text) {
  RewriteChoice choice;
  for (const std::string_view part : split(text, ',')) {
    bool is_base = false;
    for (const auto& [name, base] : kRewriteBases) {
      if (part != name) continue;
      choice.base = base;
      is_base = true;
    }
    if (is_base) continue;
    if (part.size() < 2 || (part[0] != '-' && part[0] != '+'))
      return usage_error(fmt::format(
          "{}: '{}' is none of default, none, all, standard, standard+microsoft, standard+microsoft+own, -NAME, +NAME",
          option, part));
    choice.changes.emplace_back(part.substr(1), part[0] == '+');
  }
  return choice;
}

}  // namespace parallax
