// SPDX-License-Identifier: Apache-2.0
// Makes the dumps, each once a process.
#include "tests/gui/viewmodel/view_fixture.h"

#include <filesystem>

#include <unistd.h>

#include "inspector/base/check.h"
#include "inspector/base/mapped_file.h"
#include "inspector/dump/convert/convert.h"
#include "inspector/executors/make_executor.h"
#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"
#include "inspector/workbench/open.h"
#include "inspector/workbench/run.h"

namespace parallax::view_test {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("parallax-views-" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() {
    std::error_code error;
    fs::remove_all(path, error);
  }
};

// A copy of the model with the largest weight that `reader` reads changed in one element.
std::string with_changed_weight(const std::string& path, const std::string& name, const std::string& weight) {
  Model model = *import_model(path).take();
  model.file.reset();
  model.sha256.clear();
  for (StoredTensor& stored : model.graph.initializers) {
    if (stored.name != weight) continue;
    stored.tensor = stored.tensor.clone().take();
    auto values = stored.tensor.mutable_as<float>();
    values[values.size() / 2] += 3;
  }
  const std::string changed = scratch(name + ".onnx");
  PX_CHECK(export_model(model, changed).ok());
  return changed;
}

Dumps run(const std::string& a, const std::string& b, const std::string& name, const std::string& inputs) {
  RunRequest request;
  request.model = a;
  request.against = b;
  request.executors = {"reference"};
  request.inputs.source = inputs;
  request.dump_directory = scratch(name);
  const auto ran = run_models(request, make_executor);
  PX_CHECK(ran.ok());
  return {ran->written.at(0), ran->written.at(1)};
}

// The weight of a Llama layer that one MatMul reads, two thirds into the layer: neither its first nor its last node.
std::pair<std::string, std::string> weight_and_reader(const Model& model) {
  std::vector<std::pair<std::string, std::string>> found;
  for (NodeId id : model.graph.order) {
    const Node& node = model.graph.nodes[static_cast<size_t>(id)];
    if (node.op_type != "MatMul" || node.inputs.size() != 2) continue;
    const ValueDef& weight = model.graph.values[static_cast<size_t>(node.inputs[1])];
    if (weight.initializer_index >= 0 && weight.readers.size() == 1) found.emplace_back(weight.name, node.display_name);
  }
  PX_CHECK(found.size() > 2);
  return found[found.size() * 2 / 3];
}

constexpr const char* kLogModel = R"(ir_version: 8
opset_import { version: 17 }
graph {
  name: "log"
  node { name: "first" op_type: "Abs" input: "x" output: "p" }
  node { name: "shift" op_type: "Add" input: "p" input: "c" output: "q" }
  node { name: "logarithm" op_type: "Log" input: "q" output: "y" }
  initializer { name: "c" data_type: 1 float_data: SHIFT }
  input { name: "x" type { tensor_type { elem_type: 1 shape { SHAPE } } } }
  output { name: "y" type { tensor_type { elem_type: 1 shape { SHAPE } } } }
}
)";

std::string log_model(const std::string& name, const std::string& shift, int rows, int columns) {
  std::string text = kLogModel;
  text.replace(text.find("SHIFT"), 5, shift);
  const std::string shape =
      "dim { dim_value: " + std::to_string(rows) + " } dim { dim_value: " + std::to_string(columns) + " }";
  for (size_t at = 0; (at = text.find("SHAPE")) != std::string::npos;) text.replace(at, 5, shape);
  const std::string path = scratch(name);
  PX_CHECK(write_file(path, text).ok());
  return path;
}

std::string forked_model(const std::string& name, const std::string& axis, const std::string& letter, bool is_b) {
  std::string text = R"(ir_version: 8
opset_import { version: 17 }
graph {
  name: "fork"
  node { name: "scale" op_type: "Mul" input: "x" input: "w" output: "p_" }
  node { name: "soft" op_type: "Softmax" input: "p_" output: "q_" attribute { name: "axis" type: INT i: AXIS } }
  MORE
  node { name: "end" op_type: "Mul" input: "q_" input: "w" output: "y" }
  initializer { name: "w" dims: 4 data_type: 1 float_data: 1 float_data: 2 float_data: 3 float_data: 4 }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "rows" } dim { dim_value: 4 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_param: "rows" } dim { dim_value: 4 } } } } }
  output { name: "LAST" type { tensor_type { elem_type: 1 shape { dim { dim_param: "rows" } dim { dim_value: 4 } } } } }
}
)";
  for (const auto& [word, value] : {std::pair<std::string, std::string>{"AXIS", axis},
                                    {"MORE", is_b ? R"(node { name: "late" op_type: "Neg" input: "p_" output: "z" })"
                                                  : R"(node { name: "clip" op_type: "Relu" input: "p_" output: "u" })"},
                                    {"LAST", is_b ? "z" : "u"}})
    text.replace(text.find(word), word.size(), value);
  for (size_t at = 0; (at = text.find("_\"", at)) != std::string::npos;) text.replace(at, 1, letter);
  const std::string path = scratch(name);
  PX_CHECK(write_file(path, text).ok());
  return path;
}

struct PlainValue {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;  // empty: zeros
};

// By way of a .safetensors file: a length, a JSON header, the data.
std::string plain_dump(const std::string& name, const std::vector<PlainValue>& values) {
  std::string header, data;
  for (const PlainValue& value : values) {
    size_t count = 1;
    std::string shape;
    for (const int64_t size : value.shape) {
      count *= static_cast<size_t>(size);
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
    }
    std::vector<float> elements = value.values;
    elements.resize(count);
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(elements.data()), count * sizeof(float));
    header += (header.empty() ? "{\"" : ",\"") + value.name + R"(":{"dtype":"F32","shape":[)" + shape +
              R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(data.size()) + "]}";
  }
  header += "}";
  uint64_t length = header.size();
  std::string text(reinterpret_cast<const char*>(&length), sizeof(length));
  const std::string origin = scratch(name + ".safetensors"), target = scratch(name + ".plx");
  PX_CHECK(write_file(origin, text + header + data).ok());
  PX_CHECK(import_dump({origin, "", ""}, target).ok());
  return target;
}

}  // namespace

std::string sample(const std::string& name) { return std::string(PX_SOURCE_DIR) + "/samples/" + name; }

std::string scratch(const std::string& name) {
  static const Folder folder;
  return (folder.path / name).string();
}

const Dumps& llama_fault() {
  static const Dumps dumps = [] {
    const std::string path = sample("llama_layer/model.onnx");
    const auto [weight, reader] = weight_and_reader(*import_model(path).take());
    return run(path, with_changed_weight(path, "llama", weight), "llama", sample("llama_layer/test_data_set_0"));
  }();
  return dumps;
}

std::string llama_culprit_node() {
  return weight_and_reader(*import_model(sample("llama_layer/model.onnx")).take()).second;
}

const Dumps& loop_fault() {
  static const Dumps dumps = [] {
    const std::string path = sample("greedy_decoder/model.onnx");
    return run(path, with_changed_weight(path, "loop", "score_weight"), "loop",
               sample("greedy_decoder/test_data_set_0"));
  }();
  return dumps;
}

const Dumps& nan_fault() {
  static const Dumps dumps =
      run(log_model("above.textproto", "1", 6, 8), log_model("below.textproto", "-1", 6, 8), "nan", "");
  return dumps;
}

const Dumps& large_fault() {
  static const Dumps dumps =
      run(log_model("large.textproto", "1", 700, 700), log_model("shifted.textproto", "1.5", 700, 700), "large", "");
  return dumps;
}

const TwoGraphs& two_graphs() {
  static const TwoGraphs two = [] {
    const Dumps models{forked_model("fork_a.textproto", "0", "", false),
                       forked_model("fork_b.textproto", "1", "_in_b", true)};
    return TwoGraphs{models, run(models.a, models.b, "fork", "")};
  }();
  return two;
}

const Dumps& plain_values() {
  static const Dumps dumps = {
      plain_dump("plain-a", {{"off", {2, 3}, {1, 2, 3, 4, 5, 6}}, {"same", {2}, {1, 2}}, {"shapes", {4, 2}, {}}}),
      plain_dump("plain-b", {{"off", {2, 3}, {1, 2, 3, 4, 5, 7}},
                             {"same", {2}, {1, 2}},
                             {"shapes", {3, 2}, {}},
                             {"lone", {2, 2}, {5, 6, 7, 8}}})};
  return dumps;
}

std::shared_ptr<const Document> opened(const Dumps& dumps) {
  const auto document = open_document({dumps.a, dumps.b});
  PX_CHECK(document.ok());
  return with_comparison(**document, compare_files(dumps.a, dumps.b, {}).take().comparison);
}

}  // namespace parallax::view_test
