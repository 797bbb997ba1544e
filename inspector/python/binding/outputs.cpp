// SPDX-License-Identifier: Apache-2.0
// The class OutputFile of Python, and the checks of outputs.
#include "inspector/python/binding/outputs.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <nanobind/stl/vector.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspector/base/output_file.h"
#include "inspector/model/io/export.h"
#include "inspector/python/binding/binding.h"
#include "inspector/python/binding/errors.h"
#include "inspector/python/binding/text_caster.h"

namespace parallax::python {

Status move_output(const std::string& source, const std::string& path) {
  PX_TRY(admit_output(path));
  const std::string target = followed_links(path);
  struct stat info {};
  if (::stat(target.c_str(), &info) == 0) static_cast<void>(::chmod(source.c_str(), info.st_mode & 0777));
  const int descriptor = static_cast<int>(TEMP_FAILURE_RETRY(::open(source.c_str(), O_RDONLY | O_CLOEXEC)));
  if (descriptor >= 0) {
    mark_as_written(descriptor);
    input_files::note_written(descriptor);
    ::close(descriptor);
  }
  if (std::rename(source.c_str(), target.c_str()) != 0)
    return io_error(fmt::format("cannot create '{}': {}", path, std::strerror(errno)));
  return {};
}

void note_inputs(const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) input_files::note(input);
}

namespace {

using Paths = std::vector<std::string>;

class OutputHandle {
 public:
  OutputHandle(const std::string& path, bool force, const Paths& inputs) {
    const nb::gil_scoped_release nogil;
    const OutputScope scope(force, inputs);
    file_ = unwrap(OutputFile::create(path));
  }
  int descriptor() const { return file().descriptor(); }
  void finish() {
    const nb::gil_scoped_release nogil;
    unwrap(file().finish());
    file_.reset();
  }
  void discard() { file_.reset(); }

 private:
  OutputFile& file() const {
    if (file_ == nullptr) raise(usage_error("the file is finished; nothing can be added to it"));
    return *file_;
  }

  std::unique_ptr<OutputFile> file_;
};

void admit(const Paths& paths, bool force, const Paths& inputs, bool has_data) {
  const nb::gil_scoped_release nogil;
  const OutputScope scope(force, inputs);
  for (const std::string& path : paths) unwrap(has_data ? admit_model(path) : admit_output(path));
}

void move(const std::string& source, const std::string& path, bool force, const Paths& inputs) {
  const nb::gil_scoped_release nogil;
  const OutputScope scope(force, inputs);
  unwrap(move_output(source, path));
}

}  // namespace

void bind_outputs(nb::module_& module) {
  nb::class_<OutputHandle>(module, "OutputFile", "A file that comes into being whole. See parallax._files.")
      .def(nb::init<const std::string&, bool, const Paths&>(), nb::arg("path"), nb::arg("force") = false,
           nb::arg("inputs") = Paths())
      .def_prop_ro("descriptor", &OutputHandle::descriptor, "The descriptor to write to; it stays the file's own.")
      .def("finish", &OutputHandle::finish, "Gives the file its name, in place of what had it.")
      .def("discard", &OutputHandle::discard, "Nothing of the file stays.");
  module.def("admit_outputs", admit, nb::arg("paths"), nb::arg("force") = false, nb::arg("inputs") = Paths(),
             nb::arg("has_data") = false,
             "Raises UsageError where a file may not be written: it is an input, is in a folder that is one, or is no "
             "file of\n"
             "Parallax's and `force` is not given. `has_data`: of models, whose weights may go next to them.");
  module.def(
      "move_output", move, nb::arg("source"), nb::arg("path"), nb::arg("force") = false, nb::arg("inputs") = Paths(),
      "Gives a finished file of the same file system its name, in place of what had it. Raises as admit_outputs.");
}

}  // namespace parallax::python
