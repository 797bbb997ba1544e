// SPDX-License-Identifier: Apache-2.0
// Tries A's numbers in place of those of B's nodes.
#include "inspector/diff/localize_models/blame_models_numbers.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "inspector/diff/localize_models/blame_models_counterfactuals.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/model/opset/op_schema.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

// A number that a node computes with: an attribute (then `constant` is -1) or a constant of one element.
struct HeldNumber {
  LocatedNode node;
  std::string name;
  int32_t constant = -1;
  double value = 0;
};

std::optional<float> attribute_of(const Node& node, const AttributeSchema& schema) {
  const Attribute* given = find_attribute(node, schema.name);
  const auto* number = given != nullptr ? std::get_if<float>(&given->value) : std::get_if<float>(&schema.default_value);
  return number == nullptr ? std::nullopt : std::optional<float>(*number);
}

void add_attributes(const LocatedNode& node, std::vector<HeldNumber>& numbers) {
  if (node.node().schema == nullptr) return;
  for (const AttributeSchema& schema : node.node().schema->attributes) {
    const auto value = attribute_of(node.node(), schema);
    if (value.has_value()) numbers.push_back({node, std::string(schema.name), -1, *value});
  }
}

void add_constants(const ModelSide& side, const LocatedNode& node, std::vector<HeldNumber>& numbers) {
  for (size_t port = 0; port < node.node().inputs.size(); ++port) {
    if (node.node().inputs[port] == kNoValue || !side.reads_constant(node, port)) continue;
    const int32_t id = ModelSide::value_info_read(*node.location, node.node().inputs[port]);
    const Value held = side.constant(id);
    if (!held.is_tensor() || !is_floating(held.tensor().dtype()) || held.tensor().element_count() != 1) continue;
    numbers.push_back({node, std::string(side.value_info(id).name), id, element_as_double(held.tensor(), 0)});
  }
}

std::vector<HeldNumber> numbers_of(const ModelSide& side, const std::vector<LocatedNode>& nodes) {
  std::vector<HeldNumber> numbers;
  for (const LocatedNode& node : nodes) {
    add_attributes(node, numbers);
    add_constants(side, node, numbers);
  }
  return numbers;
}

bool is_attribute(const HeldNumber& number) { return number.constant < 0; }

Node with_number(const HeldNumber& number, double value) {
  Node changed = number.node.node();
  std::erase_if(changed.attributes, [&](const Attribute& attribute) { return attribute.name == number.name; });
  Attribute attribute;
  attribute.name = number.name;
  attribute.type = AttributeType::float_;
  attribute.value = static_cast<float>(value);
  changed.attributes.push_back(std::move(attribute));
  return changed;
}

Value with_element(const Value& held, double value) {
  auto other = Tensor::allocate(DType::float64, held.tensor().shape());
  if (!other.ok()) return {};
  other->mutable_as<double>()[0] = value;
  return other.take();
}

bool agree_with(const ModelSide& b, const HeldNumber& in_b, double value, const Interventions& interventions) {
  if (is_attribute(in_b)) return interventions.agrees_with_node(in_b.node, with_number(in_b, value));
  return interventions.agrees_with({{in_b.constant, with_element(b.constant(in_b.constant), value)}});
}

// "attribute epsilon", "constant 'c'".
std::string text_of_number(const HeldNumber& number) {
  return is_attribute(number) ? "attribute " + number.name : fmt::format("constant '{}'", number.name);
}

std::string explain_number(const HeldNumber& in_a, const HeldNumber& in_b) {
  const bool is_same_attribute = is_attribute(in_a) && is_attribute(in_b) && in_a.name == in_b.name;
  const std::string of_a = is_same_attribute ? "" : fmt::format(" by {}", text_of_number(in_a));
  return fmt::format("{} of B's {} '{}' is {:.7g}, and A computes with {:.7g}{}: with this both make the same",
                     text_of_number(in_b), in_b.node.node().op_type, in_b.node.node().display_name, in_b.value,
                     in_a.value, of_a);
}

}  // namespace

std::optional<Culprit> find_other_number(const ModelSide& a, const ModelSide& b, const Parts& parts,
                                         const Interventions& interventions) {
  constexpr int kMostTried = 64;
  int tried = 0;
  const std::vector<HeldNumber> numbers_a = numbers_of(a, parts.only_a), numbers_b = numbers_of(b, parts.only_b);
  for (const HeldNumber& in_b : numbers_b) {
    for (const HeldNumber& in_a : numbers_a) {
      // Two constants are compared as such; attributes of two operators mean the same by their name alone.
      if (!is_attribute(in_a) && !is_attribute(in_b)) continue;
      if (is_attribute(in_a) && is_attribute(in_b) && in_a.name != in_b.name) continue;
      if (static_cast<float>(in_a.value) == static_cast<float>(in_b.value) || ++tried > kMostTried) continue;
      if (!agree_with(b, in_b, in_a.value, interventions)) continue;
      return Culprit{.node = in_a.node, .why = explain_number(in_a, in_b), .node_b = in_b.node};
    }
  }
  return std::nullopt;
}

}  // namespace parallax::diff
