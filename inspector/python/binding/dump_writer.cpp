// SPDX-License-Identifier: Apache-2.0
// The class DumpWriter of Python: values are written as they are seen.
#include <map>
#include <mutex>

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "inspector/dump/dump_reader.h"
#include "inspector/dump/tensor_recorder.h"
#include "inspector/model/io/import.h"
#include "inspector/python/binding/binding.h"
#include "inspector/python/binding/enum_names.h"
#include "inspector/python/binding/errors.h"
#include "inspector/python/binding/model.h"
#include "inspector/python/binding/outputs.h"
#include "inspector/python/binding/text_caster.h"
#include "inspector/python/binding/values.h"

namespace parallax::python {
namespace {

using TextPairs = std::vector<std::pair<std::string, std::string>>;

class WriterHandle {
 public:
  WriterHandle(const std::string& path, const std::string& level, const std::vector<std::string>& only, int64_t limit,
               int64_t sample_elements, bool include_graph, bool force, const std::vector<std::string>& inputs) {
    DumpWriterOptions options;
    options.level = named<CaptureLevel>(kLevels, level, "level");
    options.only = only;
    options.capture_limit_bytes = limit;
    options.sample_elements = sample_elements;
    options.include_graph = include_graph;
    const nb::gil_scoped_release nogil;
    const OutputScope scope(force, inputs);
    recorder_ = unwrap(TensorRecorder::create(path, options));
  }

  // Events come one after another, whichever threads they come from.
  template <class Action>
  auto call(Action action) {
    const nb::gil_scoped_release nogil;
    const std::scoped_lock lock(mutex_);
    if (recorder_ == nullptr) raise(usage_error("the dump is finished; nothing can be added to it"));
    return unwrap(action(*recorder_));
  }

  void finish() {
    const nb::gil_scoped_release nogil;
    const std::scoped_lock lock(mutex_);
    if (recorder_ == nullptr) return;
    const auto recorder = std::move(recorder_);
    unwrap(recorder->finish());
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<TensorRecorder> recorder_;
};

void begin_run(WriterHandle& self, const std::string& executor, const std::string& device,
               const std::map<std::string, std::string>& settings, const ModelHandle* model) {
  RunInfo run{executor, device, settings, model == nullptr ? nullptr : model->model, ""};
  self.call([&](TensorRecorder& recorder) {
    if (run.model != nullptr) run.model_sha256 = model_sha256(*run.model);
    return recorder.begin_run(run);
  });
}

// The type of a list or a dict of arrays: a sequence or a map of the first one's type; numbers alone are a tensor.
TypeInfo type_of_containers(nb::handle object) {
  const bool is_list = nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object);
  const auto type_of_first = [](nb::handle first) {
    TypeInfo type = type_of(value_from(first, {}, "the first element"));
    type.dims.reset();  // those that follow may have others
    return type;
  };
  if (is_list && nb::len(object) > 0 && is_array(object[0])) return TypeInfo::sequence(type_of_first(object[0]));
  if (!nb::isinstance<nb::dict>(object) || nb::len(object) == 0) return {};
  const auto [key, value] = *nb::borrow<nb::dict>(object).begin();
  return TypeInfo::map(nb::isinstance<nb::str>(key) ? DType::string : DType::int64, type_of_first(value));
}

bool write_value(WriterHandle& self, const std::string& path, nb::handle array, const std::optional<std::string>& level,
                 const std::string& role, bool is_graph_output) {
  RecordOptions options;
  options.role = named<ValueInfo::Role>(kRoles, role, "role");
  options.is_graph_output = is_graph_output;
  if (level.has_value()) options.level = named<CaptureLevel>(kLevels, *level, "level");
  const Value value = value_from(array, type_of_containers(array), "value '" + path + "'");
  return self.call([&](TensorRecorder& recorder) -> Result<bool> {
    return recorder.write(PX_TRY(parse_value_path(path)), value, options);
  });
}

}  // namespace

void bind_dump_writer(nb::module_& module) {
  nb::class_<WriterHandle>(module, "DumpWriter",
                           "Writes values into a dump file, each when it is seen. See parallax.dump.DumpWriter.")
      .def(nb::init<const std::string&, const std::string&, const std::vector<std::string>&, int64_t, int64_t, bool,
                    bool, const std::vector<std::string>&>(),
           nb::arg("path"), nb::arg("level") = "all", nb::arg("only") = std::vector<std::string>(),
           nb::arg("limit") = 0, nb::arg("sample_elements") = 1024, nb::arg("include_graph") = true,
           nb::arg("force") = false, nb::arg("inputs") = std::vector<std::string>())
      .def("begin_run", begin_run, nb::arg("executor"), nb::arg("device") = "",
           nb::arg("settings") = std::map<std::string, std::string>(), nb::arg("model") = nb::none())
      .def(
          "add_executed_graph",
          [](WriterHandle& self, const ModelHandle& model, const TextPairs& provenance) {
            self.call([&](TensorRecorder& recorder) { return recorder.add_executed_graph(*model.model, provenance); });
          },
          nb::arg("model"), nb::arg("provenance") = TextPairs())
      .def(
          "begin_call",
          [](WriterHandle& self, const std::string& graph, int64_t step) {
            self.call([&](TensorRecorder& recorder) { return recorder.begin_call({graph, step}); });
          },
          nb::arg("graph") = "", nb::arg("step") = -1)
      .def("write", write_value, nb::arg("path"), nb::arg("value"), nb::arg("level") = nb::none(),
           nb::arg("role") = "output", nb::arg("is_graph_output") = false,
           nb::sig("def write(self, path: str, value: typing.Any, level: str | None = None, role: str = \"output\", "
                   "is_graph_output: bool = False) -> bool"))
      .def(
          "enter_module",
          [](WriterHandle& self, const std::string& name, int64_t call, const std::string& class_name) {
            self.call([&](TensorRecorder& recorder) { return recorder.enter_module(name, call, class_name); });
          },
          nb::arg("name"), nb::arg("call"), nb::arg("class_name") = "")
      .def(
          "leave_module",
          [](WriterHandle& self, const std::string& name, int64_t call, const std::string& class_name) {
            self.call([&](TensorRecorder& recorder) { return recorder.leave_module(name, call, class_name); });
          },
          nb::arg("name"), nb::arg("call"), nb::arg("class_name") = "")
      .def(
          "structure",
          [](WriterHandle& self, const std::string& path, const std::string& tree) {
            self.call([&](TensorRecorder& recorder) { return recorder.structure(path, tree); });
          },
          nb::arg("path"), nb::arg("tree"))
      .def("end_call",
           [](WriterHandle& self) { self.call([](TensorRecorder& recorder) { return recorder.end_call(); }); })
      .def(
          "end_run",
          [](WriterHandle& self, bool completed) {
            self.call([&](TensorRecorder& recorder) { return recorder.end_run(completed); });
          },
          nb::arg("completed") = true)
      .def("finish", &WriterHandle::finish);
}

}  // namespace parallax::python
