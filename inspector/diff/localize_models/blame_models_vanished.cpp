// SPDX-License-Identifier: Apache-2.0
// Walks up from a value to the constants that it is made of.
#include "inspector/diff/localize_models/blame_models_vanished.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "inspector/diff/localize/blame.h"
#include "inspector/diff/tolerance/paths.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

struct VanishedConstant {
  LocatedNode node, node_b;  // they read it
  std::string path;          // of what A's makes
  std::string why;
};

enum class Loss : uint8_t { none, to_zero, to_infinity };

Loss loss_of(double in_a, double in_b) {
  if (std::isfinite(in_a) && in_a != 0 && in_b == 0) return Loss::to_zero;
  return std::isfinite(in_a) && std::isinf(in_b) ? Loss::to_infinity : Loss::none;
}

bool are_comparable(const Value& a, const Value& b) {
  return a.is_tensor() && b.is_tensor() && a.tensor().shape() == b.tensor().shape() &&
         is_floating(a.tensor().dtype()) && is_floating(b.tensor().dtype());
}

struct LostElement {
  Loss loss = Loss::none;
  double in_a = 0;
};

// The first element that B's type cannot hold; with `wanted`, the first of that kind.
LostElement first_lost(const Value& a, const Value& b, Loss wanted = Loss::none) {
  if (!are_comparable(a, b)) return {};
  for (int64_t index = 0; index < a.tensor().element_count(); ++index) {
    const double in_a = element_as_double(a.tensor(), index);
    const Loss loss = loss_of(in_a, element_as_double(b.tensor(), index));
    if (loss != Loss::none && (wanted == Loss::none || loss == wanted)) return {loss, in_a};
  }
  return {};
}

class VanishedSearch {
 public:
  VanishedSearch(const ModelSide& a, const ModelSide& b, const ModelMatching& matching, const std::string& path)
      : a_(a), b_(b), matching_(matching), instance_(instance_of(path)) {}

  // Reads of `node`, next to those of the node that stands for it in B.
  std::optional<VanishedConstant> look_at(const LocatedNode& node) const {
    const auto is_it = [&](const NodeMatch& match) { return match.location_a == node.location && match.a == node.id; };
    const auto match = std::ranges::find_if(matching_.nodes, is_it);
    if (match == matching_.nodes.end()) return std::nullopt;
    const LocatedNode other{match->location_b, match->b};
    const std::vector<ValueId>&in_a = node.node().inputs, &in_b = other.node().inputs;
    for (size_t port = 0; port < std::min(in_a.size(), in_b.size()); ++port) {
      if (in_a[port] == kNoValue || in_b[port] == kNoValue) continue;
      if (!a_.reads_constant(node, port) || !b_.reads_constant(other, port)) continue;
      const int32_t x = ModelSide::value_info_read(*node.location, in_a[port]);
      const int32_t y = ModelSide::value_info_read(*other.location, in_b[port]);
      const Value held = b_.constant(y);
      const LostElement lost = first_lost(a_.constant(x), held);
      if (lost.loss == Loss::none || !hands_on(node, lost.loss)) continue;
      return VanishedConstant{node, other, path_of(node), explain(x, lost, held.tensor().dtype())};
    }
    return std::nullopt;
  }

 private:
  std::string path_of(const LocatedNode& node) const {
    const int32_t made = ModelSide::value_info_read(*node.location, node.node().outputs.front());
    return path_in(instance_, a_.static_path(made));
  }

  bool hands_on(const LocatedNode& node, Loss loss) const {
    const int32_t made = ModelSide::value_info_read(*node.location, node.node().outputs.front());
    const int32_t other = made < 0 ? -1 : matching_.b_of_a[static_cast<size_t>(made)];
    if (other < 0) return false;
    const auto in_a = a_.captured(path_of(node)), in_b = b_.captured(path_in(instance_, b_.static_path(other)));
    return in_a.ok() && in_b.ok() && first_lost(*in_a, *in_b, loss).loss == loss;
  }

  std::string explain(int32_t constant, const LostElement& lost, DType held) const {
    const bool is_zero = lost.loss == Loss::to_zero;
    return fmt::format("its constant '{}' is {:.7g} in A and {} in B: {} holds no number {}",
                       a_.value_info(constant).name, lost.in_a,
                       is_zero         ? "0"
                       : lost.in_a > 0 ? "inf"
                                       : "-inf",
                       name_of(held), is_zero ? "as small" : "as large");
  }

  const ModelSide &a_, &b_;
  const ModelMatching& matching_;
  Instance instance_;
};

int32_t find_value(const ModelSide& side, std::string_view path) {
  for (const ValueInfo& value_info : side.value_infos().value_infos())
    if (value_info.scope + value_info.escaped_name == path) return value_info.id;
  return -1;
}

std::optional<VanishedConstant> find_vanished_constant(const ModelSide& a, const ModelSide& b,
                                                       const ModelMatching& matching, const std::string& path) {
  constexpr size_t kMostWalked = 24;
  const VanishedSearch search(a, b, matching, path);
  const int32_t target = find_value(a, static_path(path));
  if (target < 0) return std::nullopt;
  std::vector<int32_t> walked = {target};
  for (size_t index = 0; index < walked.size() && index < kMostWalked; ++index) {
    const LocatedNode node = a.producer(walked[index]);
    if (node.id == kNoNode) continue;
    if (auto found = search.look_at(node); found.has_value()) return found;
    for (const ValueId input : node.node().inputs) {
      const int32_t read = input == kNoValue ? -1 : ModelSide::value_info_read(*node.location, input);
      if (read >= 0 && std::ranges::find(walked, read) == walked.end()) walked.push_back(read);
    }
  }
  return std::nullopt;
}

}  // namespace

void name_vanished_constant(const ModelSide& a, const ModelSide& b, const ModelMatching& matching, Cause& left) {
  auto found = find_vanished_constant(a, b, matching, left.path);
  if (!found.has_value()) return;
  const Node& node = found->node.node();
  left.why = fmt::format("{}; by that '{}' leaves the range of numbers", found->why, left.node);
  left.node = node.display_name;
  left.node_b = found->node_b.node().display_name;
  left.op = node.op_type;
  left.path = std::move(found->path);
  set_source(node, left);
}

}  // namespace parallax::diff
