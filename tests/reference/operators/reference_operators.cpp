// SPDX-License-Identifier: Apache-2.0
// Prints the table of operators the reference runs, or checks a file against it.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "inspector/model/opset/opset_registry.h"
#include "reference/ops/table.h"

namespace parallax::reference {
namespace {

// Domains of which every operator that is not deprecated must have a function.
constexpr std::string_view kComplete[] = {"ai.onnx", "ai.onnx.preview", "ai.onnx.preview.training"};

struct LeftOut {
  std::string_view op;
  std::string_view reason;
};
constexpr LeftOut kLeftOut[] = {
    {"Gradient", "differentiates a part of the graph it stands in: no operator function can see that"},
};

// Element types that often stand together, by one name.
struct TypeGroup {
  std::string_view name;
  std::vector<DType> members;
};

const std::vector<TypeGroup>& type_groups() {
  static const std::vector<TypeGroup> kGroups = {
      {"float16-64", {DType::float16, DType::float32, DType::float64}},
      {"float8", {DType::float8e4m3fn, DType::float8e4m3fnuz, DType::float8e5m2, DType::float8e5m2fnuz}},
      {"int8-64", {DType::int8, DType::int16, DType::int32, DType::int64}},
      {"uint8-64", {DType::uint8, DType::uint16, DType::uint32, DType::uint64}},
      {"int2-4", {DType::int2, DType::int4}},
      {"uint2-4", {DType::uint2, DType::uint4}},
      {"complex", {DType::complex64, DType::complex128}},
  };
  return kGroups;
}

std::string elements_text(uint32_t mask) {
  std::vector<std::string> names;
  for (const TypeGroup& group : type_groups()) {
    uint32_t bits = 0;
    for (DType member : group.members) bits |= element_bit(member);
    if ((mask & bits) != bits) continue;
    names.emplace_back(group.name);
    mask &= ~bits;
  }
  for (const DTypeInfo& info : all_dtypes()) {
    if ((mask & element_bit(info.dtype)) != 0) names.emplace_back(info.name);
  }
  return fmt::format("{}", fmt::join(names, " "));
}

std::string types_text(const TypeSet& types) {
  constexpr std::pair<TypeForm, std::string_view> kForms[] = {
      {TypeForm::tensor, "{}"},
      {TypeForm::sequence, "seq({})"},
      {TypeForm::optional, "optional({})"},
      {TypeForm::optional_sequence, "optional(seq({}))"},
      {TypeForm::map_int64, "map(int64, {})"},
      {TypeForm::map_string, "map(string, {})"},
      {TypeForm::sequence_map_int64, "seq(map(int64, {}))"},
      {TypeForm::sequence_map_string, "seq(map(string, {}))"},
  };
  std::vector<std::string> parts;
  for (const auto& [form, text] : kForms) {
    if (types.elements(form) == 0) continue;
    parts.push_back(fmt::format(fmt::runtime(text), elements_text(types.elements(form))));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

struct OperatorRow {
  std::vector<std::string> versions;
  std::vector<std::string> missing;
  const OpSchema* newest = nullptr;  // that has a function
};

using Operators = std::map<std::pair<std::string_view, std::string_view>, OperatorRow>;  // by domain and name

bool counts(const OpSchema& schema) { return !OpsetRegistry::standard().is_removal(schema) && !schema.extension; }

Operators collect() {
  Operators operators;
  for (const OpSchema& schema : OpsetRegistry::standard().all()) {
    if (!counts(schema)) continue;
    Node node;
    node.schema = &schema;
    OperatorRow& row = operators[{schema.domain, schema.name}];
    const bool runs = find_row(node) != nullptr;
    (runs ? row.versions : row.missing).push_back(std::to_string(schema.since_version));
    if (runs) row.newest = &schema;
  }
  return operators;
}

std::string table_of(const Operators& operators) {
  std::string text =
      "# Operators of the reference\n\n"
      "Made by `reference_operators` from `reference/ops/table.cpp` and the registry of schemas; its test keeps it "
      "so.\n"
      "Versions are since-versions; types are those of the newest one, by type parameter. In double precision every\n"
      "floating type is float64.\n";
  std::string_view domain;
  for (const auto& [key, row] : operators) {
    if (row.newest == nullptr) continue;
    if (key.first != domain) {
      domain = key.first;
      text += fmt::format("\n## {}\n\n| Operator | Versions | Types |\n|---|---|---|\n", domain);
    }
    std::vector<std::string> types;
    for (const TypeConstraint& constraint : row.newest->type_constraints)
      types.push_back(fmt::format("{}: {}", constraint.name, types_text(constraint.types)));
    text += fmt::format("| {} | {} | {} |\n", key.second, fmt::join(row.versions, " "), fmt::join(types, "; "));
  }
  text += "\n## Without a function\n\n";
  for (const LeftOut& left_out : kLeftOut) text += fmt::format("- {}: it {}.\n", left_out.op, left_out.reason);
  return text;
}

// One line for each version of the standard that neither has a function nor is left out with a reason.
std::vector<std::string> missing_lines(const Operators& operators) {
  std::vector<std::string> lines;
  for (const auto& [key, row] : operators) {
    const bool must = std::find(std::begin(kComplete), std::end(kComplete), key.first) != std::end(kComplete);
    const bool excused = std::any_of(std::begin(kLeftOut), std::end(kLeftOut),
                                     [op = key.second](const LeftOut& left_out) { return left_out.op == op; });
    if (must && !excused && !row.missing.empty())
      lines.push_back(
          fmt::format("{}.{}: no function for version {}", key.first, key.second, fmt::join(row.missing, " ")));
  }
  return lines;
}

int check(const std::string& path, const Operators& operators) {
  int problems = 0;
  for (const std::string& line : missing_lines(operators)) {
    std::cerr << line << '\n';
    ++problems;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string committed{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (committed != table_of(operators)) {
    std::cerr << path << " is not what this program prints: write it anew\n";
    ++problems;
  }
  return problems == 0 ? 0 : 1;
}

}  // namespace
}  // namespace parallax::reference

int main(int argc, char** argv) {
  const auto operators = parallax::reference::collect();
  if (argc > 1) return parallax::reference::check(argv[1], operators);
  std::cout << parallax::reference::table_of(operators);
  return 0;
}
