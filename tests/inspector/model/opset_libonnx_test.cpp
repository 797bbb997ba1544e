// SPDX-License-Identifier: Apache-2.0
// Cross-check of the operator tables against the schemas compiled into Debian's libonnx (opset 17, ai.onnx.ml 3).
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <onnx/defs/schema.h>

#include "inspector/model/opset/opset_registry.h"

namespace parallax {
namespace {

using Published = onnx::OpSchema;

std::vector<std::string> described(const std::vector<Published::FormalParameter>& parameters) {
  std::vector<std::string> texts;
  for (const auto& parameter : parameters) {
    std::string text = parameter.GetName() + " " + parameter.GetTypeStr();
    if (parameter.GetOption() == Published::Optional) text += " optional";
    if (parameter.GetOption() == Published::Variadic) {
      text += " variadic " + std::to_string(parameter.GetMinArity());
      if (!parameter.GetIsHomogeneous()) text += " mixed";
    }
    texts.push_back(text);
  }
  return texts;
}

std::vector<std::string> described(std::span<const FormalParameter> parameters) {
  std::vector<std::string> texts;
  for (const auto& parameter : parameters) {
    std::string text = std::string(parameter.name) + " " + std::string(parameter.type);
    if (parameter.option == ParameterOption::optional) text += " optional";
    if (parameter.option == ParameterOption::variadic) {
      text += " variadic " + std::to_string(parameter.min_arity);
      if (!parameter.homogeneous) text += " mixed";
    }
    texts.push_back(text);
  }
  return texts;
}

AttributeDefault default_of(const onnx::AttributeProto& proto) {
  switch (proto.type()) {
    case onnx::AttributeProto::FLOAT:
      return proto.f();
    case onnx::AttributeProto::INT:
      return int64_t{proto.i()};
    case onnx::AttributeProto::STRING:
      return std::string_view(proto.s());
    case onnx::AttributeProto::FLOATS:
      return std::vector<float>(proto.floats().begin(), proto.floats().end());
    case onnx::AttributeProto::INTS:
      return std::vector<int64_t>(proto.ints().begin(), proto.ints().end());
    case onnx::AttributeProto::STRINGS:
      return std::vector<std::string_view>(proto.strings().begin(), proto.strings().end());
    default:
      return {};
  }
}

std::string type_of(const Published::Attribute& attribute) {
  return std::string(name_of(static_cast<AttributeType>(attribute.type)));
}

// Collects every difference as "Op-version: what: ours / theirs".
class Comparison {
 public:
  explicit Comparison(const Published& theirs) : theirs_(theirs) {
    const auto versions = OpsetRegistry::standard().versions(theirs.domain(), theirs.Name());
    const auto found = std::ranges::find(versions, theirs.since_version(), &OpSchema::since_version);
    ours_ = found == versions.end() ? nullptr : &*found;
  }

  std::vector<std::string> differences() {
    if (ours_ == nullptr) {
      differ("schema", "absent", "present");
      return differences_;
    }
    compare("deprecated", ours_->deprecated, theirs_.deprecated());
    if (!theirs_.deprecated()) {
      compare_parameters();
      compare_attributes();
      compare_types();
    }
    return differences_;
  }

 private:
  void compare_parameters() {
    compare("inputs", joined(described(ours_->inputs)), joined(described(theirs_.inputs())));
    compare("outputs", joined(described(ours_->outputs)), joined(described(theirs_.outputs())));
    const auto limit = [](int count) {
      return count == std::numeric_limits<int>::max() ? kUnlimited : static_cast<size_t>(count);
    };
    compare("min_inputs", ours_->min_inputs, limit(theirs_.min_input()));
    compare("max_inputs", ours_->max_inputs, limit(theirs_.max_input()));
    compare("min_outputs", ours_->min_outputs, limit(theirs_.min_output()));
    compare("max_outputs", ours_->max_outputs, limit(theirs_.max_output()));
  }

  void compare_attributes() {
    compare("attribute count", ours_->attributes.size(), theirs_.attributes().size());
    for (const auto& [name, attribute] : theirs_.attributes()) {
      const AttributeSchema* known = ours_->attribute(name);
      if (known == nullptr) {
        differ("attribute " + name, "absent", "present");
        continue;
      }
      compare("attribute " + name + " type", std::string(name_of(known->type)), type_of(attribute));
      compare("attribute " + name + " required", known->required, attribute.required);
      compare("attribute " + name + " default", to_string(known->default_value),
              to_string(default_of(attribute.default_value)));
    }
  }

  void compare_types() {
    compare("constraint count", ours_->type_constraints.size(), theirs_.typeConstraintParams().size());
    for (const auto& constraint : theirs_.typeConstraintParams()) {
      const TypeConstraint* known = ours_->type_constraint(constraint.type_param_str);
      if (known == nullptr) {
        differ("constraint " + constraint.type_param_str, "absent", "present");
        continue;
      }
      TypeSet types;
      for (std::string text : constraint.allowed_type_strs) {
        std::erase(text, ' ');
        const auto type = schema_type_from_string(text);
        if (type) {
          types.insert(*type);
        } else {
          differ("constraint " + constraint.type_param_str, "unreadable", text);
        }
      }
      compare("constraint " + constraint.type_param_str, to_string(known->types), to_string(types));
    }
  }

  static std::string joined(const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& text : texts) all += (all.empty() ? "" : "; ") + text;
    return all;
  }

  static std::string text_of(const std::string& text) { return text; }
  static std::string text_of(size_t number) { return std::to_string(number); }

  template <class T>
  void compare(const std::string& what, const T& ours, const T& theirs) {
    if (ours != theirs) differ(what, text_of(ours), text_of(theirs));
  }
  void differ(const std::string& what, const std::string& ours, const std::string& theirs) {
    differences_.push_back(theirs_.Name() + "-" + std::to_string(theirs_.since_version()) + ": " + what + ": " + ours +
                           " / " + theirs);
  }

  const Published& theirs_;
  const OpSchema* ours_ = nullptr;
  std::vector<std::string> differences_;
};

TEST(OpsetTables, AgreeWithLibonnx) {
  size_t compared = 0;
  std::set<std::string> differences;
  for (const Published& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
    ++compared;
    for (std::string& difference : Comparison(schema).differences()) differences.insert(std::move(difference));
  }
  EXPECT_GE(compared, 400U);
  // Later releases of ONNX corrected these two published schemas in place.
  const std::set<std::string> known = {
      "Erf-13: constraint T: tensor(float|float16|double|bfloat16) / "
      "tensor(float|uint8|int8|uint16|int16|int32|int64|float16|double|uint32|uint64|bfloat16)",
      "GridSample-16: inputs: X T1; grid T2 / X T1; grid T1",
      "GridSample-16: outputs: Y T1 / Y T2",
  };
  for (const std::string& difference : differences) EXPECT_TRUE(known.contains(difference)) << difference;
  for (const std::string& difference : known)
    EXPECT_TRUE(differences.contains(difference)) << "no longer: " << difference;
}

}  // namespace
}  // namespace parallax
