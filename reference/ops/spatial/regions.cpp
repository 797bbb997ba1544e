// SPDX-License-Identifier: Apache-2.0
// Regions of feature maps: RoiAlign, NonMaxSuppression.
#include <algorithm>
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

// One corner pixel of a bilinear sample.
struct Corner {
  int64_t y, x;
  double weight;
};

// RoiAlign's bilinear sample: nothing more than one element outside, clamped to the border up to there.
std::vector<Corner> roi_corners(double y, double x, int64_t height, int64_t width) {
  if (y < -1 || y > static_cast<double>(height) || x < -1 || x > static_cast<double>(width)) return {};
  const auto split = [](double value, int64_t length, int64_t& low, int64_t& high) {
    value = std::max(value, 0.0);
    low = static_cast<int64_t>(value);
    high = low + 1;
    if (low >= length - 1) {
      low = high = length - 1;
      value = static_cast<double>(low);
    }
    return value - static_cast<double>(low);
  };
  int64_t y_low = 0, y_high = 0, x_low = 0, x_high = 0;
  const double ly = split(y, height, y_low, y_high);
  const double lx = split(x, width, x_low, x_high);
  return {{y_low, x_low, (1 - ly) * (1 - lx)},
          {y_low, x_high, (1 - ly) * lx},
          {y_high, x_low, ly * (1 - lx)},
          {y_high, x_high, ly * lx}};
}

struct RoiBins {
  double start_y, start_x, bin_height, bin_width;
  int64_t grid_y, grid_x;
};

struct RoiOptions {
  std::string mode;
  int64_t out_h = 0, out_w = 0;
  int64_t ratio = 0;        // samples of a bin along each axis; 0: as many as the bin has elements
  bool half_pixel = false;  // version 10 had no such offset
  std::vector<int64_t> batches;
};

Result<RoiOptions> roi_options(const OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const Shape& rois = op.input(1).shape();
  if (shape.rank() != 4 || rois.rank() != 2 || rois[1] != 4)
    return wrong_input(op, 0, "be [N,C,H,W], and rois, {}, be [n,4]", rois.to_string());
  if (shape[2] == 0 || shape[3] == 0) return wrong_input(op, 0, "have one element or more along H and W");
  RoiOptions options{op.string_attribute("mode"),
                     op.int_attribute("output_height"),
                     op.int_attribute("output_width"),
                     op.int_attribute("sampling_ratio"),
                     false,
                     PX_TRY(op.int64s_of_input(2))};
  options.half_pixel = op.find_string("coordinate_transformation_mode").value_or("output_half_pixel") == "half_pixel";
  constexpr int64_t kMaxRatio = 1 << 12;
  if (static_cast<int64_t>(options.batches.size()) != rois[0] || options.out_h < 1 || options.out_w < 1 ||
      options.ratio > kMaxRatio || (options.mode != "avg" && options.mode != "max"))
    return execution_error(fmt::format(
        "there are {} batch_indices, output {} x {}, sampling_ratio {} and mode '{}'; they must be {}, 1 or more, at "
        "most {}, avg or max",
        options.batches.size(), options.out_h, options.out_w, options.ratio, options.mode, rois[0], kMaxRatio));
  for (int64_t batch : options.batches) {
    if (batch < 0 || batch >= shape[0])
      return wrong_value("an entry of batch_indices", batch, "be in [0, {}), the batch of X", shape[0]);
  }
  return options;
}

// Each bin of a region is the mean (mode avg) or maximum of bilinear samples on a grid; in mode max, of the weighted
// corners, as the specification's version 10 and 16 both compute it.
Status op_roi_align(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const Tensor& rois = op.input(1);
  const auto [mode, out_h, out_w, ratio, half_pixel, batches] = PX_TRY(roi_options(op));
  const double scale = op.float_attribute("spatial_scale");
  const int64_t count = rois.shape()[0];
  const std::array<int64_t, 4> dims{count, shape[1], out_h, out_w};
  const Shape result = PX_TRY(Shape::create(dims));
  const Numbers<double> x(op.input(0));
  const Numbers<double> boxes(rois);
  Tensor output = PX_TRY(op.allocate(op.input(0).dtype(), result));
  std::vector<double> values(static_cast<size_t>(result.element_count()));
  for (int64_t roi = 0; roi < count; ++roi) {
    const double offset = half_pixel ? 0.5 : 0.0;
    const double x1 = boxes[roi * 4] * scale - offset;
    const double y1 = boxes[roi * 4 + 1] * scale - offset;
    double width = boxes[roi * 4 + 2] * scale - offset - x1;
    double height = boxes[roi * 4 + 3] * scale - offset - y1;
    if (!half_pixel) {
      width = std::max(width, 1.0);
      height = std::max(height, 1.0);
    }
    if (!(std::fabs(width) < 1e6 && std::fabs(height) < 1e6))
      return wrong_value(fmt::format("the size of region {}", roi), fmt::format("{} x {}", width, height),
                         "be below 1e6 along each axis");
    RoiBins bins{y1, x1, height / static_cast<double>(out_h), width / static_cast<double>(out_w), ratio, ratio};
    if (ratio <= 0) {
      bins.grid_y = std::max<int64_t>(0, static_cast<int64_t>(std::ceil(bins.bin_height)));
      bins.grid_x = std::max<int64_t>(0, static_cast<int64_t>(std::ceil(bins.bin_width)));
    }
    const int64_t samples = bins.grid_y * bins.grid_x;  // none where the region ends before it begins: the result is 0
    for (int64_t index = 0; index < shape[1] * out_h * out_w; ++index) {
      const int64_t plane = batches[static_cast<size_t>(roi)] * shape[1] + index / (out_h * out_w);
      double sum = 0;
      double best = samples == 0 ? 0.0 : -std::numeric_limits<double>::infinity();
      for (int64_t sample = 0; sample < samples; ++sample) {
        const auto at_y = static_cast<double>(sample / bins.grid_x) + 0.5;
        const auto at_x = static_cast<double>(sample % bins.grid_x) + 0.5;
        const double y =
            bins.start_y +
            (static_cast<double>(index / out_w % out_h) + at_y / static_cast<double>(bins.grid_y)) * bins.bin_height;
        const double column =
            bins.start_x +
            (static_cast<double>(index % out_w) + at_x / static_cast<double>(bins.grid_x)) * bins.bin_width;
        const std::vector<Corner> corners = roi_corners(y, column, shape[2], shape[3]);
        double largest = corners.empty() ? 0.0 : -std::numeric_limits<double>::infinity();
        for (const Corner& corner : corners) {
          const double part = corner.weight * x[(plane * shape[2] + corner.y) * shape[3] + corner.x];
          sum += part;
          largest = std::max(largest, part);
        }
        best = std::max(best, largest);
      }
      values[static_cast<size_t>(roi * shape[1] * out_h * out_w + index)] =
          mode == "avg" ? sum / static_cast<double>(std::max<int64_t>(1, samples)) : best;
    }
  }
  store<double>(output, 0, std::span<const double>(values));
  return op.set_output(0, std::move(output));
}

struct Box {
  double y1, x1, y2, x2;
  double area() const { return (y2 - y1) * (x2 - x1); }
};

// Corners in any order, or center and size (center_point_box = 1).
Box read_box(const Numbers<double>& boxes, int64_t index, bool center) {
  const double a = boxes[index * 4], b = boxes[index * 4 + 1], c = boxes[index * 4 + 2], d = boxes[index * 4 + 3];
  if (center) return {b - d / 2, a - c / 2, b + d / 2, a + c / 2};
  return {std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)};
}

double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  const double width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (height <= 0 || width <= 0) return 0;
  const double shared = height * width;
  return shared / (a.area() + b.area() - shared);
}

// For each sample and class: boxes by falling score (the lower index first among equals), each kept unless it overlaps
// a kept one by more than iou_threshold.
Status op_non_max_suppression(OpContext& op) {
  const Shape& box_shape = op.input(0).shape();
  const Shape& score_shape = op.input(1).shape();
  const bool fits = box_shape.rank() == 3 && score_shape.rank() == 3 && box_shape[2] == 4 &&
                    box_shape[0] == score_shape[0] && box_shape[1] == score_shape[2];
  if (!fits) return wrong_input(op, 0, "be [batch,n,4], and scores, {}, be [batch,classes,n]", score_shape.to_string());
  const int64_t limit = op.has_input(2) ? PX_TRY(op.int64_of_input(2)) : 0;
  const double iou_threshold = op.has_input(3) ? PX_TRY(op.double_of_input(3)) : 0.0;
  const bool has_threshold = op.has_input(4);
  const double score_threshold = has_threshold ? PX_TRY(op.double_of_input(4)) : 0.0;
  const bool center = op.int_attribute("center_point_box") != 0;
  const Numbers<double> boxes(op.input(0));
  const Numbers<double> scores(op.input(1));
  const int64_t count = box_shape[1];
  std::vector<int64_t> selected;
  for (int64_t row = 0; row < score_shape[0] * score_shape[1]; ++row) {
    const int64_t sample = row / score_shape[1];
    std::vector<int64_t> order;
    for (int64_t box = 0; box < count; ++box) {
      if (!has_threshold || scores[row * count + box] > score_threshold) order.push_back(box);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return scores[row * count + a] > scores[row * count + b]; });
    std::vector<Box> kept;
    for (int64_t box : order) {
      if (static_cast<int64_t>(kept.size()) >= limit) break;
      const Box candidate = read_box(boxes, sample * count + box, center);
      const bool free = std::none_of(kept.begin(), kept.end(),
                                     [&](const Box& other) { return overlap(candidate, other) > iou_threshold; });
      if (!free) continue;
      kept.push_back(candidate);
      selected.insert(selected.end(), {sample, row % score_shape[1], box});
    }
  }
  return op.set_output(0, DType::int64, Shape{static_cast<int64_t>(selected.size() / 3), 3},
                       std::span<const int64_t>(selected));
}

constexpr OpRow kRegionsRows[] = {
    {"NonMaxSuppression", kOnnx, 10, 11, op_non_max_suppression},
    {"RoiAlign", kOnnx, 10, 22, op_roi_align},
};

}  // namespace

OpRows regions_rows() { return kRegionsRows; }

}  // namespace parallax::reference
