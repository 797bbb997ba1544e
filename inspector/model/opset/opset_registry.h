// SPDX-License-Identifier: Apache-2.0
// The operators Parallax knows: one look-up for both executors, the model checker and the views.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/opset/op_schema.h"

namespace parallax {

// "" and "ai.onnx" name the same domain; this yields the long form.
std::string_view canonical_domain(std::string_view domain);

class OpsetRegistry {
 public:
  // The built-in tables of inspector/model/opset, parsed on first use. Safe to call from any thread.
  static const OpsetRegistry& standard();
  // Reads tables in the format of inspector/model/opset/README.md. The texts must outlive the registry.
  static Result<OpsetRegistry> parse(std::span<const std::string_view> tables);

  OpsetRegistry(OpsetRegistry&&) = default;
  OpsetRegistry& operator=(OpsetRegistry&&) = default;

  // The schema in force at `opset_version`: of all since-versions not above it the largest. Null where there is none.
  const OpSchema* find(std::string_view domain, std::string_view op, int64_t opset_version) const;
  // Every version of one operator, oldest first; empty where the operator is unknown.
  std::span<const OpSchema> versions(std::string_view domain, std::string_view op) const;
  // True for the version that takes an operator out of its operator set. One that is marked as deprecated and is the
  // first (GroupNormalization-18) is no such: it defines what a later version replaces, and models hold it.
  bool is_removal(const OpSchema& schema) const;
  // Every schema, by domain, name and version.
  std::span<const OpSchema> all() const { return schemas_; }

  std::vector<std::string_view> domains() const;
  // The newest version of a domain's operator set that the tables describe; 0 for a domain they do not know.
  int64_t latest_opset(std::string_view domain) const;

  // Up to three known operators that `op` may stand for, best first; those of another domain with the domain in front.
  std::vector<std::string> suggestions(std::string_view domain, std::string_view op) const;
  // Why find() returned null, as one sentence without a full stop.
  std::string explain_missing(std::string_view domain, std::string_view op, int64_t opset_version) const;

 private:
  friend class OpsetParser;

  struct Domain {
    std::string_view name;
    int64_t latest = 0;
    size_t first = 0;  // into schemas_
    size_t count = 0;
  };

  OpsetRegistry() = default;
  const Domain* domain_named(std::string_view name) const;

  std::vector<Domain> domains_;
  std::vector<OpSchema> schemas_;
  // The targets of the schemas' spans and pointers. Filled to a capacity reserved beforehand, so that no element moves.
  std::vector<FormalParameter> parameters_;
  std::vector<AttributeSchema> attributes_;
  std::vector<TypeConstraint> constraints_;
  std::deque<TypeConstraint> plain_types_;  // "tensor(int64)" as a set of one
};

}  // namespace parallax
