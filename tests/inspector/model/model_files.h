// SPDX-License-Identifier: Apache-2.0
// Helpers of this folder's tests: models from text, files in a temporary folder, messages compared by meaning.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/model/io/import.h"
#include "inspector/model/onnx.pb.h"

namespace parallax {

// Imports the text form of a model. `model_text` without ir_version and opset_import gets IR 10 and ai.onnx 20.
Result<std::shared_ptr<const Model>> import_text(const std::string& model_text, const ImportOptions& options = {});

// Parses a model that must be valid.
std::shared_ptr<const Model> model_from_text(const std::string& model_text);

// The message of the error that importing `model_text` gives; empty when it imports.
std::string import_error(const std::string& model_text);

// A folder that is removed when the test ends.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void write_bytes(const std::string& path, std::string_view bytes);

proto::ModelProto parse_proto(std::string_view bytes);

// Empty when both say the same, else the differences. What inspector/model/README.md lists as not kept is not compared.
std::string differences(proto::ModelProto before, proto::ModelProto after);

// Every file below `folder` that ends in `ending`, sorted; none when there is no such folder.
std::vector<std::string> files_below(const std::string& folder, std::string_view ending);

}  // namespace parallax
