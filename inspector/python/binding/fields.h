// SPDX-License-Identifier: Apache-2.0
// Fields: the keyword arguments of a job, taken one by one; what is left over is unknown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nanobind/nanobind.h>

#include "inspector/python/binding/binding.h"

namespace parallax::python {

class Fields {
 public:
  Fields(std::string verb, const nb::dict& given);

  // None where it was not given.
  nb::object take(const char* name);
  std::string text(const char* name, std::string otherwise = "");
  std::vector<std::string> texts(const char* name);
  int64_t number(const char* name, int64_t otherwise);
  double real(const char* name, double otherwise);
  bool flag(const char* name);
  // Raises UsageError, naming an argument that the job does not have.
  void finish() const;
  const std::string& verb() const { return verb_; }

 private:
  template <class T>
  T converted(const char* name, const nb::object& value, const char* what) const;

  std::string verb_;
  nb::dict left_;
  std::vector<std::string> known_;
};

}  // namespace parallax::python
