// SPDX-License-Identifier: Apache-2.0
// Inputs of a run: read from files, or generated so that they suit their use in the graph.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/io/import.h"
#include "inspector/workbench/inputs/dimensions.h"

namespace parallax {

// Sizes that another model fixes for the same data, by names of this model's inputs; -1 where it fixes none. They serve
// where nothing else gives a free dimension its size.
struct OtherSizes {
  std::string model;
  std::map<std::string, std::vector<int64_t>> inputs;
};

struct InputRequest {
  // A test_data_set_N folder, a .npz or .safetensors file, or Polygraphy's JSON; empty: generate. Values under the
  // names of outputs are expected results.
  std::string source;
  std::string source_option = "--inputs";  // which names `source`, for messages
  int64_t sample = -1;                     // which iteration of Polygraphy's JSON; -1: it must have one alone
  std::vector<std::string> results;        // further files, whose values are expected results
  std::vector<std::pair<std::string, std::string>> files;  // --input name=F.npy, taking precedence
  std::map<std::string, Value> values;  // in memory, by the input's name; precedence as of `files`, and over these
  std::vector<std::pair<std::string, std::string>> stubs;  // --stub DOMAIN::OP=F
  uint64_t seed = 0;
  std::map<std::string, std::vector<int64_t>> shapes;       // --shape
  DimSizes dims;                                            // --dim
  std::map<std::string, std::pair<double, double>> ranges;  // --range name=lo..hi, both ends included for integers
  OtherSizes other;                                         // --against

  bool is_given() const { return !source.empty() || !files.empty() || !values.empty() || !stubs.empty(); }
};

struct InputSet {
  std::vector<Value> values;  // in the order of Graph::inputs; absent where the initializer serves
  // Expected results, by name of the graph's output; none where --input gives an input other data than they were
  // computed from, which `notes` then say.
  std::vector<NamedValue> expected;
  std::vector<std::string> notes;  // one line for each input that was generated: what was chosen and why
};

// Errors: usage (a name that is no input, a file that does not fit), io, corrupt_file.
Result<InputSet> make_inputs(const Model& model, const InputRequest& request);

}  // namespace parallax
