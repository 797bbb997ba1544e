// SPDX-License-Identifier: Apache-2.0
// The class Dump of Python, values of a dump as views of its mapping; and paths of values.
#include <array>
#include <map>

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "inspector/base/shown_text.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/python/binding/enum_names.h"
#include "inspector/python/binding/errors.h"
#include "inspector/python/binding/model.h"
#include "inspector/python/binding/text_caster.h"
#include "inspector/python/binding/values.h"

namespace parallax::python {
namespace {

using TextPairs = std::vector<std::pair<std::string, std::string>>;

constexpr std::array<const char*, 5> kEvents = {"enter_body", "leave_body", "node_failed", "end_call", "end_run"};
constexpr std::array<const char*, 4> kAbsences = {"fused", "folded", "aliased", "removed"};

struct DumpHandle {
  std::shared_ptr<const DumpReader> reader;
};

// Keeps the reader alive, whose entry it is.
struct EntryHandle {
  std::shared_ptr<const DumpReader> reader;
  int32_t index = 0;
  const DumpEntry& entry() const { return reader->entries()[static_cast<size_t>(index)]; }
};

DumpHandle open_dump(const std::string& path) {
  const nb::gil_scoped_release nogil;
  return {unwrap(DumpReader::open(path))};
}

int32_t checked_index(const DumpHandle& self, int64_t index) {
  const auto count = static_cast<int64_t>(self.reader->entries().size());
  if (index < 0 || index >= count) throw nb::index_error(fmt::format("the dump has {} entries", count).c_str());
  return static_cast<int32_t>(index);
}

nb::object load_entry(const DumpHandle& self, int64_t index, bool copy) {
  const int32_t entry = checked_index(self, index);
  Value value;
  {
    const nb::gil_scoped_release nogil;
    value = unwrap(copy ? self.reader->load_copy(entry) : self.reader->load(entry));
  }
  return value_to_python(value, ArrayKind::tensor, copy);
}

std::vector<EntryHandle> entries_of(const DumpHandle& self) {
  std::vector<EntryHandle> entries;
  for (size_t index = 0; index < self.reader->entries().size(); ++index)
    entries.push_back({self.reader, static_cast<int32_t>(index)});
  return entries;
}

// Indices of the entries whose paths match, in the order of observation.
std::vector<int32_t> select(const DumpHandle& self, const std::string& glob) {
  std::vector<int32_t> indices;
  const auto entries = self.reader->entries();
  for (size_t index = 0; index < entries.size(); ++index) {
    if (glob_matches(glob, entries[index].path)) indices.push_back(static_cast<int32_t>(index));
  }
  return indices;
}

nb::list executions_of(const DumpHandle& self) {
  nb::list rows;
  for (const DumpExecution& execution : self.reader->executions()) {
    nb::dict row;
    row["executor"] = execution.executor;
    row["device"] = execution.device;
    row["settings"] = nb::cast(execution.settings);
    row["model_path"] = execution.model_path;
    row["model_sha256"] = execution.model_sha256;
    row["wall_ms"] = execution.wall_ms < 0 ? nb::object(nb::none()) : nb::object(nb::float_(execution.wall_ms));
    row["completed"] = execution.completed;
    rows.append(row);
  }
  return rows;
}

nb::list graphs_of(const DumpHandle& self) {
  nb::list rows;
  for (const DumpGraph& graph : self.reader->graphs()) {
    nb::dict row;
    row["name"] = graph.name;
    row["executed"] = graph.is_executed;
    row["provenance"] = graph.provenance;
    rows.append(row);
  }
  return rows;
}

nb::list calls_of(const DumpHandle& self) {
  nb::list rows;
  for (const DumpCall& call : self.reader->calls()) {
    nb::dict row;
    row["execution"] = call.execution;
    row["graph"] = call.graph < 0 ? nb::object(nb::none()) : nb::object(nb::int_(call.graph));
    row["name"] = call.call.graph;
    row["step"] = call.call.step < 0 ? nb::object(nb::none()) : nb::object(nb::int_(call.call.step));
    rows.append(row);
  }
  return rows;
}

nb::list events_of(const DumpHandle& self) {
  nb::list rows;
  for (const DumpEvent& event : self.reader->events()) {
    nb::dict row;
    row["kind"] = name_in(kEvents, event.kind);
    row["execution"] = event.execution;
    row["entries_before"] = event.entry_count;
    row["node"] = event.node;
    row["op"] = event.op;
    row["text"] = event.text;
    rows.append(row);
  }
  return rows;
}

nb::list structures_of(const DumpHandle& self) {
  nb::list rows;
  for (const DumpStructure& structure : self.reader->structures()) {
    nb::dict row;
    row["path"] = structure.path;
    row["text"] = structure.text;
    row["execution"] = structure.execution;
    row["entries_before"] = structure.entry_count;
    rows.append(row);
  }
  return rows;
}

ModelHandle model_of(const DumpHandle& self, int64_t graph) {
  const auto count = static_cast<int64_t>(self.reader->graphs().size());
  if (count == 0)
    raise(
        usage_error(fmt::format("'{}' holds no graph; it must come from a run of a model, or from an import with "
                                "--model",
                                self.reader->path())));
  if (graph < 0 || graph >= count) throw nb::index_error(fmt::format("the dump has {} graphs", count).c_str());
  const nb::gil_scoped_release nogil;
  return {unwrap(self.reader->model(static_cast<int32_t>(graph)))};
}

nb::object shape_of_entry(const EntryHandle& self) {
  const TypeInfo& type = self.entry().type;
  if (!type.dims.has_value()) return nb::none();
  nb::list dims;
  for (const Dim& dim : *type.dims) dims.append(dim.value);
  return nb::tuple(dims);
}

nb::object statistics_of_entry(const EntryHandle& self) {
  const auto& found = self.entry().statistics;
  if (!found.has_value()) return nb::none();
  nb::dict result;
  result["count"] = found->count;
  for (const auto& [name, number] :
       {std::pair("min", found->min), std::pair("max", found->max), std::pair("mean", found->mean),
        std::pair("std", found->std), std::pair("l2", found->l2)})
    result[name] = number;
  result["zeros"] = found->zeros;
  result["nan"] = found->nan;
  result["positive_inf"] = found->positive_inf;
  result["negative_inf"] = found->negative_inf;
  return result;
}

void bind_entry(nb::module_& module) {
  nb::class_<EntryHandle>(module, "DumpEntry", "One captured value of a dump, without its elements.")
      .def_ro("index", &EntryHandle::index, "Position in the order of observation.")
      .def_prop_ro(
          "path", [](const EntryHandle& self) { return self.entry().path; }, "Whole value path.")
      .def_prop_ro(
          "name", [](const EntryHandle& self) { return self.entry().name; }, "Name of the value in its graph.")
      .def_prop_ro(
          "node", [](const EntryHandle& self) { return self.entry().node; }, "Node that produced it, or \"\".")
      .def_prop_ro("op", [](const EntryHandle& self) { return self.entry().op; })
      .def_prop_ro(
          "role", [](const EntryHandle& self) { return name_in(kRoles, self.entry().role); },
          "\"input\", \"initializer\" or \"output\" (of a node).")
      .def_prop_ro(
          "level", [](const EntryHandle& self) { return name_in(kLevels, self.entry().level); },
          "What was kept of it: \"shape\", \"stats\", \"sample\" or \"all\".")
      .def_prop_ro("is_graph_output", [](const EntryHandle& self) { return self.entry().is_graph_output; })
      .def_prop_ro("execution", [](const EntryHandle& self) { return self.entry().execution; })
      .def_prop_ro(
          "call", [](const EntryHandle& self) { return self.entry().call; }, "Index into calls; -1 for none.")
      .def_prop_ro(
          "absence",
          [](const EntryHandle& self) -> nb::object {
            const auto& absence = self.entry().absence;
            if (!absence.has_value()) return nb::none();
            return nb::make_tuple(name_in(kAbsences, absence->kind), absence->into);
          },
          nb::sig("def absence(self) -> tuple[str, str] | None"),
          "(\"fused\" | \"folded\" | \"aliased\" | \"removed\", what it became) of a value that did not exist.")
      .def_prop_ro(
          "type", [](const EntryHandle& self) { return to_string(self.entry().type); }, "\"float32[2,3]\", ...")
      .def_prop_ro("shape", shape_of_entry, nb::sig("def shape(self) -> tuple[int, ...] | None"))
      .def_prop_ro("statistics", statistics_of_entry, nb::sig("def statistics(self) -> dict[str, int | float] | None"),
                   "Those of Tensor.statistics(), which were taken with the capture.")
      .def("__repr__", [](const EntryHandle& self) {
        return printable(fmt::format("DumpEntry('{}', {}, {})", self.entry().path, to_string(self.entry().type),
                                     name_in(kLevels, self.entry().level)));
      });
}

void bind_dump_reader(nb::module_& module) {
  bind_entry(module);
  nb::class_<DumpHandle>(module, "Dump", "A dump file, mapped for reading. See parallax.dump.Dump.")
      .def_static("open", open_dump, nb::arg("path"))
      .def_prop_ro("path", [](const DumpHandle& self) { return self.reader->path(); })
      .def_prop_ro("is_complete", [](const DumpHandle& self) { return self.reader->is_complete(); })
      .def_prop_ro("executions", executions_of, nb::sig("def executions(self) -> list[dict[str, typing.Any]]"))
      .def_prop_ro("graphs", graphs_of, nb::sig("def graphs(self) -> list[dict[str, typing.Any]]"))
      .def_prop_ro("calls", calls_of, nb::sig("def calls(self) -> list[dict[str, typing.Any]]"))
      .def_prop_ro("events", events_of, nb::sig("def events(self) -> list[dict[str, typing.Any]]"))
      .def_prop_ro("structures", structures_of, nb::sig("def structures(self) -> list[dict[str, typing.Any]]"))
      .def_prop_ro("entries", entries_of)
      .def("__len__", [](const DumpHandle& self) { return self.reader->entries().size(); })
      .def(
          "find",
          [](const DumpHandle& self, const std::string& path, int32_t execution) {
            return self.reader->find(path, execution);
          },
          nb::arg("path"), nb::arg("execution") = 0, "Index of the last entry with this path, or -1.")
      .def("select", select, nb::arg("glob"))
      .def("load", load_entry, nb::arg("index"), nb::arg("copy") = false,
           nb::sig("def load(self, index: int, copy: bool = False) -> typing.Any"))
      .def("model", model_of, nb::arg("graph") = 0);
}

constexpr std::array<const char*, 7> kFrames = {"graph", "step", "body", "then", "else", "call", "module"};

nb::tuple path_to_python(const std::string& text) {
  const ValuePath path = unwrap(parse_value_path(text));
  nb::list frames;
  for (const Frame& frame : path.frames)
    frames.append(nb::make_tuple(name_in(kFrames, frame.kind), frame.node, frame.index));
  return nb::make_tuple(frames, path.name);
}

std::string module_frames(const std::string& name, int64_t call) {
  return to_string(Frame{Frame::Kind::module, name, call}) + "//";
}

void bind_paths(nb::module_& module) {
  module.def(
      "escape_name", [](const std::string& name) { return escape_name(name); }, nb::arg("name"),
      "Returns a value's name as it stands in value paths.");
  module.def(
      "printable", [](const std::string& text) { return printable(text); }, nb::arg("text"),
      "Returns a text with its control characters spelled, as messages show names.");
  module.def("module_frames", module_frames, nb::arg("name"), nb::arg("call") = -1,
             "Returns the frames of the values of a module's call, or of an appended object (call -1).");
  module.def("parse_value_path", path_to_python, nb::arg("path"),
             nb::sig("def parse_value_path(path: str) -> tuple[list[tuple[str, str, int]], str]"),
             "Returns the frames (kind, node, index) of a value path, and the value's name. Raises UsageError.");
}

}  // namespace

void bind_dump(nb::module_& module) {
  bind_dump_reader(module);
  bind_dump_writer(module);
  bind_captured_objects(module);
  bind_paths(module);
}

}  // namespace parallax::python
