// SPDX-License-Identifier: Apache-2.0
// Writes ONNX text from a case's JSON. Only what the case leaves out is filled in: names of inputs and outputs.
#include "tests/ops/case_model.h"

#include <fmt/format.h>

#include "inspector/tensor/elements.h"

namespace parallax::tests {
namespace {

Result<std::string> graph_text(const Json& graph);

std::string in_quotes(std::string_view bytes) {
  std::string text = "\"";
  for (char byte : bytes) text += fmt::format("\\{:03o}", static_cast<unsigned char>(byte));
  return text + "\"";
}

std::string type_text(const TypeInfo& type) {
  if (type.kind == TypeInfo::Kind::tensor) {
    std::string text = fmt::format("tensor_type {{ elem_type: {} ", static_cast<int>(type.dtype));
    if (!type.dims.has_value()) return text + "} ";
    text += "shape { ";
    for (const Dim& dim : *type.dims) {
      text += dim.is_known()      ? fmt::format("dim {{ dim_value: {} }} ", dim.value)
              : !dim.name.empty() ? fmt::format("dim {{ dim_param: {} }} ", in_quotes(dim.name))
                                  : "dim { } ";
    }
    return text + "} } ";
  }
  const std::string inner = type_text(type.inner.front());
  if (type.kind == TypeInfo::Kind::map)
    return fmt::format("map_type {{ key_type: {} value_type {{ {} }} }} ", static_cast<int>(type.dtype), inner);
  return fmt::format("{} {{ elem_type {{ {} }} }} ",
                     type.kind == TypeInfo::Kind::sequence ? "sequence_type" : "optional_type", inner);
}

Result<std::string> tensor_text(const Json& json, const std::string& name = "") {
  const Value value = PX_TRY(value_from_json(json));
  if (!value.is_tensor()) return usage_error("an attribute or initializer that is no tensor");
  const Tensor& tensor = value.tensor();
  std::string text = fmt::format("data_type: {} ", static_cast<int>(tensor.dtype()));
  if (!name.empty()) text += fmt::format("name: {} ", in_quotes(name));
  for (int64_t dim : tensor.shape()) text += fmt::format("dims: {} ", dim);
  if (tensor.dtype() == DType::string) {
    for (const std::string& element : tensor.as<std::string>())
      text += fmt::format("string_data: {} ", in_quotes(element));
    return text;
  }
  const auto bytes = tensor.view().bytes();
  return text + fmt::format("raw_data: {} ", in_quotes({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

std::string float_text(const Json& json) {
  return json.is_string() ? json.get<std::string>() : fmt::format("{}", json.get<double>());
}

std::string list_text(const Json& list, std::string_view type, std::string_view field) {
  std::string text = fmt::format("type: {} ", type);
  for (const Json& item : list) {
    const std::string element = field == "strings"  ? in_quotes(item.get<std::string>())
                                : field == "floats" ? float_text(item)
                                                    : item.dump();
    text += fmt::format("{}: {} ", field, element);
  }
  return text;
}

std::string list_text(const Json& list) {
  bool any_float = false;
  for (const Json& item : list) any_float |= item.is_number_float();
  if (!list.empty() && list.front().is_string()) return list_text(list, "STRINGS", "strings");
  return any_float ? list_text(list, "FLOATS", "floats") : list_text(list, "INTS", "ints");
}

Result<std::string> sparse_text(const Json& json) {
  std::string text = fmt::format("values {{ {} }} indices {{ {} }} ", PX_TRY(tensor_text(json.at("values"))),
                                 PX_TRY(tensor_text(json.at("indices"))));
  for (const Json& dim : json.at("dims")) text += fmt::format("dims: {} ", dim.dump());
  return text;
}

// Values that JSON's own types cannot express: {"floats": []}, {"float": "nan"}, {"graph": ...}, {"ref": "alpha",
// "type": "FLOAT"}.
Result<std::string> object_text(const Json& json) {
  if (json.contains("values") && json.contains("type"))
    return fmt::format("type: TENSOR t {{ {} }} ", PX_TRY(tensor_text(json)));
  if (json.contains("ref"))
    return fmt::format("type: {} ref_attr_name: {} ", json.at("type").get<std::string>(),
                       in_quotes(json.at("ref").get<std::string>()));
  if (json.contains("graph")) return fmt::format("type: GRAPH g {{ {} }} ", PX_TRY(graph_text(json.at("graph"))));
  if (json.contains("float")) return fmt::format("type: FLOAT f: {} ", float_text(json.at("float")));
  if (json.contains("floats")) return list_text(json.at("floats"), "FLOATS", "floats");
  if (json.contains("ints")) return list_text(json.at("ints"), "INTS", "ints");
  if (json.contains("strings")) return list_text(json.at("strings"), "STRINGS", "strings");
  if (json.contains("sparse_tensor"))
    return fmt::format("type: SPARSE_TENSOR sparse_tensor {{ {} }} ", PX_TRY(sparse_text(json.at("sparse_tensor"))));
  if (json.contains("type_proto"))
    return fmt::format("type: TYPE_PROTO tp {{ {} }} ",
                       type_text(PX_TRY(parse_type(json.at("type_proto").get<std::string>()))));
  return usage_error(fmt::format("no attribute can be made of {}", json.dump()));
}

Result<std::string> attribute_text(const std::string& name, const Json& json) {
  std::string text = fmt::format("name: {} ", in_quotes(name));
  if (json.is_number_float()) return text + fmt::format("type: FLOAT f: {} ", float_text(json));
  if (json.is_number()) return text + fmt::format("type: INT i: {} ", json.dump());
  if (json.is_string()) return text + fmt::format("type: STRING s: {} ", in_quotes(json.get<std::string>()));
  if (json.is_array()) return text + list_text(json);
  return text + PX_TRY(object_text(json));
}

std::string name_or_nothing(const Json& name) { return in_quotes(name.is_null() ? "" : name.get<std::string>()); }

Result<std::string> node_text(const Json& node) {
  std::string text = fmt::format("node {{ op_type: {} ", in_quotes(node.at("op").get<std::string>()));
  if (node.contains("domain")) text += fmt::format("domain: {} ", in_quotes(node.at("domain").get<std::string>()));
  for (const Json& name : node.at("inputs")) text += fmt::format("input: {} ", name_or_nothing(name));
  for (const Json& name : node.at("outputs")) text += fmt::format("output: {} ", name_or_nothing(name));
  if (node.contains("attributes")) {
    for (const auto& [name, value] : node.at("attributes").items())
      text += fmt::format("attribute {{ {} }} ", PX_TRY_CONTEXT("attribute " + name, attribute_text(name, value)));
  }
  return text + "}\n";
}

// Inputs and outputs are names, or names and types: ["x", "y"] or {"x": "float32[2]", "y": "?"}.
Result<std::string> listing_text(std::string_view field, const Json& names) {
  std::string text;
  for (const auto& [key, value] : names.items()) {
    const bool has_type = names.is_object() && value != "?";
    const std::string name = names.is_object() ? key : value.get<std::string>();
    text += fmt::format("{} {{ name: {} ", field, in_quotes(name));
    if (has_type) text += fmt::format("type {{ {} }} ", type_text(PX_TRY(parse_type(value.get<std::string>()))));
    text += "}\n";
  }
  return text;
}

Result<std::string> graph_text(const Json& graph) {
  std::string text = "name: \"g\" ";
  if (graph.contains("inputs")) text += PX_TRY(listing_text("input", graph.at("inputs")));
  text += PX_TRY(listing_text("output", graph.at("outputs")));
  if (graph.contains("initializers")) {
    for (const auto& [name, value] : graph.at("initializers").items())
      text += fmt::format("initializer {{ {} }}\n", PX_TRY(tensor_text(value, name)));
  }
  for (const Json& node : graph.at("nodes")) text += PX_TRY(node_text(node));
  return text;
}

std::string opsets_text(const Json& opset) {
  if (opset.is_number()) return fmt::format("opset_import {{ version: {} }}\n", opset.dump());
  std::string text;
  for (const auto& [domain, version] : opset.items())
    text += fmt::format("opset_import {{ domain: {} version: {} }}\n", in_quotes(domain), version.dump());
  return text;
}

Result<std::string> function_text(const Json& function) {
  std::string text =
      fmt::format("name: {} domain: {} {}", in_quotes(function.at("name").get<std::string>()),
                  in_quotes(function.at("domain").get<std::string>()), opsets_text(function.at("opset")));
  for (const Json& name : function.at("inputs")) text += fmt::format("input: {} ", in_quotes(name.get<std::string>()));
  for (const Json& name : function.at("outputs"))
    text += fmt::format("output: {} ", in_quotes(name.get<std::string>()));
  if (function.contains("attributes")) {
    for (const auto& [name, value] : function.at("attributes").items()) {
      text += value.is_null() ? fmt::format("attribute: {} ", in_quotes(name))
                              : fmt::format("attribute_proto {{ {} }} ", PX_TRY(attribute_text(name, value)));
    }
  }
  for (const Json& node : function.at("nodes")) text += PX_TRY(node_text(node));
  return text;
}

// The graph of a case of one operator.
Json one_node_graph(const Json& op_case) {
  Json node = {{"op", op_case.at("op")}, {"inputs", Json::array()}, {"outputs", Json::array()}};
  Json graph = {{"inputs", Json::object()}, {"outputs", Json::object()}};
  if (op_case.contains("domain")) node["domain"] = op_case.at("domain");
  if (op_case.contains("attributes")) node["attributes"] = op_case.at("attributes");
  for (const char* field : {"inputs", "outputs"}) {
    size_t number = 0;
    for (const Json& value : op_case.at(field)) {
      const std::string name = fmt::format("{}{}", field[0] == 'i' ? "in" : "out", number++);
      node[field].push_back(value.is_null() ? Json() : Json(name));
      if (!value.is_null()) graph[field][name] = value.at("type");
    }
  }
  graph["nodes"] = Json::array({std::move(node)});
  return graph;
}

// Names of inputs and outputs get the types of the case's values.
Json typed_listing(const Json& names, const Json& values) {
  if (names.is_object()) return names;
  Json typed = Json::object();
  for (size_t index = 0; index < names.size(); ++index)
    typed[names[index].get<std::string>()] = values.at(index).at("type");
  return typed;
}

}  // namespace

Result<std::string> model_text(const Json& op_case) {
  std::string text = fmt::format("ir_version: 13\n{}", opsets_text(op_case.at("opset")));
  Json graph = op_case.contains("graph") ? op_case.at("graph") : one_node_graph(op_case);
  graph["inputs"] = typed_listing(graph.at("inputs"), op_case.at("inputs"));
  graph["outputs"] = typed_listing(graph.at("outputs"), op_case.at("outputs"));
  if (op_case.contains("functions")) {
    for (const Json& function : op_case.at("functions"))
      text += fmt::format("functions {{ {} }}\n", PX_TRY(function_text(function)));
  }
  return text + fmt::format("graph {{ {} }}\n", PX_TRY(graph_text(graph)));
}

}  // namespace parallax::tests
