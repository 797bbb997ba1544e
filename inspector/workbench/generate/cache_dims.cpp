// SPDX-License-Identifier: Apache-2.0
// A copy of the model in which the types of inputs and outputs are completed.
#include "inspector/workbench/generate/cache_dims.h"

#include <algorithm>

#include "inspector/model/link.h"

namespace parallax::generate {
namespace {

struct FixedDim {
  size_t axis;
  int64_t value;
};

// The free dimensions of a cache of rank 4: those that are neither the batch nor the length, in their order.
std::vector<FixedDim> open_dims(const CacheSlot& slot, const CacheDims& dims) {
  std::vector<FixedDim> found;
  if (slot.dims.size() != 4) return found;
  bool is_heads = true;
  for (size_t axis = 0; axis < slot.dims.size(); ++axis) {
    if (static_cast<int>(axis) == slot.batch_axis || static_cast<int>(axis) == slot.axis) continue;
    const std::optional<int64_t>& value = is_heads ? dims.heads : dims.head_size;
    is_heads = false;
    if (slot.dims[axis] < 0 && value.has_value()) found.push_back({axis, *value});
  }
  return found;
}

void fix(Graph& graph, ValueId value, const std::vector<FixedDim>& dims) {
  TypeInfo& type = graph.values[static_cast<size_t>(value)].type;
  if (!type.dims.has_value()) return;
  for (const FixedDim& dim : dims) {
    if (dim.axis < type.dims->size()) (*type.dims)[dim.axis] = Dim{.value = dim.value, .name = {}};
  }
}

}  // namespace

std::shared_ptr<const Model> with_cache_dims(std::shared_ptr<const Model> model, const ModelRoles& roles,
                                             const CacheDims& dims) {
  const auto is_open = [&](const CacheSlot& slot) { return !open_dims(slot, dims).empty(); };
  if (std::ranges::none_of(roles.past, is_open)) return model;
  const std::shared_ptr<Model> copy = copy_model(*model);
  Graph& graph = copy->graph;
  for (const CacheSlot& slot : roles.past) fix(graph, graph.inputs[slot.index], open_dims(slot, dims));
  for (const CacheSlot& slot : roles.present) fix(graph, graph.outputs[slot.index], open_dims(slot, dims));
  return copy;
}

}  // namespace parallax::generate
