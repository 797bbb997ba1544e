// SPDX-License-Identifier: Apache-2.0
// Small models for tests of this folder, and a folder to write into.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include <unistd.h>

#include "inspector/executors/make_executor.h"
#include "inspector/model/io/import.h"
#include "inspector/workbench/run.h"

namespace parallax::testing {

// A model from ONNX's text form (TextProto of ModelProto).
inline Result<std::shared_ptr<const Model>> model_of_text(const std::string& text) {
  return import_model(std::as_bytes(std::span(text)), "", "model.textproto");
}

inline ExecutorFactory executors() {
  return [](const std::string& name) { return make_executor(name); };
}

inline std::string sample(const std::string& name) { return std::string(PX_SOURCE_DIR) + "/samples/" + name; }

// A folder of its own for the test that makes it, removed with the object.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("parallax-transform-" + std::to_string(::getpid()) + "-" + name)) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// Main graph: scale (initializer), shifted = Add(x, one); looped = Loop(3 times, state from shifted) whose body adds
// `scale` and `shifted` of the main graph, and calls a function that leaves its third input out; y = Mul(looped,
// scale); aside = Neg(x).
inline constexpr const char* kNestedModel = R"(
ir_version: 10
opset_import { domain: "" version: 20 }
opset_import { domain: "test" version: 1 }
graph {
  name: "main"
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "n" } } } } }
  initializer { name: "one" data_type: 1 float_data: 1 }
  initializer { name: "scale" data_type: 1 float_data: 0.5 }
  initializer { name: "trips" data_type: 7 int64_data: 3 }
  initializer { name: "go" data_type: 9 int32_data: 1 }
  node { op_type: "Add" input: "x" input: "one" output: "shifted" }
  node { name: "loop" op_type: "Loop" input: "trips" input: "go" input: "shifted" output: "looped"
    attribute { name: "body" type: GRAPH g {
      name: "step"
      input { name: "i" type { tensor_type { elem_type: 7 shape { } } } }
      input { name: "on" type { tensor_type { elem_type: 9 shape { } } } }
      input { name: "state" type { tensor_type { elem_type: 1 shape { dim { dim_param: "n" } } } } }
      node { name: "weigh" op_type: "Mul" input: "state" input: "scale" output: "weighed" }
      node { name: "bend" op_type: "bounded" domain: "test" input: "weighed" input: "one" output: "bent" }
      node { name: "feed" op_type: "Add" input: "bent" input: "shifted" output: "next" }
      node { name: "keep" op_type: "Identity" input: "on" output: "still" }
      output { name: "still" type { tensor_type { elem_type: 9 shape { } } } }
      output { name: "next" type { tensor_type { elem_type: 1 shape { dim { dim_param: "n" } } } } }
    } } }
  node { name: "finish" op_type: "Mul" input: "looped" input: "scale" output: "y" }
  node { name: "aside" op_type: "Neg" input: "x" output: "z" }
  output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_param: "n" } } } } }
  output { name: "z" type { tensor_type { elem_type: 1 shape { dim { dim_param: "n" } } } } }
}
functions {
  name: "bounded" domain: "test"
  input: "value" input: "low" input: "high"
  output: "result"
  node { name: "clip" op_type: "Clip" input: "value" input: "low" input: "high" output: "clipped" }
  node { name: "square" op_type: "Mul" input: "clipped" input: "clipped" output: "result" }
  opset_import { domain: "" version: 20 }
}
)";

}  // namespace parallax::testing
