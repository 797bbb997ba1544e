// NonMaxSuppression, RoiAlign and GridSample.
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

// ---- Sampling of planes at fractional places ----

// The four neighbours of (y, x) and their weights; places off the plane read 0.
template <class C, class Read>
C bilinear(C y, C x, const Read& read) {
  const C top = std::floor(y), left = std::floor(x);
  const C down = y - top, right = x - left;
  const auto row = static_cast<int64_t>(top);
  const auto column = static_cast<int64_t>(left);
  return read(row, column) * (1 - down) * (1 - right) + read(row, column + 1) * (1 - down) * right +
         read(row + 1, column) * down * (1 - right) + read(row + 1, column + 1) * down * right;
}

struct RoiSettings {
  int64_t height, width, samples;
  double scale;
  bool half_pixel, takes_max;
};

// A sample of RoiAlign: clamped to the plane, nothing when more than one place off it.
template <class C>
void add_samples(const C* plane, int64_t rows, int64_t columns, C y, C x, bool takes_max, bool& is_first, C& result) {
  C parts[4] = {0, 0, 0, 0};
  if (!(y < C(-1) || y > static_cast<C>(rows) || x < C(-1) || x > static_cast<C>(columns))) {
    const C cy = std::clamp(y, C(0), static_cast<C>(rows - 1));
    const C cx = std::clamp(x, C(0), static_cast<C>(columns - 1));
    const auto top = static_cast<int64_t>(cy), left = static_cast<int64_t>(cx);
    const int64_t bottom = std::min(top + 1, rows - 1), right = std::min(left + 1, columns - 1);
    const C dy = cy - static_cast<C>(top), dx = cx - static_cast<C>(left);
    parts[0] = plane[top * columns + left] * (1 - dy) * (1 - dx);
    parts[1] = plane[top * columns + right] * (1 - dy) * dx;
    parts[2] = plane[bottom * columns + left] * dy * (1 - dx);
    parts[3] = plane[bottom * columns + right] * dy * dx;
  }
  for (C part : parts) {
    if (takes_max) {
      result = is_first ? part : std::max(result, part);
      is_first = false;
    } else {
      result += part;
    }
  }
}

template <class C>
C roi_bin(const C* plane, const Shape& x, const C* roi, const RoiSettings& settings, int64_t i, int64_t j) {
  const C shift = settings.half_pixel ? C(0.5) : C(0);
  const C scale = static_cast<C>(settings.scale);
  const C start_x = roi[0] * scale - shift, start_y = roi[1] * scale - shift;
  C width = roi[2] * scale - shift - start_x, height = roi[3] * scale - shift - start_y;
  if (!settings.half_pixel) {
    width = std::max(width, C(1));
    height = std::max(height, C(1));
  }
  const C bin_h = height / static_cast<C>(settings.height), bin_w = width / static_cast<C>(settings.width);
  const int64_t grid_h = settings.samples > 0 ? settings.samples : static_cast<int64_t>(std::ceil(bin_h));
  const int64_t grid_w = settings.samples > 0 ? settings.samples : static_cast<int64_t>(std::ceil(bin_w));
  C result = 0;
  bool is_first = true;
  for (int64_t sy = 0; sy < grid_h; ++sy) {
    for (int64_t sx = 0; sx < grid_w; ++sx) {
      const C y = start_y + static_cast<C>(i) * bin_h + (static_cast<C>(sy) + C(0.5)) * bin_h / static_cast<C>(grid_h);
      const C px = start_x + static_cast<C>(j) * bin_w + (static_cast<C>(sx) + C(0.5)) * bin_w / static_cast<C>(grid_w);
      add_samples(plane, x[2], x[3], y, px, settings.takes_max, is_first, result);
    }
  }
  return settings.takes_max ? result : result / static_cast<C>(std::max<int64_t>(1, grid_h * grid_w));
}

template <class Device>
Status roi_align(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Tensor& rois = op.input(1);
  const Tensor& batches = op.input(2);
  if (x.shape().rank() != 4 || rois.shape().rank() != 2 || rois.shape()[1] != 4 ||
      batches.element_count() != rois.shape()[0]) {
    return execution_error("X must be [N,C,H,W], rois [n,4] and batch_indices [n]");
  }
  RoiSettings settings{op.integer("output_height"), op.integer("output_width"), op.integer("sampling_ratio"),
                       op.real("spatial_scale"),    op.since_version() >= 16,   op.text("mode") == "max"};
  if (op.since_version() >= 16) settings.half_pixel = op.text("coordinate_transformation_mode") == "half_pixel";
  if (settings.height < 1 || settings.width < 1) return execution_error("the output would be empty");
  const int64_t count = rois.shape()[0], channels = x.shape()[1];
  const MutableView out = PX_TRY(op.make_output(0, x.dtype(), Shape{count, channels, settings.height, settings.width}));
  return visit_arithmetic<Floats>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    std::vector<C> values(static_cast<size_t>(x.element_count())), boxes(static_cast<size_t>(rois.element_count()));
    load_block<C>(x.dtype(), x.view().data, 0, 1, x.element_count(), values.data());
    load_block<C>(rois.dtype(), rois.view().data, 0, 1, rois.element_count(), boxes.data());
    for (int64_t i = 0; i < out.element_count(); ++i) {
      const int64_t roi = i / (channels * settings.height * settings.width);
      const int64_t batch = load_element<int64_t>(batches.dtype(), batches.view().data, roi);
      if (batch < 0 || batch >= x.shape()[0])
        return execution_error(fmt::format("batch index {} is out of range", batch));
      const int64_t plane = batch * channels + i / (settings.height * settings.width) % channels;
      const C value = roi_bin(values.data() + plane * x.shape()[2] * x.shape()[3], x.shape(), boxes.data() + roi * 4,
                              settings, i / settings.width % settings.height, i % settings.width);
      store_block<C>(out.dtype, out.data, i, 1, &value);
    }
    return {};
  });
}

// ---- GridSample over planes ----

enum class Padding : uint8_t { zeros, border, reflection };

template <class C>
C reflected(C x, C low, C high) {
  const C span = high - low;
  if (span <= 0) return low;
  C distance = std::fmod(std::fabs(x - low), 2 * span);
  if (distance > span) distance = 2 * span - distance;
  return low + distance;
}

struct GridSettings {
  std::string mode;
  Padding padding = Padding::zeros;
  bool align_corners = false;
};

template <class C>
class PlaneSampler {
 public:
  PlaneSampler(const C* plane, int64_t rows, int64_t columns, const GridSettings& settings)
      : plane_(plane), rows_(rows), columns_(columns), settings_(settings) {}

  // `gy` and `gx` lie in [-1, 1].
  C sample(C gy, C gx) const {
    C y = denormalised(gy, rows_), x = denormalised(gx, columns_);
    if (settings_.mode == "nearest")
      return at(static_cast<int64_t>(std::nearbyint(y)), static_cast<int64_t>(std::nearbyint(x)));
    if (settings_.mode == "cubic" || settings_.mode == "bicubic") return cubic(y, x);
    if (settings_.padding == Padding::border) {
      y = std::clamp(y, C(0), static_cast<C>(rows_ - 1));
      x = std::clamp(x, C(0), static_cast<C>(columns_ - 1));
    } else if (settings_.padding == Padding::reflection) {
      y = inside(y, rows_);
      x = inside(x, columns_);
    }
    return bilinear(y, x, [this](int64_t row, int64_t column) { return at(row, column); });
  }

 private:
  C denormalised(C value, int64_t size) const {
    const C n = static_cast<C>(size);
    return settings_.align_corners ? (value + 1) / 2 * (n - 1) : ((value + 1) * n - 1) / 2;
  }
  C inside(C value, int64_t size) const {
    const C n = static_cast<C>(size);
    return settings_.align_corners ? reflected(value, C(0), n - 1)
                                   : std::clamp(reflected(value, C(-0.5), n - C(0.5)), C(0), n - 1);
  }
  C at(int64_t row, int64_t column) const {
    if (settings_.padding == Padding::zeros && (row < 0 || row >= rows_ || column < 0 || column >= columns_))
      return C(0);
    if (settings_.padding == Padding::reflection) {
      row = static_cast<int64_t>(inside(static_cast<C>(row), rows_));
      column = static_cast<int64_t>(inside(static_cast<C>(column), columns_));
    }
    return plane_[std::clamp<int64_t>(row, 0, rows_ - 1) * columns_ + std::clamp<int64_t>(column, 0, columns_ - 1)];
  }
  C cubic(C y, C x) const {
    const C top = std::floor(y), left = std::floor(x);
    C wy[4], wx[4];
    weights(y - top, wy);
    weights(x - left, wx);
    C sum = 0;
    for (int i = 0; i < 4; ++i) {
      C line = 0;
      for (int j = 0; j < 4; ++j)
        line += wx[j] * at(static_cast<int64_t>(top) + i - 1, static_cast<int64_t>(left) + j - 1);
      sum += wy[i] * line;
    }
    return sum;
  }
  static void weights(C t, C* w) {  // Keys' kernel with a = -0.75
    const C a = C(-0.75);
    const auto near = [a](C d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    const auto far = [a](C d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    w[0] = far(t + 1);
    w[1] = near(t);
    w[2] = near(1 - t);
    w[3] = far(2 - t);
  }

  const C* plane_;
  int64_t rows_, columns_;
  const GridSettings& settings_;
};

template <class Device>
Status grid_sample(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Tensor& grid = op.input(1);
  if (x.shape().rank() != 4 || grid.shape().rank() != 4)
    return unsupported("volumes have no kernel here; --fallback=reference runs it");
  if (grid.shape()[3] != 2 || grid.shape()[0] != x.shape()[0]) return execution_error("the grid must be [N,H,W,2]");
  if (x.shape()[2] == 0 || x.shape()[3] == 0) return execution_error("the input has empty planes");
  GridSettings settings;
  settings.mode = op.text("mode");
  settings.align_corners = op.integer("align_corners") != 0;
  const std::string padding = op.text("padding_mode");
  settings.padding = padding == "border"       ? Padding::border
                     : padding == "reflection" ? Padding::reflection
                                               : Padding::zeros;
  const int64_t channels = x.shape()[1], height = grid.shape()[1], width = grid.shape()[2];
  const MutableView out = PX_TRY(op.make_output(0, x.dtype(), Shape{x.shape()[0], channels, height, width}));
  return visit_arithmetic<Floats>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    std::vector<C> values(static_cast<size_t>(x.element_count()));
    load_block<C>(x.dtype(), x.view().data, 0, 1, x.element_count(), values.data());
    const int64_t plane = x.shape()[2] * x.shape()[3];
    parallel_for(x.shape()[0] * channels, height * width * 20, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const PlaneSampler<C> sampler(values.data() + index * plane, x.shape()[2], x.shape()[3], settings);
        for (int64_t i = 0; i < height * width; ++i) {
          const int64_t at = (index / channels * height * width + i) * 2;
          const C gx = load_element<C>(grid.dtype(), grid.view().data, at);
          const C gy = load_element<C>(grid.dtype(), grid.view().data, at + 1);
          const C value = sampler.sample(gy, gx);
          store_block<C>(out.dtype, out.data, index * height * width + i, 1, &value);
        }
      }
    });
    return {};
  });
}

template <class Device>
constexpr KernelRow<Device> kRows[] = {
    {"GridSample", kFloats, grid_sample<Device>},
    {"NonMaxSuppression", dtype_bit(DType::float32), non_max_suppression<Device>},
    {"RoiAlign", kFloats, roi_align<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> detection_rows() {
  return kRows<CompiledDevice>;
}

}  // namespace parallax::runtime
