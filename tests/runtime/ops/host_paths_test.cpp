// SPDX-License-Identifier: Apache-2.0
// Operators for which the host has ways of its own, at sizes that go beyond a block of each of them: against plain
// loops, and the same bits by vectors of every width and any number of threads.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "inspector/base/thread_pool.h"
#include "tests/runtime/device/random_values.h"
#include "tests/runtime/ops/host_call.h"

namespace parallax::runtime {
namespace host_paths_test {

// ---- CumSum and CumProd along an axis that is not the last ----

template <class T>
void expect_cumulative(const std::string& op, bool exclusive, bool reverse, int64_t inner) {
  const int64_t outer = 2, length = 37;
  const std::vector<T> x = op == "CumSum" ? random_values<T>(outer * length * inner, 1, -9, 9)
                                          : random_values<T>(outer * length * inner, 2, 0.75, 1.25);
  Call call(op, 26, {tensor_of<T>({outer, length, inner}, x), tensor_of<int64_t>(Shape{}, {1})});
  call.set("exclusive", exclusive ? 1 : 0);
  call.set("reverse", reverse ? 1 : 0);
  const auto expected = [&](int64_t element) {
    const int64_t location = element / inner % length, start = element - location * inner;
    double sum = op == "CumSum" ? 0 : 1;
    for (int64_t i = 0; i < length; ++i) {
      const bool counts = i == location ? !exclusive : (reverse ? i > location : i < location);
      const auto value = static_cast<double>(x[static_cast<size_t>(start + i * inner)]);
      if (counts) sum = op == "CumSum" ? sum + value : sum * value;
    }
    return sum;
  };
  expect_everywhere<T>(call, expected, 1e-4, fmt::format("{} {} {} {}", op, exclusive, reverse, inner));
}

TEST(CumulativeLines, GoOnBeyondOnePart) {
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      for (const int64_t inner : {3, 512, 1031}) {
        expect_cumulative<float>("CumSum", exclusive, reverse, inner);
        expect_cumulative<double>("CumSum", exclusive, reverse, inner);
        expect_cumulative<int64_t>("CumSum", exclusive, reverse, inner);
        expect_cumulative<float>("CumProd", exclusive, reverse, inner);
      }
    }
  }
}

// ---- GridSample ----

struct Grid {
  std::string padding;
  bool align_corners;
  std::vector<int64_t> lengths;  // of the feature map's axes
  int64_t samples = 2, channels = 1, locations = 1;

  int64_t plane() const {
    int64_t count = 1;
    for (const int64_t length : lengths) count *= length;
    return count;
  }
};

// The position of a coordinate along an axis, as the specification says it.
double position_of(const Grid& grid, double coordinate, int64_t length) {
  const auto n = static_cast<double>(length);
  double x = grid.align_corners ? (coordinate + 1) / 2 * (n - 1) : ((coordinate + 1) * n - 1) / 2;
  if (!std::isfinite(x)) return -2;
  const double low = grid.align_corners ? 0 : -0.5, high = grid.align_corners ? n - 1 : n - 0.5;
  if (grid.padding == "reflection" && high > low) {
    while (x < low || x > high) x = x < low ? 2 * low - x : 2 * high - x;
  }
  return grid.padding == "zeros" ? x : std::min(std::max(x, 0.0), n - 1);
}

double interpolated(const Grid& grid, const float* plane, const float* coordinates) {
  const size_t axes = grid.lengths.size();
  double sum = 0;
  for (size_t corner = 0; corner < size_t{1} << axes; ++corner) {
    double weight = 1;
    int64_t offset = 0;
    bool is_inside = true;
    for (size_t axis = 0; axis < axes; ++axis) {
      const double x = position_of(grid, static_cast<double>(coordinates[axes - 1 - axis]), grid.lengths[axis]);
      const auto above = static_cast<int64_t>(corner >> axis & 1);
      int64_t position = static_cast<int64_t>(std::floor(x)) + above;
      weight *= above == 1 ? x - std::floor(x) : std::floor(x) + 1 - x;
      is_inside &= grid.padding != "zeros" || (position >= 0 && position < grid.lengths[axis]);
      position = std::min(std::max<int64_t>(position, 0), grid.lengths[axis] - 1);
      offset = offset * grid.lengths[axis] + position;
    }
    if (is_inside) sum += weight * static_cast<double>(plane[offset]);
  }
  return sum;
}

template <class T>
void expect_grid_sample(const Grid& grid) {
  const auto axes = static_cast<int64_t>(grid.lengths.size());
  const int64_t plane = grid.plane(), channels = grid.channels, locations = grid.locations;
  const auto feature_maps = random_values<float>(grid.samples * channels * plane, 3);
  auto coordinates = random_values<float>(grid.samples * locations * axes, 4, -1.75, 1.75);
  if (grid.padding != "reflection") {
    coordinates[0] = std::numeric_limits<float>::quiet_NaN();
    coordinates.back() = -std::numeric_limits<float>::infinity();
  }
  std::vector<int64_t> map_dims{grid.samples, channels}, grid_dims{grid.samples};
  for (const int64_t length : grid.lengths) map_dims.push_back(length);
  for (int64_t axis = 0; axis + 1 < axes; ++axis) grid_dims.push_back(1);
  grid_dims.insert(grid_dims.end(), {locations, axes});
  const auto as_type = [](const std::vector<float>& from) { return std::vector<T>(from.begin(), from.end()); };
  Call call(
      "GridSample", 20,
      {tensor_of<T>(Shape(map_dims), as_type(feature_maps)), tensor_of<T>(Shape(grid_dims), as_type(coordinates))});
  call.set("mode", std::string("linear"));
  call.set("padding_mode", grid.padding);
  call.set("align_corners", grid.align_corners ? 1 : 0);
  const auto expected = [&](int64_t element) {
    const int64_t sample = element / locations / channels, row = sample * locations + element % locations;
    return interpolated(grid, feature_maps.data() + element / locations * plane, coordinates.data() + row * axes);
  };
  expect_everywhere<T>(call, expected, 2e-5,
                       fmt::format("{} align {} axes {} channels {} positions {}", grid.padding, grid.align_corners,
                                   axes, channels, locations));
}

TEST(GridSample, OfPlanesAndOfGroupsOfChannels) {
  for (const char* padding : {"zeros", "border", "reflection"}) {
    for (const bool align_corners : {false, true}) {
      for (const int64_t channels : {1, 7, 16, 21}) {
        expect_grid_sample<float>({padding, align_corners, {6, 9}, 2, channels, 521});
        expect_grid_sample<double>({padding, align_corners, {6, 9}, 2, channels, 261});
      }
      expect_grid_sample<float>({padding, align_corners, {3, 5, 4}, 2, 18, 270});
      expect_grid_sample<float>({padding, align_corners, {1, 7}, 1, 18, 270});
      expect_grid_sample<float>({padding, align_corners, {33, 41}, 1, 16, 339});  // more than a part, just transposed
      expect_grid_sample<float>({padding, align_corners, {33, 41}, 1, 16, 300});  // not transposed
    }
  }
}

// ---- NonZero ----

TEST(NonZero, ListsTheCoordinatesOfEveryRankInOrder) {
  const std::vector<std::vector<int64_t>> shapes = {{30011}, {173, 211}, {19, 1, 23, 37}, {7001, 1}};
  for (const std::vector<int64_t>& dims : shapes) {
    const Shape shape(dims);
    auto x = random_values<float>(shape.element_count(), 5, -1, 1);
    for (size_t i = 0; i < x.size(); ++i) {
      if (i % 3 == 0 || i / 1000 % 2 == 1) x[i] = i % 2 == 0 ? 0.0F : -0.0F;
    }
    x[1] = std::numeric_limits<float>::quiet_NaN();
    std::vector<int64_t> expected;
    const auto count = std::count_if(x.begin(), x.end(), [](float value) { return !(value == 0.0F); });
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      int64_t stride = 1;
      for (size_t later = axis + 1; later < dims.size(); ++later) stride *= dims[later];
      for (size_t i = 0; i < x.size(); ++i) {
        if (!(x[i] == 0.0F)) expected.push_back(static_cast<int64_t>(i) / stride % dims[axis]);
      }
    }
    const Call call("NonZero", 13, {tensor_of<float>(shape, x)});
    for (const int threads : {1, 3}) {
      set_thread_count(threads);
      const Tensor found = call.run();
      EXPECT_EQ(found.shape(), (Shape{static_cast<int64_t>(dims.size()), count}));
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found.as<int64_t>().begin(), found.as<int64_t>().end()))
          << "rank " << dims.size() << ", " << threads << " threads";
    }
    set_thread_count(0);
  }
}

// ---- Pad ----

template <class T>
void expect_padded(const std::vector<int64_t>& dims, const std::vector<int64_t>& pads) {
  const size_t rank = dims.size();
  std::vector<int64_t> out(dims);
  int64_t count = 1;
  for (size_t axis = 0; axis < rank; ++axis) count *= out[axis] += pads[axis] + pads[axis + rank];
  const Shape shape(dims);
  const auto x = random_values<T>(shape.element_count(), 8, 1, 100);
  std::vector<T> expected;
  for (int64_t element = 0; element < count; ++element) {
    int64_t rest = element, from = 0, stride = 1;
    bool is_inside = true;
    for (size_t axis = rank; axis-- > 0; rest /= out[axis]) {
      const int64_t location = rest % out[axis] - pads[axis];
      is_inside &= location >= 0 && location < dims[axis];
      from += location * std::exchange(stride, stride * dims[axis]);
    }
    expected.push_back(is_inside ? x[static_cast<size_t>(from)] : T{7});
  }
  const Call call(
      "Pad", 18,
      {tensor_of<T>(shape, x), tensor_of<int64_t>({std::ssize(pads)}, pads), tensor_of<T>(Shape{}, std::vector<T>{7})});
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    const Tensor y = call.run();
    EXPECT_EQ(y.shape(), Shape(out));
    EXPECT_EQ(std::memcmp(y.view().data, expected.data(), expected.size() * sizeof(T)), 0)
        << "rank " << rank << ", " << sizeof(T) << " bytes, " << threads << " threads";
  }
  set_thread_count(0);
}

template <class T>
void expect_padded_everywhere() {
  expect_padded<T>({4001}, {3, 5});
  expect_padded<T>({4001}, {-4000, 9000});
  expect_padded<T>({9, 7, 33, 41}, {0, 1, 2, 3, 1, 0, -1, 1});
  expect_padded<T>({9, 7, 33, 41}, {1, -2, 3, 0, -3, 1, 1, 0});
  expect_padded<T>({5, 6}, {2, -8, 1, 9});  // nothing is left of x
  expect_padded<T>({31, 47}, {0, 0, 0, 0});
}

TEST(Pad, PutsLinesAroundWhatIsLeft) {
  expect_padded_everywhere<float>();
  expect_padded_everywhere<double>();
  expect_padded_everywhere<int64_t>();
}

// ---- Softmax along an axis that is not the last ----

TEST(Softmax, OfAdjacentRowsIsThatOfRows) {
  for (const auto& [length, inner] : {std::pair<int64_t, int64_t>{1, 5}, {37, 16}, {130, 61}}) {
    const int64_t outer = 3, row_step = length * inner;
    const auto x = random_values<float>(outer * row_step, 9, -9, 9);
    std::vector<float> rows(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const auto element = static_cast<int64_t>(i);
      const int64_t row = element / row_step * inner + element % inner;
      rows[static_cast<size_t>(row * length + element % row_step / inner)] = x[i];
    }
    const Tensor of_rows = Call("Softmax", 13, {tensor_of<float>({outer * inner, length}, rows)}).run();
    Call call("Softmax", 13, {tensor_of<float>({outer, length, inner}, x)});
    call.set("axis", 1);
    const auto expected = [&, length = length, inner = inner](int64_t element) {
      const int64_t row = element / row_step * inner + element % inner;
      const auto at = static_cast<size_t>(row * length + element % row_step / inner);
      return static_cast<double>(of_rows.as<float>()[at]);
    };
    expect_everywhere<float>(call, expected, 0, fmt::format("{} x {}", length, inner));
  }
}

// ---- Resize along the last axis ----

template <class T>
void expect_stretched(int64_t in, double scale) {
  const int64_t rows = 13, out = static_cast<int64_t>(std::floor(static_cast<double>(in) * scale));
  const auto x = random_values<T>(rows * in, 10);
  Call call("Resize", 13,
            {tensor_of<T>({rows, in}, x), tensor_of<float>(Shape{0}, {}),
             tensor_of<float>({2}, {1.0F, static_cast<float>(scale)})});
  call.set("mode", std::string("linear"));
  const auto expected = [&](int64_t element) {
    const double location = (static_cast<double>(element % out) + 0.5) / scale - 0.5;
    const double inside = std::min(std::max(location, 0.0), static_cast<double>(in - 1));
    const auto below = static_cast<int64_t>(inside);
    const double t = inside - static_cast<double>(below);
    const auto at = [&](int64_t i) {
      return static_cast<double>(x[static_cast<size_t>(element / out * in + std::min(i, in - 1))]);
    };
    return (1 - t) * at(below) + t * at(below + 1);
  };
  expect_everywhere<T>(call, expected, 1e-5, fmt::format("{} to {}", in, out));
}

TEST(Resize, GathersAlongTheLastAxis) {
  for (const int64_t in : {1, 5, 16, 333}) {
    for (const double scale : {0.5, 2.0, 3.25}) {
      if (in == 1 && scale < 1) continue;
      expect_stretched<float>(in, scale);
      expect_stretched<double>(in, scale);
    }
  }
}

// ---- RoiAlign ----

struct Regions {
  int64_t channels, rows, columns, ratio, count;
};
constexpr int64_t kBins = 5;  // along either axis

double sampled(const Regions& regions, const float* plane, double y, double x) {
  const auto height = static_cast<double>(regions.rows), width = static_cast<double>(regions.columns);
  if (y < -1 || y > height || x < -1 || x > width) return 0;
  y = std::min(std::max(y, 0.0), height - 1);
  x = std::min(std::max(x, 0.0), width - 1);
  const auto top = static_cast<int64_t>(y), left = static_cast<int64_t>(x);
  const int64_t bottom = std::min(top + 1, regions.rows - 1), right = std::min(left + 1, regions.columns - 1);
  const double dy = y - static_cast<double>(top), dx = x - static_cast<double>(left);
  const auto at = [&](int64_t row, int64_t column) {
    return static_cast<double>(plane[row * regions.columns + column]);
  };
  return (1 - dy) * ((1 - dx) * at(top, left) + dx * at(top, right)) +
         dy * ((1 - dx) * at(bottom, left) + dx * at(bottom, right));
}

template <class T>
void expect_roi_align(const Regions& regions) {
  const int64_t samples = 2, plane = regions.rows * regions.columns;
  const auto feature_maps = random_values<float>(samples * regions.channels * plane, 6);
  auto corners = random_values<float>(regions.count * 4, 7, -2, 10);
  for (size_t region = 0; region < corners.size(); region += 4) {  // end after their begin
    corners[region + 2] = corners[region] + std::abs(corners[region + 2]) + 1;
    corners[region + 3] = corners[region + 1] + std::abs(corners[region + 3]) + 1;
  }
  std::vector<int64_t> batches(static_cast<size_t>(regions.count));
  for (size_t i = 0; i < batches.size(); ++i) batches[i] = static_cast<int64_t>(i % 3 == 1);
  const auto as_type = [](const std::vector<float>& from) { return std::vector<T>(from.begin(), from.end()); };
  Call call("RoiAlign", 16,
            {tensor_of<T>({samples, regions.channels, regions.rows, regions.columns}, as_type(feature_maps)),
             tensor_of<T>({regions.count, 4}, as_type(corners)), tensor_of<int64_t>({regions.count}, batches)});
  call.set("output_height", kBins);
  call.set("output_width", kBins);
  call.set("sampling_ratio", regions.ratio);
  const auto expected = [&](int64_t element) {
    const int64_t region = element / (regions.channels * kBins * kBins);
    const int64_t channel = element / (kBins * kBins) % regions.channels;
    const float* corner = corners.data() + region * 4;
    const double x1 = static_cast<double>(corner[0]) - 0.5, y1 = static_cast<double>(corner[1]) - 0.5;
    const double wide = (static_cast<double>(corner[2]) - 0.5 - x1) / static_cast<double>(kBins);
    const double high = (static_cast<double>(corner[3]) - 0.5 - y1) / static_cast<double>(kBins);
    const double down = static_cast<double>(element / kBins % kBins), along = static_cast<double>(element % kBins);
    double sum = 0;
    for (int64_t i = 0; i < regions.ratio; ++i) {
      for (int64_t j = 0; j < regions.ratio; ++j) {
        const double y = (static_cast<double>(i) + 0.5) / static_cast<double>(regions.ratio);
        const double x = (static_cast<double>(j) + 0.5) / static_cast<double>(regions.ratio);
        const int64_t sample = batches[static_cast<size_t>(region)];
        sum += sampled(regions, feature_maps.data() + (sample * regions.channels + channel) * plane,
                       y1 + (down + y) * high, x1 + (along + x) * wide);
      }
    }
    return sum / static_cast<double>(regions.ratio * regions.ratio);
  };
  expect_everywhere<T>(call, expected, 1e-4, fmt::format("channels {} ratio {}", regions.channels, regions.ratio));
}

TEST(RoiAlign, OfPlanesAndOfGroupsOfChannels) {
  for (const int64_t channels : {3, 8, 16, 37}) {
    expect_roi_align<float>({channels, 9, 11, 2, 23});
    expect_roi_align<double>({channels, 9, 11, 3, 23});
    expect_roi_align<float>({channels, 9, 11, 9, 5});   // too many samples to be kept
    expect_roi_align<float>({channels, 41, 43, 2, 3});  // too few regions to transpose the feature map for
  }
}

}  // namespace host_paths_test
}  // namespace parallax::runtime
