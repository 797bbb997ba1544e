// SPDX-License-Identifier: Apache-2.0
// Makes valid calls and spoils them.
#include "tests/ops/hostile_calls.h"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "inspector/model/io/import.h"
#include "inspector/model/link.h"
#include "inspector/model/make_attribute.h"
#include "inspector/model/opset/opset_registry.h"
#include "inspector/model/shape_inference/infer_types.h"
#include "inspector/tensor/elements.h"

namespace parallax::tests {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
constexpr size_t kMostInputs = 8, kMany = 70;  // inputs that are mutated; more than the bits of a word

void link(Model& model) {
  link_graph(model.graph);
  resolve_operators(model);
}

bool is_valid(const OperatorCall& call) {
  return check_model(*mutated(call, {"", [](OperatorCall&) {}}, KnownInputs::types).model).empty();
}

// The case as a call of version `version` of its operator; no model where it is no graph of that one node.
OperatorCall call_of(const OpCase& op_case, const OpSchema& schema) {
  const Graph& graph = op_case.model->graph;
  if (graph.nodes.size() != 1 || graph.inputs.size() != op_case.inputs.size()) return {};
  const Node& node = graph.nodes.front();
  if (node.schema == nullptr || node.schema->name != schema.name || node.schema->domain != schema.domain) return {};
  OperatorCall call{copy_model(*op_case.model), op_case.inputs};
  for (OpsetImport& import : call.model->opset_imports) {
    if (canonical_domain(import.domain) == schema.domain && node.schema != &schema)
      import.version = schema.since_version;
  }
  link(*call.model);
  return call.node().schema == &schema ? call : OperatorCall{};
}

DType plain_dtype(const FormalParameter& parameter) {
  for (const DType dtype : {DType::float32, DType::int64, DType::int32, DType::bool_, DType::uint8, DType::int8,
                            DType::float16, DType::string}) {
    if (parameter.types->contains_tensor(dtype)) return dtype;
  }
  return DType::undefined;
}

std::optional<Attribute> plain_attribute(const AttributeSchema& attribute) {
  const std::string name(attribute.name);
  if (attribute.type == AttributeType::int_) return int_attribute(name, 1);
  if (attribute.type == AttributeType::float_) return float_attribute(name, 1);
  if (attribute.type == AttributeType::string) return string_attribute(name, "");
  if (attribute.type == AttributeType::ints) return ints_attribute(name, {1, 1});
  if (attribute.type == AttributeType::floats) return floats_attribute(name, {1, 1});
  if (attribute.type == AttributeType::strings) return strings_attribute(name, {"a"});
  return std::nullopt;
}

ValueId add_value(Graph& graph, const std::string& name) {
  graph.values.emplace_back().name = name;
  return static_cast<ValueId>(graph.values.size()) - 1;
}

OperatorCall call_from(const OpSchema& schema) {
  OperatorCall call{std::make_shared<Model>(), {}};
  Model& model = *call.model;
  model.path = "call";
  model.ir_version = 10;
  model.opset_imports.push_back({std::string(schema.domain), schema.since_version});
  model.graph.name = "g";
  Node& node = model.graph.nodes.emplace_back();
  node.op_type = std::string(schema.name);
  node.domain = schema.domain == "ai.onnx" ? "" : std::string(schema.domain);
  for (size_t index = 0; index < std::max<size_t>(schema.min_inputs, schema.inputs.empty() ? 0 : 1); ++index) {
    const DType dtype = plain_dtype(*schema.input(index));
    auto tensor = Tensor::zeros(dtype, Shape{2, 3});
    if (dtype == DType::undefined || !tensor.ok()) return {};
    call.inputs.emplace_back(tensor.take());
    model.graph.inputs.push_back(add_value(model.graph, fmt::format("in{}", index)));
    node.inputs.push_back(model.graph.inputs.back());
  }
  for (const AttributeSchema& attribute : schema.attributes) {
    if (!attribute.required) continue;
    auto made = plain_attribute(attribute);
    if (!made.has_value()) return {};
    node.attributes.push_back(std::move(*made));
  }
  for (size_t index = 0; index < std::max<size_t>(schema.min_outputs, 1); ++index) {
    node.outputs.push_back(add_value(model.graph, fmt::format("out{}", index)));
    model.graph.outputs.push_back(node.outputs.back());
  }
  link(model);
  return call;
}

Value filled(const Tensor& like, const Shape& shape) {
  auto made = Tensor::zeros(like.dtype(), shape);
  return made.ok() ? Value(made.take()) : Value(like);
}

// All elements, or the first alone, are `number`.
Value with_contents(const Tensor& tensor, int64_t number, bool everywhere) {
  Tensor made = tensor.clone().take();
  const int64_t count = everywhere ? made.element_count() : std::min<int64_t>(1, made.element_count());
  const std::vector<int64_t> numbers(static_cast<size_t>(count), number);
  store_int64s(made, 0, numbers);
  return made;
}

Value with_contents(const Tensor& tensor, double number) {
  Tensor made = tensor.clone().take();
  store_doubles(made, 0, std::vector<double>(static_cast<size_t>(made.element_count()), number));
  return made;
}

using ChangeValue = std::function<Value(const Value&)>;

// `change` is for tensors; other values stay.
CallMutation change_of(size_t index, const std::string& what, ChangeValue change) {
  return {fmt::format("input {} {}", index, what),
          [index, change = std::move(change)](OperatorCall& call) { call.inputs[index] = change(call.inputs[index]); }};
}

void add_content_mutations(size_t index, const Tensor& tensor, std::vector<CallMutation>& mutations) {
  const DType dtype = tensor.dtype();
  if (is_floating(dtype) && bits_of(dtype) >= 16) {
    for (const double number : {static_cast<double>(kNaN), static_cast<double>(kInfinity), -1e30}) {
      mutations.push_back(change_of(index, fmt::format("is {} throughout", number),
                                    [number](const Value& value) { return with_contents(value.tensor(), number); }));
    }
  }
  if (!is_integer(dtype) || is_sub_byte(dtype)) return;
  const bool is_unsigned = info_of(dtype).kind == DTypeKind::unsigned_integer;
  const int bits = bits_of(dtype) - (is_unsigned ? 0 : 1);
  for (const int64_t number : {kLeast, kMost, int64_t{-1}, int64_t{0}, int64_t{1} << 40, int64_t{-1} << 31}) {
    if ((is_unsigned && number < 0) || (bits < 63 && number >> bits != (number < 0 ? -1 : 0))) continue;
    for (const bool everywhere : {true, false}) {
      if (!everywhere && tensor.element_count() < 2) continue;
      mutations.push_back(change_of(
          index, fmt::format("is {} {}", number, everywhere ? "throughout" : "at first"),
          [number, everywhere](const Value& value) { return with_contents(value.tensor(), number, everywhere); }));
    }
  }
}

Value with_dims(const Value& value, const std::function<std::vector<int64_t>(std::span<const int64_t>)>& change) {
  const auto shape = Shape::create(change(value.tensor().shape().dims()));
  return shape.ok() ? filled(value.tensor(), *shape) : value;
}

using Dims = std::vector<int64_t>;
Dims with_dim(std::span<const int64_t> dims, size_t axis, int64_t dim) {
  Dims changed(dims.begin(), dims.end());
  if (axis < changed.size()) changed[axis] = dim;
  return changed;
}
struct DimsChange {
  const char* name;
  Dims (*change)(std::span<const int64_t> dims);
};
const DimsChange kDimsChanges[] = {
    {"is a scalar", [](std::span<const int64_t>) { return Dims{}; }},
    {"is of rank 7", [](std::span<const int64_t>) { return Dims{1, 2, 1, 2, 1, 2, 1}; }},
    {"is of rank 16", [](std::span<const int64_t>) { return Dims(16, 1); }},
    {"has no elements", [](std::span<const int64_t> dims) { return Dims(dims.size(), 0); }},
    {"has an empty first dimension", [](std::span<const int64_t> dims) { return with_dim(dims, 0, 0); }},
    {"has an empty last dimension", [](std::span<const int64_t> dims) { return with_dim(dims, dims.size() - 1, 0); }},
    {"is longer in its last dimension",
     [](std::span<const int64_t> dims) { return with_dim(dims, dims.size() - 1, 9); }},
    {"has a dimension more",
     [](std::span<const int64_t> dims) {
       Dims changed(dims.begin(), dims.end());
       changed.insert(changed.begin(), 2);
       return changed;
     }},
    {"has a dimension less",
     [](std::span<const int64_t> dims) { return dims.empty() ? Dims{} : Dims(dims.begin() + 1, dims.end()); }},
};

void add_input_mutations(size_t index, const Value& value, std::vector<CallMutation>& mutations) {
  mutations.push_back({fmt::format("input {} is omitted", index), [index](OperatorCall& call) {
                         const ValueId id = call.model->graph.inputs[index];
                         std::ranges::replace(call.node().inputs, id, kNoValue);
                       }});
  mutations.push_back(change_of(index, "is an empty sequence", [](const Value&) {
    return Value(SequenceValue{TypeInfo::tensor(DType::float32), {}});
  }));
  mutations.push_back(change_of(index, "is an empty optional", [](const Value&) {
    return Value(OptionalValue{TypeInfo::tensor(DType::float32), {}});
  }));
  for (const DType dtype : {DType::float32, DType::int64, DType::int32, DType::bool_, DType::string, DType::float16,
                            DType::uint8, DType::int4, DType::complex64}) {
    mutations.push_back(
        change_of(index, fmt::format("is {}", parallax::name_of(dtype)), [dtype](const Value& changed) -> Value {
          if (!changed.is_tensor()) return Tensor::zeros(dtype, Shape{2}).take();
          return Tensor::zeros(dtype, changed.tensor().shape()).take();
        }));
  }
  if (!value.is_tensor()) return;
  for (const DimsChange& each : kDimsChanges) {
    mutations.push_back(
        change_of(index, each.name, [&each](const Value& changed) { return with_dims(changed, each.change); }));
  }
  add_content_mutations(index, value.tensor(), mutations);
}

CallMutation with_attribute(std::string what, Attribute made) {
  return {fmt::format("attribute '{}' is {}", made.name, what), [made = std::move(made)](OperatorCall& call) {
            auto& attributes = call.node().attributes;
            std::erase_if(attributes, [&](const Attribute& each) { return each.name == made.name; });
            attributes.push_back(made);
          }};
}

size_t length_of(const Attribute* given) {
  const auto* list = given == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(&given->value);
  return list == nullptr ? 2 : std::max<size_t>(1, list->size());
}

void add_attribute_mutations(const AttributeSchema& schema, const Node& node, std::vector<CallMutation>& mutations) {
  const std::string name(schema.name);
  const Attribute* given = find_attribute(node, name);
  const auto add = [&](std::string what, Attribute made) {
    mutations.push_back(with_attribute(std::move(what), std::move(made)));
  };
  if (given != nullptr) {
    mutations.push_back({fmt::format("attribute '{}' is missing", name), [name](OperatorCall& call) {
                           std::erase_if(call.node().attributes,
                                         [&](const Attribute& each) { return each.name == name; });
                         }});
  }
  constexpr int64_t kNumbers[] = {kLeast, kMost, -1, 0, 1, 7, int64_t{1} << 31, int64_t{1} << 40, -100};
  if (schema.type == AttributeType::int_) {
    for (const int64_t number : kNumbers) add(std::to_string(number), int_attribute(name, number));
  } else if (schema.type == AttributeType::ints) {
    for (const int64_t number : kNumbers)
      add(fmt::format("{} throughout", number), ints_attribute(name, Dims(length_of(given), number)));
    add("empty", ints_attribute(name, {}));
    add("one zero", ints_attribute(name, {0}));
    add("of 1000 ones", ints_attribute(name, Dims(1000, 1)));
  } else if (schema.type == AttributeType::float_) {
    for (const float number : {kNaN, kInfinity, -kInfinity, 0.0F, -1e30F, 1e30F})
      add(fmt::format("{}", number), float_attribute(name, static_cast<double>(number)));
  } else if (schema.type == AttributeType::floats) {
    add("empty", floats_attribute(name, {}));
    add("of 1000 NaNs", floats_attribute(name, std::vector<float>(1000, kNaN)));
    add("one infinity", floats_attribute(name, {kInfinity}));
  } else if (schema.type == AttributeType::string) {
    add("empty", string_attribute(name, ""));
    add("of 100000 letters", string_attribute(name, std::string(100'000, 'x')));
    add("no text", string_attribute(name, std::string("\xff\0\n", 3)));
  } else if (schema.type == AttributeType::strings) {
    add("empty", strings_attribute(name, {}));
    add("of 100 empty strings", strings_attribute(name, std::vector<std::string>(100)));
  } else if (schema.type == AttributeType::tensor) {
    const Shape shapes[] = {Shape{}, Shape{0}, Shape{1, 2, 1, 2, 1, 2, 1}};
    for (const Shape& shape : shapes) {
      for (const DType dtype : {DType::float32, DType::int64, DType::string}) {
        StoredTensor stored;
        stored.tensor = Tensor::zeros(dtype, shape).take();
        add(fmt::format("{}{}", parallax::name_of(dtype), shape.to_string()),
            make_attribute(name, AttributeType::tensor, stored));
      }
    }
  }
}

void make_constants(OperatorCall& call) {
  Graph& graph = call.model->graph;
  std::vector<ValueId> inputs;
  std::vector<Value> values;
  for (size_t index = 0; index < call.inputs.size(); ++index) {
    if (!call.inputs[index].is_tensor()) {
      inputs.push_back(graph.inputs[index]);
      values.push_back(call.inputs[index]);
      continue;
    }
    StoredTensor stored;
    stored.name = graph.values[static_cast<size_t>(graph.inputs[index])].name;
    stored.tensor = call.inputs[index].tensor();
    graph.initializers.push_back(std::move(stored));
    graph.initializer_values.push_back(graph.inputs[index]);
  }
  graph.inputs = std::move(inputs);
  call.inputs = std::move(values);
}

// Functions have no initializers: a graph that has some stays as it is.
void put_into_function(OperatorCall& call) {
  Model& model = *call.model;
  if (!model.graph.initializers.empty()) return;
  auto function = std::make_shared<Function>();
  function->domain = "local";
  function->name = "F";
  function->opset_imports = model.opset_imports;
  function->body = model.graph;
  Graph& body = function->body;
  Node outer = call.node();
  outer.op_type = function->name;
  outer.domain = function->domain;
  outer.inputs = model.graph.inputs;
  outer.outputs = model.graph.outputs;
  for (Attribute& attribute : body.nodes.front().attributes) {
    function->attribute_names.push_back(attribute.name);
    attribute.value = {};
    attribute.ref_attr_name = attribute.name;
  }
  for (ValueDef& value : body.values) value.type = {};
  link_graph(body);
  model.graph.nodes = {std::move(outer)};
  model.functions.push_back(std::move(function));
  model.opset_imports.push_back({"local", 1});
}

}  // namespace

std::vector<OperatorCall> calls_of(const OpSchema& schema, const std::vector<OpCase>& cases, size_t most) {
  std::vector<OperatorCall> calls;
  std::map<std::pair<size_t, size_t>, int> forms;  // numbers of inputs and attributes: each once
  const auto add = [&](OperatorCall call) {
    if (call.model == nullptr || calls.size() >= most) return;
    const std::pair form{call.node().inputs.size(), call.node().attributes.size()};
    if (forms[form]++ == 0 && is_valid(call)) calls.push_back(std::move(call));
  };
  for (const bool is_own : {true, false}) {
    for (const OpCase& op_case : cases) {
      if (calls.size() >= most) break;
      const Graph& graph = op_case.model->graph;
      if (graph.nodes.empty() || (graph.nodes.front().schema == &schema) != is_own) continue;
      add(call_of(op_case, schema));
    }
    if (!calls.empty()) return calls;
  }
  add(call_from(schema));
  return calls;
}

std::vector<CallMutation> mutations_of(const OperatorCall& call) {
  const Graph& graph = call.model->graph;
  const Node& node = graph.nodes.front();
  std::vector<CallMutation> mutations;
  for (size_t count = 0; count < node.inputs.size(); ++count) {
    mutations.push_back({fmt::format("the node has {} inputs", count),
                         [count](OperatorCall& changed) { changed.node().inputs.resize(count); }});
  }
  for (const size_t more : {size_t{1}, kMany}) {
    mutations.push_back({fmt::format("the node has {} inputs more", more), [more](OperatorCall& changed) {
                           auto& inputs = changed.node().inputs;
                           inputs.insert(inputs.end(), more, inputs.empty() ? kNoValue : inputs.back());
                         }});
  }
  mutations.push_back({"the node has 70 outputs more", [](OperatorCall& changed) {
                         for (size_t index = 0; index < kMany; ++index)
                           changed.node().outputs.push_back(
                               add_value(changed.model->graph, fmt::format("more{}", index)));
                       }});
  for (size_t index = 0; index < std::min(kMostInputs, call.inputs.size()); ++index)
    add_input_mutations(index, call.inputs[index], mutations);
  for (const AttributeSchema& attribute : node.schema->attributes) add_attribute_mutations(attribute, node, mutations);
  return mutations;
}

std::vector<CallMutation> attribute_type_mutations_of(const OperatorCall& call) {
  std::vector<CallMutation> mutations;
  for (const AttributeSchema& attribute : call.model->graph.nodes.front().schema->attributes) {
    const std::string name(attribute.name);
    mutations.push_back(with_attribute("an int", int_attribute(name, 1)));
    mutations.push_back(with_attribute("floats", floats_attribute(name, {1, 2})));
    mutations.push_back(with_attribute("a string", string_attribute(name, "x")));
  }
  return mutations;
}

OperatorCall mutated(const OperatorCall& call, const CallMutation& mutation, KnownInputs known) {
  OperatorCall changed{copy_model(*call.model), call.inputs};
  Graph& graph = changed.model->graph;
  for (const ValueId id : changed.node().outputs) {
    if (id != kNoValue) graph.values[static_cast<size_t>(id)].type = {};
  }
  mutation.apply(changed);
  for (size_t index = 0; index < changed.inputs.size(); ++index) {
    const Value& value = changed.inputs[index];
    graph.values[static_cast<size_t>(graph.inputs[index])].type =
        known == KnownInputs::nothing || value.is_absent() ? TypeInfo{} : type_of(value);
  }
  if (known == KnownInputs::values) make_constants(changed);
  if (known == KnownInputs::in_function) put_into_function(changed);
  link(*changed.model);
  return changed;
}

}  // namespace parallax::tests
