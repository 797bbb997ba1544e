// SPDX-License-Identifier: Apache-2.0
// DeformConv: a convolution whose kernel elements are moved by given offsets and read between the input's elements.
#include <algorithm>
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "reference/kernels/products.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"
#include "reference/ops/window.h"

namespace parallax::reference {
namespace {

struct DeformPlan {
  Window window;
  int64_t batch = 0, channels = 0, groups = 1, offset_groups = 1;
  int64_t in = 0, out = 0;  // channels of a group
  Shape result;
};

Status expect_shape(const OpContext& op, size_t index, const DeformPlan& plan, int64_t channels) {
  std::vector<int64_t> dims{plan.batch, channels};
  dims.insert(dims.end(), plan.window.output.begin(), plan.window.output.end());
  const Shape wanted = PX_TRY(Shape::create(dims));
  if (op.input(index).shape() == wanted) return {};
  return wrong_input(op, index, "have shape {}", wanted.to_string());
}

// The mask has one number for each kernel element and output position, as the 2-D form of its page says; the N-D form
// there repeats the offsets' factor n by mistake.
Result<DeformPlan> plan_deform(const OpContext& op) {
  const Shape& x = op.input(0).shape();
  const Shape& w = op.input(1).shape();
  DeformPlan plan;
  plan.groups = op.int_attribute("group");
  plan.offset_groups = op.int_attribute("offset_group");
  if (x.rank() < 3 || w.rank() != x.rank())
    return wrong_input(op, 0, "have rank 3 or more and the rank of W, {}", w.to_string());
  std::vector<int64_t> kernel(w.begin() + 2, w.end());
  const auto given = op.find_ints("kernel_shape");
  if (given.has_value() && !given->empty() && *given != kernel)
    return wrong_attribute("kernel_shape", *given, "be the spatial shape of W, {}", dims_text(kernel));
  if (plan.groups < 1 || plan.offset_groups < 1 || x[1] % plan.groups != 0 || w[1] != x[1] / plan.groups ||
      w[0] % plan.groups != 0 || x[1] % plan.offset_groups != 0)
    return wrong_input(op, 0, "fit W {} in {} groups and {} offset groups", w.to_string(), plan.groups,
                       plan.offset_groups);
  plan.window = PX_TRY(plan_window(op, x, std::move(kernel), false));
  plan.batch = x[0];
  plan.channels = x[1];
  plan.in = w[1];
  plan.out = w[0] / plan.groups;
  std::vector<int64_t> dims{plan.batch, w[0]};
  dims.insert(dims.end(), plan.window.output.begin(), plan.window.output.end());
  plan.result = PX_TRY(Shape::create(dims));
  const int64_t elements = plan.offset_groups * plan.window.kernel_count();
  PX_TRY(expect_shape(op, 2, plan, elements * static_cast<int64_t>(plan.window.rank())));
  if (op.has_input(4)) PX_TRY(expect_shape(op, 4, plan, elements));
  if (op.has_input(3) && op.input(3).element_count() != w[0])
    return wrong_input(op, 3, "have {} elements, one for each output channel", w[0]);
  return plan;
}

// The corners of a position between elements, as (position in a plane, weight); corners outside count nothing.
using SamplePoints = std::vector<std::pair<int64_t, double>>;

SamplePoints interpolate(const Window& window, std::span<const double> location) {
  SamplePoints taps{{0, 1.0}};
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    const auto length = static_cast<double>(window.input[axis]);
    if (!(location[axis] > -1 && location[axis] < length)) return {};
    const double floor = std::floor(location[axis]);
    SamplePoints joined;
    for (const auto& [position, weight] : taps) {
      for (int step = 0; step < 2; ++step) {
        const double corner = floor + step;
        const double factor = step == 0 ? floor + 1 - location[axis] : location[axis] - floor;
        if (corner < 0 || corner >= length || factor == 0) continue;
        joined.emplace_back(position * window.input[axis] + static_cast<int64_t>(corner), weight * factor);
      }
    }
    taps = std::move(joined);
  }
  return taps;
}

// Reads the inputs' numbers for one call.
class Sampler {
 public:
  Sampler(const OpContext& op, const DeformPlan& plan) : plan_(plan), x_(op.input(0)), offsets_(op.input(2)) {
    if (op.has_input(4)) mask_.emplace(op.input(4));
  }

  // The samples under the windows [first, first + width) of one sample and group, a row for each channel and element.
  void load(int64_t sample, int64_t group, int64_t first, int64_t width, std::span<double> panel) const {
    const int64_t kernel = plan_.window.kernel_count();
    const int64_t inner = plan_.window.input_count();
    const int64_t per_offset_group = plan_.channels / plan_.offset_groups;
    for (int64_t column = 0; column < width; ++column) {
      for (int64_t element = 0; element < kernel; ++element) {
        SamplePoints taps;
        double mask = 1;
        int64_t known = -1;  // the offset group that taps are of
        for (int64_t channel = 0; channel < plan_.in; ++channel) {
          const int64_t source = group * plan_.in + channel;
          if (source / per_offset_group != known) {
            known = source / per_offset_group;
            taps = taps_of(sample, known, element, first + column);
            mask = mask_at(sample, known, element, first + column);
          }
          double sum = 0;
          for (const auto& [position, weight] : taps)
            sum += weight * x_[(sample * plan_.channels + source) * inner + position];
          panel[static_cast<size_t>((channel * kernel + element) * width + column)] = mask * sum;
        }
      }
    }
  }

 private:
  SamplePoints taps_of(int64_t sample, int64_t offset_group, int64_t element, int64_t location) const {
    const Window& window = plan_.window;
    const std::vector<int64_t> none(window.rank(), 0);
    const Walk<1> at(window.output, {none}, location);
    const Walk<1> within(window.kernel, {none}, element);
    const auto rank = static_cast<int64_t>(window.rank());
    std::vector<double> moved;
    for (size_t axis = 0; axis < window.rank(); ++axis) {
      const int64_t regular =
          at.index(axis) * window.strides[axis] - window.pads_begin[axis] + within.index(axis) * window.dilations[axis];
      const int64_t row = ((sample * plan_.offset_groups + offset_group) * window.kernel_count() + element) * rank +
                          static_cast<int64_t>(axis);
      moved.push_back(static_cast<double>(regular) + offsets_[row * window.output_count() + location]);
    }
    return interpolate(window, moved);
  }

  double mask_at(int64_t sample, int64_t offset_group, int64_t element, int64_t location) const {
    if (!mask_.has_value()) return 1;
    const int64_t row = (sample * plan_.offset_groups + offset_group) * plan_.window.kernel_count() + element;
    return (*mask_)[row * plan_.window.output_count() + location];
  }

  const DeformPlan& plan_;
  Numbers<double> x_, offsets_;
  std::optional<Numbers<double>> mask_;
};

Status op_deform_conv(OpContext& op) {
  const DeformPlan plan = PX_TRY(plan_deform(op));
  const Sampler sampler(op, plan);
  const Numbers<double> weights(op.input(1));
  const int64_t locations = plan.window.output_count();
  const int64_t depth = plan.in * plan.window.kernel_count();
  std::vector<double> bias(static_cast<size_t>(plan.groups * plan.out), 0.0);
  if (op.has_input(3)) load<double>(op.input(3), 0, bias);
  std::vector<double> results(static_cast<size_t>(plan.result.element_count()));
  for (int64_t index = 0; index < plan.batch * plan.groups; ++index) {
    const int64_t group = index % plan.groups;
    ProductSpec<double> spec;
    spec.rows = plan.out;
    spec.columns = locations;
    spec.depth = depth;
    spec.load_row = [&](int64_t row, std::span<double> values) {
      std::copy_n(weights.data() + (group * plan.out + row) * depth, depth, values.begin());
    };
    spec.load_columns = [&](int64_t first, int64_t width, std::span<double> panel) {
      sampler.load(index / plan.groups, group, first, width, panel);
    };
    spec.store = [&](const SumsBlock<double>& sums) {
      for (int64_t row = 0; row < sums.rows; ++row) {
        const auto target = results.begin() + (index * plan.out + sums.row + row) * locations + sums.column;
        const double added = bias[static_cast<size_t>(group * plan.out + sums.row + row)];
        std::ranges::transform(sums.line(row), target, [=](double value) { return value + added; });
      }
    };
    sum_products(spec);
  }
  return op.set_output(0, op.input(0).dtype(), plan.result, std::span<const double>(results));
}

constexpr OpRow kDeformConvRows[] = {
    {"DeformConv", kOnnx, 19, 22, op_deform_conv},
};

}  // namespace

OpRows deform_conv_rows() { return kDeformConvRows; }

}  // namespace parallax::reference
