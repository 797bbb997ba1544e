// Walking back from two values to the node that makes both.
#include "inspector/diff/blame_models_swaps.h"

namespace parallax::diff {
namespace {

constexpr int kLongestChain = 8;

DType dtype_of(const ModelSide& side, int32_t id) {
  const ValueSite& site = side.site(id);
  return site.graph->values[static_cast<size_t>(site.value)].type.dtype;
}

// The value and what it is made of, as long as that is one value.
std::vector<int32_t> chain_of(const ModelSide& side, int32_t id) {
  std::vector<int32_t> chain = {id};
  while (chain.size() < kLongestChain) {
    const PlacedNode node = side.producer(chain.back());
    if (node.id == kNoNode || node.node().outputs.size() != 1) break;
    int32_t only = -1;
    for (const ValueId input : node.node().inputs) {
      const int32_t read = ModelSide::site_read(*node.place, input);
      if (read < 0 || side.follows_from_constants(read) || read == only) continue;
      if (is_floating(dtype_of(side, chain.back())) && !is_floating(dtype_of(side, read))) continue;  // a shape
      if (only >= 0) return chain;
      only = read;
    }
    if (only < 0) break;
    chain.push_back(only);
  }
  return chain;
}

}  // namespace

std::optional<CommonOrigin> common_origin(const ModelSide& side, int32_t first, int32_t second) {
  if (first < 0 || second < 0 || first == second) return std::nullopt;
  const auto output_of = [&](int32_t id) { return static_cast<size_t>(side.site(id).output_index); };
  const std::vector<int32_t> from_first = chain_of(side, first), from_second = chain_of(side, second);
  for (const int32_t x : from_first) {
    for (const int32_t y : from_second) {
      const PlacedNode node = side.producer(x);
      if (x == y || node.id == kNoNode || !(node == side.producer(y))) continue;
      return CommonOrigin{node, output_of(x), output_of(y)};
    }
  }
  return std::nullopt;
}

}  // namespace parallax::diff
