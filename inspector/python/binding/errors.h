// SPDX-License-Identifier: Apache-2.0
// Failures of the libraries as Python exceptions: unwrap() at every edge, one class a kind.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include <nanobind/nanobind.h>

#include "inspector/base/result.h"

namespace parallax::python {

// Carries an Error to the translator, which raises the class of its kind. Thrown with or without the GIL.
class PythonError : public std::exception {
 public:
  explicit PythonError(Error error) : error_(std::move(error)) {}
  const Error& error() const { return error_; }
  const char* what() const noexcept override { return error_.message.c_str(); }

 private:
  Error error_;
};

[[noreturn]] inline void raise(Error error) { throw PythonError(std::move(error)); }

template <class T>
T unwrap(Result<T> result) {
  if (!result.ok()) raise(std::move(result).error());
  return result.take();
}
inline void unwrap(Status status) {
  if (!status.ok()) raise(std::move(status).error());
}

// The text that str() returns for an object.
std::string text_of(nanobind::handle object);

// The truth of an object, as `if` sees it: numpy's own bool is no bool. Raises what it raises.
bool is_true(nanobind::handle object);

// The Error of an exception that Python code raised (an observer's, say): its type and text. Clears the exception.
Error error_of(const nanobind::python_error& raised);

}  // namespace parallax::python
