// SPDX-License-Identifier: Apache-2.0
// The class Model of Python: reading, writing, looking at and transforming models.
#include "inspector/python/binding/model.h"

#include <map>

#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "inspector/base/shown_text.h"
#include "inspector/executors/rewrite.h"
#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"
#include "inspector/model/scope_tree.h"
#include "inspector/python/binding/errors.h"
#include "inspector/python/binding/outputs.h"
#include "inspector/python/binding/tensor.h"
#include "inspector/python/binding/text_caster.h"
#include "inspector/render/dot.h"
#include "inspector/render/graph_svg.h"
#include "inspector/render/graph_text.h"
#include "inspector/render/graphviz.h"
#include "inspector/render/overview_svg.h"
#include "inspector/transform/extract.h"
#include "inspector/transform/freeze_inputs.h"

namespace parallax::python {
namespace {

// A graph of more nodes is drawn with its scopes closed.
constexpr int64_t kNodesInOnePicture = 600;

struct ValueInfo {
  std::string name;
  TypeInfo type;
};

// Keeps the model alive, whose graph it leads into.
struct NodeInfo {
  std::shared_ptr<const Model> model;
  const Graph* graph = nullptr;
  const Node* node = nullptr;
};

struct Initializer {
  std::shared_ptr<const Model> model;
  const StoredTensor* stored = nullptr;
};

nb::object shape_of(const TypeInfo& type) {
  if (!type.dims.has_value()) return nb::none();
  nb::list dims;
  for (const Dim& dim : *type.dims) {
    if (dim.is_known()) {
      dims.append(dim.value);
    } else if (!dim.name.empty()) {
      dims.append(dim.name);
    } else {
      dims.append(nb::none());
    }
  }
  return nb::tuple(dims);
}

std::vector<ValueInfo> input_infos(const ModelHandle& self) {
  std::vector<ValueInfo> infos;
  const Graph& graph = self.model->graph;
  for (const ValueId id : graph.inputs) infos.push_back({value_at(graph, id).name, value_at(graph, id).type});
  return infos;
}

std::vector<ValueInfo> output_infos(const ModelHandle& self) {
  std::vector<ValueInfo> infos;
  const Graph& graph = self.model->graph;
  for (size_t index = 0; index < graph.outputs.size(); ++index)
    infos.push_back({value_at(graph, graph.outputs[index]).name, graph.output_type(index)});
  return infos;
}

std::vector<NodeInfo> node_infos(const ModelHandle& self) {
  std::vector<NodeInfo> infos;
  const Graph& graph = self.model->graph;
  for (const NodeId id : graph.order) infos.push_back({self.model, &graph, &graph.nodes[static_cast<size_t>(id)]});
  return infos;
}

std::vector<Initializer> initializers(const ModelHandle& self) {
  std::vector<Initializer> list;
  for (const StoredTensor& stored : self.model->graph.initializers) list.push_back({self.model, &stored});
  return list;
}

std::vector<std::string> names_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  for (const ValueId id : ids) names.push_back(id == kNoValue ? std::string() : value_at(graph, id).name);
  return names;
}

nb::dict metadata_dict(const Metadata& metadata) {
  nb::dict result;
  for (const auto& [key, text] : metadata) result[nb::cast(key)] = text;
  return result;
}

nb::object attribute_to_python(const Attribute& attribute) {
  if (const auto* number = std::get_if<float>(&attribute.value)) return nb::float_(*number);
  if (const auto* number = std::get_if<int64_t>(&attribute.value)) return nb::int_(*number);
  if (const auto* text = std::get_if<std::string>(&attribute.value)) return nb::cast(*text);
  if (const auto* stored = std::get_if<StoredTensor>(&attribute.value))
    return nb::cast(TensorHandle{stored->tensor, false});
  nb::list items;
  if (const auto* numbers = std::get_if<std::vector<float>>(&attribute.value)) {
    for (const float number : *numbers) items.append(number);
    return items;
  }
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(&attribute.value)) {
    for (const int64_t number : *numbers) items.append(number);
    return items;
  }
  if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) {
    for (const std::string& text : *texts) items.append(text);
    return items;
  }
  return nb::none();  // graphs, types and sparse tensors: text() shows them
}

nb::dict attributes(const NodeInfo& self) {
  nb::dict result;
  for (const Attribute& attribute : self.node->attributes)
    result[nb::cast(attribute.name)] = attribute_to_python(attribute);
  return result;
}

ModelHandle load_model(const std::string& path, bool validate) {
  const nb::gil_scoped_release nogil;
  return {unwrap(import_model(path, {.checks = validate ? ModelChecks::required : ModelChecks::none}))};
}

ModelHandle model_of_bytes(const nb::bytes& data, const std::string& directory, const std::string& description,
                           bool validate) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data.c_str()), data.size());
  const nb::gil_scoped_release nogil;
  return {unwrap(
      import_model(bytes, directory, description, {.checks = validate ? ModelChecks::required : ModelChecks::none}))};
}

nb::bytes model_to_bytes(const ModelHandle& self) {
  std::string bytes;
  {
    const nb::gil_scoped_release nogil;
    bytes = unwrap(export_model_bytes(*self.model));
  }
  return nb::bytes(bytes.data(), bytes.size());
}

std::string text_of(const ModelHandle& self, bool shapes, int depth) {
  return graph_to_text(*self.model, {.shapes = shapes, .depth = depth});
}

std::string svg_of(const ModelHandle& self) {
  const nb::gil_scoped_release nogil;
  const Graph& graph = self.model->graph;
  if (count_nodes(graph) <= kNodesInOnePicture) return graph_to_svg(graph, nullptr);
  std::string overview = overview_to_svg(graph, nullptr);
  return overview.empty() ? graph_to_svg(graph, nullptr) : overview;
}

// Drawn by Graphviz: our own layout opens all scopes.
std::string svg_of_depth(const ModelHandle& self, int depth) {
  const nb::gil_scoped_release nogil;
  return unwrap(draw_dot(unwrap(graph_to_dot(self.model->graph, {.depth = depth, .focus = {}})), "svg"));
}

std::string dot_of(const ModelHandle& self, int depth, bool shapes) {
  return unwrap(graph_to_dot(self.model->graph, {.depth = depth, .focus = {}, .shapes = shapes}));
}

std::pair<ModelHandle, nb::dict> rewrite(const ModelHandle& self, const std::string& patterns) {
  RewrittenModel rewritten;
  {
    const nb::gil_scoped_release nogil;
    rewritten = unwrap(rewrite_model(*self.model, patterns));
  }
  nb::dict nodes, custom_ops, applied, report;
  nodes["before"] = rewritten.nodes_before;
  nodes["after"] = rewritten.nodes_after;
  for (const auto& [domain, count] : rewritten.custom_ops) custom_ops[nb::cast(domain)] = count;
  for (const AppliedPattern& pattern : rewritten.applied) applied[nb::cast(std::string(pattern.name))] = pattern.count;
  report["nodes"] = nodes;
  report["custom_ops"] = custom_ops;
  report["applied"] = applied;
  return {ModelHandle{rewritten.model}, report};
}

ModelHandle extract(const ModelHandle& self, const std::vector<std::string>& from, const std::vector<std::string>& to) {
  const nb::gil_scoped_release nogil;
  return {unwrap(transform::extract_model(self.model, from, to))};
}

ModelHandle freeze(const ModelHandle& self, const nb::dict& values) {
  std::map<std::string, Tensor> tensors;
  for (auto [name, value] : values) tensors[nb::cast<std::string>(name)] = tensor_from(value).tensor;
  const nb::gil_scoped_release nogil;
  return {unwrap(transform::freeze_inputs(*self.model, tensors))};
}

nb::list check(const ModelHandle& self) {
  nb::list found;
  std::vector<ModelProblem> problems;
  {
    const nb::gil_scoped_release nogil;
    problems = check_model(*self.model);
    if (problems.empty()) problems = check_shapes(*self.model);
  }
  for (const ModelProblem& problem : problems) found.append(nb::make_tuple(problem.where, problem.message));
  return found;
}

void bind_parts(nb::module_& module) {
  nb::class_<ValueInfo>(module, "ValueInfo", "An input or output of a model: its name and declared type.")
      .def_ro("name", &ValueInfo::name)
      .def_prop_ro(
          "type", [](const ValueInfo& self) { return to_string(self.type); },
          "As in messages: \"float32[batch,3,?]\", \"seq(float32)\".")
      .def_prop_ro("kind",
                   [](const ValueInfo& self) {
                     constexpr std::array kKinds{"unknown",  "tensor", "sparse_tensor", "sequence",
                                                 "optional", "map",    "opaque"};
                     return std::string(kKinds[static_cast<size_t>(self.type.kind)]);
                   })
      .def_prop_ro(
          "dtype", [](const ValueInfo& self) { return std::string(name_of(self.type.dtype)); },
          "Element type of a tensor, key type of a map.")
      .def_prop_ro(
          "shape", [](const ValueInfo& self) { return shape_of(self.type); },
          nb::sig("def shape(self) -> tuple[int | str | None, ...] | None"),
          "A number, a name or None for each dimension; None where the rank is unknown.")
      .def("__repr__",
           [](const ValueInfo& self) { return printable(fmt::format("{}: {}", self.name, to_string(self.type))); });
  nb::class_<NodeInfo>(module, "NodeInfo", "A node of a model's main graph.")
      .def_prop_ro(
          "name", [](const NodeInfo& self) { return self.node->display_name; },
          "Its name, or operator and position where the file names none; unique in its graph.")
      .def_prop_ro("op", [](const NodeInfo& self) { return self.node->op_type; })
      .def_prop_ro(
          "domain", [](const NodeInfo& self) { return self.node->domain; }, "\"\" is ai.onnx.")
      .def_prop_ro(
          "inputs", [](const NodeInfo& self) { return names_of(*self.graph, self.node->inputs); },
          "Names of values; \"\" for one that is omitted.")
      .def_prop_ro("outputs", [](const NodeInfo& self) { return names_of(*self.graph, self.node->outputs); })
      .def_prop_ro("attributes", attributes, nb::sig("def attributes(self) -> dict[str, typing.Any]"),
                   "Numbers, texts, lists and Tensors; None for graphs and types.")
      .def_prop_ro(
          "metadata", [](const NodeInfo& self) { return metadata_dict(self.node->metadata); },
          nb::sig("def metadata(self) -> dict[str, str]"))
      .def_prop_ro(
          "scope", [](const NodeInfo& self) { return source_of(*self.node).module; },
          "The module it was exported from: \"model.layers.0\"; \"\" where the file does not say.")
      .def_prop_ro(
          "source", [](const NodeInfo& self) { return source_of(*self.node).line; },
          "\"model.py:11\"; \"\" where the file does not say.")
      .def("__repr__", [](const NodeInfo& self) {
        return printable(fmt::format("{} ({})", self.node->display_name, versioned_op_name(*self.node)));
      });
  nb::class_<Initializer>(module, "Initializer", "A weight of a model.")
      .def_prop_ro("name", [](const Initializer& self) { return self.stored->name; })
      .def_prop_ro("dtype", [](const Initializer& self) { return std::string(name_of(self.stored->tensor.dtype())); })
      .def_prop_ro(
          "shape",
          [](const Initializer& self) {
            nb::list dims;
            for (const int64_t dim : self.stored->tensor.shape().dims()) dims.append(dim);
            return nb::tuple(dims);
          },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "tensor",
          [](const Initializer& self) {
            return TensorHandle{self.stored->tensor, false};
          },
          "A read-only view.")
      .def("__repr__", [](const Initializer& self) {
        return printable(fmt::format("{}: {}{}", self.stored->name, name_of(self.stored->tensor.dtype()),
                                     self.stored->tensor.shape().to_string()));
      });
}

void bind_views(nb::class_<ModelHandle>& type) {
  type.def_prop_ro(
          "path", [](const ModelHandle& self) { return self.model->path; }, "File or description.")
      .def_prop_ro("inputs", input_infos)
      .def_prop_ro("outputs", output_infos)
      .def_prop_ro("initializers", initializers)
      .def_prop_ro("nodes", node_infos, "The nodes of the main graph, in execution order.")
      .def_prop_ro(
          "node_count", [](const ModelHandle& self) { return count_nodes(self.model->graph); },
          "Nodes of the main graph and of the bodies in it.")
      .def_prop_ro("ir_version", [](const ModelHandle& self) { return self.model->ir_version; })
      .def_prop_ro(
          "opset_imports",
          [](const ModelHandle& self) {
            nb::dict imports;
            for (const OpsetImport& import : self.model->opset_imports)
              imports[nb::cast(import.domain)] = import.version;
            return imports;
          },
          nb::sig("def opset_imports(self) -> dict[str, int]"))
      .def_prop_ro(
          "metadata", [](const ModelHandle& self) { return metadata_dict(self.model->metadata); },
          nb::sig("def metadata(self) -> dict[str, str]"))
      .def_prop_ro("producer",
                   [](const ModelHandle& self) {
                     const Model& model = *self.model;
                     return model.producer_version.empty() ? model.producer_name
                                                           : model.producer_name + " " + model.producer_version;
                   })
      .def("text", text_of, nb::arg("shapes") = false, nb::arg("depth") = -1,
           "Returns the graph as text, a line a node; `shapes` adds types, scopes below `depth` are folded.")
      .def(
          "json", [](const ModelHandle& self, bool shapes) { return graph_to_json(*self.model, {.shapes = shapes}); },
          nb::arg("shapes") = false, "Returns the graph as JSON text.")
      .def("dot", dot_of, nb::arg("depth") = -1, nb::arg("shapes") = true, "Returns the graph as text for Graphviz.")
      .def("svg_of_depth", svg_of_depth, nb::arg("depth"),
           "Returns a picture by Graphviz in which scopes below `depth` are one box each. Raises Unsupported without "
           "it.")
      .def("svg", svg_of, "Returns a picture of the graph; of a large one with scopes closed.");
}

}  // namespace

void bind_model(nb::module_& module) {
  bind_parts(module);
  nb::class_<ModelHandle> type(module, "Model", nb::is_weak_referenceable(),
                               "A model as it was read; it never changes.");
  type.def_static("load", load_model, nb::arg("path"), nb::arg("validate") = true, "Reads a model file.")
      .def_static("from_bytes", model_of_bytes, nb::arg("data"), nb::arg("directory") = "",
                  nb::arg("description") = "model", nb::arg("validate") = true,
                  "Reads a model from bytes; `directory` is where external data is stored (\"\" refuses it).");
  bind_views(type);
  type.def("to_bytes", model_to_bytes, "Returns the serialized model, weights inline. Raises Unsupported above 2 GB.")
      .def(
          "save",
          [](const ModelHandle& self, const std::string& path, bool force) {
            const nb::gil_scoped_release nogil;
            const OutputScope scope(force, {self.model->path});
            unwrap(admit_model(path));
            unwrap(export_model(*self.model, path));
          },
          nb::arg("path"), nb::arg("force") = false,
          "Writes a file (.onnx, or text by its ending); large weights go to a file next to it.")
      .def("sha256", [](const ModelHandle& self) { return model_sha256(*self.model); })
      .def("rewrite", rewrite, nb::arg("patterns") = "default",
           nb::sig("def rewrite(self, patterns: str = 'default') -> tuple[Model, dict[str, dict[str, int]]]"),
           "Returns the rewritten model and a report: nodes before and after, custom_ops by domain, applied patterns.")
      .def("freeze_inputs", freeze, nb::arg("values"),
           nb::sig("def freeze_inputs(self, values: dict[str, typing.Any]) -> Model"),
           "Returns a model whose named inputs are initializers that share the given arrays' memory.")
      .def("extract", extract, nb::arg("from_"), nb::arg("to"),
           nb::sig(
               "def extract(self, from_: collections.abc.Sequence[str], to: collections.abc.Sequence[str]) -> Model"),
           "Returns what computes the values `to` from the values `from_` as a model of its own.")
      .def("check", check, nb::sig("def check(self) -> list[tuple[str, str]]"),
           "Returns (where, message) of everything that breaks the specification.");
}

}  // namespace parallax::python
