// SPDX-License-Identifier: Apache-2.0
// The translator of Errors: parallax/errors.py has the classes, found here by the kind of an Error.
#include "inspector/python/binding/errors.h"

#include <array>
#include <string>

#include "inspector/base/shown_text.h"
#include "inspector/python/binding/binding.h"
#include "inspector/python/binding/text_caster.h"

namespace parallax::python {
namespace {

struct ErrorClass {
  ErrorCode code;
  const char* kind;
  const char* name;
};

constexpr std::array<ErrorClass, 8> kErrorClasses{{{ErrorCode::usage, "usage", "UsageError"},
                                                   {ErrorCode::invalid_model, "invalid_model", "InvalidModel"},
                                                   {ErrorCode::unsupported, "unsupported", "Unsupported"},
                                                   {ErrorCode::execution, "execution", "ExecutionError"},
                                                   {ErrorCode::out_of_memory, "out_of_memory", "OutOfMemory"},
                                                   {ErrorCode::corrupt_file, "corrupt_file", "CorruptFile"},
                                                   {ErrorCode::io, "io", "IoError"},
                                                   {ErrorCode::cancelled, "cancelled", "Cancelled"}}};

const ErrorClass& class_of(ErrorCode code) {
  for (const ErrorClass& row : kErrorClasses)
    if (row.code == code) return row;
  return kErrorClasses[3];
}

// Names come from files, and may be no UTF-8, which Python's texts are.
std::string decodable(const std::string& name) { return is_utf8(name) ? name : printable(name); }

void set_python_error(const Error& error) {
  nb::object type = nb::module_::import_("parallax.errors").attr(class_of(error.code).name);
  const nb::object raised =
      type(printable(with_short_names(error.message), "\n\t"), nb::arg("code") = exit_code(error.code),
           nb::arg("node") = decodable(error.node), nb::arg("op") = decodable(error.op));
  PyErr_SetObject(type.ptr(), raised.ptr());
}

void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const PythonError& error) {
    try {
      set_python_error(error.error());
    } catch (nb::python_error& failed) {  // the classes could not be reached: that is what is raised then
      failed.restore();
    }
  }
}

}  // namespace

std::string text_of(nb::handle object) { return nb::cast<std::string>(nb::str(object)); }

bool is_true(nb::handle object) {
  const int truth = PyObject_IsTrue(object.ptr());
  if (truth < 0) throw nb::python_error();
  return truth == 1;
}

Error error_of(const nb::python_error& raised) { return execution_error(raised.what()); }

void bind_errors(nb::module_& /*module*/) { nb::register_exception_translator(translate); }

}  // namespace parallax::python
