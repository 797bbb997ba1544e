// SPDX-License-Identifier: Apache-2.0
// com.microsoft's operators on 8-bit tensors, each the operator of ai.onnx between Dequantize and Quantize: QLinearAdd,
// QLinearMul, QLinearWhere, QLinearConcat, QLinearLeakyRelu, QLinearSigmoid, QLinearSoftmax, QLinearReduceMean,
// QLinearAveragePool, QLinearGlobalAveragePool, QLinearConv, NhwcMaxPool, MulInteger.
#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>

#include "inspector/base/thread_pool.h"
#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/int8_lookup_table.h"
#include "runtime/device/cpu/int8_pairs.h"
#include "runtime/device/cpu/weight_cache.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/families.h"
#include "runtime/ops/inner_op.h"
#include "runtime/ops/pointwise/quantized_values.h"

namespace parallax::runtime {
namespace {

using Context = ChainContext;

Status set_quantized(Context& op, const Tensor& y, int64_t scale, int64_t zero_point, DType dtype) {
  Tensor quantized = PX_TRY(quantized_values(op, y, scale, zero_point, dtype));
  op.set_output(0, std::move(quantized));
  return {};
}

// ---- Two operands and more ----

// True where the inputs hold one number each, or are left out.
bool are_single(const Context& op, std::initializer_list<int64_t> inputs) {
  return std::all_of(inputs.begin(), inputs.end(),
                     [&](int64_t input) { return !op.has_input(input) || op.input(input).element_count() == 1; });
}

constexpr bool kOnHost = std::is_same_v<CompiledDevice, Cpu>;

// How a smaller tensor is repeated along a larger one, which is [outer, its elements, inner].
struct Repeated {
  int64_t outer = 1, inner = 1;
};
std::optional<Repeated> repeated_along(const Shape& larger, const Shape& smaller) {
  const int64_t rank = rank_of(larger), missing = rank - rank_of(smaller);
  if (missing < 0) return std::nullopt;
  Repeated repeated{1, larger.element_count()};
  for (int64_t axis = rank - 1, rest = 1; axis >= missing; --axis) {  // up to the first that is not 1, from the last
    if (dim_of(smaller, axis - missing) != 1) {
      repeated.inner = rest;
      break;
    }
    rest *= dim_of(larger, axis);
  }
  const int64_t both = repeated.inner * smaller.element_count();
  repeated.outer = both == 0 ? 0 : larger.element_count() / both;
  int64_t seen = 1;  // of the smaller one, from the last axis
  for (int64_t axis = rank - 1; axis >= missing; --axis) {
    const int64_t own = dim_of(smaller, axis - missing);
    const bool is_between = seen > 1 && seen < smaller.element_count();
    if (own != dim_of(larger, axis) && (own != 1 || is_between)) return std::nullopt;
    seen *= own;
  }
  return repeated;
}

// Combines two quantized tensors on the host where one has the result's shape and the other is broadcast along it in
// runs that are long enough. Returns false where nothing was done.
Result<bool> combine_on_host(Context& op, bool is_product) {
  constexpr int64_t kShortestRun = 16;
  const DType dtype = op.input(0).dtype();
  if (!kOnHost || dtype != op.input(3).dtype() || !are_single(op, {1, 2, 4, 5, 6, 7})) return false;
  const bool a_is_smaller = op.input(0).element_count() < op.input(3).element_count();
  const Tensor& a = op.input(a_is_smaller ? 3 : 0);
  const Tensor& b = op.input(a_is_smaller ? 0 : 3);
  const auto repeated = repeated_along(a.shape(), b.shape());
  if (!repeated.has_value()) return false;
  const bool b_is_one = repeated->inner > 1;
  const int64_t length = b_is_one ? repeated->inner : b.element_count();
  if (length < kShortestRun && length < a.element_count()) return false;
  const auto scale_of = [&](int64_t scale, int64_t zero) -> Result<QuantizedScale> {
    return QuantizedScale{PX_TRY(op.real_of_input(scale)), op.has_input(zero) ? PX_TRY(op.real_of_input(zero)) : 0.0};
  };
  QuantizedPairs pairs{is_product, {}, {}, PX_TRY(scale_of(6, 7)), length, b_is_one};
  pairs.a = PX_TRY(scale_of(a_is_smaller ? 4 : 1, a_is_smaller ? 5 : 2));
  pairs.b = PX_TRY(scale_of(a_is_smaller ? 1 : 4, a_is_smaller ? 2 : 5));
  if (!suits_quantized_pairs(pairs)) return false;
  const MutableView y = PX_TRY(op.make_output(0, dtype, a.shape()));
  if (a.element_count() == 0) return true;
  const std::byte *const left = a.view().data, *const right = b.view().data;
  const auto run = [&](int64_t index) {
    const std::byte* const own = b_is_one ? right + index % b.element_count() : right;
    combine_quantized(pairs, dtype, left + index * length, own, y.data + index * length);
  };
  const int64_t runs = a.element_count() / length;
  if (runs == 1) {
    run(0);
  } else {
    parallel_for(runs, length, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) run(index);
    });
  }
  return true;
}

Status combine(Context& op, std::string_view name) {
  if (PX_TRY(combine_on_host(op, name == "Mul"))) return {};
  const Tensor a = PX_TRY(real_values(op, {0, 1, 2}));
  const Tensor b = PX_TRY(real_values(op, {3, 4, 5}));
  const Tensor y = PX_TRY(inner_binary(op, name, a, b));
  return set_quantized(op, y, 6, 7, op.input(0).dtype());
}
Status add(Context& op) { return combine(op, "Add"); }
Status multiply(Context& op) { return combine(op, "Mul"); }

Status where(Context& op) {
  const Tensor x = PX_TRY(real_values(op, {1, 2, 3}));
  const Tensor y = PX_TRY(real_values(op, {4, 5, 6}));
  const Tensor z = PX_TRY(run_inner(op, {"Where", 16}, {op.value(0), x, y}));
  return set_quantized(op, z, 7, 8, op.input(1).dtype());
}

// From the quantized values of an input to those with a scale and a zero point at these inputs.
struct Recoding {
  QuantizedInput from;
  int64_t scale, zero_point;
  DType to;
};

constexpr int64_t kInt8Values = 256;

// The lookup table of all quantized values, through an operator where there is one.
Result<Int8LookupTable> table_of(Context& op, const Recoding& recoding, const InnerOp* inner) {
  const Tensor all_values = PX_TRY(op.queue().allocate(op.input(recoding.from.values).dtype(), Shape{kInt8Values}));
  for (int64_t value = 0; value < kInt8Values; ++value)
    writable(all_values).data[value] = static_cast<std::byte>(value);
  Tensor real = PX_TRY(real_values(op, all_values, recoding.from));
  if (inner != nullptr) real = PX_TRY(run_inner(op, *inner, {real}));
  const Tensor quantized = PX_TRY(quantized_values(op, real, recoding.scale, recoding.zero_point, recoding.to));
  Int8LookupTable table;
  std::memcpy(table.data(), quantized.view().data, table.size());
  return table;
}

// A part of QLinearConcat as quantized values of the result, looked up.
Result<Tensor> recoded(Context& op, int64_t input, DType to) {
  const Int8LookupTable table = PX_TRY(table_of(op, {{input, input + 1, input + 2}, 0, 1, to}, nullptr));
  const TensorView x = op.input(input).view();
  Tensor part = PX_TRY(op.queue().allocate(to, x.shape));
  look_up_bytes(table, x.element_count(), x.data, writable(part).data);
  return part;
}

// After Y's scale and zero point, three inputs for each tensor.
Status concat(Context& op) {
  const int64_t count = op.input_count();
  if (count < 5 || count % 3 != 2)
    return wrong_value("the number of inputs", count,
                       "be 2 and three for each tensor: itself, its scale, its zero point");
  std::vector<Value> parts;
  const DType dtype = op.input(1).dtype();
  const auto is_of_bytes = [](DType each) { return each == DType::int8 || each == DType::uint8; };
  bool are_quantized = kOnHost && is_of_bytes(dtype) && are_single(op, {0, 1});
  for (int64_t index = 2; index < count; index += 3)
    are_quantized =
        are_quantized && op.has_input(index) && is_of_bytes(op.input(index).dtype()) && are_single(op, {index + 2});
  for (int64_t index = 2; index < count; index += 3) {
    if (!op.has_input(index) || !op.has_input(index + 1))
      return wrong_input(op, op.has_input(index) ? index + 1 : index, "be given: a tensor to be joined, or its scale");
    if (op.input(index + 1).element_count() != 1) return wrong_input(op, index + 1, "be one number: a scale");
    if ((dtype_bit(op.input(index).dtype()) & kInts) == 0)
      return wrong_input(op, index, "be of a quantized type, as it is to be joined");
    Tensor part =
        are_quantized ? PX_TRY(recoded(op, index, dtype)) : PX_TRY(real_values(op, {index, index + 1, index + 2}));
    parts.emplace_back(std::move(part));
  }
  Tensor y = PX_TRY(run_inner(op, {"Concat", 13, {int_attribute("axis", op.integer("axis"))}}, parts));
  if (!are_quantized) return set_quantized(op, y, 0, 1, dtype);
  op.set_output(0, std::move(y));
  return {};
}

Status multiply_integers(Context& op) {
  const Tensor a = PX_TRY(real_values(op, {0, -1, 1}));
  const Tensor b = PX_TRY(real_values(op, {2, -1, 3}));
  const Tensor product = PX_TRY(inner_binary(op, "Mul", a, b));
  Tensor y = PX_TRY(inner_cast(op, product, DType::int32));
  op.set_output(0, std::move(y));
  return {};
}

// ---- One operand: X, its scale and zero point, those of Y ----

constexpr std::initializer_list<int64_t> kParameters = {1, 2, 3, 4};  // inputs

struct KeptTable {
  bool is_made = false;
  Int8LookupTable table;
};

// The table of an operator, made once where scales and zero points never change. `parameter` is what the inner operator
// has besides its input.
template <class Device>
Result<Int8LookupTable> kept_table(OpContext<Device>& op, const Recoding& recoding, const InnerOp& inner,
                                   float parameter) {
  if constexpr (std::is_same_v<Device, Cpu>) {
    CacheKey key("quantized table");
    key.add_all(inner.op).add(parameter).add(recoding.to);
    for (const int64_t input : kParameters) key.add(op.has_input(input) ? op.input(input).view().data : nullptr);
    const auto kept =
        op.queue().weights().template get<KeptTable>(key.text(), [] { return std::make_shared<KeptTable>(); });
    if (!kept->is_made) {
      *kept = {true, PX_TRY(table_of(op, recoding, &inner))};
      op.queue().weights().add_bytes(kInt8Values);
    }
    return kept->table;
  }
  return table_of(op, recoding, &inner);
}

Status through(Context& op, const InnerOp& inner) {
  const Tensor x = PX_TRY(real_values(op, {0, 1, 2}));
  const Tensor y = PX_TRY(run_inner(op, inner, {x}));
  return set_quantized(op, y, 3, 4, op.input(0).dtype());
}

// An operator whose results depend on one quantized value each: on the host they are looked up, unless a table would
// hold more of them than are asked for and serve this call alone.
Status pointwise(Context& op, const InnerOp& inner, float parameter = 0) {
  const Tensor& x = op.input(0);
  const bool is_kept = std::all_of(kParameters.begin(), kParameters.end(),
                                   [&](int64_t input) { return !op.has_input(input) || op.is_constant(input); });
  if (!kOnHost || !are_single(op, kParameters) || (!is_kept && x.element_count() < kInt8Values))
    return through(op, inner);
  const Recoding recoding{{0, 1, 2}, 3, 4, x.dtype()};
  const Int8LookupTable table =
      PX_TRY(is_kept ? kept_table(op, recoding, inner, parameter) : table_of(op, recoding, &inner));
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  look_up_bytes(table, x.element_count(), x.view().data, y.data);
  return {};
}

Status leaky_relu(Context& op) {
  const double alpha = op.real("alpha");
  return pointwise(op, {"LeakyRelu", 16, {float_attribute("alpha", alpha)}}, static_cast<float>(alpha));
}
Status sigmoid(Context& op) { return pointwise(op, {"Sigmoid", 13}); }
Status softmax(Context& op) {
  if (op.integer("opset") < 1) return wrong_attribute("opset", op.integer("opset"), "be 1 or more");
  return through(op, {"Softmax", op.integer("opset"), {int_attribute("axis", op.integer("axis"))}});
}
Status reduce_mean(Context& op) { return through(op, {"ReduceMean", 13, passed_on(op, {"axes", "keepdims"})}); }

// ---- Windows, whose channels may come last ----

std::vector<int64_t> channels_first(int64_t rank) {
  std::vector<int64_t> order{0, rank - 1};
  for (int64_t axis = 1; axis + 1 < rank; ++axis) order.push_back(axis);
  return order;
}
std::vector<int64_t> channels_last(int64_t rank) {
  std::vector<int64_t> order{0};
  for (int64_t axis = 2; axis < rank; ++axis) order.push_back(axis);
  order.push_back(1);
  return order;
}

// The operator on x with its channels second.
Result<Tensor> windowed(Context& op, bool last, const InnerOp& inner, Tensor x, std::vector<Value> more = {}) {
  const int64_t rank = rank_of(x.shape());
  if (rank < 3) return wrong_shape("X", x.shape(), "have rank 3 or more");
  if (last) x = PX_TRY(inner_transpose(op, x, channels_first(rank)));
  std::vector<Value> inputs{std::move(x)};
  inputs.insert(inputs.end(), more.begin(), more.end());
  Tensor y = PX_TRY(run_inner(op, inner, inputs));
  if (last) y = PX_TRY(inner_transpose(op, y, channels_last(rank)));
  return y;
}

Status pooled(Context& op, const InnerOp& inner) {
  Tensor x = PX_TRY(real_values(op, {0, 1, 2}));
  const Tensor y = PX_TRY(windowed(op, op.integer("channels_last") != 0, inner, std::move(x)));
  return set_quantized(op, y, 3, 4, op.input(0).dtype());
}

Status average_pool(Context& op) {
  return pooled(op, {"AveragePool", 11,
                     passed_on(op, {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"})});
}
Status global_average_pool(Context& op) { return pooled(op, {"GlobalAveragePool", 1}); }

Status max_pool(Context& op) {
  const InnerOp inner{"MaxPool", 12,
                      passed_on(op, {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"})};
  Tensor y = PX_TRY(windowed(op, true, inner, op.input(0)));
  op.set_output(0, std::move(y));
  return {};
}

Status convolution(Context& op) {
  const InnerOp inner{"QLinearConv", 10,
                      passed_on(op, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"})};
  std::vector<Value> more;
  for (int64_t index = 1; index < op.input_count(); ++index) more.push_back(value_or_none(op, index));
  Tensor y = PX_TRY(windowed(op, op.integer("channels_last") != 0, inner, op.input(0), std::move(more)));
  op.set_output(0, std::move(y));
  return {};
}

// ---- Those of ai.onnx with the same meaning ----

Status quantize(Context& op) {
  std::vector<Value> inputs{op.value(0), op.value(1)};
  if (op.has_input(2)) inputs.push_back(op.value(2));
  Tensor y = PX_TRY(run_inner(op, {"QuantizeLinear", 21, passed_on(op, {"axis", "block_size"})}, inputs));
  op.set_output(0, std::move(y));
  return {};
}
Status dequantize(Context& op) {
  std::vector<Value> inputs{op.value(0), op.value(1)};
  if (op.has_input(2)) inputs.push_back(op.value(2));
  Tensor y = PX_TRY(run_inner(op, {"DequantizeLinear", 21, passed_on(op, {"axis", "block_size"})}, inputs));
  op.set_output(0, std::move(y));
  return {};
}

constexpr KernelRow<CompiledDevice> kContribQuantizedRows[] = {
    contributed_row("DequantizeLinear", kAnyTensor, dequantize),
    contributed_row("MulInteger", kBytes, multiply_integers),
    contributed_row("NhwcMaxPool", kBytes, max_pool),
    reads_on_host({6, 7}, contributed_row("QLinearAdd", kBytes, add)),
    reads_on_host({3, 4}, contributed_row("QLinearAveragePool", kBytes, average_pool)),
    reads_on_host({0, 1}, contributed_row("QLinearConcat", kAnyTensor, concat)),
    contributed_row("QLinearConv", kBytes, convolution),
    reads_on_host({3, 4}, contributed_row("QLinearGlobalAveragePool", kBytes, global_average_pool)),
    reads_on_host({3, 4}, contributed_row("QLinearLeakyRelu", kBytes, leaky_relu)),
    reads_on_host({6, 7}, contributed_row("QLinearMul", kBytes, multiply)),
    reads_on_host({3, 4}, contributed_row("QLinearReduceMean", kBytes, reduce_mean)),
    reads_on_host({3, 4}, contributed_row("QLinearSigmoid", kBytes, sigmoid)),
    reads_on_host({3, 4}, contributed_row("QLinearSoftmax", kBytes, softmax)),
    reads_on_host({7, 8}, contributed_row("QLinearWhere", kBool, where)),
    contributed_row("QuantizeLinear", kFloats, quantize),
};

}  // namespace

template <>
Rows<CompiledDevice> contrib_quantized_rows() {
  return kContribQuantizedRows;
}

}  // namespace parallax::runtime
