// SPDX-License-Identifier: Apache-2.0
// PythonObserver: a Python object that sees values of a run.
#pragma once

#include <optional>
#include <utility>

#include <nanobind/nanobind.h>

#include "inspector/exec/observer.h"
#include "inspector/python/binding/binding.h"

namespace parallax::python {

// Calls wants(site) once for every value of a session and observe(path, value) for the values that it wants. Both are
// called with the GIL, from the thread that runs the session. Values are copies: they stay valid.
class PythonObserver final : public Observer {
 public:
  CaptureLevel wants(const ValueInfo& value_info) override;
  Status begin_call(const CallInfo& call, std::span<const Value> inputs) override;
  Status observe(const Observation& observation) override;

  // The object, which the caller keeps alive while a run lasts.
  void watch_with(nb::handle object) { object_ = object; }
  // The exception that the object raised, once; it stopped the run. With the GIL.
  std::optional<nb::python_error> take_failure() { return std::exchange(failure_, std::nullopt); }

 private:
  Status failed(nb::python_error& raised);

  nb::handle object_;
  std::optional<nb::python_error> failure_;
};

void bind_value_infos(nb::module_& module);

}  // namespace parallax::python
