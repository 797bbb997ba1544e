// SPDX-License-Identifier: Apache-2.0
// A part as files, in the layout of ONNX's backend tests: model.onnx and test_data_set_0 with its inputs and outputs.
#pragma once

#include <string>
#include <vector>

#include "inspector/model/io/import.h"
#include "inspector/transform/extract.h"

namespace parallax::transform {

// Checks, before any work, that a part may be written into DIR: no input is there, and the files that would be
// replaced (the models of these names, the data set, what else is named) are Parallax's own. Errors: usage.
Status admit_part(const std::string& directory, const std::vector<std::string>& files);

// Writes DIR/<name>; weights that were outside the file of the source model go to <name>.data next to it. Returns the
// path. Errors: io.
Result<std::string> write_model(const Model& model, const std::string& directory, const std::string& name);

// Writes DIR/test_data_set_0 with input_N.pb and output_N.pb (values that are absent are left out), in place of what
// such files were there. Answers the folder. Errors: io; usage, for values that have no file format.
Result<std::string> write_data_set(const Part& part, const PartData& data, const std::string& directory);

}  // namespace parallax::transform
