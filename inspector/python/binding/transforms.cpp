// SPDX-License-Identifier: Apache-2.0
// Transforms that serve other runtimes: values as outputs, calls of functions inlined.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "inspector/python/binding/errors.h"
#include "inspector/python/binding/model.h"
#include "inspector/python/binding/text_caster.h"
#include "inspector/transform/values_as_outputs.h"

namespace parallax::python {
namespace {

using PlainPaths = std::map<std::string, std::string>;

nb::dict layout_of(const transform::ExposedValue& value) {
  nb::list branches;
  for (const transform::BranchFlag& branch : value.branches)
    branches.append(nb::make_tuple(branch.output, branch.taken));
  nb::dict layout;
  layout["path"] = value.path;
  layout["output"] = value.output;
  layout["dtype"] = std::string(name_of(value.dtype));
  layout["is_sequence"] = value.is_sequence;
  layout["stacked_axes"] = value.stacked_axes;
  layout["index"] = value.index;
  layout["branches"] = branches;
  return layout;
}

nb::object values_as_outputs(const ModelHandle& model, const std::vector<std::string>& paths, bool bodies,
                             bool shapes_only, const PlainPaths& path_texts) {
  transform::ValuesAsOutputs made;
  {
    const nb::gil_scoped_release nogil;
    made = unwrap(transform::values_as_outputs(
        *model.model, paths,
        {.bodies = bodies, .shapes_only = shapes_only, .paths = {path_texts.begin(), path_texts.end()}}));
  }
  nb::list layouts;
  for (const transform::ExposedValue& value : made.values) layouts.append(layout_of(value));
  return nb::make_tuple(ModelHandle{made.model}, layouts, made.left_out);
}

nb::object inline_calls(const ModelHandle& model) {
  transform::InlinedCalls made;
  {
    const nb::gil_scoped_release nogil;
    made = unwrap(transform::inline_calls(*model.model));
  }
  return nb::make_tuple(ModelHandle{made.model}, PlainPaths(made.paths.begin(), made.paths.end()), made.left_out);
}

}  // namespace

void bind_transforms(nb::module_& module) {
  module.def("values_as_outputs", values_as_outputs, nb::arg("model"), nb::arg("paths") = std::vector<std::string>(),
             nb::arg("bodies") = true, nb::arg("shapes_only") = false, nb::arg("path_texts") = PlainPaths(),
             nb::sig("def values_as_outputs(model: Model, paths: collections.abc.Sequence[str] = (), "
                     "bodies: bool = True, shapes_only: bool = False, "
                     "path_texts: collections.abc.Mapping[str, str] = {}) -> "
                     "tuple[Model, list[dict[str, typing.Any]], list[tuple[str, str]]]"),
             "Returns a model whose values are outputs, how each output holds its value, and (path, reason) of what "
             "was left out.");
  module.def("inline_calls", inline_calls, nb::arg("model"),
             nb::sig("def inline_calls(model: Model) -> tuple[Model, dict[str, str], list[tuple[str, str]]]"),
             "Returns a model without calls of functions, the path of each name that came out of one, and (call, "
             "reason) of those that stayed.");
}

}  // namespace parallax::python
