// SPDX-License-Identifier: Apache-2.0
// Symbolic dimensions take the sizes of the inputs that name them.
#include "inspector/workbench/dump_size.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include "inspector/workbench/inputs/dimensions.h"
#include "inspector/workbench/node_cost.h"

namespace parallax {
namespace {

DimSizes sizes_of(const Graph& graph, std::span<const Value> inputs) {
  DimSizes sizes;
  for (size_t index = 0; index < std::min(inputs.size(), graph.inputs.size()); ++index) {
    const TypeInfo& type = graph.values[static_cast<size_t>(graph.inputs[index])].type;
    if (!inputs[index].is_tensor() || !type.dims.has_value()) continue;
    const Shape& shape = inputs[index].tensor().shape();
    for (size_t axis = 0; axis < std::min(shape.rank(), type.dims->size()); ++axis) {
      if (!(*type.dims)[axis].name.empty()) sizes.try_emplace((*type.dims)[axis].name, shape[axis]);
    }
  }
  return sizes;
}

TypeInfo with_sizes(TypeInfo type, const DimSizes& sizes) {
  if (!type.dims.has_value()) return type;
  for (Dim& dim : *type.dims) {
    if (dim.is_known() || dim.name.empty()) continue;
    if (const auto size = evaluate_dimension(dim.name, sizes); size.has_value() && *size >= 0) dim = {*size, ""};
  }
  return type;
}

bool is_view(const Node& node) {
  constexpr std::array<std::string_view, 5> kViews = {"Reshape", "Identity", "Flatten", "Squeeze", "Unsqueeze"};
  return node.domain.empty() && std::ranges::find(kViews, node.op_type) != kViews.end();
}

}  // namespace

int64_t foreseen_payload_bytes(const Graph& graph, std::span<const Value> inputs) {
  const DimSizes sizes = sizes_of(graph, inputs);
  std::vector<TypeInfo> types;
  const auto add = [&](ValueId id) {
    if (id != kNoValue) types.push_back(with_sizes(graph.values[static_cast<size_t>(id)].type, sizes));
  };
  for (const ValueId id : graph.inputs) add(id);
  for (const ValueId id : graph.initializer_values) add(id);
  for (const Node& node : graph.nodes) {
    if (is_view(node)) continue;
    for (const ValueId output : node.outputs) add(output);
  }
  return bytes_of(types);
}

Result<MemoryBudget::Reservation> reserve_capture(const std::string& folder, const Graph& graph,
                                                  std::span<const Value> inputs) {
  struct statfs info {};
  const bool is_in_memory =
      ::statfs(folder.c_str(), &info) == 0 && (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC);
  if (MemoryBudget::current() == nullptr || !is_in_memory) return MemoryBudget::Reservation();
  return MemoryBudget::reserve(
      foreseen_payload_bytes(graph, inputs),
      fmt::format("a capture of all values into '{}', where files are kept in memory (TMPDIR names another folder),",
                  folder));
}

}  // namespace parallax
