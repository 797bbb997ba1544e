// SPDX-License-Identifier: Apache-2.0
// Operators whose rows or blocks the host has loops for, beyond a block of each: against plain loops, and the same bits
// by vectors of every width and any number of threads.
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/runtime/device/random_values.h"
#include "tests/runtime/ops/host_call.h"

namespace parallax::runtime {
namespace host_paths_test {

template <class T>
Tensor stored(DType dtype, const Shape& shape, const std::vector<T>& values) {
  Tensor tensor = Tensor::allocate(dtype, shape).take();
  store_block<T>(dtype, tensor.storage().get(), 0, std::ssize(values), values.data());
  return tensor;
}

TEST(BatchNormalization, OfRowsOfChannels) {
  const int64_t rows = 70, channels = 37;
  const auto x = random_values<float>(rows * channels, 1), scale = random_values<float>(channels, 2);
  const auto bias = random_values<float>(channels, 3), mean = random_values<float>(channels, 4);
  const auto variance = random_values<float>(channels, 5, 0.5, 2);
  const auto parameter = [&](const std::vector<float>& values) { return tensor_of<float>({channels}, values); };
  const auto expected = [&](int64_t element) {
    const auto c = static_cast<size_t>(element % channels);
    const double centered = static_cast<double>(x[static_cast<size_t>(element)]) - static_cast<double>(mean[c]);
    const double deviation = std::sqrt(static_cast<double>(variance[c]) + 1e-5);
    return centered / deviation * static_cast<double>(scale[c]) + static_cast<double>(bias[c]);
  };
  for (const Shape& shape : {Shape{rows, channels}, Shape{rows, channels, 1, 1}}) {
    const Call call(
        "BatchNormalization", 15,
        {tensor_of<float>(shape, x), parameter(scale), parameter(bias), parameter(mean), parameter(variance)});
    expect_everywhere<float>(call, expected, 1e-5, shape.to_string());
  }
}

TEST(DequantizeLinear, OfBlocksAndOfOtherTypes) {
  const int64_t outer = 5, length = 70, inner = 11, block = 32;
  const auto x = random_values<int64_t>(outer * length * inner, 6, -100, 100);
  const int64_t blocks = (length + block - 1) / block;
  const auto check = [&](DType dtype, DType real, bool blocked, bool along_last) {
    const Shape shape = along_last ? Shape{outer * inner, length} : Shape{outer, length, inner};
    const int64_t own = along_last ? 1 : inner, others = along_last ? outer * inner : outer;
    const int64_t count = blocked ? others * blocks * own : length;
    const Shape each = !blocked ? Shape{length} : along_last ? Shape{others, blocks} : Shape{others, blocks, own};
    const auto scales = random_values<float>(count, 7, 0.5, 2);
    const auto zeros = random_values<int64_t>(count, 8, 0, 9);
    const Tensor scale = stored<float>(real, each, scales);
    Call call("DequantizeLinear", 21, {stored<int64_t>(dtype, shape, x), scale, stored<int64_t>(dtype, each, zeros)});
    call.set("axis", 1);
    if (blocked) call.set("block_size", block);
    const Tensor y = call.run();
    ASSERT_EQ(y.dtype(), real);
    for (int64_t i = 0; i < y.element_count(); ++i) {
      const int64_t along = i / own % length;
      const int64_t at = blocked ? (i / own / length * blocks + along / block) * own + i % own : along;
      const auto difference = static_cast<double>(x[static_cast<size_t>(i)] - zeros[static_cast<size_t>(at)]);
      const double number = difference * load_element<double>(real, scale.view().data, at);
      std::byte rounded[8] = {};
      store_block<double>(real, rounded, 0, 1, &number);
      ASSERT_EQ(load_element<double>(real, y.view().data, i), load_element<double>(real, rounded, 0))
          << name_of(dtype) << " " << name_of(real) << " " << blocked << along_last << ", " << i;
    }
  };
  for (const DType real : {DType::float32, DType::float16, DType::bfloat16}) {
    for (const bool along_last : {false, true}) {
      check(DType::int8, real, true, along_last);
      check(DType::int8, real, false, along_last);
      check(DType::int32, real, false, along_last);
    }
  }
}

TEST(OneHot, MarksOneElementOfEachColumn) {
  const int64_t rows = 40, columns = 61, depth = 9;
  auto x = random_values<int64_t>(rows * columns, 11, -depth, depth - 1);
  x[5] = depth, x[6] = -depth - 1;  // all off
  for (const int64_t axis : {0, 1, 2}) {
    Call call(
        "OneHot", 11,
        {tensor_of<int64_t>({rows, columns}, x), tensor_of<int64_t>(Shape{}, {depth}), tensor_of<float>({2}, {3, 7})});
    call.set("axis", axis);
    const int64_t inner = axis == 0 ? rows * columns : axis == 1 ? columns : 1;
    const auto expected = [&](int64_t element) {
      const int64_t given = x[static_cast<size_t>(element / inner / depth * inner + element % inner)];
      return (given < 0 ? given + depth : given) == element / inner % depth ? 7.0 : 3.0;
    };
    expect_everywhere<float>(call, expected, 0, fmt::format("axis {}", axis));
  }
}

TEST(Softmax, OfShortRows) {
  for (const int64_t length : {1, 2, 8, 16, 17, 47, 48, 49}) {
    const int64_t rows = 37;
    auto x = random_values<float>(rows * length, 12, -9, 9);
    x[0] = -200;
    const auto sum_of = [&](int64_t row) {
      double sum = 0;
      for (int64_t i = 0; i < length; ++i)
        sum += std::exp(static_cast<double>(x[static_cast<size_t>(row * length + i)]));
      return sum;
    };
    const auto expected = [&](int64_t element) {
      return std::exp(static_cast<double>(x[static_cast<size_t>(element)])) / sum_of(element / length);
    };
    if (length == 1) x[0] = 0;
    expect_everywhere<float>(Call("Softmax", 13, {tensor_of<float>({rows, length}, x)}), expected, 3e-7,
                             fmt::format("rows of {}", length));
    x[static_cast<size_t>(length)] = std::numeric_limits<float>::quiet_NaN();  // in the second row, and only there
    const Tensor y = Call("Softmax", 13, {tensor_of<float>({rows, length}, x)}).run();
    for (int64_t i = 0; i < rows * length; ++i)
      EXPECT_EQ(std::isnan(y.as<float>()[static_cast<size_t>(i)]), i / length == 1) << length << ", " << i;
  }
}

TEST(Einsum, TransposesAndSumsOneOperand) {
  const int64_t a = 5, b = 33, c = 70;
  const auto x = random_values<float>(a * b * c, 13, 1, 2);
  const auto value = [&](int64_t i, int64_t j, int64_t k) {
    return static_cast<double>(x[static_cast<size_t>((i * b + j) * c + k)]);
  };
  const auto check = [&](const char* equation, const std::function<double(int64_t)>& expected, double tolerance) {
    Call call("Einsum", 12, {tensor_of<float>({a, b, c}, x)});
    call.set("equation", std::string(equation));
    expect_everywhere<float>(call, expected, tolerance, equation);
  };
  check(
      "abc->acb", [&](int64_t e) { return value(e / (b * c), e % b, e / b % c); }, 0);
  const auto sum = [](int64_t count, const auto& each) {
    double total = 0;
    for (int64_t i = 0; i < count; ++i) total += each(i);
    return total;
  };
  check(
      "abc->ab", [&](int64_t e) { return sum(c, [&](int64_t k) { return value(e / b, e % b, k); }); }, 1e-4);
  check(
      "abc->ac", [&](int64_t e) { return sum(b, [&](int64_t j) { return value(e / c, j, e % c); }); }, 1e-4);
  check(
      "abc->ca", [&](int64_t e) { return sum(b, [&](int64_t j) { return value(e % a, j, e / a); }); }, 1e-4);
  check(
      "abc->b", [&](int64_t e) { return sum(a * c, [&](int64_t i) { return value(i / c, e, i % c); }); }, 1e-3);
  Call diagonal("Einsum", 12, {tensor_of<float>({b, b}, std::vector<float>(x.begin(), x.begin() + b * b))});
  diagonal.set("equation", std::string("ii->"));
  const auto trace = [&](int64_t) {
    return sum(b, [&](int64_t i) { return static_cast<double>(x[static_cast<size_t>(i * b + i)]); });
  };
  expect_everywhere<float>(diagonal, trace, 1e-4, "ii->");
}

// ---- Quantized tensors of which one is broadcast along the other ----

Tensor repeated_as(const Tensor& part, const Shape& shape) {
  Tensor whole = Tensor::allocate(part.dtype(), shape).take();
  for (int64_t i = 0; i < whole.element_count(); ++i) {
    int64_t rest = i, from = 0, step = 1;
    for (int64_t axis = rank_of(shape) - 1; axis >= 0; --axis) {
      const int64_t missing = rank_of(shape) - rank_of(part.shape());
      const int64_t own = axis < missing ? 1 : part.shape()[static_cast<size_t>(axis - missing)];
      const int64_t dim = shape[static_cast<size_t>(axis)];
      from += (own == 1 ? 0 : rest % dim) * step;
      step *= own;
      rest /= dim;
    }
    whole.storage().get()[i] = part.view().data[from];
  }
  return whole;
}

TEST(QLinearMul, RepeatsTheSmallerTensor) {
  const Shape shape{2, 3, 5, 18};
  const auto random_uint8 = [](const Shape& own, uint32_t seed) {
    return stored<int64_t>(DType::uint8, own, random_values<int64_t>(own.element_count(), seed, 0, 255));
  };
  const Tensor x = random_uint8(shape, 14);
  const auto parameters = [](float scale, int64_t zero) {
    return std::vector<Value>{tensor_of<float>(Shape{}, {scale}), stored<int64_t>(DType::uint8, Shape{}, {zero})};
  };
  const auto run = [&](const std::string& op, const Tensor& a, const Tensor& b) {
    std::vector<Value> inputs{a};
    for (const Value& each : parameters(0.02F, 3)) inputs.push_back(each);
    inputs.emplace_back(b);
    for (const Value& each : parameters(0.03F, 9)) inputs.push_back(each);
    for (const Value& each : parameters(0.9F, 100)) inputs.push_back(each);
    return Call(op, 1, inputs, "com.microsoft").run();
  };
  for (const Shape& own : {Shape{}, Shape{18}, Shape{3, 1, 1}, Shape{1, 3, 5, 1}, Shape{2, 1, 1, 1}, Shape{2, 1, 5, 1},
                           Shape{3, 5, 18}, Shape{1, 1, 1, 1}}) {
    const Tensor y = random_uint8(own, 15);
    for (const std::string& op : {std::string("QLinearMul"), std::string("QLinearAdd")}) {
      const Tensor wanted = run(op, x, repeated_as(y, shape)), found = run(op, x, y);
      ASSERT_EQ(found.shape(), shape);
      EXPECT_EQ(std::memcmp(found.view().data, wanted.view().data, x.view().size_bytes()), 0) << op << own.to_string();
    }
    const Tensor permuted = run("QLinearMul", y, x);
    EXPECT_EQ(permuted.shape(), shape) << own.to_string();
  }
}

}  // namespace host_paths_test
}  // namespace parallax::runtime
