// SPDX-License-Identifier: Apache-2.0
// Texts to and from Python, in place of nanobind/stl/string.h: names in files may be no UTF-8. Such a byte is a lone
// surrogate in Python, as in its own names of files (PEP 383), and comes back as the byte.
#pragma once

#include <string>
#include <string_view>

#include <nanobind/nanobind.h>

namespace nanobind::detail {

constexpr const char* kUndecodable = "surrogateescape";

template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle source, uint32_t, cleanup_list*) noexcept {
    if (!PyUnicode_Check(source.ptr())) return false;
    Py_ssize_t size = 0;
    if (const char* text = PyUnicode_AsUTF8AndSize(source.ptr(), &size)) {
      value.assign(text, static_cast<size_t>(size));
      return true;
    }
    PyErr_Clear();
    PyObject* const bytes = PyUnicode_AsEncodedString(source.ptr(), "utf-8", kUndecodable);
    char* text = nullptr;
    const bool is_encoded = bytes != nullptr && PyBytes_AsStringAndSize(bytes, &text, &size) == 0;
    if (is_encoded) value.assign(text, static_cast<size_t>(size));
    PyErr_Clear();  // a surrogate that stands for no byte
    Py_XDECREF(bytes);
    return is_encoded;
  }

  static handle from_cpp(std::string_view text, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), kUndecodable);
  }
};

}  // namespace nanobind::detail
