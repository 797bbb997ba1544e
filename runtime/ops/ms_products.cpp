// Products of matrices with something fused to them: com.microsoft FusedMatMul, TransposeMatMul, FusedMatMulActivation,
// FusedGemm, GemmFastGelu, and our own Linear.
#include <fmt/format.h>

#include "runtime/device/activation.h"
#include "runtime/device/gemm.h"
#include "runtime/ops/activation_attributes.h"
#include "runtime/ops/families.h"
#include "runtime/ops/inner_op.h"

namespace parallax::runtime {
namespace {

using Context = OpContext<Cpu>;

struct Product {
  GemmProblem problem;
  Shape out;
};

// numpy.matmul of A and B with their last two axes swapped where the flags say so; vectors are never swapped.
Result<Product> product_of(const Shape& a_shape, const Shape& b_shape, bool transpose_a, bool transpose_b) {
  Ints a(a_shape), b(b_shape);
  if (a.empty() || b.empty()) return execution_error("a product of matrices needs operands of rank 1 or more");
  const bool a_is_vector = a.size() == 1;
  const bool b_is_vector = b.size() == 1;
  if (a_is_vector) a.insert(0, 1);
  if (b_is_vector) b.insert(1, 1);
  Product result;
  GemmProblem& problem = result.problem;
  problem.transpose_a = transpose_a && !a_is_vector;
  problem.transpose_b = transpose_b && !b_is_vector;
  problem.m = a[a.size() - (problem.transpose_a ? 1 : 2)];
  problem.k = a[a.size() - (problem.transpose_a ? 2 : 1)];
  problem.n = b[b.size() - (problem.transpose_b ? 2 : 1)];
  if (b[b.size() - (problem.transpose_b ? 1 : 2)] != problem.k) {
    return execution_error(fmt::format("shapes {} and {} do not multiply", a_shape.to_string(), b_shape.to_string()));
  }
  const Shape a_batch(std::span<const int64_t>(a.data(), static_cast<size_t>(a.size() - 2)));
  const Shape b_batch(std::span<const int64_t>(b.data(), static_cast<size_t>(b.size() - 2)));
  const Shape batches[] = {a_batch, b_batch};
  const Shape batch = PX_TRY(broadcast_shapes(batches));
  Ints out(batch);
  if (!a_is_vector) out.push_back(problem.m);
  if (!b_is_vector) out.push_back(problem.n);
  result.out = PX_TRY(shape_of(out));
  if (b_batch.element_count() == 1 && a_batch.element_count() == batch.element_count() && !problem.transpose_a) {
    problem.m *= batch.element_count();  // one tall product
    return result;
  }
  const Ints a_strides = broadcast_strides(a_batch, batch);
  const Ints b_strides = broadcast_strides(b_batch, batch);
  problem.a_offsets = Ints(batch.element_count());
  problem.b_offsets = Ints(batch.element_count());
  for (int64_t i = 0; i < batch.element_count(); ++i) {
    int64_t rest = i;
    for (int64_t axis = rank_of(batch) - 1; axis >= 0; --axis) {
      problem.a_offsets[i] += rest % dim_of(batch, axis) * a_strides[axis] * problem.m * problem.k;
      problem.b_offsets[i] += rest % dim_of(batch, axis) * b_strides[axis] * problem.k * problem.n;
      rest /= dim_of(batch, axis);
    }
  }
  return result;
}

// What is done to the product before it is stored; the tensors may be null.
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
  const auto right = PX_TRY(converted<C>(op.queue(), b.view(), problem.b_is_constant));
  const auto bias = PX_TRY(optional_values<C>(op, finish.bias));
  const auto residual = PX_TRY(optional_values<C>(op, finish.residual));
  const bool direct = out.dtype == storage_of<C>();
  const MutableView wide = direct ? out : PX_TRY(op.scratch(storage_of<C>(), out.shape));
  C* target = reinterpret_cast<C*>(wide.data);
  PX_TRY(gemm(op.queue(), problem, left.get(), right.get(), target));
  if (finish.activation.kind != Activation::Kind::none || bias != nullptr || residual != nullptr) {
    finish_rows<C>(problem.m * problem.batch(), problem.n, bias.get(), residual.get(), finish.activation, target);
  }
  if (direct) return {};
  const auto same = [](C x) { return x; };
  map_as<C, C>(op.queue(), same, out, std::array<TensorView, 1>{TensorView(wide)});
  return {};
}

Status multiply(Context& op, const Product& product, const Tensor& a, const Tensor& b, const Finish& finish) {
  const DType dtype = a.dtype();
  if (b.dtype() != dtype) return execution_error("A and B have different element types");
  const MutableView out = PX_TRY(op.make_output(0, dtype, product.out));
  if (dtype == DType::float64) return multiply_as<double>(op, product.problem, a, b, finish, out);
  return multiply_as<float>(op, product.problem, a, b, finish, out);
}

// transBatch: the first axis becomes the last but one, which makes [S, B, H] into [B, S, H].
Result<Tensor> batch_moved(Context& op, int64_t index, std::string_view flag) {
  const Tensor& tensor = op.input(index);
  const int64_t rank = rank_of(tensor.shape());
  if (op.find_integer(flag).value_or(0) == 0 || rank < 2) return tensor;
  std::vector<int64_t> order;
  for (int64_t axis = 1; axis + 1 < rank; ++axis) order.push_back(axis);
  order.insert(order.end(), {0, rank - 1});
  return inner_transpose(op, tensor, std::move(order));
}

Status fused_matmul(Context& op) {
  const Tensor a = PX_TRY(batch_moved(op, 0, "transBatchA"));
  const Tensor b = PX_TRY(batch_moved(op, 1, "transBatchB"));
  Product product = PX_TRY(product_of(a.shape(), b.shape(), op.integer("transA") != 0, op.integer("transB") != 0));
  product.problem.alpha = op.real("alpha");
  product.problem.b_is_constant = op.is_constant(1) && b.view().data == op.input(1).view().data;
  Finish finish;
  finish.activation = PX_TRY(activation_of_product(op));
  return multiply(op, product, a, b, finish);
}

Status gemm_fast_gelu(Context& op) {
  Product product = PX_TRY(product_of(op.input(0).shape(), op.input(1).shape(), false, false));
  product.problem.b_is_constant = op.is_constant(1);
  Finish finish;
  finish.activation.kind = Activation::Kind::fast_gelu;
  if (op.has_input(2)) {
    finish.bias = &op.input(2);
    if (!(finish.bias->shape() == Shape{product.problem.n})) return execution_error("the bias must be one row");
  }
  return multiply(op, product, op.input(0), op.input(1), finish);
}

Status linear(Context& op) {
  Product product = PX_TRY(product_of(op.input(0).shape(), op.input(1).shape(), false, false));
  product.problem.b_is_constant = op.is_constant(1);
  Finish finish;
  finish.activation = PX_TRY(activation_of_conv(op));
  if (op.has_input(2)) finish.bias = &op.input(2);
  if (op.has_input(3)) finish.residual = &op.input(3);
  if (finish.bias != nullptr && !(finish.bias->shape() == Shape{product.problem.n}))
    return execution_error("the bias must be one row");
  if (finish.residual != nullptr && !(finish.residual->shape() == product.out))
    return execution_error("the residual does not have the product's shape");
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

constexpr KernelRow<Cpu> row(std::string_view op, Kernel<Cpu> run, std::string_view domain = "com.microsoft") {
  KernelRow<Cpu> made{op, kFloats, run};
  made.domain = domain;
  return made;
}

constexpr KernelRow<Cpu> kRows[] = {
    row("FusedGemm", fused_gemm),
    row("FusedMatMul", fused_matmul),
    row("FusedMatMulActivation", fused_matmul),
    row("GemmFastGelu", gemm_fast_gelu),
    row("TransposeMatMul", fused_matmul),
    row("Linear", linear, "parallax.fused"),
};

}  // namespace

template <>
Rows<Cpu> ms_product_rows() {
  return kRows;
}

}  // namespace parallax::runtime
