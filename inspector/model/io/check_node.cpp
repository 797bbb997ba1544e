// SPDX-License-Identifier: Apache-2.0
// Nodes against what the registry or the model's own functions say of their operator.
#include <algorithm>
#include <unordered_set>

#include "inspector/model/io/check_report.h"
#include "inspector/model/opset/op_schema.h"
#include "inspector/model/opset/opset_registry.h"

namespace parallax {
namespace {

struct NodeCheck {
  const CheckedGraph& checked;
  const Node& node;
  FoundProblems& report;

  void problem(std::string message, ErrorCode code = ErrorCode::invalid_model) const {
    report.at_node(checked, node, std::move(message), code);
  }
};

void explain_unknown(const NodeCheck& check, std::span<const OpsetImport> imports) {
  const Node& node = check.node;
  const std::string domain(canonical_domain(node.domain));
  if (node.op_type.empty()) return check.problem("names no operator");
  if (!node.overload.empty()) {
    return check.problem("calls overload '" + node.overload + "' of function '" + domain + "." + node.op_type +
                         "', which the model does not define");
  }
  const auto& registry = OpsetRegistry::standard();
  const bool known_domain = registry.latest_opset(domain) > 0;
  if (known_domain && opset_version_in(imports, domain) == 0) {
    return check.problem("is an operator of domain '" + domain +
                         "', whose operator set is not imported; add an opset_import");
  }
  std::string why = registry.explain_missing(domain, node.op_type, node.opset_version);
  // A layout of onnxruntime's own is explained as it is: no function could stand in.
  if (!known_domain && !why.starts_with("operator '")) {
    why.insert(std::min(why.find("; did you mean"), why.size()), ", and the model defines no function of that name");
    why = "operator '" + node.op_type + "': " + why;
  }
  check.problem(std::move(why), known_domain ? ErrorCode::invalid_model : ErrorCode::unsupported);
}

// ---- Inputs and outputs --------------------------------------------------------------------------------------------

std::string range_text(size_t least, size_t most, std::string_view noun) {
  if (most == kUnlimited) return "at least " + counted(least, noun);
  return least == most ? counted(least, noun) : std::to_string(least) + " to " + counted(most, noun);
}

using ParameterAt = const FormalParameter* (OpSchema::*)(size_t) const;

void check_arity(const NodeCheck& check, const std::vector<ValueId>& values, size_t least, size_t most,
                 ParameterAt parameter, std::string_view noun) {
  const OpSchema& schema = *check.node.schema;
  if (values.size() < least || values.size() > most) {
    check.problem("has " + counted(values.size(), noun) + "; " + schema.versioned_name() + " has " +
                  range_text(least, most, noun));
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const FormalParameter* formal = (schema.*parameter)(i);
    // An output that nothing reads may go without a name, a variadic one too.
    const bool may_be_omitted = formal == nullptr || formal->option == ParameterOption::optional ||
                                (formal->option == ParameterOption::variadic && noun == "output");
    if (values[i] != kNoValue || may_be_omitted) continue;
    check.problem("leaves out " + std::string(noun) + " " + std::to_string(i) + " ('" + std::string(formal->name) +
                  "'), which " + schema.versioned_name() + " needs");
  }
}

// ---- Attributes ----------------------------------------------------------------------------------------------------

std::vector<std::string> attribute_names(const OpSchema& schema) {
  std::vector<std::string> names;
  for (const AttributeSchema& attribute : schema.attributes) names.emplace_back(attribute.name);
  return names;
}

void check_attribute(const NodeCheck& check, const Attribute& attribute) {
  const OpSchema& schema = *check.node.schema;
  const AttributeSchema* known = schema.attribute(attribute.name);
  if (known == nullptr) {
    if (attribute.name.starts_with("__")) return;  // the format leaves these to tools
    const auto names = attribute_names(schema);
    check.problem("has attribute '" + attribute.name + "', which " + schema.versioned_name() + " does not have" +
                  (names.empty() ? "" : "; it has " + quoted_list(names, 20)));
  } else if (attribute.type != known->type && attribute.type != AttributeType::undefined) {
    check.problem("attribute '" + attribute.name + "' is of type " + std::string(name_of(attribute.type)) + "; " +
                  schema.versioned_name() + " wants " + std::string(name_of(known->type)));
  }
}

void check_reference(const NodeCheck& check, const Attribute& attribute) {
  if (attribute.ref_attr_name.empty()) return;
  const Function* function = check.checked.function;
  if (function == nullptr) {
    return check.problem("attribute '" + attribute.name + "' refers to attribute '" + attribute.ref_attr_name +
                         "' of a function, but the node stands in none");
  }
  const bool declared =
      std::ranges::find(function->attribute_names, attribute.ref_attr_name) != function->attribute_names.end() ||
      std::ranges::find(function->attribute_defaults, attribute.ref_attr_name, &Attribute::name) !=
          function->attribute_defaults.end();
  if (declared) return;
  check.problem("attribute '" + attribute.name + "' refers to attribute '" + attribute.ref_attr_name +
                "', which function '" + function->name + "' does not declare");
}

void check_attributes(const NodeCheck& check) {
  std::unordered_set<std::string_view> seen;
  for (const Attribute& attribute : check.node.attributes) {
    if (attribute.name.empty()) check.problem("has an attribute without a name");
    if (!attribute.absence.empty()) check.problem("attribute '" + attribute.name + "': " + attribute.absence);
    const auto* stored = std::get_if<StoredTensor>(&attribute.value);
    if (stored != nullptr && !stored->absence.empty() && stored->absence != kLeftOutOfDump)
      check.problem("attribute '" + attribute.name + "': " + stored->absence);
    if (!seen.insert(attribute.name).second) check.problem("has attribute '" + attribute.name + "' twice");
    check_reference(check, attribute);
  }
}

// The specification of Constant: exactly one of its attributes, all of them optional in the schema, holds the value.
void check_constant(const NodeCheck& check) {
  const auto is_value = [](const Attribute& attribute) { return !attribute.name.starts_with("__"); };
  const auto values = static_cast<size_t>(std::ranges::count_if(check.node.attributes, is_value));
  if (values != 1) check.problem("has " + counted(values, "value") + "; a Constant has exactly one");
}

void check_schema(const NodeCheck& check) {
  const OpSchema& schema = *check.node.schema;
  if (OpsetRegistry::standard().is_removal(schema))
    return check.problem("is deprecated: operator set " + std::to_string(check.node.opset_version) +
                         " no longer has '" + check.node.op_type + "'");
  check_arity(check, check.node.inputs, schema.min_inputs, schema.max_inputs, &OpSchema::input, "input");
  check_arity(check, check.node.outputs, schema.min_outputs, schema.max_outputs, &OpSchema::output, "output");
  for (const Attribute& attribute : check.node.attributes) check_attribute(check, attribute);
  if (schema.name == "Constant") check_constant(check);
  for (const AttributeSchema& attribute : schema.attributes) {
    if (attribute.required && find_attribute(check.node, attribute.name) == nullptr) {
      check.problem("lacks attribute '" + std::string(attribute.name) + "', which " + schema.versioned_name() +
                    " needs");
    }
  }
}

// ---- Bodies and calls ----------------------------------------------------------------------------------------------

// The required numbers of a body's formal inputs and outputs. kUnlimited: any.
struct BodyArity {
  size_t inputs;
  size_t outputs;
  bool outputs_at_least = false;  // trailing outputs of the node may be left out
};

BodyArity body_arity(const Node& node) {
  if (node.op_type == "If") return {0, node.outputs.size()};
  // Loop's body takes iteration and condition before the carried values, and gives the condition before its outputs;
  // see the specification of Loop. The node's own inputs begin with trip count and condition.
  if (node.op_type == "Loop") return {std::max<size_t>(node.inputs.size(), 2), node.outputs.size() + 1};
  if (node.op_type == "Scan") {
    const size_t lengths = node.opset_version < 9 ? 1 : 0;  // Scan-8 begins with sequence_lens
    return {std::max(node.inputs.size(), lengths) - lengths, node.outputs.size(), true};
  }
  if (node.op_type == "SequenceMap") return {node.inputs.size(), node.outputs.size(), true};
  return {kUnlimited, kUnlimited};
}

void check_bodies(const NodeCheck& check) {
  if (canonical_domain(check.node.domain) != "ai.onnx") return;
  const BodyArity arity = body_arity(check.node);
  for (const Attribute& attribute : check.node.attributes) {
    const auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
    if (body == nullptr || arity.inputs == kUnlimited) continue;
    const size_t inputs = (*body)->inputs.size(), outputs = (*body)->outputs.size();
    if (inputs != arity.inputs) {
      check.problem("graph '" + attribute.name + "' takes " + counted(inputs, "input") + ", but the node gives it " +
                    std::to_string(arity.inputs));
    }
    if (outputs != arity.outputs && !(arity.outputs_at_least && outputs > arity.outputs)) {
      check.problem("graph '" + attribute.name + "' has " + counted(outputs, "output") + ", but the node needs " +
                    std::to_string(arity.outputs));
    }
  }
}

void check_call(const NodeCheck& check) {
  const Function& function = *check.node.function;
  const auto too_many = [&](size_t given, size_t known, std::string_view noun) {
    if (given <= known) return;
    check.problem("has " + counted(given, noun) + ", but function '" + function.name + "' has " + counted(known, noun));
  };
  too_many(check.node.inputs.size(), function.body.inputs.size(), "input");
  too_many(check.node.outputs.size(), function.body.outputs.size(), "output");
  for (const Attribute& attribute : check.node.attributes) {
    const auto known = std::ranges::find(function.attribute_defaults, attribute.name, &Attribute::name);
    if (known != function.attribute_defaults.end()) {
      if (known->type == attribute.type) continue;
      check.problem("attribute '" + attribute.name + "' is of type " + std::string(name_of(attribute.type)) +
                    "; function '" + function.name + "' wants " + std::string(name_of(known->type)));
    } else if (std::ranges::find(function.attribute_names, attribute.name) == function.attribute_names.end()) {
      check.problem("has attribute '" + attribute.name + "', which function '" + function.name + "' does not have");
    }
  }
}

}  // namespace

void check_node(const CheckedGraph& checked, const Node& node, std::span<const OpsetImport> imports,
                FoundProblems& report) {
  const NodeCheck check{checked, node, report};
  check_attributes(check);
  if (node.function != nullptr) return check_call(check);
  if (node.schema == nullptr) return explain_unknown(check, imports);
  check_schema(check);
  check_bodies(check);
}

}  // namespace parallax
