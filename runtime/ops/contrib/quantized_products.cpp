// SPDX-License-Identifier: Apache-2.0
// com.microsoft's products with weights of few bits, on the host: MatMulNBits, MatMulBnb4.
#include <algorithm>

#include "inspector/base/thread_pool.h"
#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/products/float_panels.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/products/int4_gemm.h"
#include "runtime/device/cpu/weight_cache.h"
#include "runtime/ops/contrib/bnb4_blocks.h"
#include "runtime/ops/contrib/nbits_blocks.h"
#include "runtime/ops/contrib_families.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/products/weight_product.h"

namespace parallax::runtime {
namespace {

using Context = OpContext<Cpu>;
using Weights = std::vector<float>;

// The matrix that `make` unpacks from input 1, kept where that is a weight.
template <class Make>
std::shared_ptr<Weights> unpacked(Context& op, const char* kind, const Make& make) {
  const auto build = [&] { return std::make_shared<Weights>(make()); };
  if (!op.is_constant(1) || !op.is_constant(2)) return build();
  CacheKey key(kind);
  key.add(op.input(1).view().data).add(op.input(2).view().data).add(op.has_input(3)).add(op.has_input(4));
  return op.queue().weights().get<Weights>(key.text(), build);
}

// Output 0 = A times weights of k rows and n columns, by `product(rows, left, sums)`; plus the bias where one is given.
template <class Product>
Status multiply_by(Context& op, int64_t n, int64_t k, int64_t bias, const Product& product_of) {
  const Tensor& a = op.input(0);
  Ints dims(a.shape());
  if (dims.empty() || dims.back() != k) return wrong_input(op, 0, "have a last axis of {}, the rows of the weights", k);
  const int64_t rows = product(dims, 0, dims.size() - 1);
  dims[dims.size() - 1] = n;
  const MutableView y = PX_TRY(op.make_output(0, a.dtype(), shape_of(dims)));
  const auto left = PX_TRY(converted<float>(op.queue(), a.view(), false));
  std::vector<float> sums(static_cast<size_t>(rows * n));
  if (rows > 0) PX_TRY(product_of(rows, left.get(), sums.data()));
  if (op.has_input(bias)) {
    if (op.input(bias).element_count() != n) return wrong_input(op, bias, "have {} elements, one for each column", n);
    const auto added = PX_TRY(converted<float>(op.queue(), op.input(bias).view(), false));
    for (int64_t i = 0; i < rows * n; ++i) sums.data()[i] += added.get()[i % n];
  }
  store_block<float>(y.dtype, y.data, 0, rows * n, sums.data());
  return {};
}

// The product with unpacked weights: [n, k] when transposed, else [k, n].
Status multiply(Context& op, const Weights& weights, int64_t n, int64_t k, bool transposed, int64_t bias) {
  return multiply_by(op, n, k, bias, [&](int64_t rows, const float* left, float* sums) {
    GemmProblem problem;
    problem.m = rows;
    problem.n = n;
    problem.k = k;
    problem.transpose_b = transposed;
    problem.b_is_constant = op.is_constant(1) && op.is_constant(2);
    return gemm(op.queue(), problem, left, weights.data(), sums);
  });
}

// ---- MatMulNBits ----

uint32_t packed(const std::byte* bytes, int64_t index, int64_t bits) {
  const int64_t bit = index * bits;
  return (static_cast<uint32_t>(bytes[bit / 8]) >> (bit % 8)) & ((1U << bits) - 1U);
}

// The zero point of each block; the middle of the range where none are given.
Result<Weights> zero_points(const OpCall& op, const NBitsBlocks& blocks) {
  const int64_t total = blocks.n * blocks.count;
  Weights zeros(static_cast<size_t>(total), static_cast<float>(int64_t{1} << (blocks.bits - 1)));
  if (!op.has_input(3)) return zeros;
  const Tensor& given = op.input(3);
  const int64_t row_bytes = (blocks.count * blocks.bits + 7) / 8;
  if (!PX_TRY(has_packed_zeros(op, blocks))) {
    load_block<float>(given.dtype(), given.view().data, 0, 1, total, zeros.data());
    return zeros;
  }
  for (int64_t i = 0; i < total; ++i) {
    const std::byte* row = given.view().data + i / blocks.count * row_bytes;
    zeros.data()[i] = static_cast<float>(packed(row, i % blocks.count, blocks.bits));
  }
  return zeros;
}

// Zero points given packed or as numbers, kept where they are a weight; null where they are the middle.
Result<std::shared_ptr<Weights>> kept_zero_points(Context& op, const NBitsBlocks& blocks) {
  if (!op.has_input(3)) return std::shared_ptr<Weights>();
  if (!op.is_constant(3)) return std::make_shared<Weights>(PX_TRY(zero_points(op, blocks)));
  PX_TRY(has_packed_zeros(op, blocks));
  CacheKey key("nbits zeros");
  key.add(op.input(3).view().data).add(blocks.n).add(blocks.count).add(blocks.bits);
  return op.queue().weights().get<Weights>(key.text(),
                                           [&] { return std::make_shared<Weights>(zero_points(op, blocks).take()); });
}

Status multiply_packed(Context& op, const NBitsBlocks& blocks) {
  const auto zeros = PX_TRY(kept_zero_points(op, blocks));
  const auto scales = PX_TRY(converted<float>(op.queue(), op.input(2).view(), op.is_constant(2)));
  const Int4Matrix weights{blocks.n,     blocks.k,
                           blocks.size,  op.input(1).view().data,
                           scales.get(), zeros == nullptr ? nullptr : zeros->data(),
                           blocks.bits};
  return multiply_by(op, blocks.n, blocks.k, 5, [&](int64_t rows, const float* a, float* sums) -> Status {
    if (rows <= kFewInt4Rows) {
      multiply_few_rows(rows, a, weights, sums);
    } else if (blocks.bits == 4) {
      multiply_unpacked_int4(rows, a, weights, sums);
    } else {
      multiply_unpacked_bytes(rows, a, weights, sums);
    }
    return {};
  });
}

Status matmul_nbits(Context& op) {
  const NBitsBlocks blocks = PX_TRY(nbits_blocks(op));
  const bool may_stay_packed = blocks.bits == 4 || (blocks.bits == 8 && has_float_panels());
  if (may_stay_packed && blocks.size % kInt4Unit == 0 && !op.has_input(4)) return multiply_packed(op, blocks);
  const Weights zeros = PX_TRY(zero_points(op, blocks));
  const Ints groups = PX_TRY(nbits_groups(op, blocks));
  const auto scales = PX_TRY(converted<float>(op.queue(), op.input(2).view(), false));
  const auto weights = unpacked(op, "nbits", [&] {
    Weights values(static_cast<size_t>(blocks.n * blocks.k));
    const int64_t row_bytes = blocks.count * (blocks.size * blocks.bits / 8);
    parallel_for(blocks.n, blocks.k * 4, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const std::byte* bytes = op.input(1).view().data + row * row_bytes;
        for (int64_t i = 0; i < blocks.k; ++i) {
          const int64_t block = row * blocks.count + groups[i];
          values.data()[row * blocks.k + i] =
              (static_cast<float>(packed(bytes, i, blocks.bits)) - zeros.data()[block]) * scales.get()[block];
        }
      }
    });
    return values;
  });
  return multiply(op, *weights, blocks.n, blocks.k, true, 5);
}

// ---- MatMulBnb4 ----

Status matmul_bnb4(Context& op) {
  const Bnb4Blocks blocks = PX_TRY(bnb4_blocks(op));
  const auto scales = PX_TRY(converted<float>(op.queue(), op.input(2).view(), false));
  const auto weights = unpacked(op, "bnb4", [&] {
    Weights made(static_cast<size_t>(blocks.n * blocks.k));
    for (int64_t i = 0; i < blocks.n * blocks.k; ++i) {
      const auto byte = static_cast<uint32_t>(op.input(1).view().data[i / 2]);
      const size_t index = i % 2 == 0 ? byte >> 4U : byte & 15U;  // of two in a byte the first has the high bits
      made.data()[i] = static_cast<float>(blocks.values.at(index) * static_cast<double>(scales.get()[i / blocks.size]));
    }
    return made;
  });
  if (blocks.transposed) return multiply(op, *weights, blocks.n, blocks.k, true, 6);
  return multiply(op, *weights, blocks.k, blocks.n, false, 6);
}

constexpr KernelRow<Cpu> kContribNbitsRows[] = {
    contributed_row("DequantizedMatMul", dtype_bit(DType::float32), dequantized_matmul, 0, "parallax.fused"),
    contributed_row("MatMulBnb4", kNarrowFloats, matmul_bnb4),
    contributed_row("MatMulNBits", kNarrowFloats, matmul_nbits),
};

}  // namespace

template <>
Rows<Cpu> contrib_nbits_rows() {
  return kContribNbitsRows;
}

}  // namespace parallax::runtime
