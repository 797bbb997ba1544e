// SPDX-License-Identifier: Apache-2.0
// Looks for A's constants among the columns of B's.
#include "inspector/diff/localize_models/blame_models_packed.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "inspector/diff/localize_models/blame_models_counterfactuals.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

struct HeldConstant {
  LocatedNode reader;
  int32_t id = -1;
  Tensor doubles;
  int64_t rows = 1, columns = 0;  // of a vector one row
};

// The float constants of one or two axes that the nodes read.
std::vector<HeldConstant> constants_of(const ModelSide& side, const std::vector<LocatedNode>& nodes) {
  std::vector<HeldConstant> found;
  for (const LocatedNode& node : nodes) {
    for (size_t port = 0; port < node.node().inputs.size(); ++port) {
      if (node.node().inputs[port] == kNoValue || !side.reads_constant(node, port)) continue;
      const int32_t id = ModelSide::value_info_read(*node.location, node.node().inputs[port]);
      const Value wide = as_double(side.constant(id));
      if (!wide.is_tensor() || wide.tensor().dtype() != DType::float64) continue;
      const Shape& shape = wide.tensor().shape();
      if (shape.rank() < 1 || shape.rank() > 2 || shape.element_count() < 2) continue;
      found.push_back({node, id, wide.tensor(), shape.rank() == 2 ? shape[0] : 1, shape[shape.rank() - 1]});
    }
  }
  return found;
}

bool may_be_block(const HeldConstant& block, const HeldConstant& of) {
  return block.rows == of.rows && block.columns < of.columns &&
         block.doubles.shape().rank() == of.doubles.shape().rank();
}

// True where the columns from `offset` on are A's constant, to the rounding of two programs that fold the same.
bool is_block_at(const HeldConstant& block, const HeldConstant& packed, int64_t offset) {
  const std::span<const double> own = block.doubles.as<double>(), all = packed.doubles.as<double>();
  double largest = 0, furthest = 0;
  for (int64_t row = 0; row < block.rows; ++row) {
    for (int64_t column = 0; column < block.columns; ++column) {
      const double wanted = own[static_cast<size_t>(row * block.columns + column)];
      const double held = all[static_cast<size_t>(row * packed.columns + offset + column)];
      largest = std::max(largest, std::abs(wanted));
      furthest = std::max(furthest, std::abs(wanted - held));
    }
  }
  return furthest <= thresholds::kFoldedAlike * largest;
}

// The offset at which the columns are A's constant; -1 where none is.
int64_t find_block(const HeldConstant& block, const HeldConstant& packed) {
  for (int64_t offset = 0; offset + block.columns <= packed.columns; offset += block.columns) {
    if (is_block_at(block, packed, offset)) return offset;
  }
  return -1;
}

Value with_block(const HeldConstant& packed, int64_t offset, const HeldConstant& block) {
  auto changed = packed.doubles.clone();
  if (!changed.ok()) return {};
  const std::span<const double> from = block.doubles.as<double>();
  const std::span<double> to = changed->mutable_as<double>();
  for (int64_t row = 0; row < packed.rows; ++row)
    std::copy_n(from.begin() + row * block.columns, block.columns, to.begin() + row * packed.columns + offset);
  return changed.take();
}

}  // namespace

std::optional<Culprit> find_wrongly_packed(const ModelSide& a, const ModelSide& b, const Parts& parts,
                                           const Interventions& interventions) {
  const std::vector<HeldConstant> in_a = constants_of(a, parts.only_a);
  for (const HeldConstant& packed : constants_of(b, parts.only_b)) {
    std::vector<int64_t> covered;
    std::vector<const HeldConstant*> missing;
    for (const HeldConstant& block : in_a) {
      if (!may_be_block(block, packed)) continue;
      const int64_t offset = find_block(block, packed);
      if (offset < 0) missing.push_back(&block);
      if (offset >= 0) covered.push_back(offset);
    }
    if (covered.empty()) continue;
    for (const HeldConstant* block : missing) {
      for (int64_t offset = 0; offset + block->columns <= packed.columns; offset += block->columns) {
        if (std::ranges::find(covered, offset) != covered.end()) continue;
        if (!interventions.agrees_with({{packed.id, with_block(packed, offset, *block)}})) continue;
        return Culprit{
            block->reader,
            fmt::format("B packs other numbers for its constant '{}' into columns {} to {} of '{}', which {} "
                        "'{}' reads",
                        a.value_info(block->id).name, offset, offset + block->columns - 1, b.value_info(packed.id).name,
                        packed.reader.node().op_type, packed.reader.node().display_name)};
      }
    }
  }
  return std::nullopt;
}

}  // namespace parallax::diff
