// SPDX-License-Identifier: Apache-2.0
// Reading ONNX models and value files. Every Error names the file, and node and op where one is at fault.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"
#include "inspector/tensor/value.h"

namespace parallax {

enum class ModelChecks : uint8_t {
  required,  // what is wrong with the model is an error, the first thing that is found
  recorded,  // it stands in Model::problems and Node::problem: for looking at a model that cannot be executed. What
             // cannot be read is left out (an attribute) or absent (StoredTensor::absence)
  none,      // the structure alone is read, without types of values
};

struct ImportOptions {
  ModelChecks checks = ModelChecks::required;
  int max_depth = 256;  // nesting of graphs and of types
  bool hash = false;    // takes the file's hash while reading, for callers of model_sha256()
};

// Reads a binary (.onnx) or text (.textproto, .pbtxt, .txt, or contents that start like text) model. External data is
// mapped; its path must be relative, stay in the model's folder (no "..", no symbolic link leading out), and hold
// offset + length. Errors: io, invalid_model, unsupported.
Result<std::shared_ptr<const Model>> import_model(const std::string& path, const ImportOptions& options = {});

// Imports a model from bytes; `directory` holds its external data ("" refuses external data), `description` replaces
// the path in messages.
Result<std::shared_ptr<const Model>> import_model(std::span<const std::byte> bytes, const std::string& directory,
                                                  const std::string& description, const ImportOptions& options = {});

// SHA-256 of the file the model was read from, or of its export for a model that was made (empty where that has more
// than 2 GB of weights). External data is not part of it.
std::string model_sha256(const Model& model);

// Everything that validation finds, not only the first problem.
std::vector<ModelProblem> check_model(const Model& model);
// Sets Model::problems and Node::problem, and the types that can be inferred in spite of them.
void record_problems(Model& model);
// A problem as the error of those who cannot go on.
Error error_of(const ModelProblem& problem);
// Finds nodes of the main graph whose inputs cannot fit each other, as far as the graph's inputs and constants tell, in
// a model without problems of the other check. No part of an import: a run meets them, and names them, too.
std::vector<ModelProblem> check_shapes(const Model& model);

// A TensorProto, SequenceProto or OptionalProto file of a test_data_set (input_0.pb). `expected` tells which of them it
// is (a tensor when unknown); `name` is the proto's name.
struct NamedValue {
  std::string name;
  Value value;
};
Result<NamedValue> read_value_file(const std::string& path, const TypeInfo& expected = {});
// True where a file that is no tensor is a whole SequenceProto, OptionalProto or MapProto, which nothing in a file
// tells apart. False for a file that cannot be read at all.
bool is_nested_value_file(const std::string& path);
Status write_value_file(const std::string& path, const NamedValue& value);

}  // namespace parallax
