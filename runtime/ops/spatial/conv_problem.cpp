// SPDX-License-Identifier: Apache-2.0
// The problem that the attributes of a convolution or of its transpose describe.
#include "runtime/ops/spatial/conv_problem.h"

#include <algorithm>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/ops/spatial/spatial.h"

namespace parallax::runtime {
namespace {

// The largest dimension or attribute keeps sums and products of a few of them within 63 bits.
constexpr int64_t kLargest = int64_t{1} << 31;

Ints spatial_of(const Shape& shape) {
  Ints spatial;
  for (int64_t axis = 2; axis < rank_of(shape); ++axis) spatial.push_back(dim_of(shape, axis));
  return spatial;
}

// The parts of the problem that Conv and ConvTranspose have in common; `channels_per_group` is the filters' axis 1.
Result<ConvProblem> common_problem(const OpCall& op, const Shape& x, const Shape& filters) {
  if (x.rank() < 3 || x.rank() != filters.rank())
    return wrong_input(op, 0, "have rank 3 or more and the rank of W, {}", filters.to_string());
  ConvProblem problem;
  problem.batch = x[0];
  problem.in_channels = x[1];
  problem.groups = op.find_integer("group").value_or(1);
  problem.in_spatial = spatial_of(x);
  problem.kernel = spatial_of(filters);
  problem.filters_are_constant = op.is_constant(1);
  if (problem.groups < 1 || problem.groups > kLargest)
    return wrong_attribute("group", problem.groups, "be in [1, {}]", kLargest);
  for (const Shape& each : {x, filters}) {
    if (std::any_of(each.begin(), each.end(), [](int64_t dim) { return dim > kLargest; }))
      return wrong_input(op, 0, "have dimensions of at most {}, and W {}, too", kLargest, filters.to_string());
  }
  const auto kernel = op.find_integers("kernel_shape");
  if (kernel.has_value() && !(*kernel == problem.kernel))
    return wrong_attribute("kernel_shape", *kernel, "be the spatial shape of W, {}", dims_text(problem.kernel));
  return problem;
}

}  // namespace

Result<ConvProblem> conv_problem(const OpCall& op, const Shape& x, const Shape& filters) {
  ConvProblem problem = PX_TRY(common_problem(op, x, filters));
  problem.out_channels = filters[0];
  if (problem.in_channels != filters[1] * problem.groups || problem.out_channels % problem.groups != 0)
    return wrong_input(op, 0, "fit W {} in {} groups: {} channels, and filters that split into the groups",
                       filters.to_string(), problem.groups, filters[1] * problem.groups);
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
      if (wanted->size() < rank)
        return wrong_length("attribute 'output_shape'", wanted->size(), "have {}, one for each spatial axis", rank);
      out = (*wanted)[wanted->size() - rank + axis];
      if (out < 0) return wrong_attribute("output_shape", *wanted, "have entries of 0 or more");
    }
    const int64_t total = std::max<int64_t>(0, whole - out);
    problem.pads_begin[axis] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    problem.pads_end[axis] = total - problem.pads_begin[axis];
    problem.out_spatial[axis] = out;
  } else {
    problem.out_spatial[axis] = whole - problem.pads_begin[axis] - problem.pads_end[axis];
  }
  if (problem.out_spatial[axis] < 0)
    return wrong_value(fmt::format("the output's size along spatial axis {}", axis), problem.out_spatial[axis],
                       "be 0 or more; reduce the pads");
  // The library wants padding at the end such that the sizes come out; what exceeds the windows is left at the bias.
  problem.pads_end[axis] = problem.strides[axis] * (problem.in_spatial[axis] - 1) + extent - problem.pads_begin[axis] -
                           problem.out_spatial[axis];
  return {};
}

}  // namespace

Result<ConvProblem> transposed_problem(const OpCall& op, const Shape& x, const Shape& filters) {
  ConvProblem problem = PX_TRY(common_problem(op, x, filters));
  problem.out_channels = filters[1] * problem.groups;
  if (problem.in_channels != filters[0] || problem.in_channels % problem.groups != 0)
    return wrong_input(op, 0, "fit W {} in {} groups: {} channels that split into the groups", filters.to_string(),
                       problem.groups, filters[0]);
  const int64_t rank = problem.spatial_rank();
  const auto list = [&](const char* name, int64_t count, int64_t fill) -> Result<Ints> {
    Ints values = op.find_integers(name).value_or(Ints{});
    if (values.empty()) values = Ints(count, fill);
    if (values.size() != count)
      return wrong_length(fmt::format("attribute '{}'", name), values.size(), "have {}", count);
    for (int64_t value : values) {
      if (value < 0 || value > kLargest)
        return wrong_value(fmt::format("an entry of attribute '{}'", name), value, "be in [0, {}]", kLargest);
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
    if (problem.strides[axis] < 1 || problem.dilations[axis] < 1)
      return execution_error(
          fmt::format("the stride and dilation of spatial axis {} are {} and {}; they must be 1 or more", axis,
                      problem.strides[axis], problem.dilations[axis]));
    problem.pads_begin[axis] = pads[axis];
    problem.pads_end[axis] = pads[axis + rank];
    PX_TRY(transposed_axis(op, problem, axis, output_padding));
  }
  return problem;
}

}  // namespace parallax::runtime
