// SPDX-License-Identifier: Apache-2.0
// Compares definitions as the graphs have them, and shapes as they were captured.
#include "inspector/diff/localize_models/blame_models_suspects.h"

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <variant>

#include "inspector/diff/localize_models/blame_models_constants.h"
#include "inspector/diff/localize_models/blame_models_explain.h"
#include "inspector/diff/localize_models/blame_models_wiring.h"

namespace parallax::diff {

Suspects::Suspects(const ModelSide& a, const ModelSide& b, const ModelMatching& matching, const ComparedValues& values,
                   const RegionRunner& regions)
    : a_(a), b_(b), matching_(matching), values_(values), regions_(regions) {
  for (const NodeMatch& match : matching_.nodes) {
    partners_[&LocatedNode{match.location_a, match.a}.node()] = &match;
    partners_[&LocatedNode{match.location_b, match.b}.node()] = &match;
  }
}

// A dump's graph has no large weights to tell definitions apart by: these are values like others.
bool Suspects::reads_another_constant(const LocatedNode& node) const {
  return std::ranges::any_of(node.node().inputs, [&](ValueId input) {
    const int32_t read = ModelSide::value_info_read(*node.location, input);
    return read >= 0 && a_.follows_from_constants(read) && values_.has_diverged(read);
  });
}

bool Suspects::reads_parted(const LocatedNode& node) const {
  return std::ranges::any_of(node.node().inputs, [&](ValueId input) {
    const int32_t read = ModelSide::value_info_read(*node.location, input);
    return read >= 0 && regions_.is_parted(read);
  });
}

bool Suspects::is_suspect(const ValueMatch& match) const {
  const bool in_a = a_.follows_from_constants(match.a), in_b = b_.follows_from_constants(match.b);
  const LocatedNode a = a_.producer(match.a), b = b_.producer(match.b);
  if (in_a && in_b) return is_output(match.a) && has_diverged(match) && !are_held(match);
  if (a.id == kNoNode || b.id == kNoNode) return !in_a && !in_b && a.id != b.id;
  if (in_a != in_b) return values_.has_diverged(match.a);  // else a value that one side has folded
  if (reads_another_constant(a) || reads_parted(a)) return true;
  const auto partner = partners_.find(&a.node());
  if (partner == partners_.end()) return true;
  if (a_.value_info(match.a).output_index != b_.value_info(match.b).output_index) return true;
  const NodeMatch& node = *partner->second;
  const bool is_pair =
      node.location_b == b.location && node.b == b.id && node.is_same_definition && a.node().schema == b.node().schema;
  if (!is_pair || !reads_the_same(a_, a, b_, b, matching_)) return true;
  const auto holds_graph = [](const Attribute& attribute) {
    return std::holds_alternative<std::shared_ptr<Graph>>(attribute.value);
  };
  return a.node().function != nullptr || std::ranges::any_of(a.node().attributes, holds_graph);
}

bool Suspects::has_diverged(const ValueMatch& match) const {
  const LocatedNode a = a_.producer(match.a), b = b_.producer(match.b);
  if (a.id == kNoNode && b.id == kNoNode) return false;  // both were given it
  if (values_.has_diverged(match.a)) return true;
  if (!a_.follows_from_constants(match.a) && !b_.follows_from_constants(match.b)) return false;
  return std::ranges::any_of(a_.captured_paths(match.a), [&](const std::string& path) {
    const ValueComparison* const value = values_.find(path);
    return value != nullptr && value->reason == "shape differs";
  });
}

Status lay_out_pairs(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                     const ComparedValues& values, const Effects& effects, const PathLinks& links,
                     RegionRunner& regions) {
  std::unordered_set<int32_t> permuted;  // by another Transpose of the same value, and what is computed from that
  const auto reads_permuted = [&](const LocatedNode& node) {
    return std::ranges::any_of(node.node().inputs, [&](ValueId input) {
      return permuted.contains(ModelSide::value_info_read(*node.location, input));
    });
  };
  for (const ValueMatch& match : matching.values) {
    const LocatedNode made_a = a.producer(match.a), made_b = b.producer(match.b);
    if (match.is_extra || made_a.id == kNoNode || made_b.id == kNoNode || effects.is_handed_out(match.a)) continue;
    const std::vector<std::string>& paths = a.captured_paths(match.a);
    const ValueComparison* const value = paths.empty() ? nullptr : values.find(paths.front());
    if (value == nullptr || value->reason != "shape differs") continue;
    const bool is_permuted_anew = made_a.node().op_type == "Transpose" && made_b.node().op_type == "Transpose" &&
                                  reads_the_same(a, made_a, b, made_b, matching);
    if (is_permuted_anew || reads_permuted(made_a)) {
      permuted.insert(match.a);
      continue;
    }
    const Value in_a = PX_TRY(a.captured(paths.front()));
    const Value in_b = PX_TRY(b.captured(links.b_path_of(paths.front())));
    auto layout = layout_between(in_a, in_b);
    const bool is_of_rows = made_a.node().op_type == "Gemm" || made_b.node().op_type == "Gemm" ||
                            (made_a.node().op_type == "MatMul" && made_b.node().op_type == "MatMul") ||
                            (only_moves(made_a) && only_moves(made_b));
    if (!layout.has_value() && is_of_rows) layout = rows_between(in_a, in_b);
    if (!layout.has_value()) continue;
    if (only_moves(made_a) || only_moves(made_b)) {
      regions.part(match.a);
    } else {
      regions.lay_out(match.a, *std::move(layout));
    }
  }
  return {};
}

}  // namespace parallax::diff
