// SPDX-License-Identifier: Apache-2.0
// Gated, Rotary and Pointwise: what rewriting makes of several pointwise nodes, so that a tensor is walked once and not
// once for each of them. They compute each element by the very same steps, so the results have the same bits.
#include <array>
#include <functional>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/map.h"
#include "runtime/ops/fused_families.h"
#include "runtime/ops/pointwise/activation_attributes.h"
#include "runtime/ops/pointwise/binary_functors.h"
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

struct RotationRows {
  Ints dims;  // of the result, without the last
  std::array<Ints, 3> strides;
  int64_t half = 0;

  int64_t offset(size_t operand, int64_t row) const {
    int64_t offset = 0;
    for (int64_t axis = dims.size() - 1; axis >= 0; --axis) {
      offset += row % dims[axis] * strides[operand][axis];
      row /= dims[axis];
    }
    return offset;
  }
};

void rotate_row(const float* x, const float* cosine, const float* sine, float* y, int64_t half) {
  vectorized(0, half, [=](int64_t begin, int64_t end) {
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) {
      const float a = x[i], b = x[i + half];
      y[i] = a * cosine[i] + -b * sine[i];
      y[i + half] = b * cosine[i + half] + a * sine[i + half];
    }
  });
}

Status rotary(Context& op) {
  const std::array<const Tensor*, 3> in{&op.input(0), &op.input(1), &op.input(2)};
  const Shape shapes[] = {in[0]->shape(), in[1]->shape(), in[2]->shape()};
  const Shape shape = PX_TRY(broadcast_shapes(shapes));
  const int64_t size = shape.rank() == 0 ? 0 : dim_of(shape, rank_of(shape) - 1);
  for (const Tensor* each : in) {
    const Shape& own = each->shape();
    if (size % 2 != 0 || own.rank() == 0 || dim_of(own, rank_of(own) - 1) != size)
      return wrong_shape("an operand", own, "have a last axis of {}, an even size, to be rotated", size);
  }
  const MutableView y = PX_TRY(op.make_output_over(0, DType::float32, shape, {0}));
  RotationRows rows{shape, {}, size / 2};
  for (size_t operand = 0; operand < in.size(); ++operand)
    rows.strides[operand] = broadcast_strides(in[operand]->shape(), shape);
  rows.dims.truncate(rows.dims.size() - 1);
  const auto body = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      rotate_row(data_as<float>(*in[0]) + rows.offset(0, row), data_as<float>(*in[1]) + rows.offset(1, row),
                 data_as<float>(*in[2]) + rows.offset(2, row), y.as<float>() + row * size, rows.half);
    }
  };
  if (size > 0) parallel_for(shape.element_count() / size, 3 * size, std::ref(body));
  return {};
}

// ---- Pointwise: a small program over blocks of elements that stay in the cache ----

constexpr int64_t kBlock = 512;  // sixteen results of a block take 32 KiB
constexpr size_t kMostSteps = 16, kMostInputs = 8;

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

struct PointwiseRow {
  std::string_view op;
  StepFunction run;
  int64_t operands;
};
// The operators that the pattern `pointwise` gathers; runtime/rewrite/fuse_pointwise.cpp has the same list.
constexpr PointwiseRow kPointwise[] = {
    {"Abs", unary_step<Abs>, 1},   {"Add", binary_step<Add>, 2},        {"Div", binary_step<Div>, 2},
    {"Erf", unary_step<Erf>, 1},   {"Exp", unary_step<Exp>, 1},         {"HardSwish", unary_step<HardSwish>, 1},
    {"Mul", binary_step<Mul>, 2},  {"Neg", unary_step<Neg>, 1},         {"Reciprocal", unary_step<Reciprocal>, 1},
    {"Relu", unary_step<Relu>, 1}, {"Sigmoid", unary_step<Sigmoid>, 1}, {"Sqrt", unary_step<Sqrt>, 1},
    {"Sub", binary_step<Sub>, 2},  {"Tanh", unary_step<Tanh>, 1},
};

// Operands are numbered: inputs first, then results. Short lists of fixed room: a small node costs no allocation.
struct Program {
  struct Step {
    StepFunction run = nullptr;
    size_t a = 0, b = 0;
  };
  std::array<Step, kMostSteps> steps;
  size_t step_count = 0, input_count = 0;
};

Result<Program> program_of(const Context& op) {
  Program program;
  program.input_count = static_cast<size_t>(op.input_count());
  const std::span<const std::string> names = op.given<std::string>("operators");
  const std::span<const int64_t> operands = op.given<int64_t>("operands");
  if (names.empty() || names.size() > kMostSteps || program.input_count > kMostInputs ||
      operands.size() != 2 * names.size())
    return invalid_model(
        fmt::format("a program of {} steps over {} inputs has {} operands; it must have two for each of 1 to {} steps",
                    names.size(), program.input_count, operands.size(), kMostSteps));
  for (size_t index = 0; index < names.size(); ++index) {
    const auto row = std::find_if(std::begin(kPointwise), std::end(kPointwise),
                                  [&](const PointwiseRow& each) { return each.op == names[index]; });
    if (row == std::end(kPointwise))
      return unsupported(
          fmt::format("step '{}' of its program has no kernel here; --fallback=reference runs it", names[index]));
    const int64_t known = static_cast<int64_t>(program.input_count + index);
    const int64_t a = operands[2 * index], b = operands[2 * index + 1];
    if (a < 0 || a >= known || (row->operands == 2 && (b < 0 || b >= known)))
      return invalid_model(
          fmt::format("step {} of its program reads operands {} and {}; they must be of the {} values made before it",
                      index, a, b, known));
    program.steps[program.step_count++] = {row->run, static_cast<size_t>(a),
                                           static_cast<size_t>(std::max<int64_t>(0, b))};
  }
  return program;
}

struct PointwiseInputs {
  Ints dims;
  std::array<Ints, kMostInputs> strides;
  std::array<const float*, kMostInputs> data{};

  const float* block(size_t input, int64_t index, int64_t count, float* buffer) const {
    const Ints& own = strides[input];
    const int64_t run = dims.back();
    int64_t offset = index % run * own.back();
    int64_t rest = index / run;
    for (int64_t axis = dims.size() - 2; axis >= 0; --axis) {
      offset += rest % dims[axis] * own[axis];
      rest /= dims[axis];
    }
    const float* from = data[input] + offset;
    if (own.back() == 1) return from;
    std::fill_n(buffer, count, *from);  // merged axes have stride 1 or 0 innermost
    return buffer;
  }
};

void run_block(const Program& program, const PointwiseInputs& inputs, int64_t index, int64_t count, float* out) {
  alignas(64) float repeated[kMostInputs][kBlock];
  alignas(64) float results[kMostSteps][kBlock];
  std::array<const float*, kMostInputs + kMostSteps> operands{};
  for (size_t input = 0; input < program.input_count; ++input)
    operands[input] = inputs.block(input, index, count, repeated[input]);
  for (size_t step = 0; step < program.step_count; ++step) {
    const Program::Step& each = program.steps[step];
    float* target = step + 1 == program.step_count ? out : results[step];
    each.run(operands[each.a], operands[each.b], target, count);
    operands[program.input_count + step] = target;
  }
}

Status pointwise(Context& op) {
  const Program program = PX_TRY(program_of(op));
  std::array<Shape, kMostInputs> shapes;
  PointwiseInputs inputs;
  for (size_t input = 0; input < program.input_count; ++input) {
    const Tensor& tensor = op.input(static_cast<int64_t>(input));
    shapes[input] = tensor.shape();
    inputs.data[input] = data_as<float>(tensor);
  }
  const std::span<const Shape> given(shapes.data(), program.input_count);
  const Shape shape = PX_TRY(broadcast_shapes(given));
  inputs.dims = shape;
  for (size_t input = 0; input < program.input_count; ++input)
    inputs.strides[input] = broadcast_strides(shapes[input], shape);
  merge_axes(inputs.dims, std::span(inputs.strides).first(program.input_count));
  const MutableView y = PX_TRY(op.make_output_over(0, DType::float32, shape, {0, 1, 2, 3, 4, 5, 6, 7}));
  const auto body = [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end;) {
      const int64_t count = std::min({inputs.dims.back() - index % inputs.dims.back(), end - index, kBlock});
      run_block(program, inputs, index, count, y.as<float>() + index);
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

constexpr uint32_t kFloat32 = dtype_bit(DType::float32);

constexpr KernelRow<Cpu> kFusedPointwiseRows[] = {
    elementwise(row("Gated", kFloats, gated)),
    elementwise(row("Pointwise", kFloat32, pointwise)),
    row("Rotary", kFloat32, rotary),
};

}  // namespace

template <>
Rows<Cpu> fused_pointwise_rows<Cpu>() {
  return kFusedPointwiseRows;
}

}  // namespace parallax::runtime
