// SPDX-License-Identifier: Apache-2.0
// Files and folders that inputs and expected results are read from, and the samples that they make up.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/io/import.h"
#include "inspector/workbench/inputs/inputs.h"

namespace parallax {

bool names_one_of(const Graph& graph, const std::vector<ValueId>& ids, const std::string& name);

// The files input_N.pb (prefix "input_") or output_N.pb of a test_data_set folder, by N. Errors: io.
Result<std::map<int64_t, std::string>> data_set_files(const std::string& folder, std::string_view prefix);

// True for a file that holds values under names: .npz, .safetensors, Polygraphy's .json.
bool is_value_file(const std::string& path);
// Its values; of Polygraphy's JSON those of iteration `sample` (-1: it must have one alone). Errors: usage, io,
// corrupt_file, unsupported.
Result<std::vector<NamedValue>> read_value_file_of(const std::string& path, int64_t sample);

struct SourceValues {
  std::vector<NamedValue> values;   // inputs; of a file all that it holds
  std::vector<NamedValue> outputs;  // of a test_data_set
};
// The values of request.source, of a folder under the names that they carry or else those at their positions.
// `is_part`: as of Model, whose outputs are not those of a data set. Errors: usage, io, corrupt_file, unsupported.
Result<SourceValues> read_source(const Graph& graph, bool is_part, const InputRequest& request);

struct Sample {
  std::string name;  // differs from the others'
  InputRequest inputs;
};
// The samples that several sources make up, in their order: each test_data_set_N folder, those of a folder that holds
// such folders, each file that holds an input of the model, each iteration of Polygraphy's inputs. A file of results
// alone belongs to the samples of the source before it. `request` gives all that the samples share. One sample without
// a name where there is no source. Errors: usage, io, corrupt_file, invalid_model.
Result<std::vector<Sample>> samples_of(const InputRequest& request, const std::vector<std::string>& sources,
                                       const std::string& model);

}  // namespace parallax
