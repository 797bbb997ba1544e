// SPDX-License-Identifier: Apache-2.0
// The reader of operator tables. Words stay views into the text: reading all tables costs well under a millisecond.
#include "inspector/model/opset/parser.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace parallax {
namespace {

// Cuts the next word, ended by a space, off the front of `rest`.
std::string_view next_word(std::string_view& rest) {
  const size_t begin = std::min(rest.find_first_not_of(' '), rest.size());
  const size_t end = std::min(rest.find(' ', begin), rest.size());
  const std::string_view word = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return word;
}

Error malformed(std::string_view what, std::string_view word) {
  return corrupt_file(std::string(what) + " '" + std::string(word) + "'");
}

template <class T>
Result<T> number(std::string_view word) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return malformed("not a number:", word);
  return value;
}

Result<std::string_view> quoted(std::string_view word) {
  if (word.size() < 2 || word.front() != '"' || word.back() != '"') return malformed("not a quoted string:", word);
  return word.substr(1, word.size() - 2);
}

template <class T>
Result<T> scalar(std::string_view word) {
  return number<T>(word);
}
template <>
Result<std::string_view> scalar(std::string_view word) {
  return quoted(word);
}

template <class T>
Result<AttributeDefault> list(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return malformed("not a list:", text);
  std::string_view rest = text.substr(1, text.size() - 2);
  std::vector<T> values;
  for (auto word = next_word(rest); !word.empty(); word = next_word(rest)) values.push_back(PX_TRY(scalar<T>(word)));
  return AttributeDefault(std::move(values));
}

Result<AttributeDefault> default_value(AttributeType type, std::string_view text) {
  switch (type) {
    case AttributeType::float_:
      return AttributeDefault(PX_TRY(number<float>(text)));
    case AttributeType::int_:
      return AttributeDefault(PX_TRY(number<int64_t>(text)));
    case AttributeType::string:
      return AttributeDefault(PX_TRY(quoted(text)));
    case AttributeType::floats:
      return list<float>(text);
    case AttributeType::ints:
      return list<int64_t>(text);
    case AttributeType::strings:
      return list<std::string_view>(text);
    default:
      return malformed("no default can be written for attribute type", name_of(type));
  }
}

struct FormName {
  std::string_view name;
  TypeForm form;
};
constexpr std::array<FormName, 8> kFormNames = {{
    {"seq", TypeForm::sequence},
    {"optional", TypeForm::optional},
    {"optional_seq", TypeForm::optional_sequence},
    {"sparse", TypeForm::sparse_tensor},
    {"map_int64", TypeForm::map_int64},
    {"map_string", TypeForm::map_string},
    {"seq_map_int64", TypeForm::sequence_map_int64},
    {"seq_map_string", TypeForm::sequence_map_string},
}};

struct Arity {
  size_t least = 0;
  size_t most = 0;
};

// The limits follow from the parameters as ONNX's OpSchema::Finalize derives them.
Arity arity_of(std::span<const FormalParameter> parameters) {
  Arity arity;
  for (size_t index = 0; index < parameters.size(); ++index) {
    const FormalParameter& parameter = parameters[index];
    if (parameter.option == ParameterOption::variadic) return {index + parameter.min_arity, kUnlimited};
    if (parameter.option == ParameterOption::single) arity.least = index + 1;
    arity.most = index + 1;
  }
  return arity;
}

}  // namespace

Status OpsetParser::parse(std::string_view text, OpsetRegistry& registry) {
  OpsetParser parser(registry);
  for (size_t number = 1, begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const Status status = parser.parse_line(text.substr(begin, end - begin));
    if (!status.ok()) return Error(status.error()).with_context("operator table line " + std::to_string(number));
    begin = end + 1;
  }
  PX_TRY(parser.finish_schema());
  return parser.finish_domain();
}

void OpsetParser::reserve(std::span<const std::string_view> tables, OpsetRegistry& registry) {
  size_t schemas = 0, parameters = 0, attributes = 0, constraints = 0;
  for (const std::string_view text : tables) {
    for (size_t begin = 0; begin < text.size(); begin = std::min(text.find('\n', begin), text.size()) + 1) {
      const std::string_view line = text.substr(begin);
      if (line.starts_with("op ")) ++schemas;
      if (line.starts_with("  in ") || line.starts_with("  out ")) ++parameters;
      if (line.starts_with("  attr ")) ++attributes;
      if (line.starts_with("  type ")) ++constraints;
    }
  }
  registry.schemas_.reserve(schemas);
  registry.parameters_.reserve(parameters);
  registry.attributes_.reserve(attributes);
  registry.constraints_.reserve(constraints);
}

Status OpsetParser::parse_line(std::string_view line) {
  if (line.empty() || line.front() == '#') return ok_status();
  const bool indented = line.starts_with("  ");
  std::string_view rest = line;
  const std::string_view keyword = next_word(rest);
  if (!rest.empty()) rest.remove_prefix(1);
  if (indented && !in_schema_) return malformed("part of an operator before any operator:", keyword);
  if (indented && keyword == "in") return parse_parameter(rest, true);
  if (indented && keyword == "out") return parse_parameter(rest, false);
  if (indented && keyword == "attr") return parse_attribute(rest);
  if (indented && keyword == "type") return parse_constraint(rest);
  if (!indented && keyword == "op") return parse_op(rest);
  if (!indented && keyword == "set") return parse_set(rest);
  if (!indented && keyword == "domain") return parse_domain(rest);
  return malformed("unknown keyword", keyword);
}

Status OpsetParser::parse_domain(std::string_view rest) {
  if (!domain_.name.empty()) return malformed("a second domain", rest);
  domain_.name = next_word(rest);
  domain_.first = registry_.schemas_.size();
  domain_.latest = PX_TRY(number<int64_t>(next_word(rest)));
  if (registry_.domain_named(domain_.name) != nullptr) return malformed("a second table for", domain_.name);
  return ok_status();
}

Status OpsetParser::parse_set(std::string_view rest) {
  const std::string_view name = next_word(rest);
  if (!name.starts_with('@') || next_word(rest) != "=") return malformed("malformed set", name);
  TypeSet types;
  PX_TRY(parse_types(rest, types));
  sets_.emplace_back(name, types.elements(TypeForm::tensor));
  return ok_status();
}

Status OpsetParser::parse_op(std::string_view rest) {
  PX_TRY(finish_schema());
  if (domain_.name.empty()) return malformed("operator before the domain:", rest);
  schema_ = OpSchema{};
  schema_.domain = domain_.name;
  schema_.name = next_word(rest);
  schema_.since_version = PX_TRY(number<int64_t>(next_word(rest)));
  for (auto word = next_word(rest); !word.empty(); word = next_word(rest)) {
    if (word == "deprecated") {
      schema_.deprecated = true;
    } else if (word == "function") {
      schema_.has_function = true;
    } else if (word == "extension") {
      schema_.extension = true;
    } else {
      return malformed("unknown flag", word);
    }
  }
  in_schema_ = true;
  input_count_ = output_count_ = 0;
  first_parameter_ = registry_.parameters_.size();
  first_attribute_ = registry_.attributes_.size();
  first_constraint_ = registry_.constraints_.size();
  return ok_status();
}

Status OpsetParser::parse_parameter(std::string_view rest, bool is_input) {
  FormalParameter parameter;
  parameter.name = next_word(rest);
  parameter.type = next_word(rest);
  if (parameter.type.empty()) return malformed("parameter without type:", parameter.name);
  const std::string_view option = next_word(rest);
  if (option == "optional") {
    parameter.option = ParameterOption::optional;
  } else if (option == "variadic") {
    parameter.option = ParameterOption::variadic;
    parameter.min_arity = PX_TRY(number<size_t>(next_word(rest)));
    const std::string_view mixed = next_word(rest);
    parameter.homogeneous = mixed.empty();
    if (!mixed.empty() && mixed != "mixed") return malformed("unknown word", mixed);
  } else if (!option.empty()) {
    return malformed("unknown option", option);
  }
  if (is_input && output_count_ > 0) return malformed("input after an output:", parameter.name);
  (is_input ? input_count_ : output_count_) += 1;
  registry_.parameters_.push_back(parameter);
  return ok_status();
}

Status OpsetParser::parse_attribute(std::string_view rest) {
  AttributeSchema attribute;
  attribute.name = next_word(rest);
  const std::string_view type_name = next_word(rest);
  const auto type = attribute_type_from_name(type_name);
  if (!type) return malformed("unknown attribute type", type_name);
  attribute.type = *type;
  std::string_view word = next_word(rest);
  if (word == "required") {
    attribute.required = true;
    word = next_word(rest);
  }
  if (word == "=" && !rest.empty()) {
    attribute.default_value = PX_TRY(default_value(attribute.type, rest.substr(1)));
  } else if (!word.empty()) {
    return malformed("unknown word", word);
  }
  registry_.attributes_.push_back(std::move(attribute));
  return ok_status();
}

Status OpsetParser::parse_constraint(std::string_view rest) {
  TypeConstraint constraint;
  constraint.name = next_word(rest);
  if (next_word(rest) != "=") return malformed("malformed type constraint", constraint.name);
  PX_TRY(parse_types(rest, constraint.types));
  if (constraint.types.empty()) return malformed("empty type constraint", constraint.name);
  registry_.constraints_.push_back(constraint);
  return ok_status();
}

Status OpsetParser::parse_types(std::string_view items, TypeSet& types) const {
  for (auto item = next_word(items); !item.empty(); item = next_word(items)) PX_TRY(add_type_item(item, types));
  return ok_status();
}

// An element type, a named set, or either of them within a form: "float", "@all13", "seq(@all13)".
Status OpsetParser::add_type_item(std::string_view item, TypeSet& types) const {
  TypeForm form = TypeForm::tensor;
  std::string_view elements = item;
  if (item.ends_with(')')) {
    const size_t open = item.find('(');
    const auto known = std::ranges::find(kFormNames, item.substr(0, open), &FormName::name);
    if (open == std::string_view::npos || known == kFormNames.end()) return malformed("unknown form of type", item);
    form = known->form;
    elements = item.substr(open + 1, item.size() - open - 2);
  }
  if (elements.starts_with('@')) {
    const auto set = std::ranges::find(sets_, elements, &std::pair<std::string_view, uint32_t>::first);
    if (set == sets_.end()) return malformed("unknown set", elements);
    types.insert(form, set->second);
    return ok_status();
  }
  const auto element = element_from_schema_name(elements);
  if (!element) return malformed("unknown element type", elements);
  types.insert({form, *element});
  return ok_status();
}

Status OpsetParser::finish_schema() {
  if (!in_schema_) return ok_status();
  in_schema_ = false;
  const auto part = [](auto& pool, size_t first) { return std::span(pool).subspan(first); };
  const auto parameters = part(registry_.parameters_, first_parameter_);
  schema_.inputs = parameters.first(input_count_);
  schema_.outputs = parameters.last(output_count_);
  schema_.attributes = part(registry_.attributes_, first_attribute_);
  schema_.type_constraints = part(registry_.constraints_, first_constraint_);
  const Arity inputs = arity_of(schema_.inputs);
  const Arity outputs = arity_of(schema_.outputs);
  schema_.min_inputs = inputs.least;
  schema_.max_inputs = inputs.most;
  schema_.min_outputs = outputs.least;
  schema_.max_outputs = outputs.most;
  PX_TRY(resolve_types(first_parameter_, input_count_ + output_count_));
  // find() relies on this order.
  auto& schemas = registry_.schemas_;
  if (schemas.size() > domain_.first) {
    const OpSchema& last = schemas.back();
    const bool rises =
        last.name < schema_.name || (last.name == schema_.name && last.since_version < schema_.since_version);
    if (!rises) return malformed("operators out of order at", schema_.versioned_name());
  }
  if (schema_.since_version > domain_.latest) return malformed("newer than its domain:", schema_.versioned_name());
  schemas.push_back(schema_);
  return ok_status();
}

Status OpsetParser::resolve_types(size_t first, size_t count) {
  for (FormalParameter& parameter : std::span(registry_.parameters_).subspan(first, count)) {
    if (const TypeConstraint* constraint = schema_.type_constraint(parameter.type)) {
      parameter.types = &constraint->types;
      continue;
    }
    auto& plain = registry_.plain_types_;
    auto known = std::ranges::find(plain, parameter.type, &TypeConstraint::name);
    if (known == plain.end()) {
      const auto type = schema_type_from_string(parameter.type);
      if (!type) return malformed("neither a type nor a type parameter:", parameter.type);
      TypeSet types;
      types.insert(*type);
      known = plain.insert(plain.end(), TypeConstraint{parameter.type, types});
    }
    parameter.types = &known->types;
  }
  return ok_status();
}

Status OpsetParser::finish_domain() {
  if (domain_.name.empty()) return corrupt_file("operator table without a domain line");
  domain_.count = registry_.schemas_.size() - domain_.first;
  registry_.domains_.push_back(domain_);
  return ok_status();
}

}  // namespace parallax
