// SPDX-License-Identifier: Apache-2.0
// Error construction and the mapping from error codes to exit codes.
#include "inspector/base/result.h"

namespace parallax {

Error Error::with_context(std::string_view context) && {
  message = std::string(context) + ": " + message;
  return std::move(*this);
}

Error Error::at_node(std::string_view node_name, std::string_view op_name) && {
  if (node.empty()) {
    node = node_name;
    op = op_name;
  }
  return std::move(*this);
}

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
      return 2;
    case ErrorCode::invalid_model:
    case ErrorCode::unsupported:
      return 3;
    case ErrorCode::execution:
    case ErrorCode::out_of_memory:
    case ErrorCode::cancelled:
      return 4;
    case ErrorCode::corrupt_file:
    case ErrorCode::io:
      return 5;
  }
  return 4;
}

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
      return "usage";
    case ErrorCode::invalid_model:
      return "invalid model";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::execution:
      return "execution failed";
    case ErrorCode::out_of_memory:
      return "out of memory";
    case ErrorCode::corrupt_file:
      return "corrupt file";
    case ErrorCode::io:
      return "I/O error";
    case ErrorCode::cancelled:
      return "cancelled";
  }
  return "error";
}

Error make_error(ErrorCode code, std::string message) { return Error{code, std::move(message), {}, {}}; }
Error usage_error(std::string message) { return make_error(ErrorCode::usage, std::move(message)); }
Error invalid_model(std::string message) { return make_error(ErrorCode::invalid_model, std::move(message)); }
Error unsupported(std::string message) { return make_error(ErrorCode::unsupported, std::move(message)); }
Error execution_error(std::string message) { return make_error(ErrorCode::execution, std::move(message)); }
Error out_of_memory(std::string message) { return make_error(ErrorCode::out_of_memory, std::move(message)); }
Error corrupt_file(std::string message) { return make_error(ErrorCode::corrupt_file, std::move(message)); }
Error io_error(std::string message) { return make_error(ErrorCode::io, std::move(message)); }

}  // namespace parallax
