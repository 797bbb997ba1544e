// SPDX-License-Identifier: Apache-2.0
// Writes the sections of nodes, blocks and models.
#include "gui/viewmodel/inspect/view_properties.h"

#include <algorithm>

#include <fmt/format.h>

#include "gui/viewmodel/inspect/view_border.h"
#include "inspector/base/shown_text.h"
#include "inspector/model/opset/op_schema.h"
#include "inspector/model/scope_tree.h"
#include "inspector/render/compact_numbers.h"
#include "inspector/render/graph_labels.h"
#include "inspector/workbench/operator_help.h"

namespace parallax {
namespace {

using Kind = InspectorLine::Kind;

constexpr size_t kMostWeightsListed = 100, kMostWeightsOpen = 12, kLongText = 240;

std::string operand_line(const BorderValue& operand) {
  const std::string type = to_string(value_at(*operand.graph, operand.value).type);
  const std::string name = shorten(operand_text(*operand.graph, operand.value), 60);
  return type == "?" ? name : name + "  " + type;
}

InspectorLine line_of(std::string key, const BorderValue& operand) {
  if (operand.value == kNoValue) return {std::move(key), "(omitted)", "", Kind::text, ""};
  return {std::move(key), operand_line(operand), "", Kind::link, path_of(operand)};
}

InspectorSection numbered(std::string title, const std::vector<BorderValue>& values) {
  InspectorSection section{std::move(title), {}};
  for (const BorderValue& value : values) section.lines.push_back(line_of(std::to_string(section.lines.size()), value));
  return section;
}

void add_text(std::string title, const std::string& text, InspectorView& view) {
  if (text.empty()) return;
  InspectorSection section{std::move(title), {{"", text, "", Kind::text, ""}}};
  section.is_open = text.size() <= kLongText;
  view.sections.push_back(std::move(section));
}

void add_metadata(const Metadata& metadata, InspectorView& view) {
  if (metadata.empty()) return;
  InspectorSection section{"Metadata", {}};
  size_t size = 0;
  for (const auto& [key, text] : metadata) {
    section.lines.push_back({key, text, "", Kind::text, ""});
    size += text.size();
  }
  section.is_open = size <= kLongText;
  view.sections.push_back(std::move(section));
}

// The inputs and outputs that cross the border of a block, and the values that its bodies read.
void add_border(const GraphItems& items, int32_t item, InspectorView& view) {
  const Border border = border_of(items, item);
  const OpSchema* schema = nullptr;
  if (items.item(item).kind == GraphItem::Kind::node)
    schema = items.item(item).graph->nodes[static_cast<size_t>(items.item(item).node)].schema;
  InspectorSection inputs = numbered("Inputs", border.inputs), outputs = numbered("Outputs", border.outputs);
  const auto name = [](InspectorSection& section, const auto& formal_of) {
    for (size_t slot = 0; slot < section.lines.size(); ++slot) {
      if (const FormalParameter* formal = formal_of(slot)) section.lines[slot].name = std::string(formal->name);
    }
  };
  if (schema != nullptr) {
    name(inputs, [&](size_t slot) { return schema->input(slot); });
    name(outputs, [&](size_t slot) { return schema->output(slot); });
  }
  if (!inputs.lines.empty()) view.sections.push_back(std::move(inputs));
  if (!border.outer.empty()) view.sections.push_back(numbered("Read by its bodies", border.outer));
  if (items.item(item).kind == GraphItem::Kind::body && !border.outer.empty())
    view.sections.back().title = "Read from outside";
  if (!outputs.lines.empty()) view.sections.push_back(std::move(outputs));
  if (border.weights.empty()) return;
  const size_t listed = std::min(border.weights.size(), kMostWeightsListed);
  InspectorSection weights =
      numbered("Weights", {border.weights.begin(), border.weights.begin() + static_cast<std::ptrdiff_t>(listed)});
  weights.is_open = listed <= kMostWeightsOpen;
  if (listed < border.weights.size())
    weights.lines.push_back(
        {"", fmt::format("{} more: search is:weight", border.weights.size() - listed), "", Kind::text, ""});
  view.sections.push_back(std::move(weights));
}

// Attributes as they are set, then those that have their default.
void add_attributes(const Node& node, InspectorView& view) {
  InspectorSection section{"Attributes", {}};
  const auto add = [&](std::string key, std::string text) {
    section.lines.push_back({std::move(key), std::move(text), "", Kind::text, ""});
  };
  for (const Attribute& attribute : node.attributes) {
    const std::string text = attribute_text(attribute);
    const size_t at = text.find('=');
    add(text.substr(0, at), at == std::string::npos ? "" : text.substr(at + 1));
  }
  if (node.schema != nullptr) {
    for (const AttributeSchema& attribute : node.schema->attributes) {
      const std::string text = to_string(attribute.default_value);
      if (!text.empty() && find_attribute(node, attribute.name) == nullptr)
        add(std::string(attribute.name), text + "  (default)");
    }
  }
  const SourceLocation source = source_of(node);
  if (!source.module.empty()) add("module", source.module);
  if (!source.line.empty()) add("source", source.line);
  if (!section.lines.empty()) view.sections.push_back(std::move(section));
}

void add_operator_help(const Node& node, InspectorView& view) {
  if (node.schema == nullptr) return;
  const auto text = operator_to_text(fmt::format("{}.{}", node.schema->domain, node.schema->versioned_name()));
  if (!text.ok()) return;
  InspectorSection section{"Operator help", {{"", *text, "", Kind::text, ""}}};
  section.is_open = false;
  view.sections.push_back(std::move(section));
}

void add_node(const GraphItems& items, int32_t index, InspectorView& view) {
  const GraphItem& item = items.item(index);
  const Node& node = item.graph->nodes[static_cast<size_t>(item.node)];
  view.title = node.display_name;
  view.subtitle = versioned_op_name(node);
  if (!item.scope.empty()) view.subtitle += "  in " + item.scope.substr(0, item.scope.size() - 2);
  if (!node.problem.empty())
    view.sections.push_back({"Problem", {{"cannot be executed", node.problem, "", Kind::bad, ""}}});
  add_attributes(node, view);
  add_border(items, index, view);
  add_text("Documentation", node.doc, view);
  if (node.function != nullptr) add_text("Function", node.function->doc, view);
  add_metadata(node.metadata, view);
  add_operator_help(node, view);
}

void add_group(const GraphItems& items, int32_t index, InspectorView& view) {
  const GraphItem& item = items.item(index);
  view.title = item.title.empty() ? "graph" : item.title;
  const std::string count = fmt::format("{} node{}", item.node_count, item.node_count == 1 ? "" : "s");
  view.subtitle = item.detail.empty() ? count : fmt::format("{}, {}", item.detail, count);
  if (item.like > 1) view.subtitle += fmt::format(", one of {} alike", item.like);
  add_border(items, index, view);
}

int64_t parameters_in(const GraphItems& items) {
  int64_t count = 0;
  for (const GraphItem& item : items.items()) {
    if (&item != &items.items().front() && item.kind != GraphItem::Kind::body) continue;
    for (const StoredTensor& stored : item.graph->initializers) count += stored.tensor.element_count();
    for (const SparseTensor& sparse : item.graph->sparse_initializers) count += sparse.values.tensor.element_count();
  }
  return count;
}

// "25,557,032".
std::string grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

}  // namespace

void add_item(const GraphItems& items, int32_t index, InspectorView& view) {
  const GraphItem& item = items.item(index);
  if (item.kind == GraphItem::Kind::node) return add_node(items, index, view);
  if (item.kind == GraphItem::Kind::group || item.kind == GraphItem::Kind::body) return add_group(items, index, view);
  view.title = item.title;
  view.subtitle = (item.kind == GraphItem::Kind::input ? "input  " : "output  ") + item.detail;
  add_text("Documentation", value_at(*item.graph, item.value).doc, view);
}

void add_model(const Document& document, InspectorView& view) {
  const Model& model = document.items->model();
  view.title = document.title();
  view.subtitle = model.graph.name.empty() ? "model" : "model, graph " + model.graph.name;
  InspectorSection properties{"Model", {}};
  const auto add = [&](std::string key, std::string text) {
    if (!text.empty()) properties.lines.push_back({std::move(key), std::move(text), "", Kind::text, ""});
  };
  add("producer", model.producer_name + (model.producer_version.empty() ? "" : " " + model.producer_version));
  add("IR version", std::to_string(model.ir_version));
  for (const OpsetImport& import : model.opset_imports)
    add("opset", fmt::format("{} {}", import.domain.empty() ? "ai.onnx" : import.domain, import.version));
  add("domain", model.domain);
  add("version", model.model_version == 0 ? "" : std::to_string(model.model_version));
  const auto all = static_cast<size_t>(document.items->item(0).node_count);
  const size_t own = model.graph.nodes.size();
  add("nodes", all == own ? std::to_string(own) : fmt::format("{}, {} with bodies and calls", own, all));
  add("parameters", grouped(parameters_in(*document.items)));
  add("functions", model.functions.empty() ? "" : std::to_string(model.functions.size()));
  view.sections.push_back(std::move(properties));
  InspectorSection problems{"Problems", {}};
  for (const ModelProblem& problem : model.problems)
    problems.lines.push_back({problem.where, problem.message, "", Kind::bad, ""});
  if (!problems.lines.empty()) view.sections.push_back(std::move(problems));
  Border border = border_of(*document.items, 0);
  std::erase_if(border.inputs, [](const BorderValue& input) {  // an initializer with a default is no input to give
    return value_at(*input.graph, input.value).initializer_index >= 0;
  });
  view.sections.push_back(numbered("Inputs", border.inputs));
  view.sections.push_back(numbered("Outputs", border.outputs));
  add_text("Documentation", model.doc, view);
  add_text("Graph documentation", model.graph.doc, view);
  add_metadata(model.metadata, view);
  view.command = document.files.empty() ? "" : fmt::format("parallax show {}", shell_word(document.files.front()));
}

}  // namespace parallax
