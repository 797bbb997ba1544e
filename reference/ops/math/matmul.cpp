// SPDX-License-Identifier: Apache-2.0
// Matrix products: MatMul, Gemm, and the products of quantized matrices.
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"
#include "reference/ops/matrix.h"
#include "reference/ops/quantized.h"

namespace parallax::reference {
namespace {

// How MatMul sees its inputs (numpy.matmul): vectors become a row or a column that is dropped from the result.
struct MatMulShapes {
  Shape batch;  // broadcast leading dimensions
  Shape result;
  int64_t rows = 1, depth = 1, columns = 1;
  std::vector<int64_t> batch_strides_a, batch_strides_b;  // in matrices
};

Result<MatMulShapes> plan_matmul(const Shape& a, const Shape& b) {
  if (a.rank() == 0 || b.rank() == 0)
    return wrong_shape(a.rank() == 0 ? "A" : "B", std::span<const int64_t>(), "have rank 1 or more to be multiplied");
  MatMulShapes plan;
  const auto lead = [](const Shape& shape) {
    return Shape::create(shape.dims().first(std::max<size_t>(2, shape.rank()) - 2));
  };
  plan.rows = a.rank() > 1 ? a[a.rank() - 2] : 1;
  plan.depth = a[a.rank() - 1];
  plan.columns = b.rank() > 1 ? b[b.rank() - 1] : 1;
  const int64_t depth_b = b.rank() > 1 ? b[b.rank() - 2] : b[0];
  if (plan.depth != depth_b)
    return wrong_shape("B", b, "have {} rows to be multiplied with A {}", plan.depth, a.to_string());
  const Shape lead_a = PX_TRY(lead(a));
  const Shape lead_b = PX_TRY(lead(b));
  plan.batch = PX_TRY(broadcast_shapes(lead_a, lead_b));
  plan.batch_strides_a = broadcast_strides(lead_a, plan.batch);
  plan.batch_strides_b = broadcast_strides(lead_b, plan.batch);
  std::vector<int64_t> dims(plan.batch.begin(), plan.batch.end());
  if (a.rank() > 1) dims.push_back(plan.rows);
  if (b.rank() > 1) dims.push_back(plan.columns);
  plan.result = PX_TRY(Shape::create(dims));
  return plan;
}

// Multiplies the matrices of every batch; a and b are all numbers of the two inputs.
template <class Number>
std::vector<Number> multiply(const MatMulShapes& plan, std::span<const Number> a, std::span<const Number> b) {
  std::vector<Number> results(static_cast<size_t>(plan.result.element_count()));
  Walk<2> walk(plan.batch.dims(), {plan.batch_strides_a, plan.batch_strides_b});
  const int64_t size_a = plan.rows * plan.depth;
  const int64_t size_b = plan.depth * plan.columns;
  const int64_t size_out = plan.rows * plan.columns;
  for (int64_t batch = 0; batch < plan.batch.element_count(); ++batch, walk.next()) {
    const Matrix<Number> left{a.subspan(static_cast<size_t>(walk.offset(0) * size_a)), plan.rows, plan.depth,
                              plan.depth, 1};
    const Matrix<Number> right{b.subspan(static_cast<size_t>(walk.offset(1) * size_b)), plan.depth, plan.columns,
                               plan.columns, 1};
    multiply(left, right, std::span(results).subspan(static_cast<size_t>(batch * size_out)));
  }
  return results;
}

// The products of the two inputs, each number rounded (or wrapped) as it is stored.
template <class Number>
Status matmul(OpContext& op, const MatMulShapes& plan, DType dtype) {
  Tensor output = PX_TRY(op.allocate(dtype, plan.result));
  Walk<2> walk(plan.batch.dims(), {plan.batch_strides_a, plan.batch_strides_b});
  const int64_t size_a = plan.rows * plan.depth, size_b = plan.depth * plan.columns;
  for (int64_t batch = 0; batch < plan.batch.element_count(); ++batch, walk.next()) {
    const StoredMatrix<Number> a{op.input(0), walk.offset(0) * size_a, plan.rows, plan.depth};
    const StoredMatrix<Number> b{op.input(1), walk.offset(1) * size_b, plan.depth, plan.columns};
    multiply_stored(a, b, [&](const SumsBlock<Number>& sums) {
      const int64_t begin = (batch * plan.rows + sums.row) * plan.columns + sums.column;
      const Lines lines{
          .begin = begin, .stride = plan.columns, .lines = sums.rows, .width = sums.columns, .spacing = sums.stride};
      store_lines<Number>(output, lines, sums.numbers);
    });
  }
  return op.set_output(0, std::move(output));
}

// A scale or zero point spread over matrices [..., rows, columns]: one number, a vector with one for each row (or
// column), or a tensor that also has the leading axes.
template <class Number>
Result<std::vector<Number>> spread_over(const Tensor& parameter, const Shape& matrices, bool by_row) {
  Tensor aligned = parameter;
  const int64_t count = parameter.element_count();
  if (count == 1)
    aligned = parameter.reshaped(Shape{});
  else if (parameter.shape().rank() == 1 && by_row)
    aligned = parameter.reshaped(Shape{count, 1});
  if (!broadcasts_to(aligned.shape(), matrices))
    return wrong_shape("the scale or zero point", parameter.shape(), "broadcast to the matrices {}",
                       matrices.to_string());
  std::vector<Number> values(static_cast<size_t>(matrices.element_count()));
  BroadcastInput(aligned, matrices).template read<Number>(0, values);
  return values;
}

// The numbers of a tensor less its zero point, which may differ by row (A) or column (B). A vector is a row or column.
template <class Number>
Result<std::vector<Number>> less_zero_point(const Tensor& tensor, const Tensor* zero_point, bool by_row) {
  const Numbers<Number> numbers(tensor);
  std::vector<Number> values(numbers.span().begin(), numbers.span().end());
  if (zero_point == nullptr) return values;
  Shape matrices = tensor.shape();
  if (matrices.rank() == 1) matrices = by_row ? Shape{1, matrices[0]} : Shape{matrices[0], 1};
  const std::vector<Number> zeros = PX_TRY(spread_over<Number>(*zero_point, matrices, by_row));
  for (size_t index = 0; index < values.size(); ++index) values[index] -= zeros[index];
  return values;
}

// The sums of products of QLinearMatMul: exact for integers.
template <class Number>
Result<std::vector<double>> quantized_sums(const OpContext& op, const MatMulShapes& plan) {
  const auto a = PX_TRY(less_zero_point<Number>(op.input(0), &op.input(2), true));
  const auto b = PX_TRY(less_zero_point<Number>(op.input(3), &op.input(5), false));
  std::vector<double> sums;
  for (const Number sum : multiply<Number>(plan, a, b)) {
    if constexpr (std::is_same_v<Number, uint64_t>)
      sums.push_back(static_cast<double>(static_cast<int64_t>(sum)));
    else
      sums.push_back(sum);
  }
  return sums;
}

Status op_matmul(OpContext& op) {
  const MatMulShapes plan = PX_TRY(plan_matmul(op.input(0).shape(), op.input(1).shape()));
  const DType dtype = op.input(0).dtype();
  return is_floating(dtype) ? matmul<double>(op, plan, dtype) : matmul<uint64_t>(op, plan, dtype);
}

Status op_matmul_integer(OpContext& op) {
  const MatMulShapes plan = PX_TRY(plan_matmul(op.input(0).shape(), op.input(1).shape()));
  const auto a = PX_TRY(less_zero_point<uint64_t>(op.input(0), op.has_input(2) ? &op.input(2) : nullptr, true));
  const auto b = PX_TRY(less_zero_point<uint64_t>(op.input(1), op.has_input(3) ? &op.input(3) : nullptr, false));
  return op.set_output(0, DType::int32, plan.result, std::span<const uint64_t>(multiply<uint64_t>(plan, a, b)));
}

// Real value of a product of quantized matrices, then quantized: round(real / y_scale) + y_zero_point, saturated; to an
// 8-bit float the sum is rounded as Cast does. The parameters of A and Y may differ by row, those of B by column.
Status op_qlinear_matmul(OpContext& op) {
  const MatMulShapes plan = PX_TRY(plan_matmul(op.input(0).shape(), op.input(3).shape()));
  const bool has_floats = is_floating(op.input(0).dtype()) || is_floating(op.input(3).dtype());
  const auto sums = PX_TRY(has_floats ? quantized_sums<double>(op, plan) : quantized_sums<uint64_t>(op, plan));
  std::vector<int64_t> dims(plan.batch.begin(), plan.batch.end());
  dims.insert(dims.end(), {plan.rows, plan.columns});
  const Shape matrices = PX_TRY(Shape::create(dims));
  const auto a_scale = PX_TRY(spread_over<double>(op.input(1), matrices, true));
  const auto b_scale = PX_TRY(spread_over<double>(op.input(4), matrices, false));
  const auto y_scale = PX_TRY(spread_over<double>(op.input(6), matrices, true));
  const auto y_zero = PX_TRY(spread_over<double>(op.input(7), matrices, true));
  const DType dtype = op.input(7).dtype();
  std::vector<int64_t> integers;
  std::vector<double> floats;
  for (size_t index = 0; index < sums.size(); ++index) {
    const double scale = a_scale[index] * b_scale[index] / y_scale[index];
    const double scaled = sums[index] * scale;
    if (is_floating(dtype))
      floats.push_back(scaled + y_zero[index]);
    else
      integers.push_back(quantize_number(scaled, static_cast<int64_t>(y_zero[index]), dtype));
  }
  if (is_floating(dtype)) return op.set_output(0, dtype, plan.result, std::span<const double>(floats));
  return op.set_output(0, dtype, plan.result, std::span<const int64_t>(integers));
}

// Y = alpha * A' * B' + beta * C, each of the three added as written, then rounded once.
template <class Number>
Status gemm(OpContext& op, Number alpha, Number beta) {
  const Shape& shape_a = op.input(0).shape();
  const Shape& shape_b = op.input(1).shape();
  if (shape_a.rank() != 2 || shape_b.rank() != 2) return wrong_input(op, shape_a.rank() != 2 ? 0 : 1, "have rank 2");
  const bool transposes_a = op.int_attribute("transA") != 0, transposes_b = op.int_attribute("transB") != 0;
  const StoredMatrix<Number> a{op.input(0), 0, shape_a[transposes_a ? 1 : 0], shape_a[transposes_a ? 0 : 1],
                               transposes_a};
  const StoredMatrix<Number> b{op.input(1), 0, shape_b[transposes_b ? 1 : 0], shape_b[transposes_b ? 0 : 1],
                               transposes_b};
  if (a.columns != b.rows)
    return wrong_input(op, 1, "have {} rows after transB to be multiplied with A {} after transA", a.columns,
                       shape_a.to_string());
  const Shape shape = PX_TRY(make_shape({a.rows, b.columns}));
  std::vector<Number> results(static_cast<size_t>(shape.element_count()));
  multiply_stored(a, b, [&](const SumsBlock<Number>& sums) {
    for (int64_t row = 0; row < sums.rows; ++row)
      std::ranges::copy(sums.line(row), results.begin() + (sums.row + row) * b.columns + sums.column);
  });
  for (Number& value : results) value *= alpha;
  if (op.has_input(2)) {
    if (!broadcasts_to(op.input(2).shape(), shape))
      return wrong_input(op, 2, "broadcast to the shape of the product, {}", shape.to_string());
    std::vector<Number> bias(results.size());
    BroadcastInput(op.input(2), shape).read<Number>(0, bias);
    for (size_t index = 0; index < results.size(); ++index) results[index] += beta * bias[index];
  }
  return op.set_output(0, op.input(0).dtype(), shape, std::span<const Number>(results));
}

Status op_gemm(OpContext& op) {
  const double alpha = op.float_attribute("alpha");
  const double beta = op.float_attribute("beta");
  if (is_floating(op.input(0).dtype())) return gemm<double>(op, alpha, beta);
  if (alpha != std::trunc(alpha) || beta != std::trunc(beta))
    return unsupported(
        fmt::format("alpha is {} and beta {}; only whole numbers have a function for integers", alpha, beta));
  return gemm<uint64_t>(op, static_cast<uint64_t>(truncate_to_int64(alpha)),
                        static_cast<uint64_t>(truncate_to_int64(beta)));
}

// Until version 6 C is only broadcast where the attribute asks for it.
Status op_gemm_1(OpContext& op) {
  const Shape& c = op.input(2).shape();
  const int64_t rows =
      op.input(0).shape().rank() == 2 ? op.input(0).shape()[op.int_attribute("transA") != 0 ? 1 : 0] : 0;
  const int64_t columns =
      op.input(1).shape().rank() == 2 ? op.input(1).shape()[op.int_attribute("transB") != 0 ? 0 : 1] : 0;
  if (op.int_attribute("broadcast") == 0 && !has_dims(c, {rows, columns})) {
    return wrong_input(op, 2, "be [{},{}], as attribute 'broadcast' is 0", rows, columns);
  }
  return op_gemm(op);
}

constexpr OpRow kMatmulRows[] = {
    {"Gemm", kOnnx, 1, 6, op_gemm_1},
    {"Gemm", kOnnx, 7, 13, op_gemm},
    {"MatMul", kOnnx, 1, 13, op_matmul},
    {"MatMulInteger", kOnnx, 10, 10, op_matmul_integer},
    {"QLinearMatMul", kOnnx, 10, 21, op_qlinear_matmul},
};

}  // namespace

OpRows matmul_rows() { return kMatmulRows; }

}  // namespace parallax::reference
