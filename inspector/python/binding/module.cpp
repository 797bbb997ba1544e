// SPDX-License-Identifier: Apache-2.0
// The module parallax._core: the order in which its parts are bound, and what belongs to the process as a whole.
#include <nanobind/stl/vector.h>

#include "inspector/base/loading/late_library.h"
#include "inspector/base/thread_pool.h"
#include "inspector/exec/executor_names.h"
#include "inspector/executors/foreign/interpreter.h"
#include "inspector/executors/make_executor.h"
#include "inspector/python/binding/binding.h"
#include "inspector/python/binding/errors.h"
#include "inspector/python/binding/generator.h"
#include "inspector/python/binding/outputs.h"
#include "inspector/python/binding/text_caster.h"
#include "runtime/device/cpu/library_threads.h"

namespace nb = nanobind;

NB_MODULE(_core, module) {
  using namespace parallax;
  module.doc() = "The compiled part of Parallax.";
#ifdef NDEBUG
  nb::set_leak_warnings(false);
#endif
  python::bind_errors(module);
  python::bind_tensor(module);
  python::bind_model(module);
  python::bind_session(module);
  python::bind_transforms(module);
  python::bind_inputs(module);
  python::bind_dump(module);
  python::bind_jobs(module);
  python::bind_generator(module);
  python::bind_outputs(module);

  module.def(
      "version", [] { return std::string(PARALLAX_VERSION); },
      "Returns the version of the program and of the package.");
  module.def(
      "set_threads", [](int count) { set_thread_count(count); }, nb::arg("count"),
      "Sets how many threads work on one loop, in the whole process. 0: one per hardware thread.");
  module.def(
      "set_package_folders", [](std::vector<std::string> folders) { set_package_folders(std::move(folders)); },
      nb::arg("folders"),
      "Sets the folders of packages in which NVIDIA's libraries are looked for, as wheels install them.");
  module.def(
      "set_python",
      [](std::string executable, std::string package_folder) {
        foreign::set_python(std::move(executable), std::move(package_folder));
      },
      nb::arg("executable"), nb::arg("package_folder"),
      "Sets the Python that runs executors which are programs of the package, and the folder of the package where "
      "that\n"
      "Python does not find it by itself.");
  module.def(
      "threads", [] { return thread_count(); }, "Returns how many threads work on one loop.");
  module.def(
      "has_own_library_threads", runtime::has_own_library_threads,
      "Whether oneDNN's parallel regions run on this module's threads. Where they do not, as with another OpenMP\n"
      "runtime that came first, convolutions that might lose a NaN are computed twice: slower, never wrong.");
  module.def(
      "split_executors", [](const std::string& text) { return split_executors(text); }, nb::arg("text"),
      "Returns the names in a list of executors; a comma within quotes belongs to a command.");
  module.def(
      "is_foreign_executor", [](const std::string& name) { return is_foreign_executor(name); }, nb::arg("name"),
      "Whether the executor is a program of its own.");
  module.def(
      "executors",
      [] {
        nb::list rows;
        for (const ExecutorAvailability& row : list_executors())
          rows.append(nb::make_tuple(row.name, row.available, row.detail));
        return rows;
      },
      nb::sig("def executors() -> list[tuple[str, bool, str]]"),
      "Returns (name, available, device or reason) of every executor.");
}
