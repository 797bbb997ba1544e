// The signatures of our own fused operators, in the format of inspector/model/opset/README.md.
#include "runtime/rewrite/fused_ops.h"

#include "inspector/base/check.h"
#include "inspector/model/opset_registry.h"

namespace parallax::runtime {
namespace {

// Gated: activation(gate) * up.
// Pointwise: step i is `operators` i of the operands 2i and 2i + 1 (-1: none): inputs first, then results. The last is
// Y. Rotary: X * cosine + rotated(X) * sine, where the halves (a, b) of a row are rotated to (-b, a). Linear:
// activation(A B + bias) + residual, the products as MatMul has them. Conv: as com.microsoft.FusedConv, with more
// activations.
constexpr std::string_view kTable = R"(domain parallax.fused 1

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
  attr activation string
  attr activation_params floats
  type T = float float16 bfloat16 double

op Pointwise 1
  in inputs T variadic 1
  out Y T
  attr operators strings
  attr operands ints
  type T = float

op Rotary 1
  in X T
  in cosine T
  in sine T
  out Y T
  type T = float
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
