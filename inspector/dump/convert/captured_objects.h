// SPDX-License-Identifier: Apache-2.0
// Captured objects (modules' inputs and outputs, in their containers) to and from a model of constants in the form that
// onnx-diagnostic's mini builder writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/dump/tensor_recorder.h"
#include "inspector/model/io/import.h"

namespace parallax {

// One object: the frames and root of its values, "module(decoder).call[0]//in", and its tree (FORMAT.md: structure).
struct CapturedObject {
  std::string path;
  std::string structure;
};

struct CapturedObjects {
  std::vector<CapturedObject> objects;
  std::vector<NamedValue> values;  // under their value paths, in the order of the objects
  std::vector<std::string> notes;
};

// Nothing when the model has another form. Objects of a dictionary with keys "((NAME,N,I))" and "((NAME,N,O))" come
// under module(NAME).call[N], those with other keys of it under module(KEY); any other object is "value", without
// frames. Errors: corrupt_file for names that make no tree.
Result<std::optional<CapturedObjects>> read_captured_objects(const Model& model);

// Reads the captured objects of a model file or a dump. Errors: usage when it holds no captured objects; io,
// corrupt_file, invalid_model.
Result<CapturedObjects> read_captured_objects(const std::string& path);

// Shows all objects to a recorder, whose run has begun.
Status record_objects(const CapturedObjects& objects, TensorRecorder& recorder);

struct CaptureExportOptions {
  bool external_data = false;  // tensors above 1 kB go to a file next to the model; else only where it passes 2 GB
};
// Writes the model whose outputs are the objects. Their exact trees stand in its metadata, so that reading it gives
// back classes that the names cannot say. Errors: usage when there are none; unsupported for keys that no name can
// hold; io.
Status write_captured_objects(const CapturedObjects& objects, const std::string& path,
                              const CaptureExportOptions& options = {});

}  // namespace parallax
