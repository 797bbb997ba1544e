// SPDX-License-Identifier: Apache-2.0
// Shapes of operators with a sliding window or a spatial grid: convolutions, pooling, Resize, RoiAlign, GridSample.
#include "inspector/model/shape_inference/window.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "inspector/model/shape_inference/rows.h"
#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

// Larger strides, kernels and pads than these are refused by every executor and could overflow here.
constexpr int64_t kLargest = int64_t{1} << 31;

struct Window {
  DimExpressions kernel;
  std::vector<int64_t> strides, dilations, pads;
  std::string auto_pad;
  bool ceil_mode = false;
};

std::optional<std::vector<int64_t>> bounded(NodeContext& context, std::string_view name, size_t count,
                                            int64_t otherwise) {
  auto values = context.integers(name).value_or(std::vector<int64_t>(count, otherwise));
  const bool fine =
      values.size() == count && std::ranges::all_of(values, [](int64_t v) { return v > -kLargest && v < kLargest; });
  return fine ? std::optional(values) : std::nullopt;
}

std::optional<Window> window_of(NodeContext& context, DimExpressions kernel) {
  Window window;
  const size_t axes = kernel.size();
  const auto strides = bounded(context, "strides", axes, 1), dilations = bounded(context, "dilations", axes, 1);
  const auto pads = bounded(context, "pads", 2 * axes, 0);
  if (!strides || !dilations || !pads || std::ranges::any_of(*strides, [](int64_t stride) { return stride <= 0; })) {
    return std::nullopt;
  }
  window.kernel = std::move(kernel);
  window.strides = *strides;
  window.dilations = *dilations;
  window.pads = *pads;
  window.auto_pad = context.text("auto_pad");
  window.ceil_mode = context.integer_or("ceil_mode", 0) != 0;
  return window;
}

DimExpression effective_kernel(const Window& window, size_t axis) {
  return (window.kernel[axis] - 1) * window.dilations[axis] + 1;
}

// One spatial dimension of a convolution or pooling, as the specification of Conv and MaxPool gives it.
DimExpression slid(const Window& window, size_t axis, const DimExpression& input) {
  const int64_t stride = window.strides[axis];
  if (window.auto_pad.starts_with("SAME")) return ceil_divide(input, stride);
  const bool padded = window.auto_pad != "VALID";
  const int64_t before = padded ? window.pads[axis] : 0;
  const int64_t after = padded ? window.pads[window.kernel.size() + axis] : 0;
  const DimExpression room = input + (before + after) - effective_kernel(window, axis);
  if (!window.ceil_mode || stride == 1) return floor_divide(room, stride) + 1;
  const auto count = (ceil_divide(room, stride) + 1).number(), size = input.number();
  if (!count || !size) return {};
  // A window that would start in the padding after the data is left out.
  return (*count - 1) * stride >= *size + before ? *count - 1 : *count;
}

// [N, C] from the caller, then every spatial dimension slid over.
void set_slid_shape(NodeContext& context, const DimExpression& channels, const std::optional<DimExpressions>& kernel) {
  const auto& shape = context.shape(0);
  if (!shape || shape->size() < 2) return;
  DimExpressions result{(*shape)[0], channels};
  const auto window = kernel && kernel->size() == shape->size() - 2 ? window_of(context, *kernel) : std::nullopt;
  for (size_t axis = 0; axis + 2 < shape->size(); ++axis) {
    result.push_back(window ? slid(*window, axis, (*shape)[axis + 2]) : DimExpression{});
  }
  context.set_shape(0, result);
}

std::optional<DimExpressions> kernel_of(NodeContext& context, size_t weights) {
  if (const auto kernel = context.integers("kernel_shape")) return DimExpressions(kernel->begin(), kernel->end());
  const auto& shape = context.shape(weights);
  if (!shape || shape->size() < 2) return std::nullopt;
  return DimExpressions(shape->begin() + 2, shape->end());
}

void convolution(NodeContext& context) { convolution_shape(context, 1); }
void q_linear_convolution(NodeContext& context) { convolution_shape(context, 3); }

void pool(NodeContext& context) {
  set_slid_shape(context, context.dim(0, 1), kernel_of(context, context.input_count()));
  if (context.output_count() > 1) context.set_shape(1, context.output(0).shape);
}

void global_pool(NodeContext& context) {
  const auto& shape = context.shape(0);
  if (!shape || shape->size() < 2) return;
  DimExpressions result(shape->size(), 1);
  std::copy_n(shape->begin(), 2, result.begin());
  context.set_shape(0, result);
}

DimExpression transposed(const Window& window, size_t axis, const DimExpression& input, int64_t output_padding) {
  const int64_t stride = window.strides[axis];
  if (window.auto_pad.starts_with("SAME")) return input * stride;
  const bool padded = window.auto_pad != "VALID";
  const int64_t pads = padded ? window.pads[axis] + window.pads[window.kernel.size() + axis] : 0;
  return (input - 1) * stride + effective_kernel(window, axis) + output_padding - pads;
}

void transposed_convolution(NodeContext& context) {
  const auto& shape = context.shape(0);
  if (!shape || shape->size() < 2) return;
  const size_t axes = shape->size() - 2;
  DimExpressions result{(*shape)[0], context.dim(1, 1) * context.integer_or("group", 1)};
  const auto given = context.integers("output_shape");
  const auto kernel = kernel_of(context, 1);
  const auto window = kernel && kernel->size() == axes ? window_of(context, *kernel) : std::nullopt;
  const auto padding = bounded(context, "output_padding", axes, 0);
  for (size_t axis = 0; axis < axes; ++axis) {
    if (given && given->size() >= axes) {
      result.emplace_back((*given)[given->size() - axes + axis]);
    } else {
      result.push_back(window && padding && !given ? transposed(*window, axis, (*shape)[axis + 2], (*padding)[axis])
                                                   : DimExpression{});
    }
  }
  context.set_shape(0, result);
}

void max_unpool(NodeContext& context) {
  if (context.has_input(2)) return context.set_shape(0, context.contents(2));
  const auto& shape = context.shape(0);
  if (!shape || shape->size() < 2) return;
  const auto kernel = kernel_of(context, context.input_count());
  const auto window = kernel && kernel->size() == shape->size() - 2 ? window_of(context, *kernel) : std::nullopt;
  DimExpressions result = *shape;
  for (size_t axis = 0; axis + 2 < shape->size(); ++axis) {
    result[axis + 2] = window ? transposed(*window, axis, (*shape)[axis + 2], 0) : DimExpression{};
  }
  context.set_shape(0, result);
}

void roi_align(NodeContext& context) {
  context.set_shape(0, DimExpressions{context.dim(1, 0), context.dim(0, 1), context.integer_or("output_height", 1),
                                      context.integer_or("output_width", 1)});
}

void max_roi_pool(NodeContext& context) {
  const auto pooled = context.integers("pooled_shape");
  if (!pooled) return;
  DimExpressions result{context.dim(1, 0), context.dim(0, 1)};
  result.insert(result.end(), pooled->begin(), pooled->end());
  context.set_shape(0, result);
}

void grid_sample(NodeContext& context) {
  const auto& grid = context.shape(1);
  if (!grid || grid->size() < 2) return;
  DimExpressions result{context.dim(0, 0), context.dim(0, 1)};
  result.insert(result.end(), grid->begin() + 1, grid->end() - 1);
  context.set_shape(0, result);
}

std::optional<std::vector<double>> scales_of(NodeContext& context, size_t input) {
  if (context.schema_has_attribute("scales")) {
    const auto* scales = context.attribute<std::vector<float>>("scales");
    return scales == nullptr ? std::nullopt : std::optional(std::vector<double>(scales->begin(), scales->end()));
  }
  const Tensor* tensor = context.constant(input);
  if (tensor == nullptr || !is_floating(tensor->dtype()) || tensor->element_count() > 64) return std::nullopt;
  std::vector<double> scales(static_cast<size_t>(tensor->element_count()));
  load_doubles(*tensor, 0, scales);
  return scales;
}

DimExpression scaled(const DimExpression& dim, double scale) {
  if (scale == 1.0) return dim;
  const auto number = dim.number();
  if (number) {
    // Computed as float: so does the specification, whose scales are float.
    const float product = std::floor(static_cast<float>(*number) * static_cast<float>(scale));
    return product >= 0 && product < static_cast<float>(kLargest) ? DimExpression(static_cast<int64_t>(product))
                                                                  : DimExpression{};
  }
  const bool whole = scale > 0 && scale < static_cast<double>(kLargest) && std::floor(scale) == scale;
  return whole ? dim * static_cast<int64_t>(scale) : DimExpression{};
}

// Which axes Resize works on: those of `axes` (opset 18), else all.
std::optional<std::vector<size_t>> resized_axes(NodeContext& context, size_t rank) {
  if (const auto axes = context.integers("axes")) return normalized_axes(*axes, rank);
  std::vector<size_t> all(rank);
  for (size_t axis = 0; axis < rank; ++axis) all[axis] = axis;
  return all;
}

void resize(NodeContext& context) {
  const auto& shape = context.shape(0);
  if (!shape) return;
  context.set_shape(0, unknown_dims(shape->size()));
  constexpr int64_t kFirstWithRoi = 11;
  const bool has_sizes = context.has_input(3);
  const auto axes = resized_axes(context, shape->size());
  const std::string policy = context.text("keep_aspect_ratio_policy");
  if (!axes || (has_sizes && !policy.empty() && policy != "stretch")) return;
  const bool roi = context.node().op_type == "Resize" && context.since_version() >= kFirstWithRoi;
  const auto sizes = has_sizes ? context.contents(3) : std::nullopt;
  const auto scales = has_sizes ? std::nullopt : scales_of(context, roi ? 2 : 1);
  const size_t count = sizes ? sizes->size() : scales ? scales->size() : axes->size() + 1;
  if (count != axes->size()) return;
  DimExpressions result = *shape;
  for (size_t index = 0; index < count; ++index) {
    DimExpression& dim = result[(*axes)[index]];
    dim = sizes ? (*sizes)[index] : scaled(dim, (*scales)[index]);
  }
  context.set_shape(0, result);
}

constexpr std::array kWindowRows = {
    ShapeRow{"AveragePool", pool},
    ShapeRow{"Conv", convolution},
    ShapeRow{"ConvInteger", convolution},
    ShapeRow{"ConvTranspose", transposed_convolution},
    ShapeRow{"DeformConv", convolution},
    ShapeRow{"GlobalAveragePool", global_pool},
    ShapeRow{"GlobalLpPool", global_pool},
    ShapeRow{"GlobalMaxPool", global_pool},
    ShapeRow{"GridSample", grid_sample},
    ShapeRow{"LpPool", pool},
    ShapeRow{"MaxPool", pool},
    ShapeRow{"MaxRoiPool", max_roi_pool},
    ShapeRow{"MaxUnpool", max_unpool},
    ShapeRow{"QLinearConv", q_linear_convolution},
    ShapeRow{"Resize", resize},
    ShapeRow{"RoiAlign", roi_align},
    ShapeRow{"Upsample", resize},
};

}  // namespace

void convolution_shape(NodeContext& context, size_t weights) {
  set_slid_shape(context, context.dim(weights, 0), kernel_of(context, weights));
}

std::span<const ShapeRow> window_rows() { return kWindowRows; }

}  // namespace parallax
