// Writing models as ONNX files. What was imported is written again: every field, every weight bit for bit.
#pragma once

#include <string>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"

namespace parallax {

struct ExportOptions {
  // Weights larger than this go to `external_file` beside the model; the rest is inline. When the rest is too much for
  // a file of 2 GB, everything above 1 kB goes there.
  size_t external_threshold_bytes = size_t{1} << 30;
  bool keep_external = true;  // weights that were external when the model was imported stay so
  std::string external_file;  // default: <model file>.data
};

// The ending decides: .textproto, .pbtxt or .txt is text, anything else binary.
Status export_model(const Model& model, const std::string& path, const ExportOptions& options = {});

// The serialized binary form with all weights inline. Errors: unsupported above 2 GB.
Result<std::string> export_model_bytes(const Model& model);

}  // namespace parallax
