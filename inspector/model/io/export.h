// SPDX-License-Identifier: Apache-2.0
// Writing models as ONNX files. What was imported is written again: every field, every weight bit for bit.
#pragma once

#include <string>
#include <unordered_map>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"

namespace parallax {

// Tensors of a model that hold a float16 or bfloat16 type and shape without elements of their own: each is converted
// from the float32 tensor given here while it is written, so that memory does not grow with the model.
using DeferredTensors = std::unordered_map<const StoredTensor*, Tensor>;

struct ExportOptions {
  // Weights larger than this go to `external_file` next to the model; the rest is inline. When the rest is too much for
  // a file of 2 GB, everything above 1 kB goes there.
  size_t external_threshold_bytes = size_t{1} << 30;
  bool keep_external = true;  // weights that were external when the model was imported stay so
  std::string external_file;  // default: <model file>.data
  DeferredTensors deferred;
};

// Checks, before any work, that a model may be written to `path` and its weights next to it. Errors: usage.
Status admit_model(const std::string& path);

// The ending decides: .textproto, .pbtxt or .txt is text, anything else binary.
Status export_model(const Model& model, const std::string& path, const ExportOptions& options = {});

// The serialized binary form with all weights inline. Errors: unsupported above 2 GB.
Result<std::string> export_model_bytes(const Model& model);

}  // namespace parallax
