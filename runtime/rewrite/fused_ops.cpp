// SPDX-License-Identifier: Apache-2.0
// The signatures of our own fused operators, in the format of inspector/model/opset/README.md.
#include "runtime/rewrite/fused_ops.h"

#include "inspector/base/check.h"
#include "inspector/model/opset/opset_registry.h"

namespace parallax::runtime {
namespace {

// DequantizedMatMul: A times DequantizeLinear(B, scale, zero_point) along axis 1, or in blocks along axis 0.
// ChannelAffine: activation(X * factor + offset), one factor and offset for each channel.
// ChannelShuffle: channel c of all inputs, one after the other, becomes channel c % (C / groups) * groups + c / (C /
// groups) of all outputs, one after the other, which are equal parts; of several inputs each is a group.
// Gated: activation(gate) * up.
// Pointwise: step i is `operators` i of the operands 2i and 2i + 1 (-1: none): inputs first, then results. The last is
// Y. Rotary: X * cosine + rotated(X) * sine, where the two halves (a, b) of a row are rotated to (-b, a), and axis i of
// X is axis x_order[i] of its tensor, the last one the last. Linear:
// activation(A B + bias) + residual, the products as MatMul has them, and A B + bias by itself. Conv: as
// com.microsoft.FusedConv, with more activations. Attention: softmax(scale * Q K + added + added_again) V, the scores
// replaced by hidden_value where hidden is hides_where; axis i of an operand is axis order[i] of its tensor, and axis
// order[i] of the result is axis i of Y; each head of K and V is repeated groups times.
constexpr std::string_view kTable = R"(domain parallax.fused 1

op Attention 1
  in Q T
  in K T
  in V T
  in added U optional
  in added_again W optional
  in hidden B optional
  out Y T
  attr hidden_value float = 0
  attr hides_where int = 1
  attr k_groups int = 1
  attr k_order ints
  attr no_number_is_zero int = 0
  attr q_order ints
  attr scale float = 1
  attr v_groups int = 1
  attr v_order ints
  attr y_order ints
  type B = bool
  type T = float float16 bfloat16
  type U = float float16 bfloat16
  type W = float float16 bfloat16

op ChannelAffine 1
  in X T
  in factor T
  in offset T
  out Y T
  attr activation string
  attr activation_params floats
  type T = float

op ChannelShuffle 1
  in inputs T variadic 1
  out outputs T variadic 1
  attr groups int
  type T = float

op Conv 1
  in X T
  in W T
  in B T optional
  in Z T optional
  out Y T
  attr activation string
  attr activation_params floats
  attr auto_pad string = "NOTSET"
  attr dilations ints
  attr group int = 1
  attr kernel_shape ints
  attr pads ints
  attr strides ints
  type T = float float16 double

op DequantizedMatMul 1
  in A T
  in B Q
  in scale T
  in zero_point Q optional
  out Y T
  attr block_size int = 0
  type Q = int8 uint8 int4 uint4
  type T = float

op Gated 1
  in gate T
  in up T
  out Y T
  attr activation string
  attr activation_params floats
  type T = float float16 bfloat16 double

op Linear 1
  in A T
  in B T
  in bias T optional
  in residual T optional
  out Y T
  out pre_activation T optional
  attr activation string
  attr activation_params floats
  type T = float float16 bfloat16 double

op Pointwise 1
  in inputs T variadic 1
  out Y T
  attr operators strings
  attr operands ints
  type T = float float16 bfloat16

op Rotary 1
  in X T
  in cosine T
  in sine T
  out Y T
  attr x_order ints
  type T = float float16 bfloat16
)";

}  // namespace

const OpSchema* fused_schema(std::string_view op) {
  static const OpsetRegistry registry = [] {
    const std::string_view tables[] = {kTable};
    auto parsed = OpsetRegistry::parse(tables);
    PX_CHECK(parsed.ok());
    return parsed.take();
  }();
  return registry.find(kFusedDomain, op, 1);
}

}  // namespace parallax::runtime
