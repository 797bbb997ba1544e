// SPDX-License-Identifier: Apache-2.0
// The arithmetic of windows, as the specification of Conv, ConvTranspose and the pools gives it.
#include "reference/ops/window.h"

#include <algorithm>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"

namespace parallax::reference {
namespace {

// The largest stride, dilation, pad or dimension keeps the arithmetic below in range.
constexpr int64_t kLargest = int64_t{1} << 31;

Status expect_list(const std::vector<int64_t>& list, size_t length, int64_t least, std::string_view name) {
  if (list.size() != length) return wrong_length(fmt::format("attribute '{}'", name), list.size(), "have {}", length);
  for (int64_t entry : list) {
    if (entry < least || entry > kLargest)
      return wrong_value(fmt::format("an entry of attribute '{}'", name), entry, "be in [{}, {}]", least, kLargest);
  }
  return {};
}

// Strides, dilations and explicit pads; padding by auto_pad is up to the caller.
Result<Window> read_attributes(const OpContext& op, const Shape& x, std::vector<int64_t> kernel) {
  if (x.rank() < 3 || x.rank() - 2 > Shape::kMaxRank / 2)
    return wrong_shape("X", x, "be [N,C,D1,...] with 1 to {} spatial axes", Shape::kMaxRank / 2);
  if (std::any_of(x.begin(), x.end(), [](int64_t dim) { return dim > kLargest; }))
    return wrong_shape("X", x, "have dimensions of at most {}", kLargest);
  Window window;
  window.input.assign(x.begin() + 2, x.end());
  const size_t rank = window.input.size();
  window.kernel = std::move(kernel);
  window.strides = op.find_ints("strides").value_or(std::vector<int64_t>(rank, 1));
  window.dilations = op.find_ints("dilations").value_or(std::vector<int64_t>(rank, 1));
  std::vector<int64_t> pads = op.find_ints("pads").value_or(std::vector<int64_t>(2 * rank, 0));
  if (window.strides.empty()) window.strides.assign(rank, 1);
  if (window.dilations.empty()) window.dilations.assign(rank, 1);
  if (pads.empty()) pads.assign(2 * rank, 0);
  PX_TRY(expect_list(window.kernel, rank, 1, "kernel_shape"));
  constexpr int64_t kMaxKernel = int64_t{1} << 28;
  const Shape kernel_shape = PX_TRY(Shape::create(window.kernel));
  if (kernel_shape.element_count() > kMaxKernel)
    return wrong_attribute("kernel_shape", window.kernel, "have at most {} elements in all", kMaxKernel);
  PX_TRY(expect_list(window.strides, rank, 1, "strides"));
  PX_TRY(expect_list(window.dilations, rank, 1, "dilations"));
  PX_TRY(expect_list(pads, 2 * rank, 0, "pads"));
  window.pads_begin.assign(pads.begin(), pads.begin() + static_cast<ptrdiff_t>(rank));
  window.pads_end.assign(pads.begin() + static_cast<ptrdiff_t>(rank), pads.end());
  window.output.resize(rank);
  return window;
}

// The odd element of uneven padding is added after (SAME_UPPER) or before (SAME_LOWER).
void split_padding(Window& window, size_t axis, int64_t total, bool upper) {
  window.pads_begin[axis] = upper ? total / 2 : total - total / 2;
  window.pads_end[axis] = total - window.pads_begin[axis];
}

int64_t reach_of(const Window& window, size_t axis) { return (window.kernel[axis] - 1) * window.dilations[axis] + 1; }

int64_t product(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

}  // namespace

int64_t Window::input_count() const { return product(input); }
int64_t Window::output_count() const { return product(output); }
int64_t Window::kernel_count() const { return product(kernel); }

void Window::sources(int64_t location, std::vector<int64_t>& positions) const {
  const std::vector<int64_t> none(rank(), 0);
  const Walk<1> at(output, {none}, location);
  Walk<1> walk(kernel, {none});
  for (int64_t& position : positions) {
    position = 0;
    for (size_t axis = 0; axis < rank(); ++axis) {
      const int64_t index = at.index(axis) * strides[axis] - pads_begin[axis] + walk.index(axis) * dilations[axis];
      position = position < 0 || index < 0 || index >= input[axis] ? -1 : position * input[axis] + index;
    }
    walk.next();
  }
}

void Window::transposed_sources(int64_t location, std::vector<int64_t>& positions) const {
  const std::vector<int64_t> none(rank(), 0);
  const Walk<1> at(output, {none}, location);
  Walk<1> walk(kernel, {none});
  for (int64_t& position : positions) {
    position = 0;
    for (size_t axis = 0; axis < rank(); ++axis) {
      const int64_t distance = at.index(axis) + pads_begin[axis] - walk.index(axis) * dilations[axis];
      const int64_t index = distance / strides[axis];
      const bool reached = distance >= 0 && distance % strides[axis] == 0 && index < input[axis];
      position = position < 0 || !reached ? -1 : position * input[axis] + index;
    }
    walk.next();
  }
}

Result<Window> plan_window(const OpContext& op, const Shape& x, std::vector<int64_t> kernel, bool ceil_mode) {
  Window window = PX_TRY(read_attributes(op, x, std::move(kernel)));
  const std::string auto_pad = op.find_string("auto_pad").value_or("NOTSET");
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    const int64_t input = window.input[axis];
    const int64_t stride = window.strides[axis];
    const int64_t reach = reach_of(window, axis);
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      window.output[axis] = (input + stride - 1) / stride;
      const int64_t total = std::max<int64_t>(0, (window.output[axis] - 1) * stride + reach - input);
      split_padding(window, axis, total, auto_pad == "SAME_UPPER");
      continue;
    }
    if (auto_pad == "VALID")
      window.pads_begin[axis] = window.pads_end[axis] = 0;
    else if (auto_pad != "NOTSET")
      return wrong_attribute("auto_pad", auto_pad, "be NOTSET, SAME_UPPER, SAME_LOWER or VALID");
    const int64_t room = input + window.pads_begin[axis] + window.pads_end[axis] - reach;
    if (room < 0)
      return wrong_value(fmt::format("the window along spatial axis {}", axis), reach,
                         "be at most {}, the size of the padded input", room + reach);
    window.output[axis] = (ceil_mode ? (room + stride - 1) / stride : room / stride) + 1;
    if (ceil_mode && (window.output[axis] - 1) * stride >= input + window.pads_begin[axis]) --window.output[axis];
  }
  return window;
}

Result<Window> plan_transposed_window(const OpContext& op, const Shape& x, std::vector<int64_t> kernel) {
  Window window = PX_TRY(read_attributes(op, x, std::move(kernel)));
  const std::string auto_pad = op.find_string("auto_pad").value_or("NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  std::vector<int64_t> extra = op.find_ints("output_padding").value_or(std::vector<int64_t>{});
  if (extra.empty()) extra.assign(window.rank(), 0);
  PX_TRY(expect_list(extra, window.rank(), 0, "output_padding"));
  std::vector<int64_t> wanted = op.find_ints("output_shape").value_or(std::vector<int64_t>{});
  if (wanted.size() == window.rank() + 2)
    wanted.erase(wanted.begin(), wanted.begin() + 2);  // some models give N and C too
  if (!wanted.empty()) PX_TRY(expect_list(wanted, window.rank(), 0, "output_shape"));
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    const int64_t full = window.strides[axis] * (window.input[axis] - 1) + extra[axis] + reach_of(window, axis);
    if (wanted.empty() && !same) {
      if (auto_pad == "VALID") window.pads_begin[axis] = window.pads_end[axis] = 0;
      window.output[axis] = full - window.pads_begin[axis] - window.pads_end[axis];
      if (window.output[axis] < 0)
        return wrong_value(fmt::format("the output's size along spatial axis {}", axis), window.output[axis],
                           "be 0 or more; reduce the pads");
      continue;
    }
    window.output[axis] = wanted.empty() ? window.input[axis] * window.strides[axis] : wanted[axis];
    split_padding(window, axis, std::max<int64_t>(0, full - window.output[axis]), auto_pad == "SAME_UPPER");
  }
  return window;
}

}  // namespace parallax::reference
