// SPDX-License-Identifier: Apache-2.0
// Weights of few bits of com.microsoft for GPU devices: MatMulNBits and MatMulBnb4, few rows of them by a kernel that
// decodes weights as it reads them, more by a product with the decoded matrix; GatherBlockQuantized. The host's are in
// quantized_products.cpp and tokens.cpp.
#include <array>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/device/gpu/block_weights_kernel.h"
#include "runtime/device/gpu/element_of.h"
#include "runtime/ops/contrib/bnb4_blocks.h"
#include "runtime/ops/contrib/nbits_blocks.h"
#include "runtime/ops/fused_families.h"
#include "runtime/ops/indices.h"
#include "runtime/ops/on_gpu.h"
#include "runtime/ops/pointwise/quantized_table.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kMostRows = 8;  // beyond them decoding once for all rows is less work

struct PlusBias {
  template <class T>
  PX_HD T operator()(T x, T bias) const {
    return x + bias;
  }
};

using FloatValues = std::shared_ptr<const float>;

template <class Device>
Result<FloatValues> floats_of(OpContext<Device>& op, int64_t index) {
  return converted<float>(op.queue(), op.input(index).view(), op.is_constant(index));
}

template <class Device>
struct Operands {
  gpu::BlockWeights<Device> weights;
  FloatValues a, scales, zeros, bias;
};

template <class Device>
Result<Operands<Device>> operands_of(OpContext<Device>& op, const NBitsBlocks& blocks) {
  Operands<Device> operands;
  gpu::BlockWeights<Device>& weights = operands.weights;
  operands.a = PX_TRY(floats_of(op, 0));
  operands.scales = PX_TRY(floats_of(op, 2));
  weights.quantized = {reinterpret_cast<const uint8_t*>(op.input(1).view().data)};
  weights.scales = {operands.scales.get()};
  weights.k = blocks.k;
  weights.size = blocks.size;
  weights.count = blocks.count;
  weights.bits = static_cast<int>(blocks.bits);
  if (op.has_input(3)) {
    if (PX_TRY(has_packed_zeros(op, blocks))) {
      weights.packed_zeros = {reinterpret_cast<const uint8_t*>(op.input(3).view().data)};
    } else {
      operands.zeros = PX_TRY(floats_of(op, 3));
      weights.zeros = {operands.zeros.get()};
    }
  }
  if (op.has_input(4)) {
    const Ints groups = PX_TRY(nbits_groups(op, blocks));
    weights.groups = PX_TRY(op.table(groups));
  }
  if (op.has_input(5)) {
    if (op.input(5).element_count() != blocks.n)
      return wrong_input(op, 5, "have {} elements, one for each column", blocks.n);
    operands.bias = PX_TRY(floats_of(op, 5));
  }
  return operands;
}

// y = a times the decoded matrix, plus a bias: [n, k] of weights for `rows` rows of a.
template <class Device, class Weights>
Status multiply_decoded(OpContext<Device>& op, const Weights& weights, const FloatValues& a, const TensorView* bias,
                        const MutableView& y) {
  const int64_t n = dim_of(y.shape, 1);
  const MutableView matrix = PX_TRY(op.scratch(DType::float32, shape_of({n, weights.k})));
  tabulate<float>(op.queue(), weights, matrix);
  const MutableView sums = PX_TRY(op.scratch(DType::float32, y.shape));
  GemmProblem problem;
  problem.m = dim_of(y.shape, 0);
  problem.n = n;
  problem.k = weights.k;
  problem.transpose_b = true;
  PX_TRY(gemm(op.queue(), problem, a.get(), reinterpret_cast<const float*>(matrix.data),
              reinterpret_cast<float*>(sums.data)));
  if (bias != nullptr) {
    map_as<float, float>(op.queue(), PlusBias{}, y, std::array<TensorView, 2>{TensorView(sums), *bias});
  } else {
    map_as<float, float>(op.queue(), Same{}, y, std::array<TensorView, 1>{TensorView(sums)});
  }
  return {};
}

// Output 0 for weights [n, k], as a matrix of rows.
template <class Device>
Result<MutableView> product_rows(OpContext<Device>& op, int64_t n, int64_t k) {
  const Tensor& a = op.input(0);
  Ints dims(a.shape());
  if (dims.empty() || dims.back() != k) return wrong_input(op, 0, "have a last axis of {}, the rows of the weights", k);
  const int64_t rows = product(dims, 0, dims.size() - 1);
  dims[dims.size() - 1] = n;
  MutableView y = PX_TRY(op.make_output(0, a.dtype(), shape_of(dims)));
  y.shape = PX_TRY(shape_of({rows, n}));
  return y;
}

// A kernel decodes as it reads, for few rows.
template <class Device, class Weights>
void multiply_few(OpContext<Device>& op, const Weights& weights, const FloatValues& a, const FloatValues& bias,
                  const MutableView& y) {
  const int64_t n = dim_of(y.shape, 1);
  const gpu::BlockWeightsProductKernel<Device, Weights> kernel{weights,      {a.get()},          {bias.get()},
                                                               target_of(y), dim_of(y.shape, 0), n};
  launch(op.queue(), kernel, gpu::size_for_rows(op.queue(), n, weights.k, sizeof(gpu::Slot)));
}

template <class Device>
Status matmul_nbits(OpContext<Device>& op) {
  const NBitsBlocks blocks = PX_TRY(nbits_blocks(op));
  const MutableView y = PX_TRY(product_rows(op, blocks.n, blocks.k));
  if (y.element_count() == 0) return {};
  const Operands<Device> operands = PX_TRY(operands_of(op, blocks));
  if (dim_of(y.shape, 0) <= kMostRows) {
    multiply_few(op, operands.weights, operands.a, operands.bias, y);
    return {};
  }
  if (!op.has_input(5)) return multiply_decoded<Device>(op, operands.weights, operands.a, nullptr, y);
  const TensorView bias = op.input(5).reshaped(Shape{blocks.n}).view();
  return multiply_decoded(op, operands.weights, operands.a, &bias, y);
}

// ---- MatMulBnb4 ----

// Row `row` of the matrix that a product reads: a row of the stored one where that is `transposed`, else a column.
template <class Device>
struct Bnb4Weights {
  Elements<Device, const uint8_t> quantized;
  Elements<Device, const float> scales;
  Bnb4Blocks blocks;
  int64_t k;  // numbers in a row of the product's matrix

  PX_HD float at(int64_t row, int64_t i) const {
    const int64_t location = blocks.transposed ? row * blocks.k + i : i * blocks.k + row;
    const unsigned byte = quantized[location / 2];
    const unsigned index = location % 2 == 0 ? byte >> 4U : byte & 15U;
    return static_cast<float>(blocks.values[index] * static_cast<double>(scales[location / blocks.size]));
  }
  PX_HD float operator()(int64_t element) const { return at(element / k, element % k); }
};

template <class Device>
Status matmul_bnb4(OpContext<Device>& op) {
  const Bnb4Blocks blocks = PX_TRY(bnb4_blocks(op));
  const int64_t n = blocks.transposed ? blocks.n : blocks.k, k = blocks.transposed ? blocks.k : blocks.n;
  const MutableView y = PX_TRY(product_rows(op, n, k));
  if (y.element_count() == 0) return {};
  const FloatValues a = PX_TRY(floats_of(op, 0)), scales = PX_TRY(floats_of(op, 2));
  const Bnb4Weights<Device> weights{
      {reinterpret_cast<const uint8_t*>(op.input(1).view().data)}, {scales.get()}, blocks, k};
  if (dim_of(y.shape, 0) > kMostRows) return multiply_decoded<Device>(op, weights, a, nullptr, y);
  multiply_few(op, weights, a, {}, y);
  return {};
}

// ---- GatherBlockQuantized ----

// One number of the result: (number - zero point) * scale of its block; 0 for an index out of range.
template <class Device>
struct GatheredNumber {
  Elements<Device, const uint8_t> quantized, zeros;  // zero points may be missing
  Source scales, indices;
  Axes dims, scale_dims;
  int64_t axis, block, count, inner, length;  // `count` indices into `length` slices of `inner`
  int bits;
  bool fills_rows;  // each row of uint8 begins with a byte; those of int4 and uint4 follow one another
  bool is_signed;
  float middle;  // the zero point where none is given

  PX_HD int64_t scale_index(int64_t position) const {
    int64_t location = 0, stride = 1;
    for (int i = dims.count - 1; i >= 0; --i) {
      const int64_t index = position % dims[i];
      position /= dims[i];
      if (scale_dims[i] > 1) location += (i == axis ? index / block : index) * stride;
      stride *= scale_dims[i];
    }
    return location;
  }
  PX_HD float number(const Elements<Device, const uint8_t>& from, int64_t position, int64_t row) const {
    const int64_t bit = (fills_rows ? position % row : position) * bits;
    const int64_t begin = fills_rows ? position / row * ((row * bits + 7) / 8) : 0;
    const unsigned found = (unsigned{from[begin + bit / 8]} >> (bit % 8)) & ((1U << bits) - 1U);
    const bool is_negative = is_signed && found >> (bits - 1) != 0;
    return static_cast<float>(found) - (is_negative ? static_cast<float>(1U << bits) : 0.0F);
  }
  PX_HD float operator()(int64_t at) const {
    int64_t index = element_of<Device, int64_t>(indices, at / inner % count);
    index += index < 0 ? length : 0;
    if (index < 0 || index >= length) return 0.0F;
    const int64_t position = (at / inner / count * length + index) * inner + at % inner;
    const int64_t location = scale_index(position);
    const int last = dims.count - 1;
    const float zero = zeros ? number(zeros, location, scale_dims[last]) : middle;
    return (number(quantized, position, dims[last]) - zero) * element_of<Device, float>(scales, location);
  }
};

template <class Device>
Status gather_block_quantized(OpContext<Device>& op) {
  const QuantizedTable table = PX_TRY(quantized_table(op));
  const MutableView y = PX_TRY(op.make_output(0, op.input(2).dtype(), shape_of(table.out)));
  if (y.element_count() == 0) return {};
  const auto bytes_of = [&](int64_t input) {
    const bool given = op.has_input(input);
    return Elements<Device, const uint8_t>{given ? reinterpret_cast<const uint8_t*>(op.input(input).view().data)
                                                 : nullptr};
  };
  const DType dtype = op.input(0).dtype();
  const bool is_bytes = dtype == DType::uint8;
  const GatheredNumber<Device> number{bytes_of(0),
                                      bytes_of(3),
                                      source_of(op.input(2).view()),
                                      source_of(op.input(1).view()),
                                      Axes(table.dims),
                                      Axes(table.scale_dims),
                                      table.axis,
                                      table.block,
                                      op.input(1).element_count(),
                                      product(table.dims, table.gather_axis + 1, table.dims.size()),
                                      table.dims[table.gather_axis],
                                      table.bits,
                                      is_bytes,
                                      dtype == DType::int4 || dtype == DType::int8,
                                      is_bytes ? static_cast<float>(1U << (table.bits - 1)) : 0.0F};
  tabulate<float>(op.queue(), number, y);
  return {};
}

template <class Device>
constexpr KernelRow<Device> kNbitsOnGpuRows[] = {
    of_microsoft<Device>({"GatherBlockQuantized", dtype_bits({DType::uint8, DType::int8, DType::int4, DType::uint4}),
                          PX_ON_GPU(gather_block_quantized<Device>)}),
    of_microsoft<Device>({"MatMulBnb4", kNarrowFloats, PX_ON_GPU(matmul_bnb4<Device>)}),
    of_microsoft(reads_on_host<Device>({4}, {"MatMulNBits", kNarrowFloats, PX_ON_GPU(matmul_nbits<Device>)})),
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> nbits_on_gpu_rows() {
  return kNbitsOnGpuRows<CompiledDevice>;
}

}  // namespace parallax::runtime
