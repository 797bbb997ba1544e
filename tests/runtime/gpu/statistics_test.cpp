// SPDX-License-Identifier: Apache-2.0
// Statistics taken on the device against those that the host takes of the same tensor: the same bits.
#include "inspector/dump/statistics/statistics.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "runtime/device/gpu/statistics_kernel.h"
#include "tests/runtime/device/random_values.h"
#include "tests/runtime/emulated/queue_emulated.h"

namespace parallax::runtime::statistics_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TensorStatistics on_device(const Tensor& host, int64_t numbers, ElementOrder order = ElementOrder::row_major) {
  Queue<Emulated> queue;
  const Tensor device = queue.to_device(host).take();
  const auto summed = chunk_statistics(queue, device, order);
  EXPECT_TRUE(summed.ok()) << summed.error().message;
  if (!summed.ok() || !summed->defined()) return {};
  const Tensor bytes = queue.to_host(*summed).take();
  const std::span chunks(reinterpret_cast<const statistics::ChunkStatistics*>(bytes.view().data),
                         bytes.size_bytes() / sizeof(statistics::ChunkStatistics));
  return joined_statistics(chunks, numbers, order);
}

uint64_t bits(double value) {
  uint64_t result = 0;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

void expect_same(const Tensor& tensor, const std::string& what, int64_t parts = 1,
                 ElementOrder order = ElementOrder::row_major) {
  const TensorStatistics host = compute_statistics(tensor, order);
  const TensorStatistics device = on_device(tensor, tensor.element_count() * parts, order);
  EXPECT_EQ(host.count, device.count) << what;
  EXPECT_EQ(host.zeros, device.zeros) << what;
  EXPECT_EQ(host.nan, device.nan) << what;
  EXPECT_EQ(host.positive_inf, device.positive_inf) << what;
  EXPECT_EQ(host.negative_inf, device.negative_inf) << what;
  const auto expect_bits = [&](double a, double b, const char* name) {
    EXPECT_TRUE(bits(a) == bits(b) || (a != a && b != b)) << what << ": " << name << " " << a << " " << b;
  };
  expect_bits(host.min, device.min, "min");
  expect_bits(host.max, device.max, "max");
  expect_bits(host.mean, device.mean, "mean");
  expect_bits(host.std, device.std, "std");
  expect_bits(host.l2, device.l2, "l2");
  for (size_t k = 0; k < kProjectionCount; ++k) expect_bits(host.projections[k], device.projections[k], "projection");
}

Tensor floats(const std::vector<float>& values) { return Tensor::vector<float>(values); }

// Less than a group, whole groups, a ragged last one, several chunks.
TEST(DeviceStatistics, OfAnyLength) {
  for (const int64_t count : {1, 7, 63, 64, 65, 1000, 1024, 16384, 16385, 50007}) {
    expect_same(floats(random_values<float>(count, 5)), std::to_string(count) + " elements");
  }
}

// Feature maps, of several batches, whose chunks begin within a position; complex elements are two numbers.
TEST(DeviceStatistics, CountedChannelsLast) {
  for (const Shape& shape : {Shape{1, 3, 5, 7}, Shape{2, 24, 31, 33}, Shape{3, 100, 200}, Shape{1, 2048, 3, 3}}) {
    const Tensor numbers = floats(random_values<float>(2 * shape.element_count(), 6));
    expect_same(Tensor::wrap(DType::float32, shape, numbers.storage()), shape.to_string(), 1,
                ElementOrder::channels_last);
    expect_same(Tensor::wrap(DType::complex64, shape, numbers.storage()), shape.to_string(), 2,
                ElementOrder::channels_last);
    gpu::CountedElements narrow{shape[1], shape.element_count() / (shape[0] * shape[1]), 2, true}, wide = narrow;
    wide.is_narrow = false;
    for (int64_t index = 0; index < 2 * shape.element_count(); ++index)
      ASSERT_EQ(narrow.position(index), wide.position(index)) << shape.to_string();
  }
}

template <class T>
Tensor counted(int64_t count) {
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<T>(i * 7919 % 251 - 100));
  return Tensor::vector<T>(values);
}

TEST(DeviceStatistics, OfAnyType) {
  constexpr int64_t kCount = 300;
  expect_same(Tensor::vector<double>(random_values<double>(kCount, 3)), "float64");
  expect_same(counted<int8_t>(kCount), "int8");
  expect_same(counted<uint8_t>(kCount), "uint8");
  expect_same(counted<int16_t>(kCount), "int16");
  expect_same(counted<uint16_t>(kCount), "uint16");
  expect_same(counted<int32_t>(kCount), "int32");
  expect_same(counted<uint32_t>(kCount), "uint32");
  expect_same(counted<int64_t>(kCount), "int64");
  expect_same(counted<uint64_t>(kCount), "uint64");
  std::vector<Float16> float16s;
  std::vector<BFloat16> brains;
  for (int64_t i = 0; i < 2000; ++i) {
    float16s.push_back({static_cast<uint16_t>(i * 40503)});  // subnormal numbers, infinities and NaN among them
    brains.push_back({static_cast<uint16_t>(i * 40503)});
  }
  expect_same(Tensor::vector<Float16>(float16s), "float16");
  expect_same(Tensor::vector<BFloat16>(brains), "bfloat16");
  Tensor flags = Tensor::allocate(DType::bool_, {kCount}).take();
  for (int64_t i = 0; i < kCount; ++i) flags.mutable_as<bool>()[static_cast<size_t>(i)] = i % 3 == 0;
  expect_same(flags, "bool");
  std::vector<std::complex<float>> pairs;
  for (const float value : random_values<float>(kCount, 9)) pairs.emplace_back(value, 1 - value);
  expect_same(Tensor::vector<std::complex<float>>(pairs), "complex64", 2);
}

TEST(DeviceStatistics, OfNumbersThatAreNotFinite) {
  std::vector<float> values = random_values<float>(17000, 11);
  values[3] = kNaN;
  values[70] = kInfinity;
  values[900] = -kInfinity;
  values[16999] = kNaN;
  values[16998] = -kInfinity;
  expect_same(floats(values), "some");
  expect_same(floats(std::vector<float>(130, kNaN)), "NaN alone");
  expect_same(floats(std::vector<float>(130, -kInfinity)), "infinities alone");
}

// The host sums such numbers once more, scaled down; a device does not.
TEST(DeviceStatistics, OfSquaresTooLargeForADouble) {
  const Tensor large = Tensor::vector<double>(std::vector<double>(200, 1e200));
  const TensorStatistics host = compute_statistics(large), device = on_device(large, 200);
  EXPECT_EQ(bits(host.mean), bits(device.mean));
  EXPECT_EQ(host.std, 0.0);
  EXPECT_NEAR(host.l2 / 1e201, std::sqrt(2.0), 1e-12);
  EXPECT_EQ(device.l2, std::numeric_limits<double>::infinity());
}

// The squares around the mean need a pass of their own where they are small compared with the mean's.
TEST(DeviceStatistics, OfASmallSpread) {
  std::vector<float> values = random_values<float>(16384 + 77, 13);
  for (float& value : values) value = 1000.0F + value * 1e-3F;
  expect_same(floats(values), "far from zero");
  expect_same(floats(std::vector<float>(5000, 3.25F)), "constant");
  expect_same(Tensor::vector<double>(std::vector<double>(999, 1.0 / 3)), "constant of 53 bits");
}

TEST(DeviceStatistics, OfZeros) {
  expect_same(floats(std::vector<float>(777, 0.0F)), "zeros");
  std::vector<float> signed_zeros(777);
  for (size_t i = 0; i < signed_zeros.size(); ++i) signed_zeros[i] = i % 5 == 2 ? -0.0F : 0.0F;
  expect_same(floats(signed_zeros), "zeros of both signs");
}

// A test that could not fail would be of no use: other data have other statistics.
TEST(DeviceStatistics, TellTensorsApart) {
  std::vector<float> values = random_values<float>(5000, 17);
  const TensorStatistics before = on_device(floats(values), 5000);
  std::swap(values[10], values[4000]);
  const TensorStatistics after = on_device(floats(values), 5000);
  EXPECT_NE(before.projections, after.projections);
}

TEST(DeviceStatistics, TypesThatAreNotReadThere) {
  Queue<Emulated> queue;
  const Tensor narrow = Tensor::zeros(DType::float8e4m3fn, {100}).take();
  const auto summed = chunk_statistics(queue, queue.to_device(narrow).take());
  ASSERT_TRUE(summed.ok()) << summed.error().message;
  EXPECT_FALSE(summed->defined());
}

}  // namespace
}  // namespace parallax::runtime::statistics_test
