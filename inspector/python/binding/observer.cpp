// SPDX-License-Identifier: Apache-2.0
// Events of a run as calls of a Python object.
#include "inspector/python/binding/observer.h"

#include "inspector/exec/owned_outputs.h"
#include "inspector/python/binding/errors.h"
#include "inspector/python/binding/text_caster.h"
#include "inspector/python/binding/values.h"
#include "inspector/tensor/channels_last.h"

namespace parallax::python {
namespace {

struct Site {
  std::string path, name, node, op, domain, role;
  int32_t output_index = 0;
  bool is_graph_output = false;
};

std::string role_name(ValueInfo::Role role) {
  switch (role) {
    case ValueInfo::Role::input:
      return "input";
    case ValueInfo::Role::initializer:
      return "initializer";
    case ValueInfo::Role::node_output:
      break;
  }
  return "node_output";
}

}  // namespace

Status PythonObserver::failed(nb::python_error& raised) {
  Error error = error_of(raised);
  failure_.emplace(std::move(raised));
  return error;
}

CaptureLevel PythonObserver::wants(const ValueInfo& value_info) {
  const nb::gil_scoped_acquire gil;
  try {
    if (failure_.has_value()) return CaptureLevel::none;
    if (!nb::hasattr(object_, "wants")) return CaptureLevel::all;
    const nb::object answer =
        object_.attr("wants")(Site{value_info.scope + value_info.escaped_name, std::string(value_info.name),
                                   std::string(value_info.node), value_info.op, value_info.domain,
                                   role_name(value_info.role), value_info.output_index, value_info.is_graph_output});
    return is_true(answer) ? CaptureLevel::all : CaptureLevel::none;
  } catch (nb::python_error& raised) {
    failure_.emplace(std::move(raised));  // begin_call tells of it
    return CaptureLevel::none;
  }
}

Status PythonObserver::begin_call(const CallInfo& /*call*/, std::span<const Value> /*inputs*/) {
  if (!failure_.has_value()) return {};
  return execution_error("the observer's wants() raised an exception; the run is stopped by it");
}

Status PythonObserver::observe(const Observation& observation) {
  const nb::gil_scoped_acquire gil;
  Value copies[] = {observation.value};  // the run goes on with the memory
  PX_TRY(separate_outputs(copies));
  try {
    object_.attr("observe")(observation.path(), value_to_python(copies[0], ArrayKind::tensor, true));
  } catch (nb::python_error& raised) {
    return failed(raised);
  }
  return {};
}

void bind_value_infos(nb::module_& module) {
  nb::class_<Site>(module, "Site", "A value of an executed model, as an observer is asked about it.")
      .def_ro("path", &Site::path, "Value path with [*] for iterations: \"loop.body[*]//y\".")
      .def_ro("name", &Site::name)
      .def_ro("node", &Site::node, "The node that computes it; \"\" for inputs and initializers.")
      .def_ro("op", &Site::op)
      .def_ro("domain", &Site::domain)
      .def_ro("role", &Site::role, "\"input\", \"initializer\" or \"node_output\".")
      .def_ro("output_index", &Site::output_index)
      .def_ro("is_graph_output", &Site::is_graph_output);
}

}  // namespace parallax::python
