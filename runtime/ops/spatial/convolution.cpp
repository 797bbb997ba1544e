// SPDX-License-Identifier: Apache-2.0
// Conv and ConvTranspose: shapes here, the arithmetic in the device's conv.
#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/products/conv.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/device/gpu/element_of.h"
#include "runtime/device/gpu/library_conv.h"
#include "runtime/ops/families.h"
#include "runtime/ops/spatial/conv_problem.h"
#include "runtime/ops/spatial/host_convolution.h"

namespace parallax::runtime {
namespace {

struct PlusOfChannel {
  template <class T>
  PX_HD T operator()(T sum, T bias) const {
    return sum + bias;
  }
};

// By a GPU's library, operands as they are, where it has a way.
template <class Device>
Result<bool> convolve_by_library(OpContext<Device>& op, const ConvProblem& problem, bool transposed,
                                 const MutableView& out) {
  const TensorView bias = op.has_input(2) ? op.input(2).view() : TensorView{};
  return library_conv(op.queue(), {problem, transposed, op.input(0).view(), op.input(1).view(), bias, out});
}

// By it in float32, the bias added afterwards: what it cannot do at once. `wide` is out itself where that is float32.
template <class Device>
Result<bool> convolve_wide_by_library(OpContext<Device>& op, const ConvProblem& problem, bool transposed,
                                      const float* x, const float* filters, const MutableView& wide,
                                      const MutableView& out) {
  const auto as_float = [&](int64_t input, const float* data) {
    const TensorView& given = op.input(input).view();
    return TensorView{DType::float32, given.shape, reinterpret_cast<const std::byte*>(data), given.device};
  };
  const LibraryConv conv{problem, transposed, as_float(0, x), as_float(1, filters), {}, wide};
  const bool is_new = wide.data != out.data || op.has_input(2);
  if (!is_new || !PX_TRY(library_conv(op.queue(), conv))) return false;
  if (!op.has_input(2)) {
    map_as<float, float>(op.queue(), Same{}, out, std::array<TensorView, 1>{TensorView(wide)});
    return true;
  }
  Ints dims(problem.spatial_rank() + 1, 1);
  dims[0] = problem.out_channels;
  TensorView bias = op.input(2).view();
  bias.shape = PX_TRY(shape_of(dims));
  map_as<float, float>(op.queue(), PlusOfChannel{}, out, std::array<TensorView, 2>{TensorView(wide), bias});
  return true;
}

template <class C, class Device>
Status run(OpContext<Device>& op, const ConvProblem& problem, bool transposed, const MutableView& out) {
  constexpr bool kMayAsk = GpuDevice<Device> && std::is_same_v<C, float>;
  if (op.has_input(2) && op.input(2).element_count() != problem.out_channels)
    return wrong_input(op, 2, "have {} elements, one for each output channel", problem.out_channels);
  if constexpr (kMayAsk) {
    if (PX_TRY(convolve_by_library(op, problem, transposed, out))) return {};
  }
  const auto x = PX_TRY(converted<C>(op.queue(), op.input(0).view(), false));
  const auto filters = PX_TRY(converted<C>(op.queue(), op.input(1).view(), op.is_constant(1)));
  const bool direct = out.dtype == storage_of<C>();
  const MutableView wide = direct ? out : PX_TRY(op.scratch(storage_of<C>(), out.shape));
  if constexpr (kMayAsk) {
    if (PX_TRY(convolve_wide_by_library(op, problem, transposed, x.get(), filters.get(), wide, out))) return {};
  }
  std::shared_ptr<const C> bias;
  if (op.has_input(2)) bias = PX_TRY(converted<C>(op.queue(), op.input(2).view(), op.is_constant(2)));
  C* y = reinterpret_cast<C*>(wide.data);
  PX_TRY(transposed ? conv_transpose(op.queue(), problem, x.get(), filters.get(), bias.get(), y)
                    : conv(op.queue(), problem, x.get(), filters.get(), bias.get(), y));
  if (direct) return {};
  map_as<C, C>(op.queue(), Same{}, out, std::array<TensorView, 1>{TensorView(wide)});
  return {};
}

// The sum over no channels: the bias alone.
template <class Device, class C>
struct BiasAlone {
  Source bias;
  int64_t channels, locations;
  PX_HD C operator()(int64_t element) const {
    return bias.data == nullptr ? C(0) : element_of<Device, C>(bias, element / locations % channels);
  }
};

template <class Device>
Status bias_alone(OpContext<Device>& op, const ConvProblem& problem, const MutableView& out) {
  if (op.has_input(2) && op.input(2).element_count() != problem.out_channels)
    return wrong_input(op, 2, "have {} elements, one for each output channel", problem.out_channels);
  const Source bias = op.has_input(2) ? source_of(op.input(2).view()) : Source{};
  const int64_t locations = product(problem.out_spatial);
  if (out.dtype == DType::float64)
    return tabulate<double>(op.queue(), BiasAlone<Device, double>{bias, problem.out_channels, locations}, out),
           Status{};
  return tabulate<float>(op.queue(), BiasAlone<Device, float>{bias, problem.out_channels, locations}, out), Status{};
}

template <class Device, bool kTransposed>
Status convolution(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  if (op.input(1).dtype() != x.dtype()) return wrong_input(op, 1, "have the element type of X, {}", name_of(x.dtype()));
  if constexpr (std::is_same_v<Device, Cpu> && !kTransposed) {
    const bool is_empty = x.element_count() == 0 || op.input(1).element_count() == 0;
    if (x.dtype() == DType::float32 && !is_empty) return host_convolution(op);
  }
  const auto describe = kTransposed ? transposed_problem : conv_problem;
  const ConvProblem problem = PX_TRY(describe(op, x.shape(), op.input(1).shape()));
  const MutableView out = PX_TRY(op.make_output(0, x.dtype(), output_shape(problem)));
  if (out.element_count() == 0) return {};  // the libraries refuse problems of no channels
  if (problem.in_channels == 0) return bias_alone(op, problem, out);
  if (x.dtype() == DType::float64) return run<double>(op, problem, kTransposed, out);
  return run<float>(op, problem, kTransposed, out);
}

template <class Device>
constexpr KernelRow<Device> kConvolutionRows[] = {
    takes_channels_last<Device>({0}, {"Conv", kFloats, convolution<Device, false>}),
    {"ConvTranspose", kFloats, convolution<Device, true>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> convolution_rows() {
  return kConvolutionRows<CompiledDevice>;
}

}  // namespace parallax::runtime
