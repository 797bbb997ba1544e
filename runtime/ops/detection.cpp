// NonMaxSuppression: boxes picked one after the other, on the host.
#include <cmath>

#include <fmt/format.h>

#include "runtime/device/map.h"
#include "runtime/ops/families.h"

namespace parallax::runtime {
namespace {

struct Box {
  float y1, x1, y2, x2;
  float area() const { return (y2 - y1) * (x2 - x1); }
};

// Corners in any order, or centre and size.
Box box_of(const float* values, bool is_centre) {
  if (is_centre) {
    return {values[1] - values[3] / 2, values[0] - values[2] / 2, values[1] + values[3] / 2, values[0] + values[2] / 2};
  }
  return {std::min(values[0], values[2]), std::min(values[1], values[3]), std::max(values[0], values[2]),
          std::max(values[1], values[3])};
}

float intersection_over_union(const Box& a, const Box& b) {
  const float height = std::max(0.0F, std::min(a.y2, b.y2) - std::max(a.y1, b.y1));
  const float width = std::max(0.0F, std::min(a.x2, b.x2) - std::max(a.x1, b.x1));
  const float common = height * width;
  const float all = a.area() + b.area() - common;
  return all > 0 ? common / all : 0.0F;
}

template <class Device>
Status non_max_suppression(OpContext<Device>& op) {
  const Shape& boxes = op.input(0).shape();
  const Shape& scores = op.input(1).shape();
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes[2] != 4 || scores[0] != boxes[0] || scores[2] != boxes[1]) {
    return execution_error("boxes must be [batch, n, 4] and scores [batch, classes, n]");
  }
  const int64_t limit = op.has_input(2) ? PX_TRY(op.integer_of_input(2)) : 0;
  const float overlap = op.has_input(3) ? static_cast<float>(PX_TRY(op.real_of_input(3))) : 0.0F;
  const bool has_threshold = op.has_input(4);
  const float threshold = has_threshold ? static_cast<float>(PX_TRY(op.real_of_input(4))) : 0.0F;
  const bool is_centre = op.integer("center_point_box") != 0;
  const float* box_values = data_as<float>(op.input(0));
  const float* score_values = data_as<float>(op.input(1));
  Ints selected;
  for (int64_t row = 0; row < scores[0] * scores[1]; ++row) {
    const int64_t batch = row / scores[1];
    const float* own_scores = score_values + row * scores[2];
    Ints order;
    for (int64_t i = 0; i < scores[2]; ++i) {
      if (!has_threshold || own_scores[i] > threshold) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return own_scores[a] > own_scores[b]; });
    std::vector<Box> kept;
    for (int64_t i : order) {
      if (static_cast<int64_t>(kept.size()) >= limit) break;
      const Box box = box_of(box_values + (batch * boxes[1] + i) * 4, is_centre);
      const bool hidden = std::any_of(kept.begin(), kept.end(),
                                      [&](const Box& other) { return intersection_over_union(box, other) > overlap; });
      if (hidden) continue;
      kept.push_back(box);
      for (int64_t value : {batch, row % scores[1], i}) selected.push_back(value);
    }
  }
  const MutableView y = PX_TRY(op.make_output(0, DType::int64, Shape{selected.size() / 3, 3}));
  std::copy(selected.begin(), selected.end(), y.template as<int64_t>());
  return {};
}

template <class Device>
constexpr KernelRow<Device> kDetectionRows[] = {
    {"NonMaxSuppression", dtype_bit(DType::float32), non_max_suppression<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> detection_rows() {
  return kDetectionRows<CompiledDevice>;
}

}  // namespace parallax::runtime
