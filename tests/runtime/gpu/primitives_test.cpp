// SPDX-License-Identifier: Apache-2.0
// Each primitive's kernels against the host's primitive of the same name, on ragged sizes that take several blocks.
#include "runtime/device/gpu/primitives.h"

#include <gtest/gtest.h>

#include "runtime/device/cpu/buffer_pool.h"
#include "tests/runtime/device/random_values.h"
#include "tests/runtime/emulated/queue_emulated.h"

namespace parallax::runtime::primitives_test {
namespace {

// One input on both devices.
struct Both {
  explicit Both(Tensor tensor) : host(std::move(tensor)), device(queue().to_device(host).take()) {}
  static Queue<Emulated>& queue() {
    static Queue<Emulated> made;
    return made;
  }
  static Queue<Cpu>& host_queue() {
    static Queue<Cpu> made(BufferPool::create({}));
    return made;
  }
  Tensor host;
  Tensor device;
};

Tensor floats(const Shape& shape) {
  const std::vector<float> values = random_values<float>(shape.element_count(), 7);
  return Tensor::from<float>(shape, values);
}

Tensor integers(const Shape& shape, int64_t modulus) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < shape.element_count(); ++i) values.push_back((i * 7919 + 13) % modulus - modulus / 2);
  return Tensor::from<int64_t>(shape, values);
}

// Compares the results of `run` on both devices in an output of that type and shape: run(queue, out, pick) where pick
// chooses the payload of an input.
template <class Run>
void expect_same(DType dtype, const Shape& shape, const Run& run, double tolerance = 0.0) {
  const Tensor host = Both::host_queue().allocate(dtype, shape).take();
  const Tensor device = Both::queue().allocate(dtype, shape).take();
  run(Both::host_queue(), writable(host), [](const Both& both) { return both.host.view(); });
  run(Both::queue(), writable(device), [](const Both& both) { return both.device.view(); });
  const Status status = Both::queue().take_failure();
  ASSERT_TRUE(status.ok()) << status.error().message;
  const Tensor read = Both::queue().to_host(device).take();
  for (int64_t i = 0; i < shape.element_count(); ++i) {
    const double wanted = load_element<double>(dtype, host.view().data, i);
    const double got = load_element<double>(dtype, read.view().data, i);
    ASSERT_NEAR(got, wanted, tolerance * (1.0 + std::fabs(wanted))) << "element " << i;
  }
}

struct Sum {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};

TEST(GpuPrimitives, MapBroadcastsAndConvertsStorage) {
  const Both a(floats({5, 1, 67}));
  const Both b(floats({3, 67}));
  for (DType dtype : {DType::float32, DType::float16, DType::bfloat16, DType::float64, DType::int8}) {
    expect_same(dtype, {5, 3, 67}, [&](auto& queue, const MutableView& out, const auto& pick) {
      map_as<float, float>(queue, Sum{}, out, std::array<TensorView, 2>{pick(a), pick(b)});
    });
  }
}

struct SumFold {
  template <class C>
  C init() const {
    return C(0);
  }
  template <class C>
  C step(C a, C x) const {
    return a + x;
  }
  template <class C>
  C merge(C a, C b) const {
    return a + b;
  }
  template <class C>
  C finish(C a, int64_t count) const {
    return a / static_cast<C>(count);
  }
};

TEST(GpuPrimitives, FoldRowsAndColumns) {
  const Both x(floats({7, 131, 5}));
  for (const RowLayout& rows :
       {RowLayout{7, 655, 1}, RowLayout{7, 131, 5}, RowLayout{7 * 131, 5, 1}, RowLayout{1, 4585, 1}}) {
    expect_same(
        DType::float32, {rows.row_count()},
        [&](auto& queue, const MutableView& out, const auto& pick) {
          fold_rows<float>(queue, SumFold{}, rows, out, pick(x));
        },
        1e-5);
  }
}

struct RunningSum {
  bool exclusive, reverse;
  template <class Team>
  void operator()(Team& team, int64_t) const {
    team.emit_running(Sum{}, typename Team::Value(0), exclusive, reverse);
  }
};

TEST(GpuPrimitives, ScanRowsRunsBothWays) {
  const Both x(integers({3, 203, 2}, 1000));
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      expect_same(DType::int64, {3, 203, 2}, [&](auto& queue, const MutableView& out, const auto& pick) {
        scan_rows<int64_t, int64_t>(queue, RunningSum{exclusive, reverse}, RowLayout{3, 203, 2}, out, pick(x));
      });
    }
  }
}

struct WrappingSum {
  int64_t operator()(int64_t a, int64_t b) const {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};
struct WrappingProduct {
  int64_t operator()(int64_t a, int64_t b) const {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};
struct RunningIntegers {
  Running is;
  Running running() const { return is; }
  template <class Team>
  void operator()(Team& team, int64_t) const {
    if (is.is_product) return team.emit_running(WrappingProduct{}, 1, is.exclusive, is.reverse);
    team.emit_running(WrappingSum{}, 0, is.exclusive, is.reverse);
  }
};

// Rows that are long enough to be left to the library.
TEST(GpuPrimitives, ScanRowsOfLongIntegersGoesToTheLibrary) {
  const RowLayout rows{1, 7000, 2};
  ASSERT_TRUE(gpu::is_run_by_library(rows.row_count(), rows.length));
  const Both x(integers({7000, 2}, 1000003));
  for (const int kind : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const RunningIntegers running{{(kind & 1) != 0, (kind & 2) != 0, (kind & 4) != 0}};
    for (const DType dtype : {DType::int64, DType::int16}) {
      expect_same(dtype, {7000, 2}, [&](auto& queue, const MutableView& out, const auto& pick) {
        scan_rows<int64_t, int64_t>(queue, running, rows, out, pick(x));
      });
    }
  }
  EXPECT_TRUE(emulation::kernels_run().contains("running_in"));
  EXPECT_TRUE(emulation::kernels_run().contains("running_out"));
}

TEST(GpuPrimitives, CopyStridedTransposesAndReverses) {
  const Both x(integers({11, 13, 3}, 100000));
  for (DType dtype : {DType::int64, DType::int32, DType::int16, DType::int8, DType::complex128}) {
    const int64_t bytes = element_bytes(dtype);
    const int64_t count = 11 * 13 * 3 * 8 / bytes / 3;
    const Ints dims{count, 3};
    expect_same(DType::uint8, {count * 3 * bytes}, [&](auto& queue, const MutableView& out, const auto& pick) {
      copy_strided(queue, bytes, dims, {out.data, {3, 1}, 0}, {pick(x).data, {-1, count}, count - 1});
    });
  }
}

struct Backwards {
  int64_t count;
  int64_t operator()(int64_t i) const { return i % 5 == 0 ? -1 : count - 1 - i; }
};

TEST(GpuPrimitives, IndexMapTakesBlocksAndFills) {
  const Both x(integers({30, 7}, 1000));
  const Both filler(integers({1}, 1));
  for (const bool filled : {false, true}) {
    expect_same(DType::int64, {30, 7}, [&](auto& queue, const MutableView& out, const auto& pick) {
      index_map(queue, Backwards{30}, out, pick(x).data, 7, filled ? pick(filler).data : nullptr);
    });
  }
}

struct Modulo {
  int64_t divisor;
  int64_t operator()(int64_t i) const { return i * 7 % divisor; }
};

// Indices repeat: the order of the updates decides, for floats too.
TEST(GpuPrimitives, ScatterKeepsTheOrderOfUpdates) {
  const Both updates(floats({150, 3}));
  for (Combine combine : {Combine::replace, Combine::add, Combine::multiply, Combine::maximum, Combine::minimum}) {
    expect_same(DType::float32, {11, 3}, [&](auto& queue, const MutableView& out, const auto& pick) {
      const float one = 1.0F;
      fill(queue, out, reinterpret_cast<const std::byte*>(&one));
      scatter<float>(queue, Modulo{11}, combine, out, pick(updates), 3);
    });
  }
}

struct Descending {
  bool operator()(int64_t x, int64_t location_x, int64_t y, int64_t location_y) const {
    return x != y ? x > y : location_x < location_y;
  }
};

TEST(GpuPrimitives, SortRowsIsStable) {
  const Both x(integers({4, 201, 2}, 17));
  for (const int64_t k : {1, 64, 201}) {
    const Tensor host_values = Both::host_queue().allocate(DType::int64, Shape{4, k, 2}).take();
    const Tensor device_values = Both::queue().allocate(DType::int64, Shape{4, k, 2}).take();
    expect_same(DType::int64, {4, k, 2}, [&](auto& queue, const MutableView& locations, const auto& pick) {
      const MutableView values = writable(locations.device.is_host() ? host_values : device_values);
      sort_rows<int64_t>(queue, Descending{}, RowLayout{4, 201, 2}, pick(x), k, values, locations);
    });
    const Tensor read = Both::queue().to_host(device_values).take();
    EXPECT_TRUE(std::ranges::equal(read.as<int64_t>(), host_values.as<int64_t>()));
  }
}

// Numbers of every storage type, sorted by keys: ties, zeros of both signs, NaN of both.
TEST(GpuPrimitives, SortRowsByKeysHasTheComparatorsOrder) {
  const RowLayout rows{3, 301, 2};
  std::vector<double> values;
  for (int64_t i = 0; i < 1806; ++i) values.push_back(static_cast<double>((i * 7919 + 13) % 23 - 11));
  for (const int64_t i : {5, 6, 200, 900, 1805}) values.data()[i] = std::numeric_limits<double>::quiet_NaN();
  for (const int64_t i : {7, 300, 1500}) values.data()[i] = -std::numeric_limits<double>::quiet_NaN();
  for (size_t i = 3; i < values.size(); i += 41) values[i] = -0.0;
  for (size_t i = 4; i < values.size(); i += 97) values[i] = (i & 1) != 0 ? INFINITY : -INFINITY;
  const Tensor wide = Tensor::from<double>(Shape{3, 301, 2}, values);
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int8, DType::int16,
                            DType::int32, DType::int64, DType::uint8, DType::uint16, DType::uint32, DType::uint64}) {
    const Tensor made = Both::host_queue().allocate(dtype, wide.shape()).take();
    map_as<double, double>(Both::host_queue(), Same{}, writable(made), std::array<TensorView, 1>{wide.view()});
    const Both x(made);
    for (const bool largest : {false, true}) {
      for (const int64_t k : {7, 301}) {
        const auto sort = [&](auto& queue, const MutableView& sorted, const MutableView& locations, const auto& pick) {
          const Status status = visit_arithmetic<Numbers>(dtype, [&](auto zero) -> Status {
            return sort_rows<decltype(zero)>(queue, TopFirst{largest}, rows, pick(x), k, sorted, locations), Status{};
          });
          ASSERT_TRUE(status.ok());
        };
        const Shape shape{3, k, 2};
        const Tensor host_values = Both::host_queue().allocate(dtype, shape).take();
        const Tensor device_values = Both::queue().allocate(dtype, shape).take();
        expect_same(DType::int64, shape, [&](auto& queue, const MutableView& locations, const auto& pick) {
          sort(queue, writable(locations.device.is_host() ? host_values : device_values), locations, pick);
        });
        const Tensor read = Both::queue().to_host(device_values).take();
        for (int64_t i = 0; i < shape.element_count(); ++i) {
          const auto wanted = load_element<double>(dtype, host_values.view().data, i);
          const auto got = load_element<double>(dtype, read.view().data, i);
          ASSERT_TRUE((std::isnan(wanted) && std::isnan(got)) ||
                      std::bit_cast<uint64_t>(wanted) == std::bit_cast<uint64_t>(got))
              << name_of(dtype) << " element " << i << ": " << got << " instead of " << wanted;
        }
      }
    }
  }
}

TEST(GpuPrimitives, SelectFindsEveryIndexInOrder) {
  for (const int64_t count : {1, 63, 64, 65, 1000}) {
    const Both x(integers({count}, 3));
    const auto host = select<int64_t>(Both::host_queue(), x.host.view()).take();
    const auto device = select<int64_t>(Both::queue(), x.device.view()).take();
    ASSERT_EQ(device.count, host.count);
    const auto locations = Tensor::wrap(
        DType::int64, Shape{device.count},
        std::shared_ptr<const std::byte>(device.owner, reinterpret_cast<const std::byte*>(device.locations.data)),
        x.device.device());
    const Tensor read = Both::queue().to_host(locations).take();
    for (int64_t i = 0; i < host.count; ++i) ASSERT_EQ(read.as<int64_t>()[static_cast<size_t>(i)], host.locations[i]);
  }
}

TEST(GpuPrimitives, GemmByTilesHandlesRaggedEdges) {
  const Both a(floats({3, 19, 21}));
  const Both b(floats({21, 13}));
  GemmProblem problem;
  problem.m = 19;
  problem.n = 13;
  problem.k = 21;
  problem.alpha = 0.5;
  problem.a_offsets = Ints{0, 19 * 21, 2 * 19 * 21};
  problem.b_offsets = Ints{0, 0, 0};
  for (const int transposed : {0, 1, 2, 3}) {
    problem.transpose_a = (transposed & 1) != 0;
    problem.transpose_b = (transposed & 2) != 0;
    expect_same(
        DType::float32, {3, 19, 13},
        [&](auto& queue, const MutableView& out, const auto& pick) {
          const Status status = gemm(queue, problem, reinterpret_cast<const float*>(pick(a).data),
                                     reinterpret_cast<const float*>(pick(b).data), out.as<float>());
          ASSERT_TRUE(status.ok()) << status.error().message;
        },
        1e-5);
  }
}

// Every kernel of ours has been run by the tests above or by the operators' cases (tests/ops checks the latter).
TEST(GpuPrimitives, FindFirstAnswersOnTheHost) {
  const Both x(integers({300}, 1000));
  const auto negative = [](int64_t value, int64_t) { return value < -450; };
  const int64_t wanted = find_first<int64_t>(Both::host_queue(), negative, x.host.view()).take();
  ASSERT_GE(wanted, 0);
  EXPECT_EQ(find_first<int64_t>(Both::queue(), negative, x.device.view()).take(), wanted);
  const Both pieces(integers({20000}, 30000));
  for (const int64_t first : {0, 4095, 4096, 12345, 19999}) {
    const auto from = [first](int64_t, int64_t location) { return location >= first; };
    EXPECT_EQ(find_first<int64_t>(Both::queue(), from, pieces.device.view()).take(), first);
  }
  const auto never = [](int64_t, int64_t) { return false; };
  EXPECT_EQ(find_first<int64_t>(Both::queue(), never, pieces.device.view()).take(), -1);
  EXPECT_EQ(find_first<int64_t>(Both::queue(), never, x.device.view()).take(), -1);
}

}  // namespace
}  // namespace parallax::runtime::primitives_test
