// SPDX-License-Identifier: Apache-2.0
// Reads operator tables in the line format of inspector/model/opset/README.md into a registry.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/opset/opset_registry.h"

namespace parallax {

class OpsetParser {
 public:
  // Reads one domain's table and appends it. The registry's pools must have the capacity for all tables.
  static Status parse(std::string_view text, OpsetRegistry& registry);
  // Reserves the registry's pools for all tables together.
  static void reserve(std::span<const std::string_view> tables, OpsetRegistry& registry);

 private:
  explicit OpsetParser(OpsetRegistry& registry) : registry_(registry) {}

  Status parse_line(std::string_view line);
  Status parse_domain(std::string_view rest);
  Status parse_set(std::string_view rest);
  Status parse_op(std::string_view rest);
  Status parse_parameter(std::string_view rest, bool is_input);
  Status parse_attribute(std::string_view rest);
  Status parse_constraint(std::string_view rest);
  Status parse_types(std::string_view items, TypeSet& types) const;
  Status add_type_item(std::string_view item, TypeSet& types) const;
  Status finish_schema();
  Status resolve_types(size_t first, size_t count);
  Status finish_domain();

  OpsetRegistry& registry_;
  OpsetRegistry::Domain domain_;
  std::vector<std::pair<std::string_view, uint32_t>> sets_;  // named sets of element types
  // The schema being read, and where its parts begin in the pools.
  bool in_schema_ = false;
  OpSchema schema_;
  size_t input_count_ = 0;
  size_t output_count_ = 0;
  size_t first_parameter_ = 0;
  size_t first_attribute_ = 0;
  size_t first_constraint_ = 0;
};

}  // namespace parallax
