// SPDX-License-Identifier: Apache-2.0
// The fused nodes on GPU devices: products and norms with the nodes around them, activations with a bias or a gate. The
// host has kernels of its own (contrib/products, contrib/activations, contrib/normalization, fused_pointwise).
#include <array>
#include <optional>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/rows/rows.h"
#include "runtime/device/gpu/library_product.h"
#include "runtime/device/run_memory.h"
#include "runtime/ops/fused_families.h"
#include "runtime/ops/norm_row.h"
#include "runtime/ops/on_gpu.h"
#include "runtime/ops/pointwise/activation_attributes.h"
#include "runtime/ops/products/matmul_shapes.h"

namespace parallax::runtime {
namespace {

// ---- Functors: one kernel for all activations, which is chosen the same way by every thread ----

struct AnyActivation {
  Activation::Kind kind;
  float alpha, beta;
  template <class T>
  PX_HD T operator()(T x) const {
    using Kind = Activation::Kind;
    using activation_detail::Apply;
    switch (kind) {
      case Kind::none:
        return x;
      case Kind::relu:
        return Apply<Kind::relu>{alpha, beta}(x);
      case Kind::sigmoid:
        return Apply<Kind::sigmoid>{alpha, beta}(x);
      case Kind::tanh:
        return Apply<Kind::tanh>{alpha, beta}(x);
      case Kind::leaky_relu:
        return Apply<Kind::leaky_relu>{alpha, beta}(x);
      case Kind::clip:
        return Apply<Kind::clip>{alpha, beta}(x);
      case Kind::hard_sigmoid:
        return Apply<Kind::hard_sigmoid>{alpha, beta}(x);
      case Kind::hard_swish:
        return Apply<Kind::hard_swish>{alpha, beta}(x);
      case Kind::softsign:
        return Apply<Kind::softsign>{alpha, beta}(x);
      case Kind::gelu:
        return Apply<Kind::gelu>{alpha, beta}(x);
      case Kind::fast_gelu:
        return Apply<Kind::fast_gelu>{alpha, beta}(x);
      case Kind::swish:
        return Apply<Kind::swish>{alpha, beta}(x);
    }
    return x;
  }
};

struct WithBias {
  AnyActivation apply;
  template <class T>
  PX_HD T operator()(T x, T bias) const {
    return apply(x + bias);
  }
};
struct WithResidual {
  AnyActivation apply;
  template <class T>
  PX_HD T operator()(T x, T residual) const {
    return apply(x) + residual;
  }
};
struct WithBoth {
  AnyActivation apply;
  template <class T>
  PX_HD T operator()(T x, T bias, T residual) const {
    return apply(x + bias) + residual;
  }
};
struct Gating {
  AnyActivation apply;
  template <class T>
  PX_HD T operator()(T gate, T up) const {
    return apply(gate) * up;
  }
};
struct WithScaled {
  AnyActivation apply;
  double beta;
  template <class T>
  PX_HD T operator()(T x, T c) const {
    return apply(x + static_cast<T>(beta) * c);
  }
};
struct SumOfTwo {
  template <class T>
  PX_HD T operator()(T a, T b) const {
    return a + b;
  }
};
struct SumOfThree {
  template <class T>
  PX_HD T operator()(T a, T b, T c) const {
    return a + b + c;
  }
};

// ---- Products ----

struct ProductFinish {
  const Tensor* bias = nullptr;      // one row
  const Tensor* residual = nullptr;  // as large as the result
  const Tensor* scaled = nullptr;    // times beta, broadcast: Gemm's C
  double beta = 1;
  Activation activation = {};
  std::optional<MutableView> pre_activation = {};  // where what the activation is of goes, too

  // The epilogue that a library may compute in the product's own pass; none where it has to do more.
  std::optional<Epilogue> epilogue() const {
    if (scaled != nullptr) return std::nullopt;
    if (activation.kind == Activation::Kind::none) return Epilogue::none;
    if (residual != nullptr) return std::nullopt;  // a library adds before it activates
    if (activation.kind == Activation::Kind::relu) return Epilogue::relu;
    if (activation.kind == Activation::Kind::fast_gelu) return Epilogue::tanh_gelu;
    return std::nullopt;
  }
};

template <class C, class Device>
Status finish_product(OpContext<Device>& op, const ProductFinish& finish, const MutableView& product,
                      const MutableView& out) {
  const AnyActivation apply{finish.activation.kind, finish.activation.alpha, finish.activation.beta};
  const TensorView x(product);
  if (finish.scaled != nullptr) {
    const std::array<TensorView, 2> operands{x, finish.scaled->view()};
    map_as<C, C>(op.queue(), WithScaled{apply, finish.beta}, out, operands);
  } else if (finish.bias != nullptr && finish.residual != nullptr) {
    const std::array<TensorView, 3> operands{x, finish.bias->view(), finish.residual->view()};
    map_as<C, C>(op.queue(), WithBoth{apply}, out, operands);
  } else if (finish.bias != nullptr) {
    map_as<C, C>(op.queue(), WithBias{apply}, out, std::array<TensorView, 2>{x, finish.bias->view()});
  } else if (finish.residual != nullptr) {
    map_as<C, C>(op.queue(), WithResidual{apply}, out, std::array<TensorView, 2>{x, finish.residual->view()});
  } else {
    map_as<C, C>(op.queue(), apply, out, std::array<TensorView, 1>{x});
  }
  return {};
}

template <class C, class Device>
Status multiply_as(OpContext<Device>& op, const GemmProblem& problem, const ProductFinish& finish,
                   const MutableView& out) {
  const auto a = PX_TRY(converted<C>(op.queue(), op.input(0).view(), false));
  const auto b = PX_TRY(converted<C>(op.queue(), op.input(1).view(), op.is_constant(1)));
  const bool direct = out.dtype == storage_of<C>();
  const MutableView wide = direct ? out : PX_TRY(op.scratch(storage_of<C>(), out.shape));
  PX_TRY(gemm(op.queue(), problem, a.get(), b.get(), reinterpret_cast<C*>(wide.data)));
  if (finish.pre_activation.has_value())
    PX_TRY(finish_product<C>(op, ProductFinish{.bias = finish.bias}, wide, *finish.pre_activation));
  const bool is_plain = finish.bias == nullptr && finish.residual == nullptr && finish.scaled == nullptr &&
                        finish.activation.kind == Activation::Kind::none;
  if (direct && is_plain) return {};
  return finish_product<C>(op, finish, wide, out);
}

// The product with its bias and its residual or activation, where the library's is ours. What the activation is of
// comes from the same pass, or, where the library does not keep it, from another product: the result is what it is
// unobserved.
template <class Device>
Result<bool> multiply_by_library(OpContext<Device>& op, const GemmProblem& problem, const ProductFinish& finish,
                                 const MutableView& out) {
  const auto epilogue = finish.epilogue();
  if (!epilogue.has_value() || (finish.bias != nullptr && finish.bias->dtype() != out.dtype)) return false;
  if (finish.residual != nullptr && finish.residual->dtype() != out.dtype) return false;
  EpilogueKind kind{*epilogue, out.dtype, finish.bias != nullptr};
  if (!PX_TRY(has_epilogue(op.queue(), kind))) return false;
  const TensorView bias = finish.bias == nullptr ? TensorView{} : finish.bias->view();
  LibraryProduct product{problem, op.input(0).view(), op.input(1).view(), bias, out, *epilogue};
  if (finish.residual != nullptr) product.residual = finish.residual->view();
  if (!finish.pre_activation.has_value()) return library_product(op.queue(), product);
  kind.keeps_sums = true;
  if (PX_TRY(has_epilogue(op.queue(), kind))) {
    product.pre_activation = *finish.pre_activation;
    if (PX_TRY(library_product(op.queue(), product))) return true;
    product.pre_activation = {};
  }
  if (!PX_TRY(library_product(op.queue(), product))) return false;
  product.c = *finish.pre_activation;
  product.epilogue = Epilogue::none;
  if (PX_TRY(library_product(op.queue(), product))) return true;
  PX_TRY(multiply_as<float>(op, problem, ProductFinish{.bias = finish.bias}, *finish.pre_activation));
  return true;
}

template <class Device>
Status multiply(OpContext<Device>& op, const MatmulShapes& shapes, ProductFinish finish) {
  const DType dtype = op.input(0).dtype();
  if (op.input(1).dtype() != dtype) return wrong_input(op, 1, "have the element type of A, {}", name_of(dtype));
  const MutableView out = PX_TRY(op.make_output(0, dtype, shapes.out));
  if (op.wants_output(1)) {
    const auto made_outside = op.queue().memory().pause();  // runs are planned without it
    finish.pre_activation = PX_TRY(op.make_output(1, dtype, shapes.out));
  }
  if (out.element_count() == 0 || PX_TRY(multiply_by_library(op, shapes.problem, finish, out))) return {};
  if (dtype == DType::float64) return multiply_as<double>(op, shapes.problem, finish, out);
  return multiply_as<float>(op, shapes.problem, finish, out);
}

template <class Device>
Status fused_matmul(OpContext<Device>& op) {
  MatmulShapes shapes = PX_TRY(
      matmul_shapes(op.input(0).shape(), op.input(1).shape(), op.integer("transA") != 0, op.integer("transB") != 0));
  shapes.problem.alpha = op.real("alpha");
  ProductFinish finish;
  finish.activation = PX_TRY(activation_of_product(op));
  return multiply(op, shapes, finish);
}
bool moves_no_batch(const Node& node) {
  for (const std::string_view name : {"transBatchA", "transBatchB"}) {
    const Attribute* attribute = find_attribute(node, name);
    const auto* flag = attribute == nullptr ? nullptr : std::get_if<int64_t>(&attribute->value);
    if (flag != nullptr && *flag != 0) return false;
  }
  return true;
}

template <class Device>
Status gemm_fast_gelu(OpContext<Device>& op) {
  const MatmulShapes shapes = PX_TRY(matmul_shapes(op.input(0).shape(), op.input(1).shape()));
  ProductFinish finish;
  finish.activation.kind = Activation::Kind::fast_gelu;
  if (op.has_input(2)) finish.bias = &op.input(2);
  PX_TRY(fits_product(shapes, finish.bias));
  return multiply(op, shapes, finish);
}

template <class Device>
Status linear(OpContext<Device>& op) {
  const MatmulShapes shapes = PX_TRY(matmul_shapes(op.input(0).shape(), op.input(1).shape()));
  ProductFinish finish;
  finish.activation = PX_TRY(activation_of_conv(op));
  if (op.has_input(2)) finish.bias = &op.input(2);
  if (op.has_input(3)) finish.residual = &op.input(3);
  PX_TRY(fits_product(shapes, finish.bias, finish.residual));
  return multiply(op, shapes, finish);
}

template <class Device>
Status fused_gemm(OpContext<Device>& op) {
  if (op.input(0).shape().rank() != 2 || op.input(1).shape().rank() != 2)
    return wrong_input(op, op.input(0).shape().rank() != 2 ? 0 : 1, "have rank 2");
  MatmulShapes shapes = PX_TRY(
      matmul_shapes(op.input(0).shape(), op.input(1).shape(), op.integer("transA") != 0, op.integer("transB") != 0));
  shapes.problem.alpha = op.real("alpha");
  ProductFinish finish;
  finish.activation = PX_TRY(activation_of_product(op));
  if (op.has_input(2)) {
    finish.scaled = &op.input(2);
    finish.beta = op.real("beta");
    const Shape both[] = {finish.scaled->shape(), shapes.out};
    if (!(PX_TRY(broadcast_shapes(both)) == shapes.out))
      return wrong_input(op, 2, "broadcast to the shape of the product, {}", shapes.out.to_string());
  }
  return multiply(op, shapes, finish);
}

// ---- Activations ----

// y = activation(x + bias), the bias (input 1) one row where it is given.
template <class Device>
Status biased(OpContext<Device>& op, const Activation& activation) {
  const Tensor& x = op.input(0);
  ProductFinish finish;
  finish.activation = activation;
  if (op.has_input(1)) finish.bias = &op.input(1);
  const Ints dims(x.shape());
  if (finish.bias != nullptr && (dims.empty() || !(finish.bias->shape() == Shape{dims.back()}))) {
    return wrong_input(op, 1, "have one element for each column of X, {}", x.shape().to_string());
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  const MutableView in{x.dtype(), x.shape(), const_cast<std::byte*>(x.view().data), x.device()};
  if (x.dtype() == DType::float64) return finish_product<double>(op, finish, in, y);
  return finish_product<float>(op, finish, in, y);
}

template <class Device>
Status bias_gelu(OpContext<Device>& op) {
  return biased(op, {Activation::Kind::gelu});
}
template <class Device>
Status fast_gelu(OpContext<Device>& op) {
  return biased(op, {Activation::Kind::fast_gelu});
}
template <class Device>
Status quick_gelu(OpContext<Device>& op) {
  return biased(op, {Activation::Kind::swish, static_cast<float>(op.real("alpha"))});
}

template <class Device>
Status gated(OpContext<Device>& op) {
  const Activation activation = PX_TRY(activation_of_conv(op));
  const Tensor& gate = op.input(0);
  const Shape shapes[] = {gate.shape(), op.input(1).shape()};
  const Shape shape = PX_TRY(broadcast_shapes(shapes));
  const MutableView y = PX_TRY(op.make_output(0, gate.dtype(), shape));
  const std::array<TensorView, 2> operands{gate.view(), op.input(1).view()};
  const Gating gating{{activation.kind, activation.alpha, activation.beta}};
  if (gate.dtype() == DType::float64) {
    map_as<double, double>(op.queue(), gating, y, operands);
  } else {
    map_as<float, float>(op.queue(), gating, y, operands);
  }
  return {};
}

// ---- The sum with a residual, and its norm ----

// A row of parameters as float.
template <class Device>
Result<const float*> row_of(OpContext<Device>& op, int64_t index, int64_t columns,
                            std::shared_ptr<const float>& keeper) {
  if (!op.has_input(index)) return static_cast<const float*>(nullptr);
  if (op.input(index).element_count() != columns)
    return wrong_input(op, index, "have {} elements, one for each column", columns);
  keeper = PX_TRY(converted<float>(op.queue(), op.input(index).view(), op.is_constant(index)));
  return keeper.get();
}

template <class Device>
Status skip_norm(OpContext<Device>& op, bool centered, int64_t beta, int64_t bias) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape());
  const Shape shapes[] = {x.shape(), op.input(1).shape()};
  if (dims.size() < 2 || dims.back() == 0 || !(PX_TRY(broadcast_shapes(shapes)) == x.shape()))
    return wrong_input(op, 1, "broadcast to input, {}, of rank 2 or more and with columns", x.shape().to_string());
  const int64_t columns = dims.back();
  std::array<std::shared_ptr<const float>, 2> kept;
  const float* scale = PX_TRY(row_of(op, 2, columns, kept[0]));
  const float* shift = beta < 0 ? nullptr : PX_TRY(row_of(op, beta, columns, kept[1]));
  const MutableView sum = PX_TRY(op.scratch(DType::float32, x.shape()));
  if (op.has_input(bias)) {
    if (op.input(bias).element_count() != columns)
      return wrong_input(op, bias, "have {} elements, one for each column", columns);
    const TensorView row = op.input(bias).reshaped(Shape{columns}).view();
    map_as<float, float>(op.queue(), SumOfThree{}, sum, std::array<TensorView, 3>{x.view(), op.input(1).view(), row});
  } else {
    map_as<float, float>(op.queue(), SumOfTwo{}, sum, std::array<TensorView, 2>{x.view(), op.input(1).view()});
  }
  if (op.wants_output(3)) {
    const MutableView shown = PX_TRY(op.make_output(3, x.dtype(), x.shape()));
    map_as<float, float>(op.queue(), Same{}, shown, std::array<TensorView, 1>{TensorView(sum)});
  }
  Ints statistic_dims = dims;
  statistic_dims[dims.size() - 1] = 1;
  std::array<MutableView, 2> statistics;
  for (int64_t i = 0; i < 2; ++i) {
    if (op.wants_output(1 + i))
      statistics[static_cast<size_t>(i)] = PX_TRY(op.make_output(1 + i, DType::float32, shape_of(statistic_dims)));
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  const NormRow<Device, float> norm{static_cast<float>(op.real("epsilon")),
                                    centered,
                                    {scale},
                                    {shift},
                                    target_of(statistics[0]),
                                    target_of(statistics[1])};
  scan_rows<float, float>(op.queue(), norm, RowLayout{x.element_count() / columns, columns, 1}, y, TensorView(sum), 2);
  return {};
}

template <class Device>
Status skip_layer_norm(OpContext<Device>& op) {
  return skip_norm(op, true, 3, 4);
}
template <class Device>
Status skip_rms_norm(OpContext<Device>& op) {
  return skip_norm(op, false, -1, 3);
}

// ---- The rows ----

template <class Device>
constexpr KernelRow<Device> row_of_domain(std::string_view op, uint32_t dtypes, Kernel<Device> run,
                                          std::string_view domain = "com.microsoft") {
  KernelRow<Device> row{op, dtypes, run};
  row.domain = domain;
  return row;
}
template <class Device>
constexpr KernelRow<Device> of_some(bool (*supports)(const Node&), KernelRow<Device> row) {
  row.supports = supports;
  return row;
}

bool is_product_in_place(const Node& node) { return moves_no_batch(node) && has_known_activation(node); }

template <class Device>
constexpr KernelRow<Device> kFusedOnGpuRows[] = {
    row_of_domain<Device>("BiasGelu", kFloats, PX_ON_GPU(bias_gelu<Device>)),
    row_of_domain<Device>("FastGelu", kFloats, PX_ON_GPU(fast_gelu<Device>)),
    of_some(has_known_activation, row_of_domain<Device>("FusedGemm", kFloats, PX_ON_GPU(fused_gemm<Device>))),
    of_some(moves_no_batch, row_of_domain<Device>("FusedMatMul", kFloats, PX_ON_GPU(fused_matmul<Device>))),
    of_some(is_product_in_place,
            row_of_domain<Device>("FusedMatMulActivation", kFloats, PX_ON_GPU(fused_matmul<Device>))),
    row_of_domain<Device>("GemmFastGelu", kFloats, PX_ON_GPU(gemm_fast_gelu<Device>)),
    row_of_domain<Device>("QuickGelu", kFloats, PX_ON_GPU(quick_gelu<Device>)),
    row_of_domain<Device>("SkipLayerNormalization", kNarrowFloats, PX_ON_GPU(skip_layer_norm<Device>)),
    row_of_domain<Device>("SkipSimplifiedLayerNormalization", kNarrowFloats, PX_ON_GPU(skip_rms_norm<Device>)),
    of_some(moves_no_batch, row_of_domain<Device>("TransposeMatMul", kFloats, PX_ON_GPU(fused_matmul<Device>))),
    row_of_domain<Device>("Gated", kFloats, PX_ON_GPU(gated<Device>), "parallax.fused"),
    row_of_domain<Device>("Linear", kFloats, PX_ON_GPU(linear<Device>), "parallax.fused"),
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> fused_on_gpu_rows() {
  return kFusedOnGpuRows<CompiledDevice>;
}

}  // namespace parallax::runtime
