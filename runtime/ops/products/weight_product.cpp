// SPDX-License-Identifier: Apache-2.0
// The weight stays in 4 or 8 bits: in panels of int8 where each column has one scale and no zero point, else in blocks
// as MatMulNBits has them. Where the processor has no such products it is made floats once.
#include "runtime/ops/products/weight_product.h"

#include <algorithm>

#include "inspector/base/mapped_ranges.h"
#include "inspector/base/thread_pool.h"
#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/products/float_panels.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/products/int4_gemm.h"
#include "runtime/device/cpu/products/stored_panels.h"
#include "runtime/device/cpu/weight_cache.h"
#include "runtime/ops/products/matmul_shapes.h"

namespace parallax::runtime {
namespace {

using HostContext = OpContext<Cpu>;

// W [k, n], whose block of rows that element (i, j) belongs to has scale and zero point (i / block_size, j).
struct QuantizedWeight {
  int64_t n = 0, k = 0;
  int64_t block_size = 0;  // k where a column is one block
  DType dtype = DType::undefined;
  std::vector<float> scales, zeros;  // [blocks, n]

  int64_t bits() const { return dtype == DType::int4 || dtype == DType::uint4 ? 4 : 8; }
  // The offset that is added to a value to make it unsigned.
  float offset() const { return dtype == DType::int4 ? 8.0F : dtype == DType::int8 ? 128.0F : 0.0F; }
  bool has_zeros() const {
    return std::any_of(zeros.begin(), zeros.end(), [](float zero) { return zero != 0.0F; });
  }
};

Result<QuantizedWeight> quantized_weight(const HostContext& op) {
  const Tensor &b = op.input(1), &scale = op.input(2);
  if (b.shape().rank() != 2) return wrong_input(op, 1, "have rank 2");
  QuantizedWeight weight;
  weight.k = b.shape()[0];
  weight.n = b.shape()[1];
  weight.dtype = b.dtype();
  weight.block_size = op.integer("block_size") > 0 ? op.integer("block_size") : std::max<int64_t>(1, weight.k);
  const int64_t blocks = (weight.k + weight.block_size - 1) / weight.block_size, total = blocks * weight.n;
  const int64_t given = scale.element_count();
  if (given != total && given != 1) return wrong_input(op, 2, "have 1 or {} elements, one for each block", total);
  if (op.has_input(3) && op.input(3).element_count() != given)
    return wrong_input(op, 3, "have {} elements, as many as scale", given);
  const int64_t stride = given == 1 ? 0 : 1;
  weight.scales.resize(static_cast<size_t>(total));
  weight.zeros.resize(static_cast<size_t>(total), 0.0F);
  load_block<float>(scale.dtype(), scale.view().data, 0, stride, total, weight.scales.data());
  if (op.has_input(3))
    load_block<float>(op.input(3).dtype(), op.input(3).view().data, 0, stride, total, weight.zeros.data());
  return weight;
}

// ---- Columns of int8 ----

struct ScaledPanels {
  StoredPanels panels;
  std::vector<float> scales;  // of columns
};

void multiply_scaled(int64_t m, const float* a, const ScaledPanels& weight, float* y) {
  const int64_t n = weight.panels.n;
  multiply_stored_panels(m, a, weight.panels, y);
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t j = 0; j < n; ++j) y[row * n + j] *= weight.scales[static_cast<size_t>(j)];
  }
}

// ---- Blocks ----

struct BlockedWeight {
  AlignedBytes quantized;
  std::vector<float> scales, zeros;
  Int4Matrix matrix;
};

// Columns become rows; a block is filled up to a multiple of kInt4Unit where it is a whole column.
std::shared_ptr<BlockedWeight> blocked(const QuantizedWeight& weight, const std::byte* b) {
  const int64_t blocks = static_cast<int64_t>(weight.scales.size()) / weight.n;
  const int64_t unit = 2 * kInt4Unit;  // a step of eight words, whatever the bits
  const int64_t size = blocks == 1 ? (weight.k + unit - 1) / unit * unit : weight.block_size;
  const int64_t row_bytes = blocks * size * weight.bits() / 8;
  auto made = std::make_shared<BlockedWeight>(
      BlockedWeight{AlignedBytes::of_weights(weight.n * row_bytes), weight.scales, weight.zeros, Int4Matrix{}});
  std::fill_n(made->quantized.data(), weight.n * row_bytes, uint8_t{0});
  parallel_for(weight.n, weight.k * 4, [&](int64_t begin, int64_t end) {
    std::vector<float> values(static_cast<size_t>(end - begin));
    for (int64_t i = 0; i < weight.k; ++i) {
      load_block<float>(weight.dtype, b, i * weight.n + begin, 1, end - begin, values.data());
      for (int64_t j = begin; j < end; ++j) {
        const auto value = static_cast<unsigned>(values[static_cast<size_t>(j - begin)] + weight.offset());
        uint8_t& byte = made->quantized.data()[j * row_bytes + i * weight.bits() / 8];
        byte = static_cast<uint8_t>(byte | (weight.bits() == 4 && i % 2 == 1 ? value << 4U : value));
      }
    }
    for (int64_t j = begin; j < end; ++j) {
      for (int64_t block = 0; block < blocks; ++block) {
        const auto from = static_cast<size_t>(block * weight.n + j), to = static_cast<size_t>(j * blocks + block);
        made->scales[to] = weight.scales[from];
        made->zeros[to] = weight.zeros[from] + weight.offset();
      }
    }
  });
  made->matrix.n = weight.n;
  made->matrix.k = weight.k;
  made->matrix.block_size = size;
  made->matrix.quantized = reinterpret_cast<const std::byte*>(made->quantized.data());
  made->matrix.scales = made->scales.data();
  made->matrix.zeros = made->zeros.data();
  made->matrix.bits = weight.bits();
  const float middle = made->matrix.middle();
  if (std::all_of(made->zeros.begin(), made->zeros.end(), [=](float zero) { return zero == middle; }))
    made->matrix.zeros = nullptr;
  return made;
}

void multiply_blocked(int64_t m, const float* a, const Int4Matrix& b, float* y) {
  if (m <= kFewInt4Rows) return multiply_few_rows(m, a, b, y);
  if (b.bits == 4) return multiply_unpacked_int4(m, a, b, y);
  multiply_unpacked_bytes(m, a, b, y);
}

// ---- Floats ----

std::shared_ptr<std::vector<float>> dequantized(const QuantizedWeight& weight, const std::byte* b) {
  auto made = std::make_shared<std::vector<float>>(static_cast<size_t>(weight.k * weight.n));
  for (int64_t i = 0; i < weight.k; ++i) {
    float* const row = made->data() + i * weight.n;
    load_block<float>(weight.dtype, b, i * weight.n, 1, weight.n, row);
    for (int64_t j = 0; j < weight.n; ++j) {
      const auto block = static_cast<size_t>(i / weight.block_size * weight.n + j);
      row[j] = (row[j] - weight.zeros[block]) * weight.scales[block];
    }
  }
  return made;
}

enum class Form : uint8_t { columns, blocks, floats };

// The prepared form of a weight.
struct KeptWeight {
  Form form = Form::floats;
  std::shared_ptr<ScaledPanels> columns;
  std::shared_ptr<BlockedWeight> blocks;
  std::shared_ptr<std::vector<float>> floats;
};

bool has_blocks_of_steps(const QuantizedWeight& weight) {
  return weight.block_size >= weight.k || weight.block_size == kInt4Unit || weight.block_size % (2 * kInt4Unit) == 0;
}

std::shared_ptr<KeptWeight> kept(const QuantizedWeight& weight, const std::byte* b) {
  auto made = std::make_shared<KeptWeight>();
  const bool is_one_block = weight.block_size >= weight.k;
  if (weight.dtype == DType::int8 && is_one_block && !weight.has_zeros() && has_stored_panels(DType::int8)) {
    made->form = Form::columns;
    made->columns = std::make_shared<ScaledPanels>(
        ScaledPanels{pack_stored_panels(DType::int8, weight.n, weight.k, b, weight.n, 1), weight.scales});
  } else if (has_blocks_of_steps(weight) && (weight.bits() == 4 || has_float_panels())) {
    made->form = Form::blocks;
    made->blocks = blocked(weight, b);
  } else {
    made->floats = dequantized(weight, b);
  }
  return made;
}

}  // namespace

Status dequantized_matmul(HostContext& op) {
  MatmulShapes product = PX_TRY(matmul_shapes(op.input(0).shape(), op.input(1).shape()));
  const MutableView out = PX_TRY(op.make_output(0, DType::float32, product.out));
  const auto weight = PX_TRY(quantized_weight(op));
  const std::byte* const b = op.input(1).view().data;
  const bool is_constant = op.is_constant(1) && op.is_constant(2) && (!op.has_input(3) || op.is_constant(3));
  CacheKey key("dequantized");
  key.add(b).add(op.input(2).view().data).add(weight.k).add(weight.n).add(weight.block_size);
  const auto keep = [&] {
    auto made = kept(weight, b);
    const int64_t bytes = weight.n * weight.k * (made->form == Form::floats ? 32 : weight.bits()) / 8;
    op.queue().weights().add_bytes(bytes);
    release_if_mapped(b, op.input(1).view().size_bytes());
    return made;
  };
  const auto found = is_constant ? op.queue().weights().get_shared<KeptWeight>(key.text(), keep) : kept(weight, b);
  const float* const a = reinterpret_cast<const float*>(op.input(0).view().data);
  float* const y = reinterpret_cast<float*>(out.data);
  const int64_t rows = weight.k == 0 ? 0 : op.input(0).element_count() / weight.k;
  if (weight.k == 0) std::fill_n(y, out.shape.element_count(), 0.0F);
  if (rows == 0 || weight.n == 0) return {};
  if (found->form == Form::columns) return multiply_scaled(rows, a, *found->columns, y), Status{};
  if (found->form == Form::blocks) return multiply_blocked(rows, a, found->blocks->matrix, y), Status{};
  product.problem.b_is_constant = is_constant;
  return gemm(op.queue(), product.problem, a, found->floats->data(), y);
}

}  // namespace parallax::runtime
