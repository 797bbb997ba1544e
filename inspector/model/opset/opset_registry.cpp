// SPDX-License-Identifier: Apache-2.0
// Look-up of operators by domain, name and version, and the help given when one is not found.
#include "inspector/model/opset/opset_registry.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "inspector/base/check.h"
#include "inspector/base/text.h"
#include "inspector/model/opset/parser.h"
#include "inspector/model/opset/tables.h"

namespace parallax {
namespace {

// Names longer than any operator's are not compared: the effort grows with the square of the length.
constexpr size_t kLongestComparedName = 64;
constexpr size_t kMostSuggestions = 3;

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string joined_with_or(const std::vector<std::string>& words) {
  std::string text;
  for (size_t index = 0; index < words.size(); ++index) {
    if (index > 0) text += index + 1 == words.size() ? " or " : ", ";
    text += words[index];
  }
  return text;
}

}  // namespace

std::string_view canonical_domain(std::string_view domain) { return domain.empty() ? "ai.onnx" : domain; }

const OpsetRegistry& OpsetRegistry::standard() {
  static const OpsetRegistry registry = [] {
    auto parsed = parse(opset_tables());
    PX_CHECK(parsed.ok());  // a test reads the tables that are embedded
    return parsed.take();
  }();
  return registry;
}

Result<OpsetRegistry> OpsetRegistry::parse(std::span<const std::string_view> tables) {
  OpsetRegistry registry;
  OpsetParser::reserve(tables, registry);
  for (const std::string_view table : tables) PX_TRY(OpsetParser::parse(table, registry));
  return registry;
}

const OpsetRegistry::Domain* OpsetRegistry::domain_named(std::string_view name) const {
  const auto found = std::ranges::find(domains_, canonical_domain(name), &Domain::name);
  return found == domains_.end() ? nullptr : &*found;
}

std::span<const OpSchema> OpsetRegistry::versions(std::string_view domain, std::string_view op) const {
  const Domain* known = domain_named(domain);
  if (known == nullptr) return {};
  const auto schemas = std::span(schemas_).subspan(known->first, known->count);
  const auto first = std::ranges::lower_bound(schemas, op, {}, &OpSchema::name);
  return {first, std::ranges::upper_bound(first, schemas.end(), op, {}, &OpSchema::name)};
}

const OpSchema* OpsetRegistry::find(std::string_view domain, std::string_view op, int64_t opset_version) const {
  const auto candidates = versions(domain, op);
  const auto above = std::ranges::upper_bound(candidates, opset_version, {}, &OpSchema::since_version);
  return above == candidates.begin() ? nullptr : &*std::prev(above);
}

bool OpsetRegistry::is_removal(const OpSchema& schema) const {
  return schema.deprecated && find(schema.domain, schema.name, schema.since_version - 1) != nullptr;
}

std::vector<std::string_view> OpsetRegistry::domains() const {
  std::vector<std::string_view> names;
  for (const Domain& domain : domains_) names.push_back(domain.name);
  return names;
}

int64_t OpsetRegistry::latest_opset(std::string_view domain) const {
  const Domain* known = domain_named(domain);
  return known == nullptr ? 0 : known->latest;
}

std::vector<std::string> OpsetRegistry::suggestions(std::string_view domain, std::string_view op) const {
  if (op.empty() || op.size() > kLongestComparedName) return {};
  const std::string_view own = canonical_domain(domain);
  struct Candidate {
    size_t distance;
    bool foreign;
    const OpSchema* schema;
    auto rank() const { return std::tuple(distance, foreign, schema->name.size()); }
  };
  std::vector<Candidate> candidates;
  for (size_t index = 0; index < schemas_.size(); ++index) {
    const OpSchema& schema = schemas_[index];
    if (index > 0 && schemas_[index - 1].name == schema.name && schemas_[index - 1].domain == schema.domain) continue;
    if (schema.name == op && schema.domain == own) continue;
    const size_t distance = edit_distance(lower_case(op), lower_case(schema.name));
    if (distance <= std::max<size_t>(1, op.size() / 3)) candidates.push_back({distance, schema.domain != own, &schema});
  }
  std::ranges::stable_sort(candidates, {}, &Candidate::rank);
  candidates.resize(std::min(candidates.size(), kMostSuggestions));
  std::vector<std::string> names;
  for (const Candidate& candidate : candidates) {
    const std::string prefix = candidate.foreign ? std::string(candidate.schema->domain) + "." : std::string();
    names.push_back(prefix + std::string(candidate.schema->name));
  }
  return names;
}

std::string OpsetRegistry::explain_missing(std::string_view domain, std::string_view op, int64_t opset_version) const {
  const std::string own(canonical_domain(domain));
  const auto known = versions(domain, op);
  if (!known.empty()) {
    return "operator " + in_quotes(op) + " exists in " + own + " from opset " +
           std::to_string(known.front().since_version) + " on, but the model imports opset " +
           std::to_string(opset_version);
  }
  if (own == "com.microsoft.nchwc") {
    return "operator " + in_quotes(op) + " in domain " + own +
           " is in a memory layout of onnxruntime's own, for the processor it was made on; save the optimized model at "
           "ORT_ENABLE_EXTENDED";
  }
  std::string text = domain_named(domain) == nullptr ? "unknown operator domain " + in_quotes(own)
                                                     : "no operator " + in_quotes(op) + " in domain " + own;
  const auto names = suggestions(domain, op);
  if (!names.empty()) text += "; did you mean " + joined_with_or(names) + "?";
  return text;
}

}  // namespace parallax
