// SPDX-License-Identifier: Apache-2.0
// Dumps from and to the tensor files of other tools.
#pragma once

#include <string>
#include <vector>

#include "inspector/base/result.h"

namespace parallax {

struct ImportRequest {
  // A test_data_set folder, a folder of .npy, or a .npy, .npz, .safetensors, .plx, ONNX file or Polygraphy's JSON. An
  // ONNX file of captured objects (captured_objects.h) keeps their containers, unless a map gives its values other
  // names.
  std::string origin;
  // Gives the dump its graph; empty: none. Names of torch's modules and nodes are looked up in its exporter's metadata.
  std::string model;
  std::string map;  // JSON object {"foreign name": "value path"}; empty: names stay as they are
};

struct ImportReport {
  int64_t values = 0;
  int64_t matched = 0;              // of those, names that the model has (0 without a model)
  int64_t matched_by_metadata = 0;  // of those, names of torch that its exporter's metadata led to
  std::vector<std::string> notes;   // sentences for the person who asked
};

// Errors: usage (an origin of no known kind, an unusable map), io, corrupt_file, invalid_model.
Result<ImportReport> import_dump(const ImportRequest& request, const std::string& target);

struct ExportReport {
  int64_t values = 0;
  std::vector<std::string> notes;  // what was left out, and why
};

// The ending of `destination` chooses: .npz, .safetensors, .onnx (or a text form: a model of constants), a name that
// begins with "test_data_set", or else, without an ending, a folder of .npy. Of several values with one path the last
// is taken. Captured objects keep their containers in an .onnx file (captured_objects.h). Errors: usage (an unknown
// ending, or nothing that could be written), io, corrupt_file.
Result<ExportReport> export_dump(const std::string& dump, const std::string& destination);

}  // namespace parallax
