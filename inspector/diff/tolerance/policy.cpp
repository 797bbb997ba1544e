// SPDX-License-Identifier: Apache-2.0
// Reading tolerances from the command line and from files.
#include "inspector/diff/tolerance/policy.h"

#include <cmath>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/mapped_file.h"
#include "inspector/exec/value_path.h"

namespace parallax {
namespace {

Result<double> tolerance_from_json(const nlohmann::json& object, const char* key, const std::string& where) {
  if (!object.contains(key)) return 0.0;
  const nlohmann::json& value = object[key];
  if (value.is_string()) return parse_tolerance(value.get<std::string>(), where + "." + key);
  if (!value.is_number() || !(value.get<double>() >= 0))
    return usage_error(fmt::format("{}.{}: expected a number of 0 or more", where, key));
  return value.get<double>();
}

Status check_keys(const nlohmann::json& object, std::initializer_list<std::string_view> known,
                  const std::string& where) {
  for (const auto& item : object.items()) {
    bool is_known = false;
    for (const std::string_view key : known) is_known = is_known || key == item.key();
    if (!is_known)
      return usage_error(fmt::format("{}: unknown key '{}' (known: {})", where, item.key(), fmt::join(known, ", ")));
  }
  return {};
}

Result<Tolerance> tolerances_from_json(const nlohmann::json& object, const std::string& where) {
  if (!object.contains("rtol") && !object.contains("atol"))
    return usage_error(where + ": expected \"rtol\", \"atol\", or both");
  Tolerance tolerance;
  tolerance.rtol = PX_TRY(tolerance_from_json(object, "rtol", where));
  tolerance.atol = PX_TRY(tolerance_from_json(object, "atol", where));
  return tolerance;
}

Result<PolicyRule> rule_from_json(const nlohmann::json& rule, const std::string& where) {
  if (!rule.is_object() || !rule.contains("glob") || !rule["glob"].is_string())
    return usage_error(where + ": expected an object with \"glob\"");
  PX_TRY(check_keys(rule, {"glob", "rtol", "atol"}, where));
  return PolicyRule{rule["glob"].get<std::string>(), PX_TRY(tolerances_from_json(rule, where))};
}

Result<Policy> policy_from_json(const nlohmann::json& document) {
  if (!document.is_object()) return usage_error("expected a JSON object");
  PX_TRY(check_keys(document, {"default", "per"}, "the policy"));
  Policy policy;
  if (document.contains("default")) {
    const nlohmann::json& fallback = document["default"];
    if (fallback.is_object()) {
      PX_TRY(check_keys(fallback, {"rtol", "atol"}, "default"));
      policy.tolerance = PX_TRY(tolerances_from_json(fallback, "default"));
    } else if (fallback != "auto") {
      return usage_error("default: expected \"auto\" or an object with \"rtol\" and \"atol\"");
    }
  }
  if (!document.contains("per")) return policy;
  if (!document["per"].is_array()) return usage_error("per: expected a list of rules");
  for (size_t index = 0; index < document["per"].size(); ++index) {
    policy.rules.push_back(PX_TRY(rule_from_json(document["per"][index], fmt::format("per[{}]", index))));
  }
  return policy;
}

}  // namespace

std::optional<Limit> Policy::limit_of(std::string_view path) const {
  for (size_t index = rules.size(); index-- > 0;) {
    const PolicyRule& rule = rules[index];
    if (glob_matches(rule.glob, path)) return Limit{rule.tolerance.rtol, rule.tolerance.atol, LimitSource::user};
  }
  if (tolerance.has_value()) return Limit{tolerance->rtol, tolerance->atol, LimitSource::user};
  return std::nullopt;
}

Result<double> parse_tolerance(std::string_view text, std::string_view what) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  const bool is_number = !copy.empty() && end == copy.c_str() + copy.size() && !std::isnan(value);
  if (!is_number || value < 0) return usage_error(fmt::format("{}: '{}' is no number of 0 or more", what, text));
  return value;
}

Result<PolicyRule> parse_policy_rule(std::string_view text) {
  const auto malformed = [&](std::string_view problem) {
    return usage_error(fmt::format("--per '{}': {}; expected 'GLOB@rtol=NUMBER,atol=NUMBER'", text, problem));
  };
  const size_t at = text.rfind('@');
  if (at == std::string_view::npos || at == 0) return malformed("no glob before an '@'");
  PolicyRule rule{std::string(text.substr(0, at)), {}};
  std::string_view rest = text.substr(at + 1);
  bool has_rtol = false, has_atol = false;
  if (rest.empty()) return malformed("no tolerance after '@'");
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const std::string_view key = part.substr(0, 5);
    if (key != "rtol=" && key != "atol=") return malformed(fmt::format("'{}' is neither rtol=.. nor atol=..", part));
    const double value = PX_TRY(parse_tolerance(part.substr(5), fmt::format("--per '{}'", text)));
    bool& is_given = key == "rtol=" ? has_rtol : has_atol;
    if (is_given) return malformed(fmt::format("two values of {}", key.substr(0, 4)));
    is_given = true;
    (key == "rtol=" ? rule.tolerance.rtol : rule.tolerance.atol) = value;
  }
  return rule;
}

Result<Policy> read_policy_file(const std::string& path) {
  const std::string text = PX_TRY(read_file(path));
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (document.is_discarded()) return usage_error(fmt::format("policy file '{}': not valid JSON", path));
  return add_context(policy_from_json(document), fmt::format("policy file '{}'", path));
}

}  // namespace parallax
