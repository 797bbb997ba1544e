// The list of families on the host, and the look-up.
#include "runtime/ops/table.h"

#include <map>
#include <vector>

#include <fmt/format.h>

#include "inspector/model/opset_registry.h"
#include "runtime/ops/microsoft_families.h"

namespace parallax::runtime {
namespace {

std::vector<KernelRow<Cpu>> all_rows() {
  std::vector<KernelRow<Cpu>> rows;
  for (const Rows<Cpu> family : {activation_rows<Cpu>(),
                                 arithmetic_rows<Cpu>(),
                                 logic_rows<Cpu>(),
                                 cast_rows<Cpu>(),
                                 view_rows<Cpu>(),
                                 movement_rows<Cpu>(),
                                 indexing_rows<Cpu>(),
                                 scattering_rows<Cpu>(),
                                 sorting_rows<Cpu>(),
                                 reduction_rows<Cpu>(),
                                 softmax_rows<Cpu>(),
                                 normalization_rows<Cpu>(),
                                 channel_norm_rows<Cpu>(),
                                 matmul_rows<Cpu>(),
                                 convolution_rows<Cpu>(),
                                 pooling_rows<Cpu>(),
                                 resize_rows<Cpu>(),
                                 attention_rows<Cpu>(),
                                 einsum_rows<Cpu>(),
                                 recurrent_rows<Cpu>(),
                                 quantize_rows<Cpu>(),
                                 quantized_product_rows<Cpu>(),
                                 detection_rows<Cpu>(),
                                 signal_rows<Cpu>(),
                                 loss_rows<Cpu>(),
                                 dropout_rows<Cpu>(),
                                 sequence_rows<Cpu>(),
                                 generator_rows<Cpu>(),
                                 ms_activation_rows<Cpu>(),
                                 ms_product_rows<Cpu>(),
                                 ms_conv_rows<Cpu>(),
                                 ms_norm_rows<Cpu>(),
                                 random_rows<Cpu>(),
                                 ms_attention_rows<Cpu>(),
                                 ms_borrowed_rows<Cpu>(),
                                 ms_quantized_rows<Cpu>(),
                                 ms_quantized_product_rows<Cpu>(),
                                 ms_tensor_rows<Cpu>()}) {
    rows.insert(rows.end(), family.begin(), family.end());
  }
  return rows;
}

using RowIndex = std::multimap<std::string_view, const KernelRow<Cpu>*>;

const RowIndex& row_index() {
  static const RowIndex index = [] {
    RowIndex made;
    for (const KernelRow<Cpu>& row : kernel_table<Cpu>()) made.emplace(row.op, &row);
    return made;
  }();
  return index;
}

DType known_dtype(std::span<const DType> dtypes, int64_t input) {
  return input < static_cast<int64_t>(dtypes.size()) ? dtypes.data()[input] : DType::undefined;
}

}  // namespace

template <>
std::span<const KernelRow<Cpu>> kernel_table<Cpu>() {
  static const std::vector<KernelRow<Cpu>> rows = all_rows();
  return rows;
}

template <>
Result<const KernelRow<Cpu>*> find_kernel<Cpu>(const Node& node, std::span<const DType> input_dtypes) {
  std::string reason = "has no kernel";
  if (node.schema != nullptr) {
    const auto [first, last] = row_index().equal_range(node.op_type);
    for (auto row = first; row != last; ++row) {
      const KernelRow<Cpu>& candidate = *row->second;
      const int64_t version = node.schema->since_version;
      if (candidate.domain != node.schema->domain) continue;
      if (version < candidate.since_first || version > candidate.since_last) {
        reason = "has no kernel for this version";
        continue;
      }
      if (candidate.supports != nullptr && !candidate.supports(node)) {
        reason = "has no kernel for these attributes";
        continue;
      }
      const DType dtype = known_dtype(input_dtypes, candidate.dtype_input);
      if (dtype != DType::undefined && (candidate.dtypes & dtype_bit(dtype)) == 0) {
        reason = fmt::format("has no kernel for {}", name_of(dtype));
        continue;
      }
      return &candidate;
    }
  }
  return unsupported(reason);
}

}  // namespace parallax::runtime
