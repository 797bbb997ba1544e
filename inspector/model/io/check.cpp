// SPDX-License-Identifier: Apache-2.0
// Checks of a model that was read: its header, every graph in it, its functions, and types across nodes.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "inspector/model/io/check_report.h"
#include "inspector/model/io/import.h"
#include "inspector/model/link.h"
#include "inspector/model/opset/opset_registry.h"

namespace parallax {
namespace {

constexpr int64_t kOldestIrVersion = 3;
constexpr int64_t kNewestIrVersion = 14;

void check_header(const Model& model, FoundProblems& report) {
  const std::string version = std::to_string(model.ir_version);
  if (model.ir_version == 0) {
    report.at_model("has no ir_version; is it an ONNX model?");
  } else if (model.ir_version < kOldestIrVersion || model.ir_version > kNewestIrVersion) {
    report.at_model("is of IR version " + version + "; versions " + std::to_string(kOldestIrVersion) + " to " +
                        std::to_string(kNewestIrVersion) + " are read",
                    ErrorCode::unsupported);
  }
  if (model.opset_imports.empty()) report.at_model("imports no operator set (opset_import)");
}

class Checker {
 public:
  explicit Checker(FoundProblems& report) : report_(report) {}

  // Everything but types.
  void check_all(const Model& model);
  void check_types(const ModelTypes& types);

 private:
  void check_imports(std::span<const OpsetImport> imports, const std::string& location);
  void check_graph(CheckedGraph checked, std::span<const OpsetImport> imports);
  void check_function(const Function& function);
  void check_bodies(const CheckedGraph& checked, const Node& node, std::span<const OpsetImport> imports);

  FoundProblems& report_;
  std::map<const Graph*, std::string> locations_;  // of the graphs that were checked
  std::set<std::tuple<std::string, std::string, std::string>> functions_;
};

void Checker::check_imports(std::span<const OpsetImport> imports, const std::string& location) {
  for (const OpsetImport& import : imports) {
    const std::string_view domain = canonical_domain(import.domain);
    const std::string what =
        "operator set " + std::to_string(import.version) + " of domain '" + std::string(domain) + "'" + location;
    if (import.version < 1) report_.at_model("imports " + what + "; versions begin at 1");
    const int64_t latest = OpsetRegistry::standard().latest_opset(domain);
    if (latest > 0 && import.version > latest) {
      report_.at_model("imports " + what + "; this version knows operator sets up to " + std::to_string(latest),
                       ErrorCode::unsupported);
    }
  }
}

void Checker::check_graph(CheckedGraph checked, std::span<const OpsetImport> imports) {
  locations_[&checked.graph] = checked.location;
  check_names(checked, report_);
  if (std::ranges::any_of(checked.graph.nodes, [](const Node& node) { return !bodies_of(node).empty(); })) {
    for (const ValueDef& value : checked.graph.values) {
      if (!value.is_outer) checked.names.emplace(value.name, &value);
    }
  }
  for (const Node& node : checked.graph.nodes) {
    check_node(checked, node, imports, report_);
    check_bodies(checked, node, imports);
  }
}

void Checker::check_bodies(const CheckedGraph& checked, const Node& node, std::span<const OpsetImport> imports) {
  const auto check_body = [&](const Graph& body, const std::string& name) {
    const std::string location = " in " + name + " of node '" + node.display_name + "'" + checked.location;
    check_graph({body, location, &checked, checked.function, &node}, imports);
  };
  for (const Attribute& attribute : node.attributes) {
    if (const auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) check_body(**body, attribute.name);
    if (const auto* bodies = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
      for (size_t i = 0; i < bodies->size(); ++i)
        check_body(*(*bodies)[i], attribute.name + "[" + std::to_string(i) + "]");
    }
  }
}

void Checker::check_function(const Function& function) {
  const std::string location = " in function '" + function.domain + "." + function.name + "'";
  const CheckedGraph body{function.body, location, nullptr, &function};
  if (function.name.empty()) report_.at_model("has a function without a name");
  const std::string domain(canonical_domain(function.domain));
  if (!functions_.emplace(domain, function.name, function.overload).second) {
    report_.at_model("defines function '" + function.domain + "." + function.name + "' twice");
  }
  check_imports(function.opset_imports, location);
  check_graph(body, function.opset_imports);
}

void Checker::check_all(const Model& model) {
  check_header(model, report_);
  check_imports(model.opset_imports, "");
  check_graph({model.graph, "", nullptr, nullptr}, model.opset_imports);
  for (const auto& function : model.functions) check_function(*function);
}

// Types from node to node. A declared shape that inference contradicts is stale, which exporters leave in files; it is
// no error.
void Checker::check_types(const ModelTypes& types) {
  for (const TypeProblem& problem : types.problems) {
    if (problem.kind != TypeProblem::Kind::type || problem.graph == nullptr || problem.node == kNoNode) continue;
    const CheckedGraph checked{*problem.graph, locations_[problem.graph], nullptr, nullptr};
    report_.at_node(checked, problem.graph->nodes[static_cast<size_t>(problem.node)], problem.message);
  }
}

}  // namespace

std::vector<ModelProblem> check_shapes(const Model& model) {
  FoundProblems report;
  for (const TypeProblem& problem : find_shape_conflicts(model)) {
    const CheckedGraph main{*problem.graph, "", nullptr, nullptr};
    report.at_node(main, problem.graph->nodes[static_cast<size_t>(problem.node)], problem.message);
  }
  return report.take();
}

std::vector<ModelProblem> check_model(const Model& model) {
  ModelTypes types;
  return check_model(model, types);
}

std::vector<ModelProblem> check_model(const Model& model, ModelTypes& types) {
  FoundProblems report;
  Checker checker(report);
  checker.check_all(model);
  if (report.empty()) {
    types = infer_types(model);
    checker.check_types(types);
  }
  return report.take();
}

namespace {

void mark_nodes(Graph& graph, const std::unordered_map<const Node*, std::string>& problems) {
  for (Node& node : graph.nodes) {
    if (const auto found = problems.find(&node); found != problems.end()) node.problem = found->second;
    for (const Graph* body : bodies_of(node)) mark_nodes(const_cast<Graph&>(*body), problems);
  }
}

void mark_nodes(Model& model, const FoundProblems& found) {
  mark_nodes(model.graph, found.of_nodes());
  for (const auto& function : model.functions) mark_nodes(function->body, found.of_nodes());
}

}  // namespace

void record_problems(Model& model) {
  FoundProblems report;
  Checker checker(report);
  checker.check_all(model);
  mark_nodes(model, report);  // inference leaves such nodes out
  const ModelTypes types = infer_types(model);
  checker.check_types(types);
  mark_nodes(model, report);
  fill_types(model, types);
  model.problems = report.take();
}

}  // namespace parallax
