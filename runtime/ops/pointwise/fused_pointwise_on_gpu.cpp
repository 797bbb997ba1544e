// SPDX-License-Identifier: Apache-2.0
// Rotary and Pointwise on GPU devices (the host's: fused_pointwise.cpp; Gated: products/fused_on_gpu.cpp).
#include "runtime/device/gpu/pointwise_kernel.h"
#include "runtime/ops/fused_families.h"
#include "runtime/ops/on_gpu.h"
#include "runtime/ops/pointwise/binary_functors.h"
#include "runtime/ops/pointwise/pointwise_program.h"
#include "runtime/ops/pointwise/unary_functors.h"

namespace parallax::runtime {
namespace {

template <class Device>
Status rotary_on_gpu(OpContext<Device>& op) {
  const RotationRows rows = PX_TRY(rotation_rows(op));
  const MutableView y =
      PX_TRY(op.find_integers("x_order").has_value() ? op.make_output(0, op.input(0).dtype(), rows.shape)
                                                     : op.make_output_over(0, op.input(0).dtype(), rows.shape, {0}));
  rotate_rows(op.queue(), y, {op.input(0).view().data, op.input(1).view().data, op.input(2).view().data}, rows.dims,
              rows.strides, rows.half);
  return {};
}

// The operators of a program, chosen the same way by all threads, for N elements at a time.
struct PointwiseOperators {
  template <int N>
  PX_HD static void apply(uint8_t code, float (&x)[N], const float (&y)[N]) {
    switch (static_cast<PointwiseOperator>(code)) {
      case PointwiseOperator::abs:
        return unary(Abs{}, x);
      case PointwiseOperator::add:
        return binary(Add{}, x, y);
      case PointwiseOperator::div:
        return binary(Div{}, x, y);
      case PointwiseOperator::erf:
        return unary(Erf{}, x);
      case PointwiseOperator::exp:
        return unary(Exp{}, x);
      case PointwiseOperator::hard_swish:
        return unary(HardSwish{}, x);
      case PointwiseOperator::mul:
        return binary(Mul{}, x, y);
      case PointwiseOperator::neg:
        return unary(Neg{}, x);
      case PointwiseOperator::reciprocal:
        return unary(Reciprocal{}, x);
      case PointwiseOperator::relu:
        return unary(Relu{}, x);
      case PointwiseOperator::sigmoid:
        return unary(Sigmoid{}, x);
      case PointwiseOperator::sqrt:
        return unary(Sqrt{}, x);
      case PointwiseOperator::sub:
        return binary(Sub{}, x, y);
      case PointwiseOperator::tanh:
        return unary(Tanh{}, x);
    }
  }

 private:
  template <class F, int N>
  PX_HD static void unary(F f, float (&x)[N]) {
    for (int j = 0; j < N; ++j) x[j] = f(x[j]);
  }
  template <class F, int N>
  PX_HD static void binary(F f, float (&x)[N], const float (&y)[N]) {
    for (int j = 0; j < N; ++j) x[j] = f(x[j], y[j]);
  }
};

static_assert(DeviceProgram::kMostSteps == PointwiseProgram::kMostSteps &&
              DeviceProgram::kMostInputs == PointwiseProgram::kMostInputs);

[[maybe_unused]] DeviceProgram device_program(const PointwiseProgram& program) {
  DeviceProgram made;
  made.step_count = static_cast<int>(program.step_count);
  made.input_count = static_cast<int>(program.input_count);
  for (size_t i = 0; i < program.step_count; ++i) {
    const PointwiseProgram::Step& step = program.steps[i];
    made.steps[i] = {static_cast<uint8_t>(step.op), static_cast<uint8_t>(step.a), static_cast<uint8_t>(step.b),
                     step.has_b};
    for (const size_t operand : {step.a, step.has_b ? step.b : step.a}) {
      if (operand >= program.input_count && operand - program.input_count + 1 < i)
        made.steps[operand - program.input_count].is_kept = true;
    }
  }
  return made;
}

template <class Device>
Status pointwise_on_gpu(OpContext<Device>& op) {
  const PointwiseProgram program = PX_TRY(pointwise_program(op));
  std::array<TensorView, PointwiseProgram::kMostInputs> inputs;
  std::array<Shape, PointwiseProgram::kMostInputs> shapes;
  const DType dtype = op.input(0).dtype();
  for (size_t input = 0; input < program.input_count; ++input) {
    inputs[input] = op.input(static_cast<int64_t>(input)).view();
    shapes[input] = inputs[input].shape;
  }
  const Shape shape = PX_TRY(broadcast_shapes(std::span<const Shape>(shapes.data(), program.input_count)));
  const MutableView y = PX_TRY(op.make_output_over(0, dtype, shape, {0, 1, 2, 3, 4, 5, 6, 7}));
  run_program<PointwiseOperators>(op.queue(), device_program(program), y,
                                  std::span<const TensorView>(inputs.data(), program.input_count));
  return {};
}

template <class Device>
constexpr KernelRow<Device> fused_row(std::string_view op, Kernel<Device> run) {
  KernelRow<Device> row{op, kNarrowFloats, run};
  row.domain = "parallax.fused";
  return row;
}

template <class Device>
constexpr KernelRow<Device> kFusedPointwiseOnGpuRows[] = {
    fused_row<Device>("Pointwise", PX_ON_GPU(pointwise_on_gpu<Device>)),
    fused_row<Device>("Rotary", PX_ON_GPU(rotary_on_gpu<Device>)),
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> fused_pointwise_on_gpu_rows() {
  return kFusedPointwiseOnGpuRows<CompiledDevice>;
}

}  // namespace parallax::runtime
