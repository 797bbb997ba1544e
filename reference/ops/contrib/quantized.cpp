// SPDX-License-Identifier: Apache-2.0
// com.microsoft's operators on 8-bit tensors: QLinearAdd, QLinearMul, QLinearWhere, QLinearConcat, QLinearLeakyRelu,
// QLinearSigmoid, QLinearSoftmax, QLinearAveragePool, QLinearGlobalAveragePool, QLinearReduceMean, QLinearConv,
// MulInteger, NhwcMaxPool. Each is, as its page says, the operator of ai.onnx between Dequantize and Quantize.
#include "reference/ops/contrib/quantized.h"

#include <cmath>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "reference/ops/contrib/shared.h"
#include "reference/ops/families.h"
#include "reference/ops/inner_op.h"
#include "reference/ops/map.h"
#include "reference/ops/quantized.h"

namespace parallax::reference {
namespace {

// One number, or one for each slice of the last axis: which of them belongs to element `at`.
Result<int64_t> period_of(const Shape& shape, const Tensor& parameters) {
  const int64_t count = parameters.element_count();
  if (count == 1) return 1;
  if (shape.rank() > 0 && count == shape[shape.rank() - 1]) return count;
  return wrong_value("the number of scales or zero points", count, "be 1 or the size of the last axis of {}",
                     shape.to_string());
}

std::vector<Attribute> pool_attributes(const OpContext& op, std::initializer_list<std::string_view> names) {
  std::vector<Attribute> attributes;
  for (std::string_view name : names) {
    if (const Attribute* attribute = find_attribute(op.node(), name)) attributes.push_back(*attribute);
  }
  return attributes;
}

// The operator on an input with its channels second, wherever they are in this node.
Result<Tensor> with_channels_first(const OpContext& op, bool last, const InnerOp& inner, const Tensor& x,
                                   std::vector<Value> more = {}) {
  const size_t rank = x.shape().rank();
  if (rank < 3) return wrong_shape("X", x.shape(), "have rank 3 or more");
  std::vector<Value> inputs{last ? PX_TRY(transpose(op, x, channels_first(rank))) : x};
  inputs.insert(inputs.end(), more.begin(), more.end());
  const Tensor y = PX_TRY(run_inner(op, inner, std::move(inputs)));
  return last ? PX_TRY(transpose(op, y, channels_last(rank))) : y;
}

// f(X) for the operators with one input at 0, its scale and zero point at 1 and 2, those of Y at 3 and 4.
template <class F>
Status map_quantized(OpContext& op, const F& f) {
  Tensor x = PX_TRY(dequantize(op, {0, 1, 2}));
  return set_quantized(op, PX_TRY(f(std::move(x))), 3, 4, op.input(0).dtype());
}

Status combine(OpContext& op, const char* name) {
  const Tensor a = PX_TRY(dequantize(op, {0, 1, 2}));
  const Tensor b = PX_TRY(dequantize(op, {3, 4, 5}));
  return set_quantized(op, PX_TRY(run_inner(op, {name, 13}, {a, b})), 6, 7, op.input(0).dtype());
}

// ContribOperators.md, com.microsoft.QLinearAdd, QLinearMul.
Status op_contrib_qlinear_add(OpContext& op) { return combine(op, "Add"); }
Status op_contrib_qlinear_mul(OpContext& op) { return combine(op, "Mul"); }

// com.microsoft.QLinearWhere
Status op_contrib_qlinear_where(OpContext& op) {
  const Tensor x = PX_TRY(dequantize(op, {1, 2, 3}));
  const Tensor y = PX_TRY(dequantize(op, {4, 5, 6}));
  const Tensor z = PX_TRY(run_inner(op, {"Where", 13}, {op.value(0), x, y}));
  return set_quantized(op, z, 7, 8, op.input(1).dtype());
}

// com.microsoft.QLinearConcat: after Y's scale and zero point, three inputs for each tensor.
Status op_contrib_qlinear_concat(OpContext& op) {
  std::vector<Value> parts;
  if (op.input_count() < 5 || op.input_count() % 3 != 2)
    return invalid_model(
        fmt::format("it has {} inputs; it must have 2 and three for each tensor: itself, its scale, its zero point",
                    op.input_count()));
  for (size_t index = 2; index < op.input_count(); index += 3) {
    if (!op.has_input(index) || !op.has_input(index + 1))
      return wrong_input(op, op.has_input(index) ? index + 1 : index, "be given: a tensor to be joined, or its scale");
    if (op.input(index + 1).element_count() != 1) return wrong_input(op, index + 1, "be one number: a scale");
    if (!is_integer(op.input(index).dtype()))
      return wrong_input(op, index, "be of a quantized type, as it is to be joined");
    parts.emplace_back(PX_TRY(dequantize(op, {index, index + 1, index + 2})));
  }
  const InnerOp concat{"Concat", 13, {int_attribute("axis", op.int_attribute("axis"))}};
  return set_quantized(op, PX_TRY(run_inner(op, concat, std::move(parts))), 0, 1, op.input(1).dtype());
}

// com.microsoft.QLinearLeakyRelu
Status op_contrib_qlinear_leaky_relu(OpContext& op) {
  const double alpha = op.float_attribute("alpha");
  return map_quantized(op, [&](Tensor x) -> Result<Tensor> {
    for (double& value : x.mutable_as<double>()) value = value < 0 ? alpha * value : value;
    return x;
  });
}

// com.microsoft.QLinearSigmoid
Status op_contrib_qlinear_sigmoid(OpContext& op) {
  return map_quantized(op, [](Tensor x) -> Result<Tensor> {
    for (double& value : x.mutable_as<double>()) value = sigmoid(value);
    return x;
  });
}

// com.microsoft.QLinearSoftmax: Softmax as operator set `opset` of ai.onnx has it.
Status op_contrib_qlinear_softmax(OpContext& op) {
  const InnerOp softmax{"Softmax", op.int_attribute("opset"), {int_attribute("axis", op.int_attribute("axis"))}};
  return map_quantized(op, [&](Tensor x) { return run_inner(op, softmax, {std::move(x)}); });
}

// com.microsoft.QLinearReduceMean
Status op_contrib_qlinear_reduce_mean(OpContext& op) {
  const InnerOp mean{"ReduceMean", 13, pool_attributes(op, {"axes", "keepdims"})};
  return map_quantized(op, [&](Tensor x) { return run_inner(op, mean, {std::move(x)}); });
}

// com.microsoft.QLinearAveragePool
Status op_contrib_qlinear_average_pool(OpContext& op) {
  const bool last = op.int_attribute("channels_last") != 0;
  const InnerOp pool{
      "AveragePool", 11,
      pool_attributes(op, {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"})};
  return map_quantized(op, [&](const Tensor& x) { return with_channels_first(op, last, pool, x); });
}

// com.microsoft.QLinearGlobalAveragePool
Status op_contrib_qlinear_global_average_pool(OpContext& op) {
  const bool last = op.int_attribute("channels_last") != 0;
  return map_quantized(op, [&](const Tensor& x) {
    return with_channels_first(op, last, {"GlobalAveragePool", 13}, x);
  });
}

// com.microsoft.QLinearConv: that of ai.onnx, with its channels last on request.
Status op_contrib_qlinear_conv(OpContext& op) {
  const bool last = op.int_attribute("channels_last") != 0;
  const InnerOp conv{"QLinearConv", 10,
                     pool_attributes(op, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"})};
  std::vector<Value> more;
  for (size_t index = 1; index < op.input_count(); ++index) more.push_back(op.value(index));
  return op.set_output(0, PX_TRY(with_channels_first(op, last, conv, op.input(0), std::move(more))));
}

// com.microsoft.NhwcMaxPool
Status op_contrib_nhwc_max_pool(OpContext& op) {
  const InnerOp pool{"MaxPool", 12,
                     pool_attributes(op, {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"})};
  return op.set_output(0, PX_TRY(with_channels_first(op, true, pool, op.input(0))));
}

// com.microsoft.MulInteger: (A - A_zero_point) * (B - B_zero_point).
Status op_contrib_mul_integer(OpContext& op) {
  const Tensor a = PX_TRY(less_zero_point(op, 0, 1));
  const Tensor b = PX_TRY(less_zero_point(op, 2, 3));
  const Tensor product = PX_TRY(run_inner(op, {"Mul", 13}, {a, b}));
  std::vector<int64_t> results;
  const Numbers<double> numbers(product);
  for (double value : numbers.span()) results.push_back(static_cast<int64_t>(value));
  return op.set_output(0, DType::int32, product.shape(), std::span<const int64_t>(results));
}

constexpr OpRow kContribQuantizedRows[] = {
    {"MulInteger", kMicrosoft, 1, 1, op_contrib_mul_integer},
    {"NhwcMaxPool", kMicrosoft, 1, 1, op_contrib_nhwc_max_pool},
    {"QLinearAdd", kMicrosoft, 1, 1, op_contrib_qlinear_add},
    {"QLinearAveragePool", kMicrosoft, 1, 1, op_contrib_qlinear_average_pool},
    {"QLinearConcat", kMicrosoft, 1, 1, op_contrib_qlinear_concat},
    {"QLinearConv", kMicrosoft, 1, 1, op_contrib_qlinear_conv},
    {"QLinearGlobalAveragePool", kMicrosoft, 1, 1, op_contrib_qlinear_global_average_pool},
    {"QLinearLeakyRelu", kMicrosoft, 1, 1, op_contrib_qlinear_leaky_relu},
    {"QLinearMul", kMicrosoft, 1, 1, op_contrib_qlinear_mul},
    {"QLinearReduceMean", kMicrosoft, 1, 1, op_contrib_qlinear_reduce_mean},
    {"QLinearSigmoid", kMicrosoft, 1, 1, op_contrib_qlinear_sigmoid},
    {"QLinearSoftmax", kMicrosoft, 1, 1, op_contrib_qlinear_softmax},
    {"QLinearWhere", kMicrosoft, 1, 1, op_contrib_qlinear_where},
};

}  // namespace

Result<Tensor> less_zero_point(const OpContext& op, size_t values, size_t zero_point) {
  const Tensor& x = op.input(values);
  Tensor result = PX_TRY(Tensor::allocate(DType::float64, x.shape()));
  const auto numbers = result.mutable_as<double>();
  load_doubles(x, 0, numbers);
  if (!op.has_input(zero_point)) return result;
  const int64_t period = PX_TRY(period_of(x.shape(), op.input(zero_point)));
  const Numbers<double> zeros(op.input(zero_point));
  for (size_t at = 0; at < numbers.size(); ++at) numbers[at] -= zeros[static_cast<int64_t>(at) % period];
  return result;
}

Result<Tensor> dequantize(const OpContext& op, const QuantizedInput& input) {
  Tensor result = PX_TRY(less_zero_point(op, input.values, input.zero_point));
  const int64_t period = PX_TRY(period_of(result.shape(), op.input(input.scale)));
  const Numbers<double> scales(op.input(input.scale));
  const auto numbers = result.mutable_as<double>();
  for (size_t at = 0; at < numbers.size(); ++at) numbers[at] *= scales[static_cast<int64_t>(at) % period];
  return result;
}

Status set_quantized(OpContext& op, const Tensor& y, size_t scale, size_t zero_point, DType dtype) {
  const double step = PX_TRY(op.double_of_input(scale));
  const int64_t zero = op.has_input(zero_point) ? PX_TRY(op.int64_of_input(zero_point)) : 0;
  std::vector<int64_t> results;
  results.reserve(static_cast<size_t>(y.element_count()));
  const Numbers<double> numbers(y);
  for (double value : numbers.span()) results.push_back(quantize_number(value / step, zero, dtype));
  return op.set_output(0, dtype, y.shape(), std::span<const int64_t>(results));
}

OpRows contrib_quantized_rows() { return kContribQuantizedRows; }

}  // namespace parallax::reference
