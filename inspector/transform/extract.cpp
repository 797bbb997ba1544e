// SPDX-License-Identifier: Apache-2.0
// Puts the model of a part together.
#include "inspector/transform/extract.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "inspector/model/io/import.h"
#include "inspector/model/link.h"
#include "inspector/model/opset/opset_registry.h"
#include "inspector/model/shape_inference/infer_types.h"
#include "inspector/model/type_check.h"

namespace parallax::transform {
namespace {

// The first version whose initializers need not be inputs as well (onnx/docs/IR.md, "Initializers").
constexpr int64_t kIrOfFreeInitializers = 4;

// The domains and functions that nodes and the bodies and functions below them use.
struct Used {
  std::set<std::string, std::less<>> domains;  // by the graph itself and its bodies
  std::set<const Function*> functions;         // however deep
};

void collect_functions(const Graph& graph, std::set<const Function*>& functions) {
  for (const Node& node : graph.nodes) {
    if (node.function != nullptr && functions.insert(node.function).second)
      collect_functions(node.function->body, functions);
    for (const Graph* body : bodies_of(node)) collect_functions(*body, functions);
  }
}

void collect_domains(const Graph& graph, std::set<std::string, std::less<>>& domains) {
  for (const Node& node : graph.nodes) {
    domains.emplace(canonical_domain(node.domain));
    for (const Graph* body : bodies_of(node)) collect_domains(*body, domains);
  }
}

TypeInfo edge_type(const TypeInfo& declared, const Value& value) {
  if (value.is_absent()) return declared;
  if (value.is_tensor()) return type_of(value);
  // Items of a sequence may have shapes of their own.
  return without_dims(declared.kind == TypeInfo::Kind::unknown ? type_of(value) : declared);
}

class Builder {
 public:
  explicit Builder(const Part& part)
      : part_(part), source_(part.location.graph()), ids_(source_.values.size(), kNoValue) {
    graph_.name = source_.name.empty() ? "part" : source_.name;
    graph_.doc = source_.doc;
    graph_.metadata = source_.metadata;
  }

  Graph build(const PartData& data) {
    for (size_t index = 0; index < part_.inputs.size(); ++index) {
      const ValueId id = value_of(part_.inputs[index].id);
      graph_.inputs.push_back(id);
      set_edge(id, index < data.inputs.size() ? data.inputs[index] : Value());
    }
    for (const ValueId id : part_.stored) add_stored(id);
    for (const NodeId id : part_.nodes) add_node(source_.nodes[static_cast<size_t>(id)]);
    for (size_t index = 0; index < part_.outputs.size(); ++index) {
      const ValueId id = value_of(part_.outputs[index].id);
      graph_.outputs.push_back(id);
      set_edge(id, index < data.outputs.size() ? data.outputs[index] : Value());
    }
    return std::move(graph_);
  }

 private:
  ValueId value_of(ValueId source_id) {
    ValueId& id = ids_[static_cast<size_t>(source_id)];
    if (id != kNoValue) return id;
    id = static_cast<ValueId>(graph_.values.size());
    const auto definition = definition_of(part_.location, source_id);
    const ValueDef& value =
        definition.has_value() ? definition->value() : source_.values[static_cast<size_t>(source_id)];
    ValueDef& copy = graph_.values.emplace_back();
    copy.name = value.name;
    copy.type = value.type;
    copy.doc = value.doc;
    copy.metadata = value.metadata;
    copy.unparsed = value.unparsed;
    copy.has_value_info = value.has_value_info || value.input_index >= 0 || value.is_graph_output;
    return id;
  }

  // Inputs and outputs are listed as such, not in value_info.
  void set_edge(ValueId id, const Value& value) {
    ValueDef& definition = graph_.values[static_cast<size_t>(id)];
    definition.has_value_info = false;
    definition.type = edge_type(definition.type, value);
  }

  void add_stored(ValueId source_id) {
    const Definition definition = *definition_of(part_.location, source_id);
    const ValueDef& value = definition.value();
    const ValueId id = value_of(source_id);
    graph_.values[static_cast<size_t>(id)].has_value_info = value.has_value_info;
    if (const StoredTensor* tensor = stored_tensor(definition)) {
      graph_.initializers.push_back(*tensor);
      graph_.initializers.back().name = value.name;
      graph_.initializer_values.push_back(id);
    } else {
      const auto index = static_cast<size_t>(value.sparse_initializer_index);
      graph_.sparse_initializers.push_back(definition.scope->graph->sparse_initializers[index]);
      graph_.sparse_initializer_values.push_back(id);
    }
  }

  ValueId read_of(ValueId source_id) {
    if (source_id == kNoValue) return kNoValue;
    const auto definition = definition_of(part_.location, source_id);
    if (definition.has_value() && definition->is_omitted()) return kNoValue;
    return value_of(source_id);
  }

  void add_node(const Node& node) {
    Node copy = node;
    copy.name = node.display_name;
    copy.problem.clear();
    for (ValueId& id : copy.inputs) id = read_of(id);
    while (!copy.inputs.empty() && copy.inputs.back() == kNoValue) copy.inputs.pop_back();
    for (ValueId& id : copy.outputs) {
      if (id != kNoValue) id = value_of(id);
    }
    graph_.nodes.push_back(std::move(copy));
  }

  const Part& part_;
  const Graph& source_;
  std::vector<ValueId> ids_;  // by id in the source
  Graph graph_;
};

// Types that the source's file did not list followed from its own edges.
void forget_inferred_types(Graph& graph) {
  std::vector<bool> is_edge(graph.values.size());
  for (const ValueId id : graph.inputs) is_edge[static_cast<size_t>(id)] = true;
  for (const ValueId id : graph.outputs) is_edge[static_cast<size_t>(id)] = true;
  for (size_t id = 0; id < graph.values.size(); ++id) {
    if (!is_edge[id] && !graph.values[id].has_value_info) graph.values[id].type = {};
  }
}

}  // namespace

Result<std::shared_ptr<Model>> finish_model(std::shared_ptr<Model> finished) {
  finished->unparsed.clear();
  Graph& graph = finished->graph;
  forget_inferred_types(graph);
  link_graph(graph);
  resolve_operators(*finished);
  std::set<const Function*> functions;
  collect_functions(graph, functions);
  std::erase_if(finished->functions, [&](const auto& function) { return !functions.contains(function.get()); });
  std::set<std::string, std::less<>> domains;
  collect_domains(graph, domains);
  if (domains.empty()) domains.emplace("ai.onnx");  // without nodes
  std::erase_if(finished->opset_imports, [&](const OpsetImport& import) {
    return finished->opset_imports.size() > 1 && !domains.contains(canonical_domain(import.domain));
  });
  PX_TRY(check_calls(*finished));
  fill_types(*finished, infer_types(*finished));
  const auto problems = check_model(*finished);
  if (!problems.empty()) return error_of(problems.front()).with_context(finished->path);
  return finished;
}

std::shared_ptr<Model> assemble_model(const Part& part, const PartData& data) {
  const Model& source = *part.location.model;
  Model model = source;
  model.problems.clear();
  model.path = fmt::format("part of '{}'", source.path);
  model.ir_version = std::max(source.ir_version, kIrOfFreeInitializers);
  if (part.location.function != nullptr) model.opset_imports = part.location.function->opset_imports;
  model.graph = Builder(part).build(data);
  return copy_model(model);
}

Result<std::shared_ptr<Model>> extract_model(const Part& part, const PartData& data) {
  return finish_model(assemble_model(part, data));
}

Result<std::shared_ptr<Model>> extract_model(const std::shared_ptr<const Model>& model,
                                             const std::vector<std::string>& from, const std::vector<std::string>& to) {
  return extract_model(PX_TRY(find_part(model, from, to)));
}

}  // namespace parallax::transform
