// SPDX-License-Identifier: Apache-2.0
// Bounds of running sums. A partial sum of products is at most the product of the norms (Cauchy and Schwarz), whatever
// its order; one of numbers is at most the sum of their magnitudes.
#include <algorithm>
#include <array>
#include <cmath>

#include "inspector/model/stored_int.h"
#include "inspector/workbench/half_precision/audit_classes.h"

namespace parallax::audit {
namespace {

enum class SumKind : uint8_t { none, product, gemm, window, sum, squares, softmax, normalization };

struct SumRule {
  std::string_view op;
  SumKind kind;
};

constexpr std::array kSumRules = {
    SumRule{"AveragePool", SumKind::sum},
    SumRule{"Conv", SumKind::window},
    SumRule{"Gemm", SumKind::gemm},
    SumRule{"GlobalAveragePool", SumKind::sum},
    SumRule{"LayerNormalization", SumKind::normalization},
    SumRule{"LogSoftmax", SumKind::softmax},
    SumRule{"MatMul", SumKind::product},
    SumRule{"RMSNormalization", SumKind::normalization},
    SumRule{"ReduceL1", SumKind::sum},
    SumRule{"ReduceL2", SumKind::squares},
    SumRule{"ReduceMean", SumKind::sum},
    SumRule{"ReduceSum", SumKind::sum},
    SumRule{"ReduceSumSquare", SumKind::squares},
    SumRule{"Softmax", SumKind::softmax},
};

SumKind kind_of(const Node& node) {
  const auto found = std::ranges::find(kSumRules, node.op_type, &SumRule::op);
  return found == kSumRules.end() ? SumKind::none : found->kind;
}

double product_bound(const ValueRange& a, bool a_by_columns, const ValueRange& b, bool b_by_rows) {
  return (a_by_columns ? a.column_norm : a.row_norm) * (b_by_rows ? b.row_norm : b.column_norm);
}

// The attribute stash_type says in which type a normalization adds; 1, float32, is its default.
bool adds_in_half(const Node& node) {
  const auto stash = static_cast<DType>(stored_int(node, "stash_type", static_cast<int64_t>(DType::float32)));
  return stash == DType::float16 || stash == DType::bfloat16;
}

double reduced_elements(const ValueRange& input, const ValueRange* output) {
  if (output == nullptr || output->elements == 0) return static_cast<double>(input.elements);
  return static_cast<double>(input.elements) / static_cast<double>(output->elements);
}

// The axes are the last one alone.
bool reduces_last_axis(const Node& node, const Graph& graph) {
  const Attribute* attribute = find_attribute(node, "axes");
  if (attribute != nullptr) {
    const auto* axes = std::get_if<std::vector<int64_t>>(&attribute->value);
    return axes != nullptr && axes->size() == 1 && axes->front() == -1;
  }
  if (node.inputs.size() < 2 || node.inputs[1] == kNoValue) return false;
  const ValueDef& axes = value_at(graph, node.inputs[1]);
  if (axes.initializer_index < 0) return false;
  const Tensor& tensor = graph.initializers[static_cast<size_t>(axes.initializer_index)].tensor;
  return tensor.dtype() == DType::int64 && tensor.element_count() == 1 && tensor.as<int64_t>().front() == -1;
}

// A window holds as many elements as a filter; its norm is no more than that of the whole input.
double window_bound(const ValueRange& input, const ValueRange& filter, int64_t filters) {
  const double elements = static_cast<double>(filter.elements) / static_cast<double>(std::max<int64_t>(filters, 1));
  const double filter_norm = std::min(filter.norm, std::sqrt(elements) * static_cast<double>(filter.largest));
  return std::min(input.norm, std::sqrt(elements) * static_cast<double>(input.largest)) * filter_norm;
}

int64_t filters_of(const Node& node, const Graph& graph) {
  const auto& dims = value_at(graph, node.inputs[1]).type.dims;
  return dims.has_value() && !dims->empty() && dims->front().is_known() ? dims->front().value : 1;
}

}  // namespace

uint8_t wanted_for_sums(const Node& node, size_t index) {
  switch (kind_of(node)) {
    case SumKind::product:
      return index == 0 ? kRows : kColumns;
    case SumKind::gemm:
      if (index == 0) return stored_int(node, "transA", 0) != 0 ? kColumns : kRows;
      return index > 1 ? kNothingElse : stored_int(node, "transB", 0) != 0 ? kRows : kColumns;
    case SumKind::window:
      return index < 2 ? kRows : kNothingElse;
    case SumKind::sum:
    case SumKind::squares:
      return index == 0 ? kRows : kNothingElse;
    default:
      return kNothingElse;
  }
}

std::optional<double> accumulated_bound(const Node& node, const Graph& graph,
                                        const std::vector<const ValueRange*>& inputs, const ValueRange* output) {
  const SumKind kind = kind_of(node);
  const auto known = [&](size_t index) { return index < inputs.size() && inputs[index] != nullptr; };
  if (kind == SumKind::none || !known(0)) return std::nullopt;
  const ValueRange& first = *inputs.front();
  const auto largest = static_cast<double>(first.largest);
  switch (kind) {
    case SumKind::product:
      return known(1) ? std::optional(product_bound(first, false, *inputs[1], false)) : std::nullopt;
    case SumKind::gemm:
      if (!known(1)) return std::nullopt;
      return product_bound(first, stored_int(node, "transA", 0) != 0, *inputs[1], stored_int(node, "transB", 0) != 0);
    case SumKind::window:
      return known(1) ? std::optional(window_bound(first, *inputs[1], filters_of(node, graph))) : std::nullopt;
    case SumKind::sum: {
      const double bound = std::min(reduced_elements(first, output) * largest, first.sum);
      return reduces_last_axis(node, graph) ? std::min(bound, first.row_sum) : bound;
    }
    case SumKind::squares: {
      const double bound = std::min(reduced_elements(first, output) * largest * largest, first.norm * first.norm);
      return reduces_last_axis(node, graph) ? std::min(bound, first.row_norm * first.row_norm) : bound;
    }
    case SumKind::softmax:
      return static_cast<double>(first.last_dim);  // exponentials of at most 1
    case SumKind::normalization:
      if (!adds_in_half(node)) return std::nullopt;
      return static_cast<double>(first.last_dim) * largest * largest;
    case SumKind::none:
      break;
  }
  return std::nullopt;
}

}  // namespace parallax::audit
