// SPDX-License-Identifier: Apache-2.0
// Finds the operator in the registry and prints it.
#include "inspector/workbench/operator_help.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/model/operator_documentation.h"
#include "inspector/model/opset/opset_registry.h"
#include "inspector/render/report_json.h"

namespace parallax {
namespace {

using nlohmann::ordered_json;

struct Request {
  std::string domain = "ai.onnx";
  std::string op;
  std::optional<int64_t> version;
};

Request parse(std::string_view text) {
  Request request;
  if (const size_t dash = text.rfind('-'); dash != std::string_view::npos) {
    int64_t version = 0;
    const std::string_view digits = text.substr(dash + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), version);
    if (error == std::errc() && end == digits.data() + digits.size() && !digits.empty()) {
      request.version = version;
      text = text.substr(0, dash);
    }
  }
  if (const size_t dot = text.rfind('.'); dot != std::string_view::npos) {
    request.domain = text.substr(0, dot);
    text = text.substr(dot + 1);
  }
  request.op = text;
  return request;
}

// The schema in force at the version asked for, or the newest one. An operator without domain is also looked for in the
// others.
Result<const OpSchema*> find_operator(const std::string& name) {
  const OpsetRegistry& registry = OpsetRegistry::standard();
  Request request = parse(name);
  if (registry.versions(request.domain, request.op).empty() && name.find('.') == std::string::npos) {
    for (std::string_view domain : registry.domains()) {
      if (!registry.versions(domain, request.op).empty()) request.domain = domain;
    }
  }
  const int64_t latest = registry.latest_opset(request.domain);
  const int64_t version = request.version.value_or(latest);
  if (latest > 0 && version > latest) {
    return usage_error(fmt::format("'{}': the operator sets of {} known here end at {}", name, request.domain, latest));
  }
  const OpSchema* schema = registry.find(request.domain, request.op, version);
  const auto versions = registry.versions(request.domain, request.op);
  if (schema == nullptr && !versions.empty()) {
    return usage_error(fmt::format("'{}': operator '{}' exists in {} from opset {} on", name, request.op,
                                   request.domain, versions.front().since_version));
  }
  if (schema == nullptr) return usage_error(registry.explain_missing(request.domain, request.op, version));
  return schema;
}

std::vector<int64_t> versions_of(const OpSchema& schema) {
  std::vector<int64_t> versions;
  for (const OpSchema& other : OpsetRegistry::standard().versions(schema.domain, schema.name))
    versions.push_back(other.since_version);
  return versions;
}

ordered_json parameters(std::span<const FormalParameter> formals) {
  ordered_json list = ordered_json::array();
  for (const FormalParameter& formal : formals) {
    const char* option = formal.option == ParameterOption::single     ? "single"
                         : formal.option == ParameterOption::optional ? "optional"
                                                                      : "variadic";
    list.push_back({{"name", formal.name}, {"type", formal.type}, {"option", option}});
  }
  return list;
}

}  // namespace

Result<std::string> operator_to_text(const std::string& name) {
  const OpSchema* schema = PX_TRY(find_operator(name));
  std::string text = signature_text(*schema);
  while (text.ends_with('\n')) text.pop_back();
  text += fmt::format("\nversions: {}", fmt::join(versions_of(*schema), ", "));
  const std::string documentation = operator_documentation(*schema);
  if (!documentation.empty()) text += "\n\n" + documentation;
  return text;
}

Result<std::string> operator_to_json(const std::string& name) {
  const OpSchema* schema = PX_TRY(find_operator(name));
  ordered_json json{{"op", schema->name},
                    {"domain", schema->domain},
                    {"since_version", schema->since_version},
                    {"deprecated", schema->deprecated},
                    {"versions", versions_of(*schema)},
                    {"inputs", parameters(schema->inputs)},
                    {"outputs", parameters(schema->outputs)}};
  json["attributes"] = ordered_json::array();
  for (const AttributeSchema& attribute : schema->attributes) {
    json["attributes"].push_back({{"name", attribute.name},
                                  {"type", name_of(attribute.type)},
                                  {"required", attribute.required},
                                  {"default", text_or_null(to_string(attribute.default_value))}});
  }
  json["type_constraints"] = ordered_json::object();
  for (const TypeConstraint& constraint : schema->type_constraints)
    json["type_constraints"][std::string(constraint.name)] = to_string(constraint.types);
  const std::string documentation = operator_documentation(*schema);
  json["documentation"] = documentation.empty() ? ordered_json(nullptr) : ordered_json(documentation);
  return json_text(json);
}

}  // namespace parallax
