// SPDX-License-Identifier: Apache-2.0
// Gated, Rotary and Pointwise: what rewriting makes of several pointwise nodes, so that a tensor is walked once and not
// once for each of them. They compute each element by the very same steps, so the results have the same bits. The
// kernels of GPUs are in fused_pointwise_on_gpu.cpp.
#include <array>
#include <functional>

#include "runtime/device/cpu/map.h"
#include "runtime/device/gpu/pointwise_kernel.h"
#include "runtime/ops/fused_families.h"
#include "runtime/ops/pointwise/activation_attributes.h"
#include "runtime/ops/pointwise/binary_functors.h"
#include "runtime/ops/pointwise/pointwise_program.h"
#include "runtime/ops/pointwise/unary_functors.h"

namespace parallax::runtime {
namespace {

using Context = OpContext<Cpu>;

// ---- Gated: activation(gate) * up ----

Status gated(Context& op) {
  const Activation activation = PX_TRY(activation_of_conv(op));
  const Tensor& gate = op.input(0);
  const Shape shapes[] = {gate.shape(), op.input(1).shape()};
  const Shape shape = PX_TRY(broadcast_shapes(shapes));
  const MutableView y = PX_TRY(op.make_output_over(0, gate.dtype(), shape, {0, 1}));
  Status status;
  visit_activation(activation, [&](auto apply) {
    status = map<Floats>(
        op.queue(), [apply](auto x, auto up) { return apply(x) * up; }, y,
        std::array<TensorView, 2>{gate.view(), op.input(1).view()});
  });
  return status;
}

// ---- Rotary: x * cosine + rotated(x) * sine, where the two halves (a, b) of a row are rotated to (-b, a) ----

template <class S>
void rotate_row(const S* x, const S* cosine, const S* sine, S* y, int64_t half) {
  vectorized(0, half, [=](int64_t begin, int64_t end) {
    const auto at = [](const S* from, int64_t index) { return storage::from_storage<float>(from[index]); };
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) {
      const float a = at(x, i), b = at(x, i + half);
      y[i] = storage::to_storage<S>(rounded_to<S>(a * at(cosine, i)) + rounded_to<S>(-b * at(sine, i)));
      y[i + half] =
          storage::to_storage<S>(rounded_to<S>(b * at(cosine, i + half)) + rounded_to<S>(a * at(sine, i + half)));
    }
  });
}

template <class S>
void rotate_all(const Context& op, const RotationRows& rows, const MutableView& y) {
  const int64_t size = 2 * rows.half;
  const auto row_of = [&](int64_t operand, int64_t row) {
    return reinterpret_cast<const S*>(op.input(operand).view().data) + rows.offset(static_cast<size_t>(operand), row);
  };
  const auto body = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      rotate_row(row_of(0, row), row_of(1, row), row_of(2, row), reinterpret_cast<S*>(y.data) + row * size, rows.half);
  };
  if (size > 0) parallel_for(y.element_count() / size, 3 * size, std::ref(body));
}

Status rotary(Context& op) {
  const RotationRows rows = PX_TRY(rotation_rows(op));
  const DType dtype = op.input(0).dtype();
  const bool keeps_order = !op.find_integers("x_order").has_value();
  const MutableView y =
      PX_TRY(keeps_order ? op.make_output_over(0, dtype, rows.shape, {0}) : op.make_output(0, dtype, rows.shape));
  visit_narrow_float(dtype, [&](auto* type) { rotate_all<std::remove_pointer_t<decltype(type)>>(op, rows, y); });
  return {};
}

// ---- Pointwise: a small program over blocks of elements that stay in the cache ----

constexpr int64_t kBlock = 512;  // sixteen results of a block take 32 KiB
constexpr size_t kMostSteps = PointwiseProgram::kMostSteps, kMostInputs = PointwiseProgram::kMostInputs;

using StepFunction = void (*)(const float* a, const float* b, float* out, int64_t count);

template <class F>
void unary_step(const float* a, const float*, float* out, int64_t count) {
  vectorized(0, count, [=](int64_t begin, int64_t end) {
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) out[i] = F{}(a[i]);
  });
}
template <class F>
void binary_step(const float* a, const float* b, float* out, int64_t count) {
  vectorized(0, count, [=](int64_t begin, int64_t end) {
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) out[i] = F{}(a[i], b[i]);
  });
}

// In the order of PointwiseOperator.
constexpr StepFunction kStepFunctions[] = {
    unary_step<Abs>,       binary_step<Add>, binary_step<Div>, unary_step<Erf>,        unary_step<Exp>,
    unary_step<HardSwish>, binary_step<Mul>, unary_step<Neg>,  unary_step<Reciprocal>, unary_step<Relu>,
    unary_step<Sigmoid>,   unary_step<Sqrt>, binary_step<Sub>, unary_step<Tanh>,
};

struct PointwiseInputs {
  DType dtype = DType::float32;
  Ints dims;
  std::array<Ints, kMostInputs> strides;
  std::array<const std::byte*, kMostInputs> data{};

  const float* block(size_t input, int64_t index, int64_t count, float* buffer) const {
    const Ints& own = strides[input];
    const int64_t run = dims.back();
    int64_t offset = index % run * own.back();
    int64_t rest = index / run;
    for (int64_t axis = dims.size() - 2; axis >= 0; --axis) {
      offset += rest % dims[axis] * own[axis];
      rest /= dims[axis];
    }
    // Merged axes have stride 1 or 0 innermost.
    if (own.back() == 1 && dtype == DType::float32) return reinterpret_cast<const float*>(data[input]) + offset;
    load_block<float>(dtype, data[input], offset, own.back(), count, buffer);
    return buffer;
  }
};

// Each result is rounded to the element type, as a node of its own stores it.
void run_block(const PointwiseProgram& program, const PointwiseInputs& inputs, int64_t index, int64_t count,
               const MutableView& y) {
  alignas(64) float loaded[kMostInputs][kBlock];
  alignas(64) float results[kMostSteps][kBlock];
  alignas(64) std::byte narrow[kBlock * sizeof(Float16)];
  const bool is_wide = inputs.dtype == DType::float32;
  std::array<const float*, kMostInputs + kMostSteps> operands{};
  for (size_t input = 0; input < program.input_count; ++input)
    operands[input] = inputs.block(input, index, count, loaded[input]);
  for (size_t step = 0; step < program.step_count; ++step) {
    const PointwiseProgram::Step& each = program.steps[step];
    const bool is_last = step + 1 == program.step_count;
    float* target = is_last && is_wide ? reinterpret_cast<float*>(y.data) + index : results[step];
    kStepFunctions[static_cast<size_t>(each.op)](operands[each.a], operands[each.b], target, count);
    operands[program.input_count + step] = target;
    if (is_wide) continue;
    if (is_last) return store_block<float>(y.dtype, y.data, index, count, target);
    store_block<float>(y.dtype, narrow, 0, count, target);
    load_block<float>(y.dtype, narrow, 0, 1, count, target);
  }
}

Status pointwise(Context& op) {
  const PointwiseProgram program = PX_TRY(pointwise_program(op));
  std::array<Shape, kMostInputs> shapes;
  PointwiseInputs inputs;
  inputs.dtype = op.input(0).dtype();
  for (size_t input = 0; input < program.input_count; ++input) {
    const Tensor& tensor = op.input(static_cast<int64_t>(input));
    shapes[input] = tensor.shape();
    inputs.data[input] = tensor.view().data;
  }
  const std::span<const Shape> given(shapes.data(), program.input_count);
  const Shape shape = PX_TRY(broadcast_shapes(given));
  inputs.dims = shape;
  for (size_t input = 0; input < program.input_count; ++input)
    inputs.strides[input] = broadcast_strides(shapes[input], shape);
  merge_axes(inputs.dims, std::span(inputs.strides).first(program.input_count));
  const MutableView y = PX_TRY(op.make_output_over(0, inputs.dtype, shape, {0, 1, 2, 3, 4, 5, 6, 7}));
  const auto body = [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end;) {
      const int64_t count = std::min({inputs.dims.back() - index % inputs.dims.back(), end - index, kBlock});
      run_block(program, inputs, index, count, y);
      index += count;
    }
  };
  parallel_for(shape.element_count(), 2 * static_cast<int64_t>(program.step_count), std::ref(body));
  return {};
}

constexpr KernelRow<Cpu> row(std::string_view name, uint32_t dtypes, Kernel<Cpu> run) {
  KernelRow<Cpu> made{name, dtypes, run};
  made.domain = "parallax.fused";
  return made;
}

constexpr KernelRow<Cpu> kFusedPointwiseRows[] = {
    elementwise(row("Gated", kFloats, gated)),
    elementwise(row("Pointwise", kNarrowFloats, pointwise)),
    row("Rotary", kNarrowFloats, rotary),
};

}  // namespace

template <>
Rows<Cpu> fused_pointwise_rows<Cpu>() {
  return kFusedPointwiseRows;
}

}  // namespace parallax::runtime
