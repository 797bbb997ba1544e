// SPDX-License-Identifier: Apache-2.0
// com.microsoft's matrix products with quantized factors: MatMulNBits, MatMulBnb4, DynamicQuantizeMatMul,
// MatMulIntegerToFloat, MatMulInteger16, QGemm. Products of
// integers are exact in double as long as they stay below 2^53.
#include <array>

#include <fmt/format.h>

#include "inspector/base/checked_math.h"
#include "inspector/model/rule_errors.h"
#include "inspector/tensor/float_formats.h"
#include "reference/ops/contrib/quantized.h"
#include "reference/ops/contrib/shared.h"
#include "reference/ops/families.h"
#include "reference/ops/inner_op.h"
#include "reference/ops/map.h"
#include "reference/ops/matrix.h"
#include "reference/ops/quantized.h"

namespace parallax::reference {
namespace {

// Element `index` of numbers of `bits` bits each, packed low bits first from byte `begin` on.
double packed_number(std::span<const uint8_t> bytes, int64_t begin, int64_t index, int bits) {
  const int64_t bit = index * bits;
  const unsigned byte = bytes[static_cast<size_t>(begin + bit / 8)];
  return static_cast<double>((byte >> (bit % 8)) & ((1U << bits) - 1));
}

Result<int> packed_bits(int64_t bits) {
  if (bits == 2 || bits == 4 || bits == 8) return static_cast<int>(bits);
  return unsupported(fmt::format("attribute 'bits' is {}; 2, 4 and 8 have functions here", bits));
}

// y[..., n] = sum over k of a[..., k] * weights[n, k]
Result<Tensor> times_transposed(const Tensor& a, std::span<const double> weights, int64_t n, int64_t k) {
  const Shape& shape = a.shape();
  if (shape.rank() == 0 || shape[shape.rank() - 1] != k)
    return wrong_shape("A", shape, "have a last axis of {}, the rows of the weights [{},{}]", k, k, n);
  const Shape result = PX_TRY(with_dim(shape, shape.rank() - 1, n));
  Tensor y = PX_TRY(Tensor::allocate(DType::float64, result));
  const Numbers<double> numbers(a);
  const Matrix<double> left{numbers.span(), count_of(shape, 0, shape.rank() - 1), k, k, 1};
  const Matrix<double> right{weights, n, k, k, 1};
  multiply(left, right.transposed(), y.mutable_as<double>());
  return y;
}

// A vector with one number a column is added to every row.
Result<Tensor> with_bias(const OpContext& op, Tensor y, size_t bias) {
  if (!op.has_input(bias)) return y;
  PX_TRY(expect_shape(op, bias, Shape{y.shape().rank() == 0 ? 1 : y.shape()[y.shape().rank() - 1]}));
  return run_inner(op, {"Add", 13}, {std::move(y), op.value(bias)});
}

// ---- MatMulNBits ----

struct BlockedWeights {
  int64_t n = 0, k = 0, block = 0, blocks = 0;
  int bits = 4;
  std::vector<double> zeros;   // [n, blocks]
  std::vector<int64_t> group;  // of each k

  static Result<BlockedWeights> create(const OpContext& op);
  std::vector<double> dequantize(const OpContext& op) const;

 private:
  Status read_zeros(const OpContext& op);
};

Status BlockedWeights::read_zeros(const OpContext& op) {
  const double middle = static_cast<double>(1 << (bits - 1));  // where zero_points is absent
  zeros.assign(static_cast<size_t>(n * blocks), middle);
  if (!op.has_input(3)) return {};
  const Tensor& given = op.input(3);
  const bool packed = given.dtype() == DType::uint8;
  const int64_t row_bytes = (blocks * bits + 7) / 8;
  if (given.element_count() != (packed ? n * row_bytes : n * blocks))
    return wrong_input(op, 3, "have {} elements: {} rows of {} blocks", packed ? n * row_bytes : n * blocks, n, blocks);
  if (!packed) {
    load_doubles(given, 0, zeros);
    return {};
  }
  for (int64_t at = 0; at < n * blocks; ++at) {
    zeros[static_cast<size_t>(at)] = packed_number(given.as<uint8_t>(), at / blocks * row_bytes, at % blocks, bits);
  }
  return {};
}

Result<BlockedWeights> BlockedWeights::create(const OpContext& op) {
  BlockedWeights weights;
  weights.n = op.int_attribute("N");
  weights.k = op.int_attribute("K");
  weights.block = op.int_attribute("block_size");
  weights.bits = PX_TRY(packed_bits(op.int_attribute("bits")));
  constexpr int64_t kLargest = int64_t{1} << 31;
  const auto sane = [](int64_t number) { return number > 0 && number <= kLargest; };
  const int64_t block = weights.block;
  if (!sane(weights.n) || !sane(weights.k) || !sane(block) || block < 16 || (block & (block - 1)) != 0)
    return invalid_model(fmt::format(
        "N is {}, K {}, block_size {}; they must be in [1, {}], and block_size a power of two of 16 or more", weights.n,
        weights.k, block, kLargest));
  if (op.int_attribute("weight_prepacked") != 0)
    return unsupported("attribute 'weight_prepacked' is set; the layout of one processor has no function here");
  weights.blocks = (weights.k + block - 1) / block;
  if (op.input(1).element_count() != weights.n * weights.blocks * (block * weights.bits / 8) ||
      op.input(2).element_count() != weights.n * weights.blocks)
    return wrong_input(op, 1, "have {} elements, and scales, {}, {}: N rows of {} blocks",
                       weights.n * weights.blocks * (block * weights.bits / 8), op.input(2).shape().to_string(),
                       weights.n * weights.blocks, weights.blocks);
  PX_TRY(weights.read_zeros(op));
  for (int64_t column = 0; column < weights.k; ++column) weights.group.push_back(column / block);
  if (op.has_input(4)) {
    PX_TRY(expect_shape(op, 4, Shape{weights.k}));
    weights.group = to_int64s(op.input(4));
  }
  for (int64_t group : weights.group) {
    if (group < 0 || group >= weights.blocks)
      return wrong_value("an entry of g_idx", group, "be in [0, {}), the blocks", weights.blocks);
  }
  return weights;
}

// [n, k]: (quantized - zero point) * scale
std::vector<double> BlockedWeights::dequantize(const OpContext& op) const {
  const auto bytes = op.input(1).as<uint8_t>();
  const Numbers<double> scales(op.input(2));
  const int64_t row_bytes = blocks * (block * bits / 8);
  std::vector<double> weights(static_cast<size_t>(n * k));
  parallel_for(n, 4 * k, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t column = 0; column < k; ++column) {
        const int64_t location = row * blocks + group[static_cast<size_t>(column)];
        const double quantized = packed_number(bytes, row * row_bytes, column, bits);
        weights[static_cast<size_t>(row * k + column)] =
            (quantized - zeros[static_cast<size_t>(location)]) * scales[location];
      }
    }
  });
  return weights;
}

// ---- MatMulBnb4 ----

// The 16 values of bitsandbytes' types (Dettmers et al., "QLoRA", appendix E, for NF4; its FP4 has one sign bit, and
// magnitudes that are twelfths, but for the least).
constexpr std::array<double, 16> kFp4 = {0.0,       0.0625 / 12, 8.0 / 12,  1.0,          4.0 / 12,  6.0 / 12,
                                         2.0 / 12,  3.0 / 12,    -0.0,      -0.0625 / 12, -8.0 / 12, -1.0,
                                         -4.0 / 12, -6.0 / 12,   -2.0 / 12, -3.0 / 12};
constexpr std::array<double, 16> kNf4 = {-1.0,
                                         -0.6961928009986877,
                                         -0.5250730514526367,
                                         -0.39491748809814453,
                                         -0.28444138169288635,
                                         -0.18477343022823334,
                                         -0.09105003625154495,
                                         0.0,
                                         0.07958029955625534,
                                         0.16093020141124725,
                                         0.24611230194568634,
                                         0.33791524171829224,
                                         0.44070982933044434,
                                         0.5626170039176941,
                                         0.7229568362236023,
                                         1.0};

// ContribOperators.md, com.microsoft.MatMulNBits. accuracy_level allows a kernel to round A and changes nothing here.
// The page calls g_idx deprecated and says no more; as GPTQ defines it, it names the block whose scale and zero point
// belong to each k.
Status op_contrib_matmul_nbits(OpContext& op) {
  const BlockedWeights weights = PX_TRY(BlockedWeights::create(op));
  Tensor y = PX_TRY(times_transposed(op.input(0), weights.dequantize(op), weights.n, weights.k));
  y = PX_TRY(with_bias(op, std::move(y), 5));
  return set_rounded(op, 0, op.input(0).dtype(), y);
}

// com.microsoft.MatMulBnb4: blocks run over the flattened [N, K]; of two weights in a byte the first has the high bits.
Status op_contrib_matmul_bnb4(OpContext& op) {
  const int64_t n = op.int_attribute("N");
  const int64_t k = op.int_attribute("K");
  const int64_t block = op.int_attribute("block_size");
  const int64_t type = op.int_attribute("quant_type");
  const auto count = checked_mul(n, k);
  if (n <= 0 || k <= 0 || block <= 0 || !count.has_value() || (type != 0 && type != 1))
    return invalid_model(
        fmt::format("N is {}, K {}, block_size {}, quant_type {}; they must be 1 or more, and quant_type 0 or 1", n, k,
                    block, type));
  if (op.input(1).element_count() != *count / 2 + *count % 2 ||
      op.input(2).element_count() != *count / block + (*count % block != 0 ? 1 : 0))
    return wrong_input(
        op, 1, "hold the N * K ({}) weights, two in an element, and absmax, {}, one number for each block of {}",
        *count, op.input(2).shape().to_string(), block);
  const auto bytes = op.input(1).as<uint8_t>();
  const Numbers<double> scales(op.input(2));
  const auto& values = type == 0 ? kFp4 : kNf4;
  std::vector<double> weights;
  for (int64_t at = 0; at < *count; ++at) {
    const unsigned byte = bytes[static_cast<size_t>(at / 2)];
    weights.push_back(values[at % 2 == 0 ? byte >> 4 : byte & 15] * scales[at / block]);
  }
  if (op.int_attribute("transB") != 0) {
    return set_rounded(op, 0, op.input(0).dtype(), PX_TRY(times_transposed(op.input(0), weights, n, k)));
  }
  Tensor matrix = PX_TRY(Tensor::allocate(DType::float64, Shape{n, k}));
  store<double>(matrix, 0, weights);
  return set_rounded(op, 0, op.input(0).dtype(), PX_TRY(run_inner(op, {"MatMul", 13}, {op.value(0), matrix})));
}

// com.microsoft.DynamicQuantizeMatMul: A quantized as DynamicQuantizeLinear does it, multiplied as integers, scaled
// back; bias added.
Status op_contrib_dynamic_quantize_matmul(OpContext& op) {
  const std::vector<Value> quantized = PX_TRY(run_inner(op, {"DynamicQuantizeLinear", 11}, {op.value(0)}, 3));
  Tensor a = PX_TRY(Tensor::allocate(DType::float64, op.input(0).shape()));
  load_doubles(quantized[0].tensor(), 0, a.mutable_as<double>());
  const double zero = element_as_double(quantized[2].tensor(), 0);
  const double scale = element_as_double(quantized[1].tensor(), 0);
  for (double& value : a.mutable_as<double>()) value = (value - zero) * scale;
  const Tensor b = PX_TRY(dequantize(op, {1, 2, 3}));
  const Tensor product = PX_TRY(run_inner(op, {"MatMul", 13}, {a, b}));
  const Tensor y = PX_TRY(with_bias(op, product, 4));
  return set_rounded(op, 0, op.input(0).dtype(), y);
}

// com.microsoft.MatMulIntegerToFloat. The page offers A one scale a column, which no product of integers has;
// onnxruntime takes one number.
Status op_contrib_matmul_integer_to_float(OpContext& op) {
  if (op.input(2).element_count() != 1) return wrong_input(op, 2, "be one number");
  if (op.has_input(4) && op.input(4).element_count() != 1) return wrong_input(op, 4, "be one number");
  const Tensor a = PX_TRY(dequantize(op, {0, 2, 4}));
  const Tensor b = PX_TRY(dequantize(op, {1, 3, 5}));
  const Tensor product = PX_TRY(run_inner(op, {"MatMul", 13}, {a, b}));
  const Tensor y = PX_TRY(with_bias(op, product, 6));
  return set_rounded(op, 0, op.input(3).dtype(), y);
}

// com.microsoft.MatMulInteger16: unsigned where both factors are.
Status op_contrib_matmul_integer16(OpContext& op) {
  const auto widened = [&](size_t index) -> Result<Tensor> {
    Tensor wide = PX_TRY(Tensor::allocate(DType::int64, op.input(index).shape()));
    load_int64s(op.input(index), 0, wide.mutable_as<int64_t>());
    return wide;
  };
  const Tensor a = PX_TRY(widened(0));
  const Tensor b = PX_TRY(widened(1));
  const Tensor y = PX_TRY(run_inner(op, {"MatMul", 13}, {a, b}));
  const bool is_unsigned = op.input(0).dtype() == DType::uint16 && op.input(1).dtype() == DType::uint16;
  return op.set_output(0, is_unsigned ? DType::uint32 : DType::int32, y.shape(), y.as<int64_t>());
}

// com.microsoft.QGemm: alpha * a_scale * b_scale * (A' * B' + C), since C has the scale of the product; quantized where
// y_scale is given.
Status op_contrib_q_gemm(OpContext& op) {
  if (op.input(0).shape().rank() != 2 || op.input(3).shape().rank() != 2)
    return wrong_input(op, op.input(0).shape().rank() != 2 ? 0 : 3, "have rank 2");
  Tensor a = PX_TRY(less_zero_point(op, 0, 2));
  const bool transposed = op.int_attribute("transB") != 0;
  if (op.int_attribute("transA") != 0) a = PX_TRY(transpose(op, a, {1, 0}));
  // Scales and zero points of B belong to the columns of the product.
  Tensor b = op.input(3);
  if (transposed) b = PX_TRY(transpose(op, b, {1, 0}));
  const Numbers<double> zeros(op.input(5));
  const Numbers<double> scales(op.input(4));
  const int64_t columns = b.shape()[1];
  for (int64_t count : {zeros.size(), scales.size()}) {
    if (count != 1 && count != columns)
      return wrong_value("the number of scales or zero points of B", count, "be 1 or {}, one for each column", columns);
  }
  Tensor centered = PX_TRY(Tensor::allocate(DType::float64, b.shape()));
  const auto numbers = centered.mutable_as<double>();
  load_doubles(b, 0, numbers);
  for (size_t at = 0; at < numbers.size(); ++at) {
    numbers[at] -= zeros[zeros.size() == 1 ? 0 : static_cast<int64_t>(at) % columns];
  }
  Tensor y = PX_TRY(run_inner(op, {"MatMul", 13}, {a, centered}));
  if (op.has_input(6)) {
    const std::vector<double> c = PX_TRY(broadcast_input(op, 6, y.shape()));
    const auto sums = y.mutable_as<double>();
    for (size_t at = 0; at < c.size(); ++at) sums[at] += c[at];
  }
  const double scale = op.float_attribute("alpha") * PX_TRY(op.double_of_input(1));
  const auto results = y.mutable_as<double>();
  for (size_t at = 0; at < results.size(); ++at) {
    results[at] *= scale * scales[scales.size() == 1 ? 0 : static_cast<int64_t>(at) % columns];
  }
  if (!op.has_input(7)) return set_rounded(op, 0, DType::float32, y);
  return set_quantized(op, y, 7, 8, op.has_input(8) ? op.input(8).dtype() : op.input(0).dtype());
}

constexpr OpRow kContribQuantizedMatmulRows[] = {
    {"DynamicQuantizeMatMul", kMicrosoft, 1, 1, op_contrib_dynamic_quantize_matmul},
    {"MatMulBnb4", kMicrosoft, 1, 1, op_contrib_matmul_bnb4},
    {"MatMulInteger16", kMicrosoft, 1, 1, op_contrib_matmul_integer16},
    {"MatMulIntegerToFloat", kMicrosoft, 1, 1, op_contrib_matmul_integer_to_float},
    {"MatMulNBits", kMicrosoft, 1, 1, op_contrib_matmul_nbits},
    {"QGemm", kMicrosoft, 1, 1, op_contrib_q_gemm},
};

}  // namespace

OpRows contrib_quantized_matmul_rows() { return kContribQuantizedMatmulRows; }

}  // namespace parallax::reference
