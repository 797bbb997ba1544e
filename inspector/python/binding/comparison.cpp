// SPDX-License-Identifier: Apache-2.0
// The class Comparison of Python: the document as JSON and text, and the files that reports are.
#include "inspector/python/binding/comparison.h"

#include <fmt/format.h>
#include <nanobind/stl/vector.h>

#include "inspector/python/binding/errors.h"
#include "inspector/python/binding/outputs.h"
#include "inspector/python/binding/text_caster.h"
#include "inspector/render/focus_svg.h"
#include "inspector/render/report_json.h"
#include "inspector/render/report_text.h"
#include "inspector/workbench/report_files.h"

namespace parallax::python {
namespace {

std::string* file_of_kind(ReportFiles& files, const std::string& kind) {
  const std::pair<std::string_view, std::string*> kinds[] = {{"csv", &files.csv},
                                                             {"junit", &files.junit},
                                                             {"html", &files.html},
                                                             {"dot", &files.dot},
                                                             {"svg", &files.svg},
                                                             {"netron", &files.netron},
                                                             {"model-explorer", &files.model_explorer}};
  for (const auto& [name, file] : kinds)
    if (name == kind) return file;
  raise(
      usage_error(fmt::format("kind is '{}'; it must be csv, junit, html, dot, svg, netron or model-explorer", kind)));
}

void save(const ComparisonHandle& self, const std::string& kind, const std::string& path, const std::string& command,
          bool force) {
  ReportFiles files;
  files.command = command;
  *file_of_kind(files, kind) = path;
  const nb::gil_scoped_release nogil;
  const OutputScope scope(force, self.read);
  unwrap(admit_output(path));
  unwrap(write_reports(files, *self.comparison, self.model == nullptr ? nullptr : &self.model->graph));
}

// The node that a cause, or else the first difference, names in the graph's own scope: the outermost frame's where it
// is inside a body.
std::string svg(const ComparisonHandle& self, const std::string& path, int steps) {
  if (self.model == nullptr) return {};
  const nb::gil_scoped_release nogil;
  std::string focus = path;
  if (focus.empty() && !self.comparison->causes.empty()) focus = self.comparison->causes.front().path;
  if (focus.empty() && self.comparison->first_divergence.has_value()) focus = self.comparison->first_divergence->path;
  if (focus.empty()) return {};
  return neighborhood_to_svg(self.model->graph, focus, steps, self.comparison.get());
}

}  // namespace

void bind_comparison(nb::module_& module) {
  nb::class_<ComparisonHandle>(module, "Comparison", nb::is_weak_referenceable(),
                               "What a comparison of two sides found.")
      .def_prop_ro(
          "verdict", [](const ComparisonHandle& self) { return std::string(name_of(self.comparison->verdict)); },
          "\"pass\", \"diverged\" or \"inconclusive\".")
      .def_ro("notes", &ComparisonHandle::notes)
      .def_ro("warnings", &ComparisonHandle::warnings)
      .def(
          "json", [](const ComparisonHandle& self) { return comparison_to_json(*self.comparison); },
          nb::call_guard<nb::gil_scoped_release>(), "Returns the document that the program prints with --json.")
      .def(
          "text",
          [](const ComparisonHandle& self, int64_t top) {
            return comparison_to_text(*self.comparison, {top, false});
          },
          nb::arg("top") = 10, "Returns the text that the program prints; `top` values, -1: all.")
      .def("save", save, nb::arg("kind"), nb::arg("path"), nb::arg("command") = "", nb::arg("force") = false,
           "Writes a report: csv, junit, html, dot, svg, netron or model-explorer.")
      .def("svg", svg, nb::arg("path") = "", nb::arg("steps") = 2,
           "Returns a picture of what is around a value, by default the first cause's; \"\" where there is none.");
}

}  // namespace parallax::python
