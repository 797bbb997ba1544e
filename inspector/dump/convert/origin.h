// SPDX-License-Identifier: Apache-2.0
// Reading the tensor files of other tools as one list of named values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/exec/observer.h"
#include "inspector/model/io/import.h"

namespace parallax::dump {

struct OriginValue {
  NamedValue named;
  ValueInfo::Role role = ValueInfo::Role::node_output;  // as far as the origin says
  bool is_graph_output = false;
};

// `graph` names what a test_data_set leaves unnamed and tells its types; may be null. Errors: usage, io, corrupt_file,
// ...
Result<std::vector<OriginValue>> read_origin(const std::string& origin, const Graph* graph);

// Names of values as names of files in one folder: "/" and "%" are escaped.
std::string file_name_of(std::string_view value_name);
std::string value_name_of(std::string_view file_stem);

}  // namespace parallax::dump
