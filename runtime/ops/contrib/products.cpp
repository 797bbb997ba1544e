// SPDX-License-Identifier: Apache-2.0
// Products of matrices with something fused to them: com.microsoft FusedMatMul, TransposeMatMul, FusedMatMulActivation,
// FusedGemm, GemmFastGelu, and our own Linear.
#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/activation.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/run_memory.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/families.h"
#include "runtime/ops/inner_op.h"
#include "runtime/ops/pointwise/activation_attributes.h"
#include "runtime/ops/products/matmul_shapes.h"

namespace parallax::runtime {
namespace {

using Context = OpContext<Cpu>;

// The operations on the product before it is stored; the tensors may be null.
struct Finish {
  const Tensor* bias = nullptr;
  const Tensor* residual = nullptr;
  Activation activation;
};

template <class C>
Result<std::shared_ptr<const C>> optional_values(Context& op, const Tensor* tensor) {
  if (tensor == nullptr) return std::shared_ptr<const C>();
  return converted<C>(op.queue(), tensor->view(), false);
}

template <class C>
Status multiply_as(Context& op, GemmProblem problem, const Tensor& a, const Tensor& b, const Finish& finish,
                   const MutableView& out) {
  const auto left = PX_TRY(converted<C>(op.queue(), a.view(), false));
  const auto bias = PX_TRY(optional_values<C>(op, finish.bias));
  const auto residual = PX_TRY(optional_values<C>(op, finish.residual));
  const bool direct = out.dtype == storage_of<C>();
  const MutableView wide = direct ? out : PX_TRY(op.scratch(storage_of<C>(), out.shape));
  C* target = reinterpret_cast<C*>(wide.data);
  const auto same = [](C x) { return x; };
  const int64_t rows = problem.m * problem.batch();
  if (op.wants_output(1)) {                                 // what the activation is of
    const auto made_outside = op.queue().memory().pause();  // runs are planned without it
    const MutableView shown = PX_TRY(op.make_output(1, out.dtype, out.shape));
    const MutableView sums = direct ? shown : PX_TRY(op.scratch(storage_of<C>(), out.shape));
    C* before = reinterpret_cast<C*>(sums.data);
    PX_TRY(gemm(op.queue(), problem, left.get(), b.view(), before));
    finish_rows_across<C>(rows, problem.n, bias.get(), residual.get(), finish.activation, before, target);
    if (!direct) map_as<C, C>(op.queue(), same, shown, std::array<TensorView, 1>{TensorView(sums)});
  } else {
    PX_TRY(gemm(op.queue(), problem, left.get(), b.view(), target));
    if (finish.activation.kind != Activation::Kind::none || bias != nullptr || residual != nullptr)
      finish_rows<C>(rows, problem.n, bias.get(), residual.get(), finish.activation, target);
  }
  if (direct) return {};
  map_as<C, C>(op.queue(), same, out, std::array<TensorView, 1>{TensorView(wide)});
  return {};
}

Status multiply(Context& op, const MatmulShapes& product, const Tensor& a, const Tensor& b, const Finish& finish) {
  const DType dtype = a.dtype();
  if (b.dtype() != dtype)
    return wrong_value("the element type of B", name_of(b.dtype()), "be that of A, {}", name_of(dtype));
  const MutableView out = PX_TRY(op.make_output(0, dtype, product.out));
  if (dtype == DType::float64) return multiply_as<double>(op, product.problem, a, b, finish, out);
  return multiply_as<float>(op, product.problem, a, b, finish, out);
}

Status fused_matmul(Context& op) {
  const Tensor a = PX_TRY(inner_batch_moved(op, 0, "transBatchA"));
  const Tensor b = PX_TRY(inner_batch_moved(op, 1, "transBatchB"));
  MatmulShapes product =
      PX_TRY(matmul_shapes(a.shape(), b.shape(), op.integer("transA") != 0, op.integer("transB") != 0));
  product.problem.alpha = op.real("alpha");
  product.problem.b_is_constant = op.is_constant(1) && b.view().data == op.input(1).view().data;
  Finish finish;
  finish.activation = PX_TRY(activation_of_product(op));
  return multiply(op, product, a, b, finish);
}

Status gemm_fast_gelu(Context& op) {
  MatmulShapes product = PX_TRY(matmul_shapes(op.input(0).shape(), op.input(1).shape()));
  product.problem.b_is_constant = op.is_constant(1);
  Finish finish;
  finish.activation.kind = Activation::Kind::fast_gelu;
  if (op.has_input(2)) finish.bias = &op.input(2);
  PX_TRY(fits_product(product, finish.bias));
  return multiply(op, product, op.input(0), op.input(1), finish);
}

Status linear(Context& op) {
  MatmulShapes product = PX_TRY(matmul_shapes(op.input(0).shape(), op.input(1).shape()));
  product.problem.b_is_constant = op.is_constant(1);
  Finish finish;
  finish.activation = PX_TRY(activation_of_conv(op));
  if (op.has_input(2)) finish.bias = &op.input(2);
  if (op.has_input(3)) finish.residual = &op.input(3);
  PX_TRY(fits_product(product, finish.bias, finish.residual));
  return multiply(op, product, op.input(0), op.input(1), finish);
}

// Gemm and its activation, applied to Gemm's own result.
Status fused_gemm(Context& op) {
  const InnerOp inner{"Gemm", 13, passed_on(op, {"alpha", "beta", "transA", "transB"})};
  std::vector<Value> inputs{op.value(0), op.value(1)};
  if (op.has_input(2)) inputs.push_back(op.value(2));
  const Activation activation = PX_TRY(activation_of_product(op));
  Tensor y = PX_TRY(run_inner(op, inner, inputs));
  if (y.dtype() == DType::float32) {
    finish_rows<float>(1, y.element_count(), nullptr, nullptr, activation, reinterpret_cast<float*>(y.storage().get()));
  } else {
    const MutableView view = writable(y);
    visit_activation(activation, [&](auto apply) {
      const Status ran = map<Floats>(op.queue(), apply, view, std::array<TensorView, 1>{TensorView(view)});
      PX_CHECK(ran.ok());
    });
  }
  op.set_output(0, std::move(y));
  return {};
}

constexpr KernelRow<Cpu> kContribProductRows[] = {
    where<has_known_activation>(contributed_row("FusedGemm", kFloats, fused_gemm)),
    contributed_row("FusedMatMul", kFloats, fused_matmul),
    where<has_known_activation>(contributed_row("FusedMatMulActivation", kFloats, fused_matmul)),
    contributed_row("GemmFastGelu", kFloats, gemm_fast_gelu),
    contributed_row("TransposeMatMul", kFloats, fused_matmul),
    contributed_row("Linear", kFloats, linear, 0, "parallax.fused"),
};

}  // namespace

template <>
Rows<Cpu> contrib_product_rows() {
  return kContribProductRows;
}

}  // namespace parallax::runtime
