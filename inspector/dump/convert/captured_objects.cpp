// SPDX-License-Identifier: Apache-2.0
// A model of Identity nodes over initializers: the names of its outputs are the containers.
#include "inspector/dump/convert/captured_objects.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "inspector/dump/convert/object_tree.h"
#include "inspector/model/io/export.h"

namespace parallax {
namespace {

using dump::CallKey;
using dump::Json;
using dump::NamedOutput;

constexpr std::string_view kTreesKey = "parallax.structures";
constexpr std::string_view kRoot = "value";
constexpr size_t kInlineBytes = 1024;

// ---- Reading -------------------------------------------------------------------------------------------------------

// The outputs in order; nothing where one of them is no Identity of an initializer or has no name of the form.
std::optional<std::vector<NamedOutput>> outputs_of(const Graph& graph) {
  std::vector<NamedOutput> outputs;
  if (!graph.inputs.empty() || graph.outputs.empty()) return std::nullopt;
  for (const ValueId id : graph.outputs) {
    const ValueDef& value = value_at(graph, id);
    if (value.producer == kNoNode || !dump::is_output_name(value.name)) return std::nullopt;
    const Node& node = graph.nodes[static_cast<size_t>(value.producer)];
    if (node.op_type != "Identity" || node.inputs.size() != 1 || node.inputs[0] == kNoValue) return std::nullopt;
    const int32_t initializer = value_at(graph, node.inputs[0]).initializer_index;
    if (initializer < 0) return std::nullopt;
    outputs.push_back({value.name, graph.initializers[static_cast<size_t>(initializer)].tensor});
  }
  return outputs;
}

// The object that one key of the outermost dictionary holds.
struct Keyed {
  std::string_view key;
  std::span<const NamedOutput> outputs;
};

std::vector<Keyed> keyed_objects(std::span<const NamedOutput> outputs) {
  std::vector<Keyed> objects;
  for (size_t index = 0; index < outputs.size(); ++index) {
    const auto key = dump::dictionary_key(dump::segments_of(outputs[index].name).front());
    if (!key.has_value()) return {};
    if (!objects.empty() && objects.back().key == *key) {
      objects.back().outputs = {objects.back().outputs.data(), objects.back().outputs.size() + 1};
    } else {
      objects.push_back({*key, outputs.subspan(index, 1)});
    }
  }
  const auto is_call = [](const Keyed& object) { return dump::parse_call_key(object.key).has_value(); };
  return std::ranges::any_of(objects, is_call) ? objects : std::vector<Keyed>();
}

// The two parts of a module's inputs are called args and kwargs, which their indices in the names are not.
std::string renamed_part(const std::string& name, bool is_input) {
  for (const auto& [index, part] : {std::pair{"in/0", "in/args"}, std::pair{"in/1", "in/kwargs"}}) {
    const std::string_view prefix = index;
    if (is_input && name.starts_with(prefix) && (name.size() == prefix.size() || name[prefix.size()] == '/'))
      return part + name.substr(prefix.size());
  }
  return name;
}

void rename_leaves(Json& tree) {
  if (tree.is_object() && tree.value("kind", "") == "tensor") tree["name"] = renamed_part(tree.value("name", ""), true);
  if (!tree.is_structured()) return;
  for (Json& part : tree) rename_leaves(part);
}

Status add_object(CapturedObjects& result, std::span<const NamedOutput> outputs, size_t level,
                  const std::string& frames, const std::string& root) {
  const bool is_input = root == "in";
  const auto keep = [&](const std::string& name, const Tensor& tensor) {
    result.values.push_back({frames + escape_name(renamed_part(name, is_input)), Value(tensor)});
  };
  Json tree = PX_TRY(dump::read_tree_of(outputs, level, root, keep));
  if (is_input) rename_leaves(tree);
  result.objects.push_back({frames + root, tree.dump()});
  return {};
}

std::string frames_of(const Frame& frame) { return to_string(frame) + "//"; }

// The trees that our own writer left in the metadata, over the tensors under their output names.
Result<CapturedObjects> read_exact(std::string_view trees, std::span<const NamedOutput> outputs) {
  std::map<std::string_view, const Tensor*> tensors;
  for (const NamedOutput& output : outputs) tensors[output.name] = &output.tensor;
  CapturedObjects result;
  const Json list = Json::parse(trees, nullptr, false);
  const auto broken = [] {
    return corrupt_file("the metadata of the captured objects breaks its format; it must be a list of objects in JSON");
  };
  if (!list.is_array()) return broken();
  for (const Json& item : list) {
    if (!item.is_object() || !item.contains("tree") || !item.value("path", Json()).is_string() ||
        !item.value("prefix", Json()).is_string())
      return broken();
    const std::string path = item["path"].get<std::string>();
    const ValuePath parsed = PX_TRY(parse_value_path(path));
    const auto keep = [&](const std::string& name, std::string_view, const Json& leaf) -> Status {
      if (leaf.value("kind", "") != "tensor") return {};
      const auto found = tensors.find(name);
      if (found == tensors.end() || !leaf.value("name", Json()).is_string()) return broken();
      ValuePath value{parsed.frames, leaf["name"].get<std::string>()};
      result.values.push_back({to_string(value), Value(*found->second)});
      return {};
    };
    PX_TRY(dump::visit_leaves(item["tree"], item["prefix"].get<std::string>(), keep));
    result.objects.push_back({path, item["tree"].dump()});
  }
  return result;
}

Result<CapturedObjects> read_dump(const std::string& path) {
  const auto reader = PX_TRY(DumpReader::open(path));
  CapturedObjects result;
  for (const DumpStructure& structure : reader->structures()) {
    result.objects.push_back({structure.path, structure.text});
    const ValuePath root = PX_TRY(parse_value_path(structure.path));
    Json tree = Json::parse(structure.text, nullptr, false);
    const auto keep = [&](const std::string&, std::string_view, const Json& leaf) -> Status {
      if (leaf.value("kind", "") != "tensor") return {};
      const std::string name = to_string(ValuePath{root.frames, leaf.value("name", "")});
      const int32_t entry = reader->find(name, structure.execution);
      if (entry < 0)
        return corrupt_file(fmt::format("'{}' holds no value '{}', which '{}' needs", path, name, structure.path));
      if (reader->entries()[static_cast<size_t>(entry)].level != CaptureLevel::all) {
        result.notes.push_back(fmt::format("'{}' is left out: the dump does not hold all of its elements", name));
        return {};
      }
      Value value = PX_TRY(reader->load(entry));
      result.values.push_back({name, std::move(value)});
      return {};
    };
    PX_TRY_CONTEXT("'" + path + "', object '" + structure.path + "'", dump::visit_leaves(tree, "", keep));
  }
  return result;
}

// ---- Writing -------------------------------------------------------------------------------------------------------

// Key in the outermost dictionary of the object at `path`.
std::string key_of_object(const ValuePath& path, const std::string& text) {
  const bool is_module = path.frames.size() == 1 && path.frames[0].kind == Frame::Kind::module;
  if (!is_module) return text;
  const Frame& frame = path.frames[0];
  if (frame.index < 0) return path.name == kRoot ? frame.node : text;
  if (path.name != "in" && path.name != "out") return text;
  return to_string(CallKey{frame.node, frame.index, path.name == "in"});
}

class ModelBuilder {
 public:
  explicit ModelBuilder(const std::vector<NamedValue>& values) {
    for (const NamedValue& value : values) values_[value.name] = &value.value;
    model_.ir_version = 10;
    model_.opset_imports = {{"", 18}};
    model_.producer_name = "parallax";
    model_.graph.name = "mini_model";
  }

  Status add(const CapturedObject& object, const std::string& prefix) {
    const ValuePath root = PX_TRY(parse_value_path(object.path));
    Json tree = Json::parse(object.structure, nullptr, false);
    mark_missing(tree, root);
    const auto add_leaf = [&](const std::string& name, std::string_view form, const Json& leaf) -> Status {
      return output(name, PX_TRY_CONTEXT("output '" + name + "'", tensor_of(form, leaf, root)));
    };
    PX_TRY_CONTEXT("object '" + object.path + "'", dump::visit_leaves(tree, prefix, add_leaf));
    trees_.push_back({{"path", object.path}, {"prefix", prefix}, {"tree", tree}});
    return {};
  }

  Model take() {
    model_.metadata = {{std::string(kTreesKey), trees_.dump()}};
    return std::move(model_);
  }

 private:
  Result<Tensor> tensor_of(std::string_view form, const Json& leaf, const ValuePath& root) const {
    if (form == "empty") return Tensor::zeros(DType::float64, {0});
    const std::string kind = leaf.value("kind", "");
    if (kind == "tensor") {
      return find(leaf, root)->tensor();
    }
    const Json value = leaf.value("value", Json());
    if (form == "bool" && value.is_boolean()) return Tensor::from<bool>({1}, {{value.get<bool>()}});
    if (form == "int" && value.is_number_integer()) return Tensor::from<int64_t>({1}, {{value.get<int64_t>()}});
    if (form == "float" && value.is_number()) return Tensor::from<double>({1}, {{value.get<double>()}});
    if (form == "float" && value.is_string()) return Tensor::from<double>({1}, {{special(value.get<std::string>())}});
    Tensor text = PX_TRY(Tensor::zeros(DType::string, Shape{1}));
    text.mutable_as<std::string>()[0] = value.is_string() ? value.get<std::string>() : leaf.value("text", value.dump());
    return text;
  }

  // Identity takes 8-bit floats from opset 19 on, and narrower types from later ones.
  static bool is_known_to_opset_18(DType dtype) {
    return !is_sub_byte(dtype) && (bits_of(dtype) != 8 || !is_floating(dtype));
  }

  const Value* find(const Json& leaf, const ValuePath& root) const {
    const auto found = values_.find(to_string(ValuePath{root.frames, leaf.value("name", "")}));
    return found != values_.end() && found->second->is_tensor() ? found->second : nullptr;
  }

  // Tensors that were captured without their elements are values that were not kept.
  void mark_missing(Json& node, const ValuePath& root) const {
    if (!node.is_structured()) return;
    if (node.is_object() && node.value("kind", Json()) == "tensor" && find(node, root) == nullptr) {
      node = {{"kind", "left_out"}, {"reason", "captured without its elements"}, {"text", node.value("name", "")}};
      return;
    }
    for (Json& part : node) mark_missing(part, root);
  }

  static double special(const std::string& text) {
    const double infinity = std::numeric_limits<double>::infinity();
    return text == "inf" ? infinity : text == "-inf" ? -infinity : std::numeric_limits<double>::quiet_NaN();
  }

  Status output(const std::string& name, Tensor tensor) {
    Graph& graph = model_.graph;
    if (!names_.insert(name).second)
      return unsupported(fmt::format(
          "two values of the captured objects would be the output '{}'; each output needs a name of its own", name));
    if (!is_known_to_opset_18(tensor.dtype())) model_.opset_imports = {{"", 25}};
    const auto next = static_cast<ValueId>(graph.values.size());
    ValueDef weight;
    weight.name = "t_" + name;
    weight.type = type_of(Value(tensor));
    weight.initializer_index = static_cast<int32_t>(graph.initializers.size());
    ValueDef result;
    result.name = name;
    result.type = weight.type;
    result.producer = static_cast<NodeId>(graph.nodes.size());
    result.output_index = 0;
    result.is_graph_output = true;
    StoredTensor stored;
    stored.name = weight.name;
    stored.tensor = std::move(tensor);
    Node node;
    node.op_type = "Identity";
    node.inputs = {next};
    node.outputs = {next + 1};
    graph.initializers.push_back(std::move(stored));
    graph.initializer_values.push_back(next);
    graph.values.push_back(std::move(weight));
    graph.values.push_back(std::move(result));
    graph.nodes.push_back(std::move(node));
    graph.outputs.push_back(next + 1);
    return {};
  }

  std::map<std::string_view, const Value*> values_;
  std::set<std::string> names_;
  Json trees_ = Json::array();
  Model model_;
};

}  // namespace

Result<std::optional<CapturedObjects>> read_captured_objects(const Model& model) {
  const auto outputs = outputs_of(model.graph);
  if (!outputs.has_value()) return std::optional<CapturedObjects>();
  const std::string context = "'" + model.path + "'";
  if (const auto trees = find_metadata(model.metadata, kTreesKey); !trees.empty())
    return std::optional(PX_TRY_CONTEXT(context, read_exact(trees, *outputs)));
  CapturedObjects result;
  const auto objects = keyed_objects(*outputs);
  if (objects.empty()) PX_TRY_CONTEXT(context, add_object(result, *outputs, 0, "", std::string(kRoot)));
  for (const Keyed& object : objects) {
    const auto call = dump::parse_call_key(object.key);
    const Frame frame = call.has_value() ? Frame{Frame::Kind::module, call->module, call->call}
                                         : Frame{Frame::Kind::module, std::string(object.key), -1};
    const std::string root = call.has_value() ? (call->is_input ? "in" : "out") : std::string(kRoot);
    PX_TRY_CONTEXT(context, add_object(result, object.outputs, 1, frames_of(frame), root));
  }
  return std::optional(std::move(result));
}

Result<CapturedObjects> read_captured_objects(const std::string& path) {
  if (path.ends_with(".plx")) {
    CapturedObjects objects = PX_TRY(read_dump(path));
    if (!objects.objects.empty()) return objects;
    return usage_error(
        fmt::format("'{}' holds no captured objects; it must be a dump that a capture of modules wrote", path));
  }
  const auto model = PX_TRY(import_model(path));
  auto objects = PX_TRY(read_captured_objects(*model));
  if (!objects.has_value())
    return usage_error(
        fmt::format("'{}' holds no captured objects; the outputs of such a model are Identity nodes over "
                    "initializers, with names like 'dict_x___tuple_0___tensor'",
                    path));
  return *std::move(objects);
}

Status record_objects(const CapturedObjects& objects, TensorRecorder& recorder) {
  for (const NamedValue& value : objects.values) {
    const ValuePath path = PX_TRY(parse_value_path(value.name));
    const bool is_input = path.name == "in" || path.name.starts_with("in/");
    RecordOptions options;
    if (is_input) options.role = ValueInfo::Role::input;
    PX_TRY(recorder.write(path, value.value, options));
  }
  for (const CapturedObject& object : objects.objects) PX_TRY(recorder.structure(object.path, object.structure));
  return {};
}

Status write_captured_objects(const CapturedObjects& objects, const std::string& path,
                              const CaptureExportOptions& options) {
  if (objects.objects.empty())
    return usage_error("there are no captured objects that '" + path + "' could hold; capture at least one");
  std::map<std::string, size_t> last;  // of the objects with one key
  std::vector<std::string> keys;
  for (const CapturedObject& object : objects.objects) {
    const ValuePath root = PX_TRY(parse_value_path(object.path));
    keys.push_back(key_of_object(root, object.path));
    if (keys.back().find(dump::kLevelSeparator) != std::string::npos)
      return unsupported(
          fmt::format("the name of '{}' holds '{}', which separates the levels of an output's name; capture "
                      "the module under another name",
                      object.path, dump::kLevelSeparator));
    last[keys.back()] = keys.size() - 1;
  }
  const bool is_single = keys.size() == 1 && keys[0] == kRoot;
  const size_t final_index = std::ranges::max_element(last, {}, [](const auto& entry) { return entry.second; })->second;
  ModelBuilder builder(objects.values);
  for (size_t index = 0; index < keys.size(); ++index) {
    if (last[keys[index]] != index) continue;
    const std::string prefix =
        fmt::format("dict{}_{}{}", index == final_index ? "." : "", keys[index], dump::kLevelSeparator);
    PX_TRY(builder.add(objects.objects[index], is_single ? "" : prefix));
  }
  ExportOptions export_options;
  if (options.external_data) export_options.external_threshold_bytes = kInlineBytes;
  export_options.keep_external = false;
  return export_model(builder.take(), path, export_options);
}

}  // namespace parallax
