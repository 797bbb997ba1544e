// SPDX-License-Identifier: Apache-2.0
// Values that stand in for nodes which cannot be executed: given as inputs are, or for all nodes of an operator.
#pragma once

#include <map>
#include <string>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"
#include "inspector/workbench/inputs/inputs.h"

namespace parallax {

// Everything that the request gives, by name, without a look at a model: arrays of files, of a folder's input_N.pb and
// of memory. Errors: io, corrupt_file.
Result<std::map<std::string, Value>> given_values(const InputRequest& request);

// The outputs of the main graph's nodes of operator `op` ("my.domain::Op"; "Op" for the standard domain), from a file:
// .npz with an array under each output's value name or number ("arr_1", "1"), or .json with an object
// {NAME|NUMBER: {"dtype": "float32", "shape": [1, 5], "values": [...]}}, whose values are flat, nested, or one number
// for all elements. Errors: usage (no such node; an output that is read and not in the file), io, corrupt_file.
Result<std::map<std::string, Value>> stub_values(const Model& model, const std::string& op, const std::string& file);

}  // namespace parallax
