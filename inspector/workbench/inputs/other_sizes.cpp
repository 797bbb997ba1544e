// SPDX-License-Identifier: Apache-2.0
// Sizes are read off the declared inputs: of those with no number the data's own decide.
#include "inspector/workbench/inputs/other_sizes.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspector/diff/matching/matching.h"

namespace parallax {
namespace {

// A dimension in both models.
struct DimPair {
  const ValueDef& in_a;
  const ValueDef& in_b;
  size_t axis;
  const Dim& a() const { return (*in_a.type.dims)[axis]; }
  const Dim& b() const { return (*in_b.type.dims)[axis]; }
};

// The dimensions of inputs that need data, in pairs.
std::vector<DimPair> paired_dims(const Graph& a, const Graph& b) {
  std::vector<DimPair> pairs;
  const SignatureMatch match = match_inputs(a, b);
  for (size_t index = 0; index < b.inputs.size(); ++index) {
    if (match.a_of_b[index] < 0) continue;
    const ValueDef& in_a = value_at(a, a.inputs[static_cast<size_t>(match.a_of_b[index])]);
    const ValueDef& in_b = value_at(b, b.inputs[index]);
    const bool has_default = in_a.initializer_index >= 0 || in_a.sparse_initializer_index >= 0;
    if (has_default || !in_a.type.dims.has_value() || !in_b.type.dims.has_value()) continue;
    if (in_a.type.dims->size() != in_b.type.dims->size()) continue;
    for (size_t axis = 0; axis < in_a.type.dims->size(); ++axis) pairs.push_back({in_a, in_b, axis});
  }
  return pairs;
}

// B's number; where B has a name, the number that the name stands for in an input that A fixes.
int64_t size_in_other(const DimPair& pair, const DimSizes& names_of_b) {
  if (pair.b().is_known()) return pair.b().value;
  const auto named = names_of_b.find(pair.b().name);
  return named == names_of_b.end() ? -1 : named->second;
}

}  // namespace

Result<OtherSizes> sizes_of_other(const Model& a, const Model& b) {
  const std::vector<DimPair> pairs = paired_dims(a.graph, b.graph);
  DimSizes names_of_b;
  for (const DimPair& pair : pairs) {
    if (pair.a().is_known() && !pair.b().is_known() && !pair.b().name.empty())
      names_of_b.try_emplace(pair.b().name, pair.a().value);
  }
  OtherSizes sizes{b.path, {}};
  std::map<std::string, std::pair<int64_t, std::string>> names_of_a;  // the size, and the input that has it
  for (const DimPair& pair : pairs) {
    const int64_t size = size_in_other(pair, names_of_b);
    auto& of_input = sizes.inputs[pair.in_a.name];
    of_input.resize(pair.in_a.type.dims->size(), -1);
    of_input[pair.axis] = size;
    if (size < 0) continue;
    if (pair.a().is_known()) {
      if (pair.a().value == size) continue;
      return usage_error(fmt::format("dimension {} of input '{}' is {} in '{}' and {} in '{}': no data suits both",
                                     pair.axis, pair.in_a.name, pair.a().value, a.path, size, b.path));
    }
    if (pair.a().name.empty()) continue;
    const auto known = names_of_a.try_emplace(pair.a().name, size, pair.in_a.name).first->second;
    if (known.first == size) continue;
    return usage_error(fmt::format(
        "'{}' is one dimension in '{}', and in '{}' {} of input '{}' and {} of input '{}': no data suits both",
        pair.a().name, a.path, b.path, known.first, known.second, size, pair.in_a.name));
  }
  return sizes;
}

namespace {

// The option that gives a dimension of A's input the size that B's has; empty where A's is not free.
std::string option_for(const ValueDef& in_a, size_t axis, const std::vector<Dim>& wanted) {
  const Dim& dim = (*in_a.type.dims)[axis];
  if (dim.is_known()) return {};
  if (!dim.name.empty()) return fmt::format("--dim {}={}", dim.name, wanted[axis].value);
  std::vector<std::string> sizes;
  sizes.reserve(wanted.size());
  for (const Dim& size : wanted) sizes.push_back(size.is_known() ? std::to_string(size.value) : "N");
  return fmt::format("--shape {}={}", in_a.name, fmt::join(sizes, "x"));
}

}  // namespace

Status check_sizes_for_other(const Model& a, const std::vector<Value>& values, const Model& b,
                             const InputRequest& request) {
  if (!request.source.empty()) return {};
  const SignatureMatch match = match_inputs(a.graph, b.graph);
  std::vector<std::string> options;
  std::string first;
  for (size_t index = 0; index < b.graph.inputs.size(); ++index) {
    if (match.a_of_b[index] < 0) continue;
    const auto number = static_cast<size_t>(match.a_of_b[index]);
    const ValueDef &in_a = value_at(a.graph, a.graph.inputs[number]), &in_b = value_at(b.graph, b.graph.inputs[index]);
    const bool is_given = std::ranges::any_of(request.files, [&](const auto& file) { return file.first == in_a.name; });
    if (is_given || !values[number].is_tensor() || !in_a.type.dims.has_value() || !in_b.type.dims.has_value()) continue;
    const Shape& shape = values[number].tensor().shape();
    const std::vector<Dim>& wanted = *in_b.type.dims;
    if (shape.rank() != wanted.size() || in_a.type.dims->size() != wanted.size()) continue;
    for (size_t axis = 0; axis < wanted.size(); ++axis) {
      if (!wanted[axis].is_known() || wanted[axis].value == shape[axis]) continue;
      const std::string option = option_for(in_a, axis, wanted);
      if (option.empty() || std::ranges::find(options, option) != options.end()) continue;
      if (options.empty())
        first = fmt::format("input '{}' of '{}' has {} in dimension {}, and {} was generated for '{}'", in_b.name,
                            b.path, wanted[axis].value, axis, shape[axis], a.path);
      options.push_back(option);
    }
  }
  if (options.empty()) return {};
  return usage_error(fmt::format("{}: give {}", first, fmt::join(options, " ")));
}

}  // namespace parallax
