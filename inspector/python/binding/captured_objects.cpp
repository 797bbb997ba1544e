// SPDX-License-Identifier: Apache-2.0
// Captured objects as Python holds them: trees of containers whose leaves are values of a dump or a model.
#include "inspector/dump/convert/captured_objects.h"

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "inspector/python/binding/binding.h"
#include "inspector/python/binding/errors.h"
#include "inspector/python/binding/model.h"
#include "inspector/python/binding/outputs.h"
#include "inspector/python/binding/text_caster.h"
#include "inspector/python/binding/values.h"

namespace parallax::python {
namespace {

using ObjectRows = std::vector<std::pair<std::string, std::string>>;  // path and structure

nb::tuple objects_to_python(const CapturedObjects& objects) {
  ObjectRows rows;
  for (const CapturedObject& object : objects.objects) rows.emplace_back(object.path, object.structure);
  nb::dict values;
  for (const NamedValue& value : objects.values)
    values[nb::cast(value.name)] = value_to_python(value.value, ArrayKind::tensor, false);
  return nb::make_tuple(rows, values, objects.notes);
}

nb::tuple read_objects(const std::string& path) {
  CapturedObjects objects;
  {
    const nb::gil_scoped_release nogil;
    objects = unwrap(read_captured_objects(path));
  }
  return objects_to_python(objects);
}

nb::tuple read_objects_of_bytes(const nb::bytes& data) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data.c_str()), data.size());
  const auto model = unwrap(import_model(bytes, "", "model"));
  const auto objects = unwrap(read_captured_objects(*model));
  if (!objects.has_value())
    raise(
        usage_error("the model holds no captured objects; its outputs must be Identity nodes "
                    "over initializers, with names like 'dict_x___tuple_0___tensor'"));
  return objects_to_python(*objects);
}

void export_objects(const std::string& source, const std::string& target, bool external_data, bool force) {
  const nb::gil_scoped_release nogil;
  const OutputScope scope(force, {source});
  unwrap(write_captured_objects(unwrap(read_captured_objects(source)), target, {external_data}));
}

void write_objects(const ObjectRows& rows, const nb::dict& values, const std::string& path, bool external_data,
                   bool force) {
  CapturedObjects objects;
  for (const auto& [object_path, tree] : rows) objects.objects.push_back({object_path, tree});
  for (auto [name, value] : values) {
    const auto text = nb::cast<std::string>(name);
    objects.values.push_back({text, value_from(value, {}, "value '" + text + "'")});
  }
  const nb::gil_scoped_release nogil;
  const OutputScope scope(force);
  unwrap(write_captured_objects(objects, path, {external_data}));
}

}  // namespace

void bind_captured_objects(nb::module_& module) {
  module.def("read_captured_objects", read_objects, nb::arg("path"),
             nb::sig("def read_captured_objects(path: str) -> tuple[list[tuple[str, str]], dict[str, typing.Any], "
                     "list[str]]"),
             "Returns (path, structure) of every captured object of a dump or an ONNX file of captured objects, the\n"
             "values by path, and notes. Raises UsageError where there are none.");
  module.def("read_captured_model", read_objects_of_bytes, nb::arg("data"),
             nb::sig("def read_captured_model(data: bytes) -> tuple[list[tuple[str, str]], dict[str, typing.Any], "
                     "list[str]]"),
             "The same of the bytes of an ONNX model.");
  module.def("export_captured_objects", export_objects, nb::arg("source"), nb::arg("target"),
             nb::arg("external_data") = false, nb::arg("force") = false,
             "Writes the captured objects of one file as an ONNX model of constants.");
  module.def("write_captured_objects", write_objects, nb::arg("objects"), nb::arg("values"), nb::arg("path"),
             nb::arg("external_data") = false, nb::arg("force") = false,
             nb::sig("def write_captured_objects(objects: collections.abc.Sequence[tuple[str, str]], "
                     "values: dict[str, typing.Any], path: str, external_data: bool = False, force: bool = False) -> "
                     "None"),
             "Writes captured objects as an ONNX model of constants.");
}

}  // namespace parallax::python
