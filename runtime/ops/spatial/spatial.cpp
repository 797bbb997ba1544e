// SPDX-License-Identifier: Apache-2.0
// The shape arithmetic of windows. Source: the formulas in the specification of Conv-11 and MaxPool-12.
#include "runtime/ops/spatial/spatial.h"

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kMostTaps = int64_t{1} << 28;  // of a window on all axes: each output walks them

// SAME: as many outputs as strides fit, the padding shared out, the odd one at the end (UPPER) or the beginning
// (LOWER).
void pad_same(WindowAttributes& window, const Ints& in_spatial, int64_t axis, bool upper) {
  const int64_t out = (in_spatial[axis] + window.strides[axis] - 1) / window.strides[axis];
  const int64_t extent = (window.kernel[axis] - 1) * window.dilations[axis] + 1;
  const int64_t total = std::max<int64_t>(0, (out - 1) * window.strides[axis] + extent - in_spatial[axis]);
  window.pads_begin[axis] = upper ? total / 2 : total - total / 2;
  window.pads_end[axis] = total - window.pads_begin[axis];
}

}  // namespace

Result<Ints> window_list(const OpCall& op, std::string_view name, int64_t count, int64_t fill, int64_t least) {
  Ints values = op.find_integers(name).value_or(Ints{});
  if (values.empty() && fill >= least) values = Ints(count, fill);
  if (values.size() != count) return wrong_length(fmt::format("attribute '{}'", name), values.size(), "have {}", count);
  for (int64_t value : values) {
    if (value < least || value > kLargestOfWindow)
      return wrong_value(fmt::format("an entry of attribute '{}'", name), value, "be in [{}, {}]", least,
                         kLargestOfWindow);
  }
  return values;
}

Result<WindowAttributes> window_attributes(const OpCall& op, const Ints& in_spatial, const Ints& kernel,
                                           bool ceil_mode) {
  const int64_t rank = kernel.size();
  if (in_spatial.size() != rank)
    return wrong_value("the number of spatial axes", in_spatial.size(), "be that of the kernel, {}", rank);
  WindowAttributes window{kernel, {}, {}, Ints(rank), Ints(rank), Ints(rank)};
  window.strides = PX_TRY(window_list(op, "strides", rank, 1, 1));
  window.dilations = PX_TRY(window_list(op, "dilations", rank, 1, 1));
  const Ints pads = PX_TRY(window_list(op, "pads", 2 * rank, 0, 0));
  const std::string auto_pad = op.find_text("auto_pad").value_or("NOTSET");
  const Shape kernel_shape = PX_TRY(shape_of(kernel));
  if (kernel_shape.element_count() > kMostTaps)
    return wrong_value("the number of a window's elements", kernel_shape.element_count(), "be at most {}", kMostTaps);
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (kernel[axis] < 1 || kernel[axis] > kLargestOfWindow || in_spatial[axis] > kLargestOfWindow)
      return wrong_value(fmt::format("the kernel along spatial axis {}", axis), kernel[axis],
                         "be in [1, {}] over at most as many positions, there are {}", kLargestOfWindow,
                         in_spatial[axis]);
    if (auto_pad == "NOTSET" || auto_pad.empty()) {
      window.pads_begin[axis] = pads[axis];
      window.pads_end[axis] = pads[axis + rank];
    } else if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      pad_same(window, in_spatial, axis, auto_pad == "SAME_UPPER");
    } else if (auto_pad != "VALID")
      return wrong_attribute("auto_pad", auto_pad, "be NOTSET, SAME_UPPER, SAME_LOWER or VALID");
    const int64_t extent = (kernel[axis] - 1) * window.dilations[axis] + 1;
    const int64_t room = in_spatial[axis] + window.pads_begin[axis] + window.pads_end[axis] - extent;
    if (room < 0)
      return wrong_value(fmt::format("the window along spatial axis {}", axis), extent,
                         "be at most {}, the size of the padded input", room + extent);
    int64_t out = room / window.strides[axis] + 1;
    if (ceil_mode && room % window.strides[axis] != 0) {
      // The last window must begin inside the input or the padding before it, not in the padding after it.
      if (out * window.strides[axis] < in_spatial[axis] + window.pads_begin[axis]) ++out;
    }
    window.out_spatial[axis] = out;
  }
  return window;
}

}  // namespace parallax::runtime
