// Conv, ConvTranspose and ConvInteger: shapes here, the arithmetic in the device's conv.
#include <fmt/format.h>

#include "runtime/device/conv.h"
#include "runtime/device/element_of.h"
#include "runtime/device/gemm.h"
#include "runtime/device/map.h"
#include "runtime/device/tabulate.h"
#include "runtime/ops/conv_problem.h"
#include "runtime/ops/families.h"
#include "runtime/ops/host_convolution.h"

namespace parallax::runtime {
namespace {

template <class C, class Device>
Status run(OpContext<Device>& op, const ConvProblem& problem, bool transposed, const MutableView& out) {
  const auto x = PX_TRY(converted<C>(op.queue(), op.input(0).view(), false));
  const auto filters = PX_TRY(converted<C>(op.queue(), op.input(1).view(), op.is_constant(1)));
  std::shared_ptr<const C> bias;
  if (op.has_input(2)) {
    if (op.input(2).element_count() != problem.out_channels)
      return execution_error("B must have one value for each output channel");
    bias = PX_TRY(converted<C>(op.queue(), op.input(2).view(), op.is_constant(2)));
  }
  const bool direct = out.dtype == storage_of<C>();
  const MutableView wide = direct ? out : PX_TRY(op.scratch(storage_of<C>(), out.shape));
  C* y = reinterpret_cast<C*>(wide.data);
  PX_TRY(transposed ? conv_transpose(op.queue(), problem, x.get(), filters.get(), bias.get(), y)
                    : conv(op.queue(), problem, x.get(), filters.get(), bias.get(), y));
  if (direct) return {};
  map_as<C, C>(op.queue(), Same{}, out, std::array<TensorView, 1>{TensorView(wide)});
  return {};
}

template <class Device, bool kTransposed>
Status convolution(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  if (op.input(1).dtype() != x.dtype()) return execution_error("X and W have different element types");
  if constexpr (std::is_same_v<Device, Cpu> && !kTransposed) {
    if (x.dtype() == DType::float32) return host_convolution(op);
  }
  const auto describe = kTransposed ? transposed_problem : conv_problem;
  const ConvProblem problem = PX_TRY(describe(op, x.shape(), op.input(1).shape()));
  const MutableView out = PX_TRY(op.make_output(0, x.dtype(), output_shape(problem)));
  if (x.dtype() == DType::float64) return run<double>(op, problem, kTransposed, out);
  return run<float>(op, problem, kTransposed, out);
}

// x - zero point, in int64; the zero point is one number or one for each filter.
template <class Device>
struct Shifted {
  Source x, zero;
  int64_t run_length;
  PX_HD int64_t operator()(int64_t element) const {
    const int64_t shift = zero.data == nullptr ? 0 : element_of<Device, int64_t>(zero, element / run_length);
    return element_of<Device, int64_t>(x, element) - shift;
  }
};

template <class Device>
Result<const int64_t*> shifted(OpContext<Device>& op, int64_t input, int64_t zero_point) {
  const Tensor& tensor = op.input(input);
  const MutableView wide = PX_TRY(op.scratch(DType::int64, tensor.shape()));
  Shifted<Device> element{source_of(tensor.view()), {}, 1};
  if (op.has_input(zero_point)) {
    const int64_t groups = op.input(zero_point).element_count();
    if (groups < 1 || tensor.element_count() % groups != 0)
      return execution_error("a zero point does not fit its tensor");
    element.zero = source_of(op.input(zero_point).view());
    element.run_length = std::max<int64_t>(1, tensor.element_count() / groups);
  }
  tabulate<int64_t>(op.queue(), element, wide);
  return reinterpret_cast<const int64_t*>(wide.data);
}

template <class Device>
Status conv_integer(OpContext<Device>& op) {
  const ConvProblem problem = PX_TRY(conv_problem(op, op.input(0).shape(), op.input(1).shape()));
  const int64_t* x = PX_TRY(shifted(op, 0, 2));
  const int64_t* filters = PX_TRY(shifted(op, 1, 3));
  const MutableView out = PX_TRY(op.make_output(0, DType::int32, output_shape(problem)));
  const MutableView wide = PX_TRY(op.scratch(DType::int64, out.shape));
  int64_t* sums = reinterpret_cast<int64_t*>(wide.data);
  PX_TRY(conv(op.queue(), problem, x, filters, static_cast<const int64_t*>(nullptr), sums));
  map_as<int64_t, int64_t>(op.queue(), Same{}, out, std::array<TensorView, 1>{TensorView(wide)});
  return {};
}

template <class Device>
constexpr KernelRow<Device> kConvolutionRows[] = {
    takes_channels_last<Device>({0}, {"Conv", kFloats, convolution<Device, false>}),
    {"ConvInteger", kInts, conv_integer<Device>},
    {"ConvTranspose", kFloats, convolution<Device, true>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> convolution_rows() {
  return kConvolutionRows<CompiledDevice>;
}

}  // namespace parallax::runtime
