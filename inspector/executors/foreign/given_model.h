// SPDX-License-Identifier: Apache-2.0
// The files that a program is given: a model, whole or in part, and its inputs.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"
#include "inspector/tensor/value.h"

namespace parallax::foreign {

// Values by the names of inputs; an absent one takes the initializer of its name.
using NamedInputs = std::map<std::string, Value>;

// The first `count` nodes of the main graph in execution order as a model of their own, which gives back what the
// others read of them. Inputs that are given stand for the initializers of their names. Errors: as of extract_model.
Result<std::shared_ptr<const Model>> first_nodes(const std::shared_ptr<const Model>& model, size_t count,
                                                 const NamedInputs& inputs);

// The model with these values of the main graph among its outputs, after its own. Those that no runtime could give back
// (an optional, a type that is not known) stay within.
std::shared_ptr<const Model> with_outputs(const std::shared_ptr<const Model>& model,
                                          std::span<const std::string> names);

// The path of a file that holds the model: its own where it was read from a binary one, else `path`, which is written.
Result<std::string> model_file(const Model& model, const std::string& path);

struct InputFiles {
  std::string archive;  // an .npz; empty where numpy lacks a type of the inputs
  std::string data_set;
};
// Writes the inputs that the graph has to FOLDER/inputs-NUMBER.npz and FOLDER/test_data_set_NUMBER. Errors: io.
Result<InputFiles> write_inputs(const Graph& graph, const NamedInputs& inputs, const std::string& folder, int number);

}  // namespace parallax::foreign
