// Operators for which the host has ways of its own, at sizes that go beyond a block of each of them: against plain
// loops, and the same bits by vectors of every width and any number of threads.
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "inspector/base/thread_pool.h"
#include "inspector/model/opset_registry.h"
#include "runtime/device/blocks.h"
#include "runtime/device/buffer_pool.h"
#include "runtime/device/multiversion.h"
#include "runtime/ops/table.h"
#include "tests/runtime/device/random_values.h"

namespace parallax::runtime {
namespace host_paths_test {

struct Call {
  Node node;
  std::vector<Value> inputs;

  Call(std::string op, int64_t opset, std::vector<Value> values) : inputs(std::move(values)) {
    node.op_type = node.display_name = std::move(op);
    node.opset_version = opset;
    node.schema = OpsetRegistry::standard().find("", node.op_type, opset);
    for (size_t i = 0; i < inputs.size(); ++i) node.inputs.push_back(static_cast<ValueId>(i));
    node.outputs.push_back(static_cast<ValueId>(inputs.size()));
  }
  void set(const std::string& name, int64_t value) { add(name, AttributeType::int_).value = value; }
  void set(const std::string& name, const std::string& text) { add(name, AttributeType::string).value = text; }
  Attribute& add(const std::string& name, AttributeType type) {
    Attribute& attribute = node.attributes.emplace_back();
    attribute.name = name;
    attribute.type = type;
    return attribute;
  }

  Tensor run() const {
    Queue<Cpu> queue(BufferPool::create({.poison = true}));
    std::vector<OpInput> given;
    for (const Value& value : inputs) given.push_back({&value, false, false});
    OpContext<Cpu> op(node, given, 0, queue);
    const DType types[] = {inputs[0].tensor().dtype()};
    const Status ran = find_kernel<Cpu>(node, types).take()->run(op);
    EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error().message);
    return op.take_outputs().at(0).tensor();
  }
};

template <class T>
Tensor tensor_of(const Shape& shape, const std::vector<T>& values) {
  Tensor tensor = Tensor::allocate(storage_of<T>(), shape).take();
  std::memcpy(tensor.storage().get(), values.data(), values.size() * sizeof(T));
  return tensor;
}

template <class T>
void expect_everywhere(const Call& call, const std::function<double(int64_t element)>& expected, double tolerance,
                       const std::string& name) {
  const Tensor first = call.run();
  for (int64_t i = 0; i < first.element_count(); ++i)
    ASSERT_NEAR(static_cast<double>(first.as<T>()[static_cast<size_t>(i)]), expected(i), tolerance)
        << name << ", " << i;
  const VectorLevel widest = vector_level();
  for (const VectorLevel level : {VectorLevel::baseline, VectorLevel::avx2, VectorLevel::avx512}) {
    if (level > widest) continue;
    for (const int threads : {1, 3}) {
      set_vector_level_for_tests(level);
      set_thread_count(threads);
      const Tensor again = call.run();
      EXPECT_EQ(std::memcmp(again.view().data, first.view().data, first.as<T>().size_bytes()), 0)
          << name << ", level " << static_cast<int>(level) << ", " << threads << " threads";
    }
  }
  set_vector_level_for_tests(widest);
  set_thread_count(0);
}

// ---- CumSum and CumProd of rows beside each other ----

template <class T>
void expect_cumulative(const std::string& op, bool exclusive, bool reverse, int64_t inner) {
  const int64_t outer = 2, length = 37;
  const std::vector<T> x = op == "CumSum" ? random_values<T>(outer * length * inner, 1, -9, 9)
                                          : random_values<T>(outer * length * inner, 2, 0.75, 1.25);
  Call call(op, 26, {tensor_of<T>({outer, length, inner}, x), tensor_of<int64_t>(Shape{}, {1})});
  call.set("exclusive", exclusive ? 1 : 0);
  call.set("reverse", reverse ? 1 : 0);
  const auto expected = [&](int64_t element) {
    const int64_t place = element / inner % length, start = element - place * inner;
    double sum = op == "CumSum" ? 0 : 1;
    for (int64_t i = 0; i < length; ++i) {
      const bool counts = i == place ? !exclusive : (reverse ? i > place : i < place);
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
  std::vector<int64_t> lengths;  // of the image's axes
  int64_t samples = 2, channels = 1, places = 1;

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
  const int64_t plane = grid.plane(), channels = grid.channels, places = grid.places;
  const auto image = random_values<float>(grid.samples * channels * plane, 3);
  auto coordinates = random_values<float>(grid.samples * places * axes, 4, -1.75, 1.75);
  if (grid.padding != "reflection") {
    coordinates[0] = std::numeric_limits<float>::quiet_NaN();
    coordinates.back() = -std::numeric_limits<float>::infinity();
  }
  std::vector<int64_t> image_dims{grid.samples, channels}, grid_dims{grid.samples};
  for (const int64_t length : grid.lengths) image_dims.push_back(length);
  for (int64_t axis = 0; axis + 1 < axes; ++axis) grid_dims.push_back(1);
  grid_dims.insert(grid_dims.end(), {places, axes});
  const auto as_type = [](const std::vector<float>& from) { return std::vector<T>(from.begin(), from.end()); };
  Call call("GridSample", 20,
            {tensor_of<T>(Shape(image_dims), as_type(image)), tensor_of<T>(Shape(grid_dims), as_type(coordinates))});
  call.set("mode", std::string("linear"));
  call.set("padding_mode", grid.padding);
  call.set("align_corners", grid.align_corners ? 1 : 0);
  const auto expected = [&](int64_t element) {
    const int64_t sample = element / places / channels, row = sample * places + element % places;
    return interpolated(grid, image.data() + element / places * plane, coordinates.data() + row * axes);
  };
  expect_everywhere<T>(call, expected, 2e-5,
                       fmt::format("{} align {} axes {} channels {} places {}", grid.padding, grid.align_corners, axes,
                                   channels, places));
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
      expect_grid_sample<float>({padding, align_corners, {33, 41}, 1, 16, 339});  // more than a part, just turned
      expect_grid_sample<float>({padding, align_corners, {33, 41}, 1, 16, 300});  // not turned
    }
  }
}

}  // namespace host_paths_test
}  // namespace parallax::runtime
