// Conv, ConvTranspose and ConvInteger: shapes here, the arithmetic in the device's conv.
#include <fmt/format.h>

#include "runtime/device/conv.h"
#include "runtime/device/gemm.h"
#include "runtime/device/map.h"
#include "runtime/ops/conv_problem.h"
#include "runtime/ops/families.h"
#include "runtime/ops/spatial.h"

namespace parallax::runtime {
namespace {

Ints spatial_of(const Shape& shape) {
  Ints spatial;
  for (int64_t axis = 2; axis < rank_of(shape); ++axis) spatial.push_back(dim_of(shape, axis));
  return spatial;
}

// What Conv and ConvTranspose have in common; `channels_per_group` is the filters' axis 1.
Result<ConvProblem> common_problem(const OpCall& op, const Shape& x, const Shape& filters) {
  if (x.rank() < 3 || x.rank() != filters.rank()) {
    return execution_error(
        fmt::format("X {} and W {} must both be of one rank, 3 or more", x.to_string(), filters.to_string()));
  }
  ConvProblem problem;
  problem.batch = x[0];
  problem.in_channels = x[1];
  problem.groups = op.find_integer("group").value_or(1);
  problem.in_spatial = spatial_of(x);
  problem.kernel = spatial_of(filters);
  problem.filters_are_constant = op.is_constant(1);
  if (problem.groups < 1) return execution_error(fmt::format("'group' is {}", problem.groups));
  const auto kernel = op.find_integers("kernel_shape");
  if (kernel.has_value() && !(*kernel == problem.kernel)) {
    return execution_error("'kernel_shape' contradicts the shape of W " + filters.to_string());
  }
  return problem;
}

}  // namespace

Result<ConvProblem> conv_problem(const OpCall& op, const Shape& x, const Shape& filters) {
  ConvProblem problem = PX_TRY(common_problem(op, x, filters));
  problem.out_channels = filters[0];
  if (problem.in_channels != filters[1] * problem.groups || problem.out_channels % problem.groups != 0) {
    return execution_error(
        fmt::format("X {} does not fit W {} in {} groups", x.to_string(), filters.to_string(), problem.groups));
  }
  const WindowAttributes window = PX_TRY(window_attributes(op, problem.in_spatial, problem.kernel));
  problem.strides = window.strides;
  problem.dilations = window.dilations;
  problem.pads_begin = window.pads_begin;
  problem.pads_end = window.pads_end;
  problem.out_spatial = window.out_spatial;
  return problem;
}

Result<Shape> output_shape(const ConvProblem& problem) {
  Ints dims{problem.batch, problem.out_channels};
  for (int64_t dim : problem.out_spatial) dims.push_back(dim);
  return shape_of(dims);
}

namespace {

// One axis of the transpose: out = stride * (in - 1) + output_padding + extent - pads, or 'output_shape' says it and
// the pads follow.
Status transposed_axis(const OpCall& op, ConvProblem& problem, int64_t axis, const Ints& output_padding) {
  const int64_t rank = problem.spatial_rank();
  const std::string auto_pad = op.find_text("auto_pad").value_or("NOTSET");
  const int64_t extent = (problem.kernel[axis] - 1) * problem.dilations[axis] + 1;
  const int64_t whole = problem.strides[axis] * (problem.in_spatial[axis] - 1) + output_padding[axis] + extent;
  auto wanted = op.find_integers("output_shape");
  const bool is_same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (wanted.has_value() || is_same) {
    int64_t out = problem.in_spatial[axis] * problem.strides[axis];
    if (wanted.has_value()) {
      if (wanted->size() < rank) return execution_error("'output_shape' is too short");
      out = (*wanted)[wanted->size() - rank + axis];
    }
    const int64_t total = std::max<int64_t>(0, whole - out);
    problem.pads_begin[axis] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    problem.pads_end[axis] = total - problem.pads_begin[axis];
    problem.out_spatial[axis] = out;
  } else {
    problem.out_spatial[axis] = whole - problem.pads_begin[axis] - problem.pads_end[axis];
  }
  if (problem.out_spatial[axis] < 1) return execution_error("the output would be empty");
  // The library wants padding behind such that the sizes come out; what exceeds the windows is left at the bias.
  problem.pads_end[axis] = problem.strides[axis] * (problem.in_spatial[axis] - 1) + extent - problem.pads_begin[axis] -
                           problem.out_spatial[axis];
  return {};
}

Result<ConvProblem> transposed_problem(const OpCall& op, const Shape& x, const Shape& filters) {
  ConvProblem problem = PX_TRY(common_problem(op, x, filters));
  problem.out_channels = filters[1] * problem.groups;
  if (problem.in_channels != filters[0] || problem.in_channels % problem.groups != 0) {
    return execution_error(
        fmt::format("X {} does not fit W {} in {} groups", x.to_string(), filters.to_string(), problem.groups));
  }
  const int64_t rank = problem.spatial_rank();
  constexpr int64_t kMost = int64_t{1} << 31;
  const auto list = [&](const char* name, int64_t count, int64_t fill) -> Result<Ints> {
    Ints values = op.find_integers(name).value_or(Ints{});
    if (values.empty()) values = Ints(count, fill);
    if (values.size() != count) return execution_error(fmt::format("'{}' has {} values", name, values.size()));
    for (int64_t value : values) {
      if (value < 0 || value > kMost) return execution_error(fmt::format("'{}' holds {}", name, value));
    }
    return values;
  };
  problem.strides = PX_TRY(list("strides", rank, 1));
  problem.dilations = PX_TRY(list("dilations", rank, 1));
  const Ints output_padding = PX_TRY(list("output_padding", rank, 0));
  const Ints pads = PX_TRY(list("pads", 2 * rank, 0));
  problem.pads_begin = Ints(rank);
  problem.pads_end = Ints(rank);
  problem.out_spatial = Ints(rank);
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (problem.strides[axis] < 1 || problem.dilations[axis] < 1) return execution_error("a stride or dilation is 0");
    problem.pads_begin[axis] = pads[axis];
    problem.pads_end[axis] = pads[axis + rank];
    PX_TRY(transposed_axis(op, problem, axis, output_padding));
  }
  return problem;
}

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
  const auto same = [](C value) { return value; };
  map_as<C, C>(op.queue(), same, out, std::array<TensorView, 1>{TensorView(wide)});
  return {};
}

template <class Device, bool kTransposed>
Status convolution(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  if (op.input(1).dtype() != x.dtype()) return execution_error("X and W have different element types");
  const ConvProblem problem = kTransposed ? PX_TRY(transposed_problem(op, x.shape(), op.input(1).shape()))
                                          : PX_TRY(conv_problem(op, x.shape(), op.input(1).shape()));
  const MutableView out = PX_TRY(op.make_output(0, x.dtype(), output_shape(problem)));
  if (x.dtype() == DType::float64) return run<double>(op, problem, kTransposed, out);
  return run<float>(op, problem, kTransposed, out);
}

// x - zero point, in int64; the zero point is one number or one for each filter.
template <class Device>
Result<const int64_t*> shifted(OpContext<Device>& op, int64_t input, int64_t zero_point) {
  const Tensor& tensor = op.input(input);
  const MutableView wide = PX_TRY(op.scratch(DType::int64, tensor.shape()));
  int64_t* values = wide.template as<int64_t>();
  load_block<int64_t>(tensor.dtype(), tensor.view().data, 0, 1, tensor.element_count(), values);
  if (op.has_input(zero_point)) {
    const Tensor& zero = op.input(zero_point);
    const int64_t groups = zero.element_count();
    if (groups < 1 || tensor.element_count() % groups != 0)
      return execution_error("a zero point does not fit its tensor");
    const int64_t run_length = tensor.element_count() / groups;
    for (int64_t i = 0; i < tensor.element_count(); ++i) {
      values[i] -= load_element<int64_t>(zero.dtype(), zero.view().data, i / std::max<int64_t>(1, run_length));
    }
  }
  return static_cast<const int64_t*>(values);
}

template <class Device>
Status conv_integer(OpContext<Device>& op) {
  const ConvProblem problem = PX_TRY(conv_problem(op, op.input(0).shape(), op.input(1).shape()));
  const int64_t* x = PX_TRY(shifted(op, 0, 2));
  const int64_t* filters = PX_TRY(shifted(op, 1, 3));
  const MutableView out = PX_TRY(op.make_output(0, DType::int32, output_shape(problem)));
  const MutableView wide = PX_TRY(op.scratch(DType::int64, out.shape));
  PX_TRY(conv(op.queue(), problem, x, filters, static_cast<const int64_t*>(nullptr), wide.template as<int64_t>()));
  store_block<int64_t>(DType::int32, out.data, 0, out.element_count(), wide.template as<int64_t>());
  return {};
}

template <class Device>
constexpr KernelRow<Device> kRows[] = {
    {"Conv", kFloats, convolution<Device, false>},
    {"ConvInteger", kInts, conv_integer<Device>},
    {"ConvTranspose", kFloats, convolution<Device, true>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> convolution_rows() {
  return kRows<CompiledDevice>;
}

}  // namespace parallax::runtime
