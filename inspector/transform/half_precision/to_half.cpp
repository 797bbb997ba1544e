// SPDX-License-Identifier: Apache-2.0
// The steps of the conversion: groups, weights that do not fit, the choice, stored tensors, casts, and a check.
#include "inspector/transform/half_precision/to_half.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "inspector/model/io/import.h"
#include "inspector/model/link.h"
#include "inspector/model/shape_inference/infer_types.h"
#include "inspector/transform/graph_building.h"
#include "inspector/transform/half_precision/narrow_weights.h"
#include "inspector/transform/half_precision/precision_casts.h"
#include "inspector/transform/half_precision/precision_cut.h"
#include "inspector/transform/half_precision/precision_groups.h"
#include "inspector/transform/half_precision/precision_rules.h"

namespace parallax::transform {
namespace {

constexpr int64_t kFirstBfloat16 = 13;  // Cast-13 is the first that knows it
constexpr int64_t kCastForOthers = 13;  // imported where casts are the only standard nodes

Status check_request(const Model& model, const HalfRequest& request) {
  if (request.to != DType::float16 && request.to != DType::bfloat16)
    return usage_error(fmt::format("the type is {}; it must be float16 or bfloat16", name_of(request.to)));
  const int64_t opset = model.opset_version("");
  if (request.to == DType::bfloat16 && opset > 0 && opset < kFirstBfloat16)
    return unsupported(
        fmt::format("{} imports opset {} of ai.onnx, and bfloat16 needs opset {} or later: convert to "
                    "float16, or the model to a later opset first",
                    model.path, opset, kFirstBfloat16));
  return {};
}

struct Count {
  int64_t casts = 0;
  int64_t weight_bytes = 0;
};

void count_in(const Graph& graph, Count& count) {
  for (const StoredTensor& stored : graph.initializers)
    count.weight_bytes += static_cast<int64_t>(stored.tensor.size_bytes());
  for (const Node& node : graph.nodes) {
    count.casts += is_standard_operator(node, "Cast") ? 1 : 0;
    for (const Attribute& attribute : node.attributes) {
      const auto* stored = std::get_if<StoredTensor>(&attribute.value);
      if (stored != nullptr) count.weight_bytes += static_cast<int64_t>(stored->tensor.size_bytes());
    }
    for (const Graph* body : bodies_of(node)) count_in(*body, count);
  }
}

Count count_in(const Model& model) {
  Count count;
  count_in(model.graph, count);
  for (const auto& function : model.functions) count_in(function->body, count);
  return count;
}

bool uses_standard_domain(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) { return is_standard_operator(node, "Cast"); });
}

void import_casts(Model& model) {
  const auto add = [](const Graph& graph, std::vector<OpsetImport>& imports, int64_t version) {
    if (opset_version_in(imports, "") == 0 && uses_standard_domain(graph)) imports.push_back({"", version});
  };
  const int64_t version = model.opset_version("") == 0 ? kCastForOthers : model.opset_version("");
  add(model.graph, model.opset_imports, version);
  for (const auto& function : model.functions) add(function->body, function->opset_imports, version);
}

Status finish(Model& model, const PrecisionGroups& groups) {
  import_casts(model);
  std::set<const Graph*> linked;
  for (auto graph = groups.graphs.rbegin(); graph != groups.graphs.rend(); ++graph) {
    if (linked.insert(*graph).second) link_graph(**graph);
  }
  resolve_operators(model);
  fill_types(model, infer_types(model));
  const auto problems = check_model(model);
  if (problems.empty()) return {};
  return error_of(problems.front()).with_context(fmt::format("{}: the converted model", model.path));
}

void count_nodes(const PrecisionGroups& groups, const std::vector<bool>& is_narrow, HalfConversion& result) {
  for (const FloatNode& node : groups.nodes) {
    const Node& source = node.graph->nodes[static_cast<size_t>(node.node)];
    if (precision_rule_of(source) == PrecisionRule::constant) continue;
    const bool converted =
        std::ranges::any_of(node.groups, [&](GroupId group) { return is_narrow[static_cast<size_t>(group)]; });
    if (converted) {
      ++result.converted;
    } else if (node.has_narrow || node.is_kept) {
      ++result.kept;
    } else {
      result.without_half.push_back(node.path);
    }
  }
}

}  // namespace

Result<HalfConversion> to_half(const Model& model, const HalfRequest& request) {
  PX_TRY(check_request(model, request));
  HalfConversion result;
  result.model = copy_model(model);
  result.model->unparsed = model.unparsed;
  GroupOptions options{request.to, request.keep_io, PX_TRY(find_named_nodes(*result.model, request.keep))};
  PrecisionGroups groups = find_precision_groups(*result.model, options);
  const UnfitWeights unfit = hold_unfit_weights(groups, request.to);
  const std::vector<bool> is_narrow = choose_precisions(groups);
  const Count before = count_in(*result.model);
  result.kept_weights = kept_weights(groups, is_narrow, unfit);
  result.infinite_weights = infinite_weights(groups, is_narrow, unfit);
  count_nodes(groups, is_narrow, result);
  PX_TRY(convert_stored(groups, is_narrow, request, result.deferred));
  insert_casts(*result.model, groups, is_narrow, request.to);
  PX_TRY(finish(*result.model, groups));
  const Count after = count_in(*result.model);
  result.casts_before = before.casts;
  result.casts = after.casts;
  result.weight_bytes_before = before.weight_bytes;
  result.weight_bytes = after.weight_bytes;
  return result;
}

}  // namespace parallax::transform
