// SPDX-License-Identifier: Apache-2.0
// The list of families, and the look-up; compiled once for each device, as the families are.
#include "runtime/ops/table.h"

#include <map>
#include <vector>

#include <fmt/format.h>

#include "inspector/model/opset/opset_registry.h"
#include "runtime/ops/contrib_families.h"
#include "runtime/ops/fused_families.h"
#include "runtime/ops/host_families.h"

namespace parallax::runtime {
namespace {

template <class Device>
using Family = Rows<Device> (*)();

// The families that GPU devices have, too. The host has these and the families after them.
template <class Device>
constexpr Family<Device> kFamilies[] = {
    activation_rows<Device>,
    arithmetic_rows<Device>,
    logic_rows<Device>,
    cast_rows<Device>,
    view_rows<Device>,
    movement_rows<Device>,
    indexing_rows<Device>,
    scattering_rows<Device>,
    sorting_rows<Device>,
    reduction_rows<Device>,
    softmax_rows<Device>,
    normalization_rows<Device>,
    channel_norm_rows<Device>,
    matmul_rows<Device>,
    convolution_rows<Device>,
    pooling_rows<Device>,
    sequence_rows<Device>,
    generator_rows<Device>,
    attention_rows<Device>,
    fused_attention_rows<Device>,
    fused_on_gpu_rows<Device>,
    fused_pointwise_on_gpu_rows<Device>,
    nbits_on_gpu_rows<Device>,
    quantize_rows<Device>,
    resize_rows<Device>,
    dropout_rows<Device>,
    sampling_rows<Device>,
    region_rows<Device>,
    recurrent_rows<Device>,
    einsum_rows<Device>,
    loss_rows<Device>,
    im2col_block_rows<Device>,
    batch_statistics_rows<Device>,
    linear_attention_rows<Device>,
    signal_rows<Device>,
    quantized_product_rows<Device>,
    random_rows<Device>,
    detection_rows<Device>,
    gram_rows<Device>,
    contrib_activated_rows<Device>,
    contrib_attention_rows<Device>,
    contrib_biased_rows<Device>,
    contrib_borrowed_rows<Device>,
    contrib_embedding_rows<Device>,
    contrib_expert_rows<Device>,
    contrib_gated_rows<Device>,
    contrib_group_query_attention_rows<Device>,
    contrib_crop_unfold_rows<Device>,
    contrib_dynamic_lstm_rows<Device>,
    contrib_integer_product_rows<Device>,
    contrib_inverse_rows<Device>,
    contrib_ngram_rows<Device>,
    contrib_packed_rows<Device>,
    contrib_position_rows<Device>,
    contrib_quantized_rows<Device>,
    contrib_tensor_rows<Device>,
};
constexpr Family<Cpu> kHostFamilies[] = {
    packed_element_rows<Cpu>, contrib_activation_rows<Cpu>, contrib_product_rows<Cpu>, contrib_conv_rows<Cpu>,
    contrib_norm_rows<Cpu>,   contrib_nbits_rows<Cpu>,      contrib_token_rows<Cpu>,   fused_pointwise_rows<Cpu>,
    channel_affine_rows<Cpu>, channel_shuffle_rows<Cpu>,
};

// Rows whose function this device does not have are left out.
template <class Device>
std::vector<KernelRow<Device>> all_rows() {
  std::vector<KernelRow<Device>> rows;
  const auto add = [&](Family<Device> family) {
    for (const KernelRow<Device>& row : family()) {
      if (row.run != nullptr) rows.push_back(row);
    }
  };
  for (const Family<Device> family : kFamilies<Device>) add(family);
  if constexpr (std::is_same_v<Device, Cpu>) {
    for (const Family<Device> family : kHostFamilies) add(family);
  }
  return rows;
}

template <class Device>
using RowIndex = std::multimap<std::string_view, const KernelRow<Device>*>;

template <class Device>
const RowIndex<Device>& row_index() {
  static const RowIndex<Device> index = [] {
    RowIndex<Device> made;
    for (const KernelRow<Device>& row : kernel_table<Device>()) made.emplace(row.op, &row);
    return made;
  }();
  return index;
}

DType known_dtype(std::span<const DType> dtypes, int64_t input) {
  return input < static_cast<int64_t>(dtypes.size()) ? dtypes.data()[input] : DType::undefined;
}

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> kernel_table<CompiledDevice>() {
  static const std::vector<KernelRow<CompiledDevice>> rows = all_rows<CompiledDevice>();
  return rows;
}

template <>
Result<const KernelRow<CompiledDevice>*> find_kernel<CompiledDevice>(const Node& node,
                                                                     std::span<const DType> input_dtypes) {
  std::string reason = "has no kernel";
  if (node.schema != nullptr) {
    const auto [first, last] = row_index<CompiledDevice>().equal_range(node.op_type);
    for (auto row = first; row != last; ++row) {
      const KernelRow<CompiledDevice>& candidate = *row->second;
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
