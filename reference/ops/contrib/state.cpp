// SPDX-License-Identifier: Apache-2.0
// com.microsoft's operators with a state between steps, where ai.onnx has the same: CausalConvWithState,
// LinearAttention.
#include <fmt/format.h>

#include "reference/ops/families.h"
#include "reference/ops/inner_op.h"

namespace parallax::reference {
namespace {

// Attributes that the form of ai.onnx lacks must have their defaults.
Status expect_default(const OpContext& op, const char* name, int64_t value) {
  if (op.int_attribute(name) == value) return {};
  return unsupported(
      fmt::format("attribute '{}' is {}; only {} has a function here", name, op.int_attribute(name), value));
}

Status run_as_standard(OpContext& op, const InnerOp& inner, DType state) {
  std::vector<Value> inputs;
  for (size_t index = 0; index < op.input_count(); ++index) inputs.push_back(op.value(index));
  const std::vector<Value> made = PX_TRY(run_inner(op, inner, std::move(inputs), 2));
  PX_TRY(set_rounded(op, 0, op.input(0).dtype(), made[0].tensor()));
  return set_rounded(op, 1, state, made[1].tensor());
}

// ContribOperators.md, com.microsoft.CausalConvWithState: that of ai.onnx 27, which has one dimension, channels first,
// no dilation, and the last state alone.
Status op_contrib_causal_conv_with_state(OpContext& op) {
  PX_TRY(expect_default(op, "ndim", 1));
  PX_TRY(expect_default(op, "channels_last", 0));
  PX_TRY(expect_default(op, "dilation", 1));
  PX_TRY(expect_default(op, "state_window", 0));
  const InnerOp conv{"CausalConvWithState", 27, {string_attribute("activation", op.string_attribute("activation"))}};
  return run_as_standard(op, conv, op.input(0).dtype());
}

// com.microsoft.LinearAttention: that of ai.onnx 27, which gives the last state alone.
Status op_contrib_linear_attention(OpContext& op) {
  PX_TRY(expect_default(op, "state_window", 0));
  const InnerOp attention{"LinearAttention",
                          27,
                          {int_attribute("q_num_heads", op.int_attribute("q_num_heads")),
                           int_attribute("kv_num_heads", op.int_attribute("kv_num_heads")),
                           float_attribute("scale", op.float_attribute("scale")),
                           string_attribute("update_rule", op.string_attribute("update_rule"))}};
  return run_as_standard(op, attention, op.has_input(3) ? op.input(3).dtype() : op.input(0).dtype());
}

constexpr OpRow kContribStateRows[] = {
    {"CausalConvWithState", kMicrosoft, 1, 1, op_contrib_causal_conv_with_state},
    {"LinearAttention", kMicrosoft, 1, 1, op_contrib_linear_attention},
};

}  // namespace

OpRows contrib_state_rows() { return kContribStateRows; }

}  // namespace parallax::reference
