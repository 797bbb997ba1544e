// SPDX-License-Identifier: Apache-2.0
// Exports, and the clipboard.
#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gui/viewmodel/view_export.h"
#include "gui/viewmodel/viewer.h"
#include "inspector/base/input_files.h"
#include "inspector/base/mapped_file.h"
#include "inspector/dump/tensor_files/npy.h"
#include "inspector/render/markup.h"

namespace parallax {
namespace {

bool has_ending_of(ExportSubject subject, std::string_view path) {
  const auto fits = [&](std::string_view ending) { return !ending.empty() && path.ends_with(ending); };
  return std::ranges::any_of(info_of(subject).endings, fits) || (subject == ExportSubject::graph && fits(".gv"));
}

// A line for each element of the slice.
std::string slice_csv(const TensorModel& model) {
  std::string text = model.has_b() ? "index,a,b,a-b,relative,ulp,severity\n" : "index,value\n";
  for (int64_t i = 0; i < model.slice_count(); ++i) {
    const ElementView element = model.describe(model.element_in_slice(i));
    text += csv_field(element.index) + "," + element.a;
    if (model.has_b())
      text += fmt::format(",{},{},{},{},{}", element.b, element.difference, element.relative, element.ulp,
                          element.severity);
    text += "\n";
  }
  return text;
}

// The side that is shown, or the measure of each element.
Result<Tensor> shown_tensor(const TensorPane& pane) {
  const TensorModel& model = *pane.model;
  if (pane.mode == TensorMode::a || (pane.mode == TensorMode::b && !model.has_b())) return model.a();
  if (pane.mode == TensorMode::b) return model.b();
  Tensor measured = PX_TRY(Tensor::allocate(DType::float64, model.shape()));
  double* const numbers = reinterpret_cast<double*>(measured.mutable_data());
  for (int64_t i = 0; i < model.shape().element_count(); ++i) numbers[i] = model.number(pane.mode, i);
  return measured;
}

}  // namespace

ExportSubject subject_of(std::string_view path) {
  for (const ExportSubjectInfo& info : kExportSubjects) {
    if (has_ending_of(info.subject, path)) return info.subject;
  }
  return ExportSubject::graph;
}

// Checks that the file is none of those that are shown, and a foreign one only where it may be replaced.
Status Viewer::admit_export(const std::string& path, ExportSubject subject, bool replaces) const {
  if (subject == ExportSubject::graph && !graph.has_graph())
    return usage_error("there is no graph to export; open a model, or a dump with a graph");
  if (subject == ExportSubject::value && !tensor_.model.has_value())
    return usage_error("no value with elements is selected; select one first");
  if (document_ == nullptr) return usage_error("nothing is open that could be exported");
  if (!has_ending_of(subject, path)) {
    std::vector<std::string_view> endings(info_of(subject).endings.begin(), info_of(subject).endings.end());
    std::erase(endings, "");
    return usage_error(fmt::format("'{}' must end in {}", path, fmt::join(endings, " or ")));
  }
  const input_files::Scope scope(replaces || may_replace);
  for (const std::string& file : document_->files) input_files::note(file);
  for (const std::string& file : {run_form.model, run_form.against, run_form.inputs}) input_files::note(file);
  return admit_output(path);
}

Status Viewer::write_export(const std::string& path, ExportSubject subject) {
  if (subject == ExportSubject::view) return write_file(path, session_to_json(*this));
  if (subject == ExportSubject::graph) {
    const bool is_svg = path.ends_with(".svg");
    if (models() == nullptr) return write_file(path, is_svg ? scene_to_svg(graph) : scene_to_dot(graph));
    return write_file(path,
                      is_svg ? scenes_to_svg(graph, graph_b, *models()) : scenes_to_dot(graph, graph_b, *models()));
  }
  if (path.ends_with(".csv")) return write_file(path, slice_csv(*tensor_.model));
  return write_npy(path, PX_TRY(shown_tensor(tensor_)));
}

Status Viewer::export_to(const std::string& path, ExportSubject subject, bool replaces) {
  PX_TRY(admit_export(path, subject, replaces));
  if (path.ends_with(".png")) {
    wanted_png = path;
    wanted_pane = subject == ExportSubject::graph   ? (models() == nullptr ? "graph" : "graphs")
                  : subject == ExportSubject::value ? "tensor"
                                                    : "";
    png_may_replace = replaces || may_replace;
    return {};
  }
  const input_files::Scope scope(replaces || may_replace);
  PX_TRY(write_export(path, subject));
  note = "wrote " + path;
  return {};
}

void Viewer::export_or_ask(const std::string& path, ExportSubject subject) {
  if (!admit_export(path, subject, false).ok() && admit_export(path, subject, true).ok()) {
    foreign_file = path;
    foreign_subject = subject;
    show_replace = true;
    return;
  }
  if (const Status done = export_to(path, subject); !done.ok()) fail(done.error());
}

bool Viewer::copy(std::string text) {
  if (text.empty()) return false;
  const auto lines = std::ranges::count(text, '\n');
  note = lines > 1 ? fmt::format("copied {} lines", lines) : "copied: " + text;
  clipboard = std::move(text);
  return true;
}

}  // namespace parallax
