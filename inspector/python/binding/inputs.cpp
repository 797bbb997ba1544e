// SPDX-License-Identifier: Apache-2.0
// Inputs of a run, read from files or generated as the program does it, for runtimes that are not ours.
#include "inspector/workbench/inputs/inputs.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

#include "inspector/python/binding/errors.h"
#include "inspector/python/binding/model.h"
#include "inspector/python/binding/text_caster.h"
#include "inspector/python/binding/values.h"

namespace parallax::python {
namespace {

nb::object make_run_inputs(const ModelHandle& model, const std::string& source, const nb::dict& values, uint64_t seed) {
  const Graph& graph = model.model->graph;
  InputRequest request;
  request.source = source;
  request.seed = seed;
  for (auto [key, array] : values) {
    const auto name = nb::cast<std::string>(key);
    const ValueId id = graph.find_value(name);
    const TypeInfo type = id == kNoValue ? TypeInfo() : value_at(graph, id).type;
    request.values[name] = value_from(array, type, "input '" + name + "'");
  }
  InputSet set;
  {
    const nb::gil_scoped_release nogil;
    set = unwrap(make_inputs(*model.model, request));
  }
  nb::dict inputs;
  for (size_t index = 0; index < set.values.size(); ++index) {
    if (set.values[index].is_absent()) continue;
    inputs[nb::cast(value_at(graph, graph.inputs[index]).name)] =
        value_to_python(set.values[index], ArrayKind::tensor, false);
  }
  return nb::make_tuple(inputs, set.notes);
}

}  // namespace

void bind_inputs(nb::module_& module) {
  module.def("make_inputs", make_run_inputs, nb::arg("model"), nb::arg("source") = "", nb::arg("values") = nb::dict(),
             nb::arg("seed") = 0,
             nb::sig("def make_inputs(model: Model, source: str = '', values: dict[str, typing.Any] = {}, "
                     "seed: int = 0) -> tuple[dict[str, typing.Any], list[str]]"),
             "Returns the inputs of a run by name, from `values`, the files at `source` or generated, and notes.");
}

}  // namespace parallax::python
