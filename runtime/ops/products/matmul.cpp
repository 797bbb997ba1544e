// SPDX-License-Identifier: Apache-2.0
// MatMul, Gemm and the integer products: shapes and batches here, the arithmetic in the device's gemm.
#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/gpu/library_product.h"
#include "runtime/ops/families.h"
#include "runtime/ops/products/matmul_shapes.h"

namespace parallax::runtime {
namespace {

// Float16 as it is, where a GPU's library multiplies them so: sums in float32, rounded once, as below.
template <class Device>
Result<bool> multiply_float16(OpContext<Device>& op, const GemmProblem& problem, const TensorView& bias,
                              const MutableView& out) {
  if constexpr (GpuDevice<Device>) {
    if (out.dtype != DType::float16 && out.dtype != DType::bfloat16) return false;
    return library_product(op.queue(), {problem, op.input(0).view(), op.input(1).view(), bias, out});
  } else {
    return false;
  }
}

// The product with input `b_input` in whatever type it is stored.
template <class C, class Device>
Status product_of(OpContext<Device>& op, const GemmProblem& problem, const C* a, int64_t b_input, C* c) {
  if constexpr (std::is_same_v<Device, Cpu> && std::is_floating_point_v<C>) {
    return gemm(op.queue(), problem, a, op.input(b_input).view(), c);
  } else {
    const auto b = PX_TRY(converted<C>(op.queue(), op.input(b_input).view(), op.is_constant(b_input)));
    return gemm(op.queue(), problem, a, b.get(), c);
  }
}

// Computes in C and stores with one rounding to the output's type.
template <class C, class Device>
Status multiply(OpContext<Device>& op, GemmProblem problem, int64_t a_input, int64_t b_input, const MutableView& out) {
  if (PX_TRY(multiply_float16(op, problem, {}, out))) return {};
  problem.b_is_constant = op.is_constant(b_input);
  const auto a = PX_TRY(converted<C>(op.queue(), op.input(a_input).view(), false));
  if (out.dtype == storage_of<C>()) {
    return product_of<C>(op, problem, a.get(), b_input, reinterpret_cast<C*>(out.data));
  }
  const MutableView wide = PX_TRY(op.scratch(storage_of<C>(), out.shape));
  PX_TRY(product_of<C>(op, problem, a.get(), b_input, reinterpret_cast<C*>(wide.data)));
  map_as<C, C>(op.queue(), Same{}, out, std::array<TensorView, 1>{TensorView(wide)});
  return {};
}

template <class Device>
Status matmul(OpContext<Device>& op) {
  const DType dtype = op.input(0).dtype();
  if (op.input(1).dtype() != dtype) return wrong_input(op, 1, "have the element type of A, {}", name_of(dtype));
  const MatmulShapes shapes = PX_TRY(matmul_shapes(op.input(0).shape(), op.input(1).shape()));
  const MutableView out = PX_TRY(op.make_output(0, dtype, shapes.out));
  switch (arithmetic_of(dtype)) {
    case Arithmetic::float32:
      return multiply<float>(op, shapes.problem, 0, 1, out);
    case Arithmetic::float64:
      return multiply<double>(op, shapes.problem, 0, 1, out);
    case Arithmetic::int64:
      return multiply<int64_t>(op, shapes.problem, 0, 1, out);
    case Arithmetic::uint64:  // the same bits modulo 2^64
      return gemm(op.queue(), shapes.problem, reinterpret_cast<const int64_t*>(op.input(0).view().data),
                  reinterpret_cast<const int64_t*>(op.input(1).view().data), reinterpret_cast<int64_t*>(out.data));
    default:
      return unsupported_dtype(dtype);
  }
}

// ---- Gemm ----

// The product with beta times C.
template <class C>
struct PlusScaled {
  C beta;
  PX_HD C operator()(C product, C c) const { return product + beta * c; }
};

// Gemm's C as a bias: one row, taken once.
template <class Device>
bool is_bias(OpContext<Device>& op, const MutableView& out) {
  return op.real("beta") == 1.0 && op.input(2).dtype() == out.dtype && op.input(2).shape() == Shape{out.shape[1]};
}

template <class C, class Device>
Status gemm_as(OpContext<Device>& op, const GemmProblem& problem, const MutableView& out) {
  if (op.has_input(2)) {
    const Shape shapes[] = {op.input(2).shape(), out.shape};
    if (!(PX_TRY(broadcast_shapes(shapes)) == out.shape))
      return wrong_input(op, 2, "broadcast to the shape of the product, {}", out.shape.to_string());
  }
  if (!op.has_input(2) || is_bias(op, out)) {
    const TensorView bias = op.has_input(2) ? op.input(2).view() : TensorView{};
    if (PX_TRY(multiply_float16(op, problem, bias, out))) return {};
  }
  const bool direct = out.dtype == storage_of<C>();
  const MutableView wide = direct ? out : PX_TRY(op.scratch(storage_of<C>(), out.shape));
  C* target = reinterpret_cast<C*>(wide.data);
  const auto a = PX_TRY(converted<C>(op.queue(), op.input(0).view(), false));
  PX_TRY(product_of<C>(op, problem, a.get(), 1, target));
  if (op.has_input(2)) {  // added to the whole product, whose weights may be packed
    const PlusScaled<C> sum{static_cast<C>(op.real("beta"))};
    map_as<C, C>(op.queue(), sum, out, std::array<TensorView, 2>{TensorView(wide), op.input(2).view()});
  } else if (!direct) {
    map_as<C, C>(op.queue(), Same{}, out, std::array<TensorView, 1>{TensorView(wide)});
  }
  return {};
}

// alpha * product + beta * C in integers where both factors are whole numbers, else truncated.
struct ScaledSum {
  double alpha, beta;
  PX_HD int64_t operator()(int64_t product, int64_t c) const {
    const auto a = static_cast<int64_t>(alpha), b = static_cast<int64_t>(beta);
    if (static_cast<double>(a) == alpha && static_cast<double>(b) == beta) {
      return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(product) +
                                  static_cast<uint64_t>(b) * static_cast<uint64_t>(c));
    }
    return static_cast<int64_t>(alpha * static_cast<double>(product) + beta * static_cast<double>(c));
  }
};

// A matrix [rows, columns] as int64; of its transpose where it is stored so.
template <class Device>
Result<const int64_t*> integer_matrix(OpContext<Device>& op, int64_t input, int64_t rows, int64_t columns,
                                      bool transposed) {
  const MutableView wide = PX_TRY(op.scratch(DType::int64, Shape{rows, columns}));
  const MutableView stored = transposed ? PX_TRY(op.scratch(DType::int64, Shape{columns, rows})) : wide;
  map_as<int64_t, int64_t>(op.queue(), Same{}, stored, std::array<TensorView, 1>{op.input(input).view()});
  if (transposed) {
    copy_strided(op.queue(), sizeof(int64_t), {rows, columns}, {wide.data, {columns, 1}, 0},
                 {stored.data, {1, rows}, 0});
  }
  return reinterpret_cast<const int64_t*>(wide.data);
}

template <class Device>
Status integer_gemm(OpContext<Device>& op, const GemmProblem& given, const MutableView& out) {
  const int64_t* a = PX_TRY(integer_matrix(op, 0, given.m, given.k, given.transpose_a));
  const int64_t* b = PX_TRY(integer_matrix(op, 1, given.k, given.n, given.transpose_b));
  GemmProblem problem;
  problem.m = given.m;
  problem.n = given.n;
  problem.k = given.k;
  const MutableView product = PX_TRY(op.scratch(DType::int64, out.shape));
  if (given.k == 0) {
    fill(op.queue(), product, nullptr);
  } else {
    PX_TRY(gemm(op.queue(), problem, a, b, reinterpret_cast<int64_t*>(product.data)));
  }
  TensorView c(product);
  ScaledSum sum{given.alpha, 0.0};
  if (op.has_input(2)) {
    c = op.input(2).view();
    sum.beta = op.real("beta");
    const Shape shapes[] = {c.shape, out.shape};
    if (!(PX_TRY(broadcast_shapes(shapes)) == out.shape))
      return wrong_input(op, 2, "broadcast to the shape of the product, {}", out.shape.to_string());
  }
  map_as<int64_t, int64_t>(op.queue(), sum, out, std::array<TensorView, 2>{TensorView(product), c});
  return {};
}

template <class Device>
Status general_product(OpContext<Device>& op) {
  const Ints a(op.input(0).shape()), b(op.input(1).shape());
  if (a.size() != 2 || b.size() != 2) return wrong_input(op, a.size() != 2 ? 0 : 1, "have rank 2");
  GemmProblem problem;
  problem.transpose_a = op.integer("transA") != 0;
  problem.transpose_b = op.integer("transB") != 0;
  problem.alpha = op.real("alpha");
  problem.m = a[problem.transpose_a ? 1 : 0];
  problem.k = a[problem.transpose_a ? 0 : 1];
  problem.n = b[problem.transpose_b ? 0 : 1];
  if (b[problem.transpose_b ? 1 : 0] != problem.k)
    return wrong_input(op, 1, "have {} rows to be multiplied with A {}", problem.k, op.input(0).shape().to_string());
  problem.b_is_constant = op.is_constant(1);
  const DType dtype = op.input(0).dtype();
  const MutableView out = PX_TRY(op.make_output(0, dtype, Shape{problem.m, problem.n}));
  if (is_integer(dtype)) return integer_gemm(op, problem, out);
  if (dtype == DType::float64) return gemm_as<double>(op, problem, out);
  return gemm_as<float>(op, problem, out);
}

template <class Device>
constexpr KernelRow<Device> kMatmulRows[] = {
    {"Gemm", kReals, general_product<Device>},
    {"MatMul", kReals, matmul<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> matmul_rows() {
  return kMatmulRows<CompiledDevice>;
}

}  // namespace parallax::runtime
