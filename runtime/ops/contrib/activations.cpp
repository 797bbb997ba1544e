// SPDX-License-Identifier: Apache-2.0
// com.microsoft's activations and what is fused in front of them, on the host: BiasGelu, FastGelu, QuickGelu,
// BiasSplitGelu, BiasAdd, BiasDropout. Formulas: onnxruntime's ContribOperators.md.
#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/activation.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/families.h"

namespace parallax::runtime {
namespace {

using Context = OpContext<Cpu>;

// y = activation(x + bias), the bias (input 1) one row where it is given.
Status biased(Context& op, const Activation& activation) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape());
  const bool has_bias = op.has_input(1);
  const int64_t columns = dims.empty() ? 1 : dims.back();
  if (has_bias && (dims.empty() || !(op.input(1).shape() == Shape{columns}))) {
    return wrong_input(op, 1, "have one element for each column of X, {}", x.shape().to_string());
  }
  const MutableView y = PX_TRY(op.make_output_over(0, x.dtype(), x.shape(), {0}));
  visit_activation(activation, [&](auto apply) {
    const auto with_bias = [apply](auto value, auto add) { return apply(value + add); };
    const Status ran =
        has_bias ? map<Floats>(op.queue(), with_bias, y, std::array<TensorView, 2>{x.view(), op.input(1).view()})
                 : map<Floats>(op.queue(), apply, y, std::array<TensorView, 1>{x.view()});
    PX_CHECK(ran.ok());  // the rows name floats alone
  });
  return {};
}

Status gelu(Context& op) { return biased(op, {Activation::Kind::gelu}); }
Status fast_gelu(Context& op) { return biased(op, {Activation::Kind::fast_gelu}); }
Status quick_gelu(Context& op) { return biased(op, {Activation::Kind::swish, static_cast<float>(op.real("alpha"))}); }

struct AddThree {
  template <class T>
  T operator()(T x, T bias, T skip) const {
    return x + bias + skip;
  }
};
struct AddTwo {
  template <class T>
  T operator()(T x, T y) const {
    return x + y;
  }
};

// X + bias + skip.
Status bias_add(Context& op) {
  const Tensor& x = op.input(0);
  if (x.shape().rank() != 3 || !(op.input(1).shape() == Shape{x.shape()[2]}) || !(op.input(2).shape() == x.shape()))
    return wrong_input(op, 0, "be [N,S,C], bias, {}, be [C] and skip, {}, have the shape of X",
                       op.input(1).shape().to_string(), op.input(2).shape().to_string());
  const MutableView y = PX_TRY(op.make_output_over(0, x.dtype(), x.shape(), {0, 2}));
  return map<Floats>(op.queue(), AddThree{}, y,
                     std::array<TensorView, 3>{x.view(), op.input(1).view(), op.input(2).view()});
}

// X + bias cut in two along the last axis; the left part times Gelu of the right.
Status bias_split_gelu(Context& op) {
  const Tensor& x = op.input(0);
  if (x.shape().rank() != 3 || x.shape()[2] % 2 != 0 || !(op.input(1).shape() == Shape{x.shape()[2]}))
    return wrong_input(op, 0, "be [N,S,D] with an even D, and bias, {}, be [D]", op.input(1).shape().to_string());
  const int64_t half = x.shape()[2] / 2;
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), Shape{x.shape()[0], x.shape()[1], half}));
  return visit_arithmetic<Floats>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    const activation_detail::Apply<Activation::Kind::gelu> gelu_of{0, 0};
    parallel_for(x.shape()[0] * x.shape()[1], half * 8, [&](int64_t begin, int64_t end) {
      std::vector<C> row(static_cast<size_t>(2 * half)), bias(static_cast<size_t>(2 * half));
      load_block<C>(op.input(1).dtype(), op.input(1).view().data, 0, 1, 2 * half, bias.data());
      for (int64_t at = begin; at < end; ++at) {
        load_block<C>(x.dtype(), x.view().data, at * 2 * half, 1, 2 * half, row.data());
        const C* in = row.data();
        const C* add = bias.data();
        C* out = row.data();
        vectorized(0, half, [=](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) out[i] = (in[i] + add[i]) * gelu_of(in[i + half] + add[i + half]);
        });
        store_block<C>(y.dtype, y.data, at * half, half, row.data());
      }
    });
    return {};
  });
}

// data + bias + residual; the mask is all true.
Status bias_dropout(Context& op) {
  const Tensor& x = op.input(0);
  if (x.shape().rank() < 1 || !(op.input(1).shape() == Shape{x.shape()[x.shape().rank() - 1]}) ||
      (op.has_input(2) && !(op.input(2).shape() == x.shape())))
    return wrong_input(op, 0, "have rank 1 or more, bias, {}, be as long as its last axis, and residual have its shape",
                       op.input(1).shape().to_string());
  if (op.has_input(4) && PX_TRY(op.integer_of_input(4)) != 0) {
    const double ratio = op.has_input(3) ? PX_TRY(op.real_of_input(3)) : 0.5;
    if (ratio != 0.0) return unsupported("training with a ratio above 0: its random numbers are onnxruntime's own");
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  if (op.has_input(2)) {
    PX_TRY(map<Floats>(op.queue(), AddThree{}, y,
                       std::array<TensorView, 3>{x.view(), op.input(1).view(), op.input(2).view()}));
  } else {
    PX_TRY(map<Floats>(op.queue(), AddTwo{}, y, std::array<TensorView, 2>{x.view(), op.input(1).view()}));
  }
  if (!op.wants_output(1)) return {};
  const MutableView mask = PX_TRY(op.make_output(1, DType::bool_, x.shape()));
  std::fill_n(mask.data, x.element_count(), std::byte{1});
  return {};
}

constexpr KernelRow<Cpu> kContribActivationRows[] = {
    contributed_row("BiasAdd", kFloats, bias_add),   contributed_row("BiasDropout", kFloats, bias_dropout),
    contributed_row("BiasGelu", kFloats, gelu),      contributed_row("BiasSplitGelu", kFloats, bias_split_gelu),
    contributed_row("FastGelu", kFloats, fast_gelu), contributed_row("QuickGelu", kFloats, quick_gelu),
};

}  // namespace

template <>
Rows<Cpu> contrib_activation_rows() {
  return kContribActivationRows;
}

}  // namespace parallax::runtime
