// SPDX-License-Identifier: Apache-2.0
// Maps and copies on the emulated device, in each layout that has a kernel or a width of access of its own, and the
// arithmetic of their indices.
#include <gtest/gtest.h>

#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/gpu/primitives.h"
#include "tests/runtime/elementwise_cases.h"
#include "tests/runtime/emulated/emulated_executor.h"
#include "tests/runtime/emulated/queue_emulated.h"

namespace parallax::runtime::elementwise_test {
namespace {

TEST(GpuIndices, DivisorsAreExact) {
  std::vector<int64_t> divisors{1, 2, 3, 5, 7, 10, 641, 6700417, gpu::kMostNarrow - 1, gpu::kMostNarrow};
  for (int bit = 2; bit < 31; ++bit) {
    for (int64_t off = -1; off <= 1; ++off) divisors.push_back((int64_t{1} << bit) + off);
  }
  for (const int64_t d : divisors) {
    const gpu::Divisor divisor(d);
    const int64_t most = gpu::kMostNarrow / d * d;  // the largest multiple
    for (const int64_t n : {int64_t{0}, int64_t{1}, d - 1, d, d + 1, 2 * d - 1, 2 * d, most / 2, most - 1, most,
                            int64_t{1} << 30, gpu::kMostNarrow - 1, gpu::kMostNarrow}) {
      if (n > gpu::kMostNarrow) continue;
      ASSERT_EQ(divisor.narrow_quotient(static_cast<uint32_t>(n)), n / d) << n << " / " << d;
      ASSERT_EQ(divisor.quotient(n), n / d) << n << " / " << d;
    }
    for (const int64_t n : {gpu::kMostNarrow + 1, int64_t{1} << 40, INT64_MAX}) ASSERT_EQ(divisor.quotient(n), n / d);
  }
  const gpu::Divisor wide(int64_t{1} << 33);
  EXPECT_EQ(wide.quotient(gpu::kMostNarrow), 0);
  EXPECT_EQ(wide.quotient((int64_t{1} << 34) + 5), 2);
}

// The offsets of each element, in the order of the parts.
std::vector<std::vector<int64_t>> walked(const Ints& dims, const std::vector<Ints>& strides, int64_t most) {
  std::vector<std::vector<int64_t>> elements;
  for (const gpu::WalkPart& part : gpu::narrow_parts(dims, strides, most)) {
    for (int64_t i = 0; i < product(part.dims); ++i) {
      std::vector<int64_t> at(part.offsets.begin(), part.offsets.end());
      int64_t rest = i;
      for (int64_t axis = part.dims.size() - 1; axis >= 0; rest /= part.dims[axis], --axis) {
        for (size_t operand = 0; operand < at.size(); ++operand) {
          at[operand] += rest % part.dims[axis] * strides[operand][axis];
        }
      }
      elements.push_back(at);
    }
  }
  return elements;
}

TEST(GpuIndices, PartsAreTheWhole) {
  const Ints dims{3, 7, 10};
  const std::vector<Ints> strides{{70, 10, 1}, {0, 1, 7}, {-70, 10, 1}};
  const auto whole = walked(dims, strides, 1000);
  ASSERT_EQ(gpu::narrow_parts(dims, strides, 1000).size(), 1U);
  for (const int64_t most : {69, 70, 100, 209}) EXPECT_EQ(walked(dims, strides, most), whole) << most;
  // where distances alone are too large, other axes than the first are halved, and the order differs
  auto scattered = walked({4, 5}, {{1, 1000}}, 1500);
  std::sort(scattered.begin(), scattered.end());
  auto expected = walked({4, 5}, {{1, 1000}}, 100000);
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(scattered, expected);
}

TEST(GpuIndices, PartsOfHugePayloadsAreNarrow) {
  const Ints dims{3, int64_t{1} << 31, 2};
  const std::vector<Ints> strides{{int64_t{1} << 32, 2, 1}, {1, 3, int64_t{1} << 40}};
  int64_t count = 0;
  const auto parts = gpu::narrow_parts(dims, strides, gpu::kMostNarrow);
  for (const gpu::WalkPart& part : parts) {
    count += product(part.dims);
    EXPECT_LE(product(part.dims), gpu::kMostNarrow);
    for (const Ints& own : strides) {
      int64_t reach = 0;
      for (int64_t axis = 0; axis < dims.size(); ++axis) reach += own[axis] * (part.dims[axis] - 1);
      EXPECT_LE(reach, gpu::kMostNarrow);
    }
  }
  EXPECT_EQ(count, product(dims));
  EXPECT_LE(parts.size(), 64U);
}

// A map's output has no offset of its own: a part goes on where the last one ended, whichever axis an operand goes
// farthest along.
TEST(GpuIndices, PartsOfDenseOperandsAreRowMajorNeighbors) {
  const Ints dims{6, 40};
  const std::vector<std::vector<Ints>> operands{
      {{1, 0}, {0, 1}},              // a column and a row
      {{0, 4}, {160, 4}, {40, 1}}};  // packs of a row, of a matrix, of the output
  for (const std::vector<Ints>& strides : operands) {
    const auto parts = gpu::narrow_parts(dims, strides, 125);
    EXPECT_GT(parts.size(), 1U);
    int64_t count = 0;
    for (const gpu::WalkPart& part : parts) {
      const Ints& at = part.offsets;
      EXPECT_EQ(strides.size() == 2 ? at[0] * dims[1] + at[1] : at[2], count);
      EXPECT_TRUE(part.dims[0] == 1 || part.dims[1] == dims[1]) << "a part with gaps";
      count += product(part.dims);
    }
    EXPECT_EQ(count, product(dims));
  }
}

// ---- Primitives on both devices, on views that begin `offset` elements into their memory ----

struct Devices {
  Queue<Cpu> host{BufferPool::create({})};
  Queue<Emulated> device;
};

Tensor numbered(DType dtype, int64_t count) {
  Tensor tensor = Tensor::allocate(dtype, Shape{count}).take();
  auto* bytes = reinterpret_cast<uint8_t*>(tensor.mutable_data());
  for (size_t i = 0; i < tensor.size_bytes(); ++i) bytes[i] = static_cast<uint8_t>(i * 131 + i / 256 * 17);
  return tensor;
}

// run(queue, out, source) on `count` bytes of both devices: the same bytes come out.
template <class Run>
void expect_same_bytes(Devices& both, int64_t out_bytes, const Tensor& source, const Run& run,
                       const std::string& what) {
  const Tensor out = numbered(DType::uint8, out_bytes);
  const Tensor device_out = both.device.to_device(out).take();
  const Tensor device_source = both.device.to_device(source).take();
  run(both.host, writable(out).data, source.view().data);
  run(both.device, writable(device_out).data, device_source.view().data);
  const Status status = both.device.take_failure();
  ASSERT_TRUE(status.ok()) << what << ": " << status.error().message;
  const Tensor read = both.device.to_host(device_out).take();
  EXPECT_TRUE(session_values::same(read, out)) << what;
}

TEST(GpuCopies, MoveElementsOfEverySizeInEveryLayout) {
  Devices both;
  struct Layout {
    const char* name;
    Ints dims, target, source;
    int64_t target_offset, source_offset;
  };
  const Layout layouts[] = {
      {"contiguous", {1003}, {1}, {1}, 0, 0},
      {"one element further", {1003}, {1}, {1}, 1, 3},
      {"rows", {9, 32}, {64, 1}, {48, 1}, 0, 16},
      {"odd rows", {9, 31}, {37, 1}, {41, 1}, 5, 2},
      {"one element for all", {9, 32}, {32, 1}, {0, 0}, 0, 7},
      {"backwards", {9, 32}, {32, 1}, {32, -1}, 0, 31},
      {"transposed", {37, 29}, {29, 1}, {1, 37}, 0, 0},
      {"transposed to odd rows", {37, 29}, {30, 1}, {1, 41}, 1, 2},
      {"transposed, written first", {29, 37}, {1, 29}, {37, 1}, 0, 0},
      {"transposed in planes", {3, 33, 11}, {363, 11, 1}, {363, 1, 33}, 0, 0},
      {"transposed around", {9, 3, 34}, {102, 34, 1}, {1, 306, 9}, 0, 0},
      {"transposed, with gaps", {12, 2, 2, 8}, {32, 16, 8, 1}, {1, 480, 192, 12}, 0, 0},
      {"transposed, few rows", {5, 40}, {40, 1}, {1, 5}, 0, 0},
      {"nothing", {0, 4}, {4, 1}, {1, 1}, 0, 0},
  };
  for (const int64_t bytes : {1, 2, 4, 8, 16}) {
    const Tensor source = numbered(DType::uint8, 1300 * bytes);
    for (const Layout& layout : layouts) {
      expect_same_bytes(
          both, 1300 * bytes, source,
          [&](auto& queue, std::byte* out, const std::byte* in) {
            copy_strided(queue, bytes, layout.dims, {out, layout.target, layout.target_offset},
                         {in, layout.source, layout.source_offset});
          },
          layout.name + (" of " + std::to_string(bytes)) + " bytes");
    }
  }
  EXPECT_TRUE(emulation::kernels_run().contains("transpose"));
}

TEST(GpuCopies, AreAsWideAsTheirRowsAllow) {
  alignas(16) std::byte memory[64];
  const auto width = [&](int64_t bytes, const Ints& dims, const Ints& to, const Ints& from, int64_t offset) {
    const gpu::CopyPlan plan = gpu::plan_copy(bytes, dims, {memory, to, 0}, {memory, from, offset});
    return plan.source_axis >= 0 ? -plan.bytes : plan.bytes;
  };
  EXPECT_EQ(width(2, {4, 3, 8}, {24, 8, 1}, {8, 32, 1}, 0), 16);
  EXPECT_EQ(width(2, {4, 3, 8}, {24, 8, 1}, {8, 32, 1}, 2), 4);
  EXPECT_EQ(width(2, {4, 3, 6}, {18, 6, 1}, {6, 24, 1}, 0), 4);
  EXPECT_EQ(width(4, {5, 7}, {7, 1}, {9, 1}, 0), 4);
  EXPECT_EQ(width(4, {16, 16}, {16, 1}, {1, 16}, 0), -4);
  EXPECT_EQ(width(4, {16, 16}, {1, 16}, {16, 1}, 0), -4);
  EXPECT_EQ(width(4, {16, 4}, {4, 1}, {1, 16}, 0), 4);
}

TEST(GpuCopies, FillFromAnyAddress) {
  Devices both;
  const Tensor source = numbered(DType::uint8, 16);
  for (const DType dtype : {DType::int8, DType::float16, DType::float32, DType::int64, DType::complex128}) {
    for (const int64_t offset : {0, 1}) {
      for (const int64_t count : {1, 5, 70}) {
        for (const bool is_zero : {false, true}) {
          const int64_t bytes = element_bytes(dtype);
          expect_same_bytes(
              both, 72 * bytes, source,
              [&](auto& queue, std::byte* out, const std::byte*) {
                fill(queue, MutableView{dtype, Shape{count}, out + offset * bytes},
                     is_zero ? nullptr : source.view().data);
              },
              std::string(name_of(dtype)));
        }
      }
    }
  }
}

struct Doubled {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};

// Operands and results that begin at an odd element are not for accesses of 16 bytes.
TEST(GpuMaps, TakeAnyAddress) {
  Devices both;
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    const int64_t bytes = element_bytes(dtype);
    Tensor source = Tensor::allocate(dtype, Shape{700}).take();
    std::vector<double> values(700);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 61) / 4 - 7;
    store_doubles(source, 0, values);
    for (const int64_t a : {0, 1}) {
      for (const int64_t b : {0, 3}) {
        for (const int64_t to : {0, 1}) {
          expect_same_bytes(
              both, 600 * bytes, source,
              [&](auto& queue, std::byte* out, const std::byte* in) {
                const TensorView first{dtype, Shape{591}, in + a * bytes, {}};
                const TensorView second{dtype, Shape{591}, in + b * bytes, {}};
                map_as<float, float>(queue, Doubled{}, MutableView{dtype, Shape{591}, out + to * bytes},
                                     std::array<TensorView, 2>{first, second});
              },
              std::string(name_of(dtype)));
        }
      }
    }
  }
}

TEST(GpuMaps, ExecutorsHaveTheHostsBits) {
  const auto emulated = tests::make_emulated_executor();
  for (const auto& each : elementwise_cases::elementwise_cases()) sorting_cases::expect_same_as_host(*emulated, each);
}

}  // namespace
}  // namespace parallax::runtime::elementwise_test
