// SPDX-License-Identifier: Apache-2.0
// Quantized models compared with models in floats: the nodes that quantize and dequantize, and the range of their
// values.
#pragma once

#include <optional>
#include <string_view>

#include "inspector/exec/value_table.h"
#include "inspector/model/ir.h"
#include "inspector/tensor/value.h"

namespace parallax::diff {

// The tensor of an initializer or of a Constant node; null for other values, and where a dump has left it out.
const Tensor* constant_tensor(const Graph& graph, ValueId id);

bool is_quantize(const Node& node);    // QuantizeLinear, DynamicQuantizeLinear
bool is_dequantize(const Node& node);  // DequantizeLinear

// The name of the floats that stored quantized values of this name stand for, as quantizers name them: without its
// suffix "_quantized"; the name itself where it has none.
std::string_view name_of_floats(std::string_view name);

// True for Reshape, Transpose and their like, and Cast: they hand on what they read, in another order, shape or type.
bool moves_elements(const Node& node);

// A Relu, or a Clip whose least number is zero: quantized values that begin at zero do the same.
bool clamps_at_zero(const Graph& graph, const Node& node);

// True where any of its nodes quantizes or dequantizes.
bool has_quantization(const ValueTable& table);

// Counts stored values and inputs that a model dequantizes, and values that it quantizes. A few quantized values in a
// model of floats are a fault.
struct QuantizationCount {
  int64_t quantizers = 0, held = 0;

  void add(const ValueInfo& value_info);
  bool is_quantized() const;
};
bool is_quantized(const ValueTable& table);

// The float that a DequantizeLinear's input was made of by a QuantizeLinear, and moved since; no value where they were
// not.
ValueId float_before_quantization(const Graph& graph, const Node& dequantize);
// The QuantizeLinear that made a DequantizeLinear's input, which may have been moved since.
NodeId quantize_before(const Graph& graph, const Node& dequantize);

// The resolution of a node that quantizes or dequantizes. With several scales the largest step; then the ends are not
// known, and infinite.
struct QuantizedRange {
  double step = 0;
  double typical_step = 0;  // root mean square
  double lowest = 0, highest = 0;
  bool operator==(const QuantizedRange&) const = default;
};
// Nothing where the scale is not held by the graph itself.
std::optional<QuantizedRange> quantized_range_of(const Graph& graph, const Node& node);

// True for DynamicQuantizeLinear and the products of quantized values that are integers: MatMulInteger, ConvInteger.
bool is_dynamic_quantization(const Node& node);
// True where any node of the main graph or a body is one.
bool quantizes_dynamically(const ValueTable& table);

// A product of quantized values, dequantized: Mul(Cast(MatMulInteger(DynamicQuantizeLinear(floats),
// weights)), scale * scale of the weights), or ConvInteger's.
struct DynamicProduct {
  ValueId floats = kNoValue, scale = kNoValue;  // what is quantized while the model runs, and by which scale
  double weight_rms = 0;                        // of the weights as floats
  double weight_step = 0;                       // their step, root mean square over the channels
  double terms = 0;           // products in a sum, of a convolution; 0: the last axis of the floats tells
  NodeId integers = kNoNode;  // the product of quantized values
  NodeId scales = kNoNode;    // the product of the two scales
  ValueId weight_scale = kNoValue;
};
// Nothing where `node` is no such Mul, or the graph does not hold the scales. Weights that a dump's graph has left out
// are taken as of ordinary size.
std::optional<DynamicProduct> dynamic_product_of(const Graph& graph, const Node& node);

// The approximate size of the floats that stored quantized values represent, as their root mean square; 0 where these
// are not available.
double size_of_held_quantized(const Graph& graph, const Node& dequantize);

// `wide`, but for elements a little beyond the quantized range where `held` has its end: saturation of the
// few largest is a part of quantization, while a scale that is too small cuts off more. `wide` itself where there are
// none. `cut_off` is the root mean square of the difference to `wide`.
struct WithinRange {
  Value value;
  double cut_off = 0;
};
WithinRange as_quantized(const Value& wide, const Value& held, const QuantizedRange& range);

}  // namespace parallax::diff
