// SPDX-License-Identifier: Apache-2.0
// Says in what two definitions differ.
#include "inspector/diff/localize_models/blame_models_explain.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspector/diff/localize_models/blame_models_quantized.h"
#include "inspector/diff/matching/definition_distance.h"
#include "inspector/diff/matching/matching_attributes.h"
#include "inspector/model/opset/op_schema.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

struct TextOf {
  std::string operator()(float value) const { return fmt::format("{:.7g}", value); }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string& value) const { return fmt::format("'{}'", value); }
  std::string operator()(const std::vector<float>& values) const {
    return fmt::format("[{:.7g}]", fmt::join(values, ","));
  }
  std::string operator()(const std::vector<int64_t>& values) const {
    return fmt::format("[{}]", fmt::join(values, ","));
  }
  std::string operator()(const std::vector<std::string>& values) const {
    return fmt::format("[{}]", fmt::join(values, ","));
  }
  template <class T>
  std::string operator()(const T&) const {
    return "another";
  }
};

// The value in effect; empty where the node gives none and the operator has no default.
std::string value_text(const Node& node, const std::string& name) {
  if (const Attribute* attribute = find_attribute(node, name); attribute != nullptr)
    return std::visit(TextOf{}, attribute->value);
  const AttributeSchema* schema = node.schema == nullptr ? nullptr : node.schema->attribute(name);
  return schema == nullptr ? "" : to_string(schema->default_value);
}

std::string text_of(const Node& node, const std::string& name) {
  const std::string value = value_text(node, name);
  if (value.empty()) return "not given";
  return find_attribute(node, name) != nullptr ? value : value + " (the default)";
}

// The node with one attribute alone, so that its meaning can be compared.
HashKey hash_alone(const LocatedNode& placed, const std::string& name) {
  Node alone = placed.node();
  std::erase_if(alone.attributes, [&](const Attribute& attribute) { return attribute.name != name; });
  return hash_attributes(*placed.location->graph, alone);
}

bool are_of_two_versions(const Node& a, const Node& b) {
  return a.schema != nullptr && b.schema != nullptr && a.schema->since_version != b.schema->since_version;
}

// "Softmax-13".
std::string version_of(const Node& node) { return fmt::format("{}-{}", node.op_type, node.schema->since_version); }

// Two versions of an operator may have two defaults: then what counts is the value in effect.
bool has_other_value(const LocatedNode& a, const LocatedNode& b, const std::string& name) {
  if (!are_of_two_versions(a.node(), b.node())) return hash_alone(a, name) != hash_alone(b, name);
  const bool is_given_in_a = find_attribute(a.node(), name) != nullptr;
  const bool is_given_in_b = find_attribute(b.node(), name) != nullptr;
  if (is_given_in_a && is_given_in_b && hash_alone(a, name) == hash_alone(b, name)) return false;
  const bool is_known = (is_given_in_a || a.node().schema->attribute(name) != nullptr) &&
                        (is_given_in_b || b.node().schema->attribute(name) != nullptr);
  return is_known && value_text(a.node(), name) != value_text(b.node(), name);
}

std::string attribute_difference(const LocatedNode& a, const LocatedNode& b) {
  std::vector<std::string> names;
  const auto add = [&](std::string_view name) {
    if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
  };
  for (const LocatedNode* placed : {&a, &b}) {
    for (const Attribute& attribute : placed->node().attributes) add(attribute.name);
  }
  const bool are_two_versions = are_of_two_versions(a.node(), b.node());
  if (are_two_versions) {
    for (const AttributeSchema& schema : b.node().schema->attributes) add(schema.name);
  }
  for (const std::string& name : names) {
    if (!has_other_value(a, b, name)) continue;
    const std::string versions = are_two_versions ? fmt::format(": the nodes are {} in B and {} in A",
                                                                version_of(b.node()), version_of(a.node()))
                                                  : "";
    return fmt::format("attribute {} is {} in B and {} in A{}", name, text_of(b.node(), name), text_of(a.node(), name),
                       versions);
  }
  return {};
}

// Elements of either may have been stored in half precision, now or before they were cast.
bool is_transposed(const Tensor& a, const Tensor& b) {
  if (a.shape().rank() != 2 || b.shape().rank() != 2) return false;
  const int64_t rows = a.shape()[0], columns = a.shape()[1];
  if (rows < 2 || columns < 2 || b.shape()[0] != columns || b.shape()[1] != rows) return false;
  const bool are_floats = is_floating(a.dtype()) && is_floating(b.dtype());
  const DType stored = are_floats ? narrower(narrower(a.dtype(), b.dtype()), DType::float16) : DType::undefined;
  const auto is_same = [&](double x, double y) { return x == y || (are_floats && differ_by_storing(x, y, stored)); };
  bool is_as_it_was = a.shape() == b.shape();
  for (int64_t element = 0; element < a.element_count(); ++element) {
    const int64_t mirrored = (element % columns) * rows + element / columns;
    const double x = element_as_double(a, element);
    if (!is_same(x, element_as_double(b, mirrored))) return false;
    is_as_it_was = is_as_it_was && is_same(x, element_as_double(b, element));
  }
  return !is_as_it_was;
}

// b = factor * a, within the rounding of floats, or of half precision that they are stored in.
std::optional<double> factor_between(const Tensor& a, const Tensor& b) {
  double ab = 0, aa = 0;
  for (int64_t element = 0; element < a.element_count(); ++element) {
    const double x = element_as_double(a, element);
    ab += x * element_as_double(b, element);
    aa += x * x;
  }
  if (aa == 0 || !std::isfinite(ab / aa)) return std::nullopt;
  const bool are_stored_differently = is_floating(a.dtype()) && is_floating(b.dtype()) && a.dtype() != b.dtype();
  const double margin = are_stored_differently ? float_limits(narrower(a.dtype(), b.dtype())).epsilon : 1e-6;
  const double factor = ab / aa;
  for (int64_t element = 0; element < a.element_count(); ++element) {
    const double x = element_as_double(a, element) * factor;
    if (std::abs(x - element_as_double(b, element)) > margin * std::abs(x)) return std::nullopt;
  }
  return factor;
}

std::string shown(const std::string& text) {
  constexpr size_t kMostShown = 40;
  const auto is_continued = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; };  // UTF-8
  size_t end = std::min(text.size(), kMostShown);
  while (end > 0 && end < text.size() && is_continued(end)) --end;
  return fmt::format("'{}{}'", text.substr(0, end), end < text.size() ? "..." : "");
}

std::string shape_difference(const Tensor& a, const Tensor& b) {
  return fmt::format("its shape is {} in B and {} in A", b.shape().to_string(), a.shape().to_string());
}

// "element [1] is ", of several; "it is " of one alone.
std::string which_element(const Tensor& tensor, int64_t element) {
  if (tensor.element_count() == 1) return "it is ";
  return fmt::format("element [{}] is ", fmt::join(tensor.shape().index_of(element), ","));
}

std::string difference_of_texts(const Tensor& a, const Tensor& b) {
  if (a.element_count() != b.element_count()) return shape_difference(a, b);
  const std::span<const std::string> in_a = a.as<std::string>(), in_b = b.as<std::string>();
  int64_t count = 0, first = -1;
  for (size_t element = 0; element < in_a.size(); ++element) {
    if (in_a[element] == in_b[element]) continue;
    if (count++ == 0) first = static_cast<int64_t>(element);
  }
  if (count == 0) return {};
  const auto location = static_cast<size_t>(first);
  const std::string element =
      fmt::format("{}{} in B and {} in A", which_element(a, first), shown(in_b[location]), shown(in_a[location]));
  return count == 1 ? element : fmt::format("{} of {} elements differ; {}", count, in_a.size(), element);
}

struct ConstantDifference {
  std::string text;  // empty where there is none
  double size = -1;
};

ConstantDifference constant_difference(const ModelSide& a, int32_t in_a, const ModelSide& b, int32_t in_b) {
  if (in_a < 0 || in_b < 0 || !a.follows_from_constants(in_a) || !b.follows_from_constants(in_b)) return {};
  const Value value_a = a.constant(in_a), value_b = b.constant(in_b);
  if (!value_a.is_tensor() || !value_b.is_tensor() || differ_by_rounding(value_a.tensor(), value_b.tensor())) return {};
  if (are_within_steps(a, in_a, b, in_b)) return {};
  const DType type_a = value_a.tensor().dtype(), type_b = value_b.tensor().dtype();
  const bool are_stored_anew = type_a != type_b && is_floating(type_a) && is_floating(type_b);
  if (are_stored_anew && differ_by_storing(value_a.tensor(), value_b.tensor(), narrower(type_a, type_b))) return {};
  const std::string text = difference_of_constants(value_a.tensor(), value_b.tensor());
  if (text.empty()) return {};
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool are_like = value_a.tensor().shape() == value_b.tensor().shape();
  const double size = are_like ? relative_distance(value_a, value_b, {}).relative_rms : kInfinity;
  return {fmt::format("it reads another constant '{}': {}", a.value_info(in_a).name, text), size};
}

bool is_all_zeros(const Value& value) {
  if (!value.is_tensor() || !is_floating(value.tensor().dtype())) return false;
  for (int64_t index = 0; index < value.tensor().element_count(); ++index) {
    if (element_as_double(value.tensor(), index) != 0) return false;
  }
  return true;
}

// An operand that one of the two has and the other has left out, not counting zeros: a bias, say.
std::string missing_operand(const ModelSide& a, const LocatedNode& node_a, const ModelSide& b,
                            const LocatedNode& node_b) {
  const auto read = [](const LocatedNode& node, size_t port) {
    const std::vector<ValueId>& inputs = node.node().inputs;
    return port < inputs.size() ? ModelSide::value_info_read(*node.location, inputs[port]) : -1;
  };
  for (size_t port = 0; port < std::max(node_a.node().inputs.size(), node_b.node().inputs.size()); ++port) {
    const int32_t in_a = read(node_a, port), in_b = read(node_b, port);
    if ((in_a < 0) == (in_b < 0)) continue;
    const ModelSide& side = in_b < 0 ? a : b;
    const int32_t held = in_b < 0 ? in_a : in_b;
    if (side.follows_from_constants(held) && is_all_zeros(side.constant(held))) continue;
    const OpSchema* schema = node_a.node().schema;
    const FormalParameter* parameter = schema == nullptr ? nullptr : schema->input(port);
    const std::string name = parameter == nullptr ? "" : fmt::format(" ({})", parameter->name);
    return in_b < 0
               ? fmt::format("it has no input {}{} in B, and reads '{}' there in A", port, name,
                             a.value_info(in_a).name)
               : fmt::format("it has an input {}{} in B, '{}', and none in A", port, name, b.value_info(in_b).name);
  }
  return {};
}

// A constant and a value that were exchanged.
bool has_crossed_constant(const ModelSide& a, const LocatedNode& node_a, const ModelSide& b,
                          const LocatedNode& node_b) {
  const size_t count = node_a.node().inputs.size();
  if (count != node_b.node().inputs.size() || commutes(node_a.node())) return false;
  bool is_moved_away = false, is_moved_here = false;
  for (size_t port = 0; port < count; ++port) {
    const bool in_a = a.reads_constant(node_a, port), in_b = b.reads_constant(node_b, port);
    is_moved_away = is_moved_away || (in_a && !in_b);
    is_moved_here = is_moved_here || (in_b && !in_a);
  }
  return is_moved_away && is_moved_here;
}

// A constant that the two read in either position of an operator that commutes.
bool reads_constant_crosswise(const ModelSide& a, const LocatedNode& node_a, const ModelSide& b,
                              const LocatedNode& node_b) {
  if (node_a.node().inputs.size() != 2 || node_b.node().inputs.size() != 2 || !commutes(node_a.node())) return false;
  const bool first_a = a.reads_constant(node_a, 0), second_a = a.reads_constant(node_a, 1);
  return first_a != second_a && first_a == b.reads_constant(node_b, 1) && second_a == b.reads_constant(node_b, 0);
}

}  // namespace

std::string difference_of_constants(const Tensor& a, const Tensor& b) {
  if (a.dtype() == DType::string && b.dtype() == DType::string) return difference_of_texts(a, b);
  if (a.dtype() == DType::string || b.dtype() == DType::string || is_complex(a.dtype()) || is_complex(b.dtype()))
    return {};
  // Quantized values are not comparable with the numbers that they represent.
  const auto are_quantized = [](const Tensor& x, const Tensor& y) {
    return is_integer(x.dtype()) && is_floating(y.dtype());
  };
  if (are_quantized(a, b) || are_quantized(b, a))
    return fmt::format("it is of type {} in B and {} in A", name_of(b.dtype()), name_of(a.dtype()));
  if (is_transposed(a, b) && !(a.shape() == b.shape())) return "it is transposed in B";
  if (a.element_count() != b.element_count()) return shape_difference(a, b);
  // Doubles that are stored as floats; storage in half precision is reported where nothing else is: it may be
  // observable.
  const bool are_stored_differently = is_floating(a.dtype()) && is_floating(b.dtype()) && a.dtype() != b.dtype();
  const DType stored = are_stored_differently ? narrower(a.dtype(), b.dtype()) : DType::undefined;
  const bool passes_over = are_stored_differently && (stored == DType::float32 || !differ_by_storing(a, b, stored));
  int64_t count = 0, worst = -1;
  double largest = 0;
  bool is_zero = true;
  for (int64_t element = 0; element < a.element_count(); ++element) {
    const double x = element_as_double(a, element), y = element_as_double(b, element);
    is_zero = is_zero && y == 0;
    if (x == y || (std::isnan(x) && std::isnan(y)) || (passes_over && differ_by_storing(x, y, stored))) continue;
    ++count;
    const double distance = std::isfinite(x - y) ? std::abs(x - y) : std::numeric_limits<double>::infinity();
    if (worst >= 0 && distance <= largest) continue;
    worst = element;
    largest = distance;
  }
  if (count == 0) return {};
  if (is_transposed(a, b)) return "it is transposed in B";
  const auto reported = [worst](const TensorView& view) {
    return is_integer(view.dtype) ? element_to_string(view, worst)
                                  : fmt::format("{:.7g}", element_as_double(view, worst));
  };
  std::string element = fmt::format("{}{} in B and {} in A", which_element(a, worst), reported(b), reported(a));
  if (count == 1 || a.element_count() == 1) return element;
  if (is_zero) return "it is all zeros in B";
  if (const auto factor = factor_between(a, b); factor.has_value() && fmt::format("{:.6g}", *factor) != "1")
    return fmt::format("it is {:.6g} times A's in B", *factor);
  return fmt::format("{} of {} elements differ; {}", count, a.element_count(), element);
}

std::string difference_text(const Value& a, const Value& b) {
  if (!a.is_tensor() || !b.is_tensor()) return {};
  const std::string difference = difference_of_constants(a.tensor(), b.tensor());
  return difference.empty() ? difference : ": " + difference;
}

// In half precision each differs a little.
std::string constants_difference(const ModelSide& a, const LocatedNode& node_a, const ModelSide& b,
                                 const LocatedNode& node_b) {
  const std::vector<ValueId>& in_a = node_a.node().inputs;
  std::vector<ValueId> in_b = node_b.node().inputs;
  if (reads_constant_crosswise(a, node_a, b, node_b)) std::ranges::reverse(in_b);
  ConstantDifference furthest;
  for (size_t port = 0; port < std::min(in_a.size(), in_b.size()); ++port) {
    ConstantDifference found = constant_difference(a, ModelSide::value_info_read(*node_a.location, in_a[port]), b,
                                                   ModelSide::value_info_read(*node_b.location, in_b[port]));
    if (!found.text.empty() && found.size > furthest.size) furthest = std::move(found);
  }
  return furthest.text;
}

std::string definition_difference(const ModelSide& a, const LocatedNode& node_a, const ModelSide& b,
                                  const LocatedNode& node_b) {
  const Node &in_a = node_a.node(), &in_b = node_b.node();
  if (hash_operator(in_a) != hash_operator(in_b))
    return fmt::format("the operator is {} in B and {} in A", in_b.op_type, in_a.op_type);
  if (std::string text = missing_operand(a, node_a, b, node_b); !text.empty()) return text;
  if (std::string text = attribute_difference(node_a, node_b); !text.empty()) return text;
  if (std::string text = constants_difference(a, node_a, b, node_b); !text.empty()) return text;
  return has_crossed_constant(a, node_a, b, node_b) ? "the operands are swapped in B" : "";
}

std::string version_difference(const Node& node_a, const Node& node_b) {
  const bool is_one_operator = hash_operator(node_a) == hash_operator(node_b);
  if (!is_one_operator || !are_of_two_versions(node_a, node_b)) return {};
  return fmt::format("the node is {} in B and {} in A, which define it differently", version_of(node_b),
                     version_of(node_a));
}

}  // namespace parallax::diff
