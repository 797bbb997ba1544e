// SPDX-License-Identifier: Apache-2.0
// `check`: is a dump intact, is a model valid.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"

namespace parallax {

struct CheckReport {
  struct Problem {
    std::string where;
    std::string message;
  };
  std::string file;
  bool is_dump = false;
  ErrorCode code = ErrorCode::invalid_model;  // of what was found, if anything
  std::vector<Problem> problems;
};

// Errors: io, where the file itself cannot be read; what makes it no dump and no model at all is a problem in the
// report, and so is a file of external data that is not to be had.
Result<CheckReport> check_file(const std::string& path);
std::string check_to_json(const CheckReport& report);
std::string check_to_text(const CheckReport& report);

std::string quoted_json(std::string_view text);

}  // namespace parallax
