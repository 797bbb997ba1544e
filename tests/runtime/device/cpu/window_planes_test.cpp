// SPDX-License-Identifier: Apache-2.0
// Windows folded many side by side against the fold of one window after the other.
#include "runtime/device/cpu/window_planes.h"

#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "runtime/device/cpu/buffer_pool.h"

namespace parallax::runtime {
namespace window_planes_test {

// NaN wins, and a window without taps has the type's lowest number.
struct Largest {
  float first() const { return -std::numeric_limits<float>::infinity(); }
  float step(float best, float value) const {
    const float larger = value > best ? value : best;
    return value != value ? value : larger;
  }
  float empty() const { return std::numeric_limits<float>::lowest(); }
  float divisor(int64_t, const int64_t*) const { return 1.0F; }
};
struct Average {
  float first() const { return 0; }
  float step(float sum, float value) const { return sum + value; }
  float empty() const { return 0; }
  float divisor(int64_t taps, const int64_t*) const { return static_cast<float>(taps); }
};

template <class Fold>
void check(const WindowGeometry& window, const Fold& fold) {
  Queue<Cpu> queue(BufferPool::create({}));
  constexpr int64_t kPlanes = 5;
  const int64_t in_plane = product(window.in_spatial), out_plane = product(window.out_spatial);
  std::mt19937 engine(1);
  std::normal_distribution<float> draw;
  std::vector<float> x(static_cast<size_t>(kPlanes * in_plane));
  for (float& value : x) value = draw(engine);
  x[3] = std::numeric_limits<float>::quiet_NaN();
  x[7] = -std::numeric_limits<float>::infinity();
  std::vector<float> y(static_cast<size_t>(kPlanes * out_plane), -1);
  window_fold_planes(queue, fold, window, kPlanes, y.data(), x.data());
  for (int64_t index = 0; index < kPlanes * out_plane; ++index) {
    int64_t position[Shape::kMaxRank] = {};
    unravel(index % out_plane, window.out_spatial, position);
    std::vector<float> columns(static_cast<size_t>(window.kernel.back()), fold.first());
    int64_t taps = 0;
    for_each_tap(window, position, [&](int64_t offset, int64_t tap) {
      float& column = columns[static_cast<size_t>(tap % window.kernel.back())];
      column = fold.step(column, x[static_cast<size_t>(index / out_plane * in_plane + offset)]);
      ++taps;
    });
    float state = fold.first();
    for (const float column : columns) state = fold.step(state, column);
    const float expected = taps == 0 ? fold.empty() : state / fold.divisor(taps, position);
    const float found = y[static_cast<size_t>(index)];
    EXPECT_TRUE(found == expected || (found != found && expected != expected))
        << index << ": " << found << " not " << expected;
  }
}

TEST(WindowPlanes, EqualWindowsOneByOne) {
  const WindowGeometry windows[] = {
      {{9, 23}, {9, 23}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {{9, 23}, {5, 12}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
      {{9, 23}, {3, 8}, {2, 3}, {3, 3}, {1, 1}, {0, 0}},
      {{9, 23}, {7, 21}, {3, 3}, {1, 1}, {2, 2}, {1, 1}},
      {{4, 4}, {3, 3}, {2, 2}, {3, 3}, {1, 1}, {2, 2}},  // whole windows in the padding
      {{2, 3}, {4, 5}, {5, 5}, {1, 1}, {1, 1}, {3, 3}},  // larger than the plane
      {{31}, {16}, {3}, {2}, {1}, {1}},
      {{9000}, {3001}, {4}, {3}, {2}, {5}},
      {{3, 5000}, {3, 5000}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},  // a line is longer than a row tile
      {{70, 112}, {34, 55}, {3, 3}, {2, 2}, {1, 1}, {0, 0}},   // read without a copy
      {{40, 50}, {20, 25}, {2, 2}, {2, 2}, {1, 1}, {0, 0}},
      {{40, 50}, {40, 50}, {5, 5}, {1, 1}, {1, 1}, {2, 2}},
      {{40, 50}, {37, 47}, {4, 4}, {1, 1}, {1, 1}, {0, 0}},
      {{90, 70}, {44, 34}, {3, 3}, {2, 2}, {1, 1}, {0, 0}},  // more rows than are made at once
      {{90, 70}, {41, 11}, {2, 4}, {2, 6}, {9, 3}, {0, 1}},
  };
  for (const WindowGeometry& window : windows) {
    check(window, Largest{});
    check(window, Average{});
  }
}

TEST(WindowPlanes, LeavesFarReachesToOthers) {
  EXPECT_TRUE(suits_planes({{4, 4}, {3, 3}, {2, 2}, {3, 3}, {1, 1}, {2, 2}}));
  EXPECT_FALSE(suits_planes({{4, 4, 4}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}}));
  EXPECT_FALSE(suits_planes({{4, 4}, {1, 3}, {2, 2}, {1, 1}, {1 << 30, 1}, {1 << 30, 0}}));
  EXPECT_FALSE(suits_planes({{4, 4}, {3, 1}, {2, 2}, {1, 1 << 30}, {1, 1}, {0, 0}}));
}

}  // namespace window_planes_test
}  // namespace parallax::runtime
