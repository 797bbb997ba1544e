// SPDX-License-Identifier: Apache-2.0
// The selected value: its elements, the measure, the range, the picked element.
#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "gui/viewmodel/inspect/view_border.h"
#include "gui/viewmodel/viewer.h"
#include "inspector/base/text.h"
#include "inspector/dump/statistics/statistics.h"
#include "inspector/exec/path_parts.h"
#include "inspector/exec/value_path.h"

namespace parallax {
// Copied, so that the selected value stays valid whatever happens to the file.
Result<Value> captured_value(const DumpReader* dump, int32_t entry) {
  if (dump == nullptr || entry < 0) return Value();
  const DumpEntry& kept = dump->entries()[static_cast<size_t>(entry)];
  if (kept.absence.has_value()) return Value();
  if (kept.level != CaptureLevel::all)
    return usage_error("its elements were not kept in full; statistics are on the right");
  return dump->load_copy(entry);
}

namespace {

// The names of sizes in the type that its model gives the row's value, one for each axis.
std::vector<std::string> names_of_axes(const Document& document, const ValueRow& row) {
  if (row.is_only_b)
    return names_of_axes(*document.models->b, document.models->b->rows[static_cast<size_t>(row.row_b)]);
  const Graph* graph = row.item < 0 ? nullptr : document.items->item(row.item).graph;
  if (graph == nullptr) return {};
  const std::string name = unescape_name(std::string_view(row.path).substr(name_begin(row.path)));
  const auto value = std::ranges::find(graph->values, name, &ValueDef::name);
  if (value == graph->values.end()) return {};
  std::vector<std::string> names;
  for (const Dim& dim : value->type.dims.value_or(std::vector<Dim>())) names.push_back(dim.name);
  return names;
}

Tensor tensor_in(const Value& value) { return value.is_tensor() ? value.tensor() : Tensor(); }

}  // namespace

bool can_show(const TensorPane& pane, TensorMode mode) {
  if (!pane.model.has_value()) return false;
  if (pane.is_one_by_one) return mode == TensorMode::a || mode == TensorMode::b;
  return pane.model->has_b() || mode == pane.mode;
}

// The value that is shown of an item: of a leaf its worst one, of what has a border its first output.
int32_t Viewer::row_to_show(int32_t item) const {
  if (const int32_t row = changed_constant(item); row >= 0) return row;
  const GraphItem& shown = graph.items().item(item);
  if (shown.kind == GraphItem::Kind::node && !shown.has_children()) return graph.summary(item).worst_row;
  if (item == 0) return -1;
  for (const BorderValue& output : border_of(graph.items(), item).outputs) {
    const int32_t row = document_->find_any_row(path_of(output), graph.iteration());
    if (row >= 0) return row;
  }
  return shown.value == kNoValue ? -1 : graph.summary(item).worst_row;
}

void Viewer::load_tensor() {
  tensor_.model.reset();
  tensor_.texts.reset();
  tensor_.weight = {};
  tensor_.problem.clear();
  tensor_.element = -1;
  tensor_.is_auto_range = true;
  tensor_.is_range_due = tensor_.wants_worst = tensor_.is_one_by_one = false;
  tensor_.filter.brush.reset();
  tensor_.channel_axis = -1;
  ++tensor_.version;
  ++tensor_loads_;
  if (row_ < 0) return;
  const ValueRow& row = document_->rows[static_cast<size_t>(row_)];
  const ValueComparison* compared = document_->compared(row_);
  const auto value_a =
      row.weight >= 0 ? document_->weights->load_copy(row.weight) : captured_value(document_->a.get(), row.entry_a);
  const auto value_b = row.row_b >= 0 ? value_in_b(row) : captured_value(document_->b.get(), row.entry_b);
  if (!value_a.ok() || !value_b.ok()) {
    tensor_.problem = value_a.ok() ? value_b.error().message : value_a.error().message;
    if (row.weight >= 0 || is_weight_in_b(row)) tensor_.weight.problem = tensor_.problem;
    return;
  }
  if (row.weight >= 0 && value_a->tensor().dtype() != DType::string)
    tensor_.weight.statistics = compute_statistics(value_a->tensor());
  if (is_weight_in_b(row) && value_b->is_tensor() && value_b->tensor().dtype() != DType::string)
    tensor_.weight.statistics_b = compute_statistics(value_b->tensor());
  const Limit limit = compared == nullptr ? Limit{} : compared->limit;
  if (is_listed_as_text(*value_a) || is_listed_as_text(*value_b)) {
    tensor_.texts = list_as_text(*value_a, *value_b, limit);
    return;
  }
  const Tensor a = tensor_in(*value_a), b = tensor_in(*value_b);
  if (!a.defined() && !b.defined()) {
    tensor_.problem = explain_no_elements();
    return;
  }
  bool only_b = !a.defined();
  auto model = TensorModel::make(only_b ? b : a, only_b ? Tensor() : b, limit);
  if (!model.ok()) {
    tensor_.problem = model.error().message;
    only_b = tensor_.wanted_mode == TensorMode::b && b.defined();
    model = TensorModel::make(only_b ? b : a, Tensor(), {});
    if (!model.ok()) return;
    tensor_.is_one_by_one = true;
  }
  tensor_.model = std::move(model).take();
  tensor_.axis_names = names_of_axes(*document_, row);
  tensor_.axis_names.resize(tensor_.model->shape().rank());
  tensor_.model->set_montage(tensor_.is_montage);
  tensor_.mode = tensor_.model->has_b() ? tensor_.wanted_mode : only_b ? TensorMode::b : TensorMode::a;
  if (compared != nullptr && compared->metrics.has_value() && compared->verdict == Verdict::diverged) {
    select_element(tensor_.model->element_of(compared->metrics->worst_index));
  } else if (compared != nullptr && compared->metrics.has_value() && compared->severity > 0) {
    tensor_.model->show(tensor_.model->element_of(compared->metrics->worst_index));  // its slice
  }
  refresh_range();
}

std::string Viewer::explain_no_elements() const {
  if (document_->a != nullptr) return "this value was not captured";
  if (is_running()) return "elements can be looked at when the run has ended";
  if (was_cut_short_) return "the run was cut short before elements were kept";
  if (document_->run.has_value()) return "the run did not keep elements: run it with 'capture full tensors' (Ctrl+R)";
  return "no values here: run the model, or open a dump of a run";
}

void Viewer::set_tensor_mode(TensorMode mode) {
  if (!can_show(tensor_, mode)) return;
  if (tensor_.is_one_by_one) {
    tensor_.wanted_mode = mode;
    return load_tensor();
  }
  tensor_.mode = tensor_.wanted_mode = mode;
  tensor_.is_auto_range = true;
  tensor_.filter.brush.reset();  // it was of what was measured before
  refresh_range();
}

void Viewer::set_montage(bool is_on) {
  tensor_.is_montage = is_on;
  if (!tensor_.model.has_value()) return;
  tensor_.model->set_montage(is_on);
  refresh_range();
}

void Viewer::show_channel(int axis, int64_t index) {
  if (!tensor_.model.has_value()) return;
  TensorModel& model = *tensor_.model;
  auto location = std::vector<int64_t>(model.index().begin(), model.index().end());
  if (axis < 0 || axis >= static_cast<int>(location.size())) return;
  if (tensor_.element >= 0) location = model.multi_index(tensor_.element);
  location[static_cast<size_t>(axis)] = index;
  select_element(model.element_of(location));
}

void Viewer::set_brush(std::optional<ValueRange> brush) {
  tensor_.filter.brush = brush;
  ++tensor_.version;
}

Status Viewer::go_to_index(const std::string& text) {
  if (!tensor_.model.has_value()) return usage_error("no value with elements is selected; select one first");
  std::vector<int64_t> index;
  for (std::string_view part : split(text, ',')) {
    const size_t first = part.find_first_not_of(" [");
    const size_t last = part.find_last_not_of(" ]");
    part = first == std::string_view::npos ? "" : part.substr(first, last - first + 1);
    int64_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || end != part.data() + part.size())
      return usage_error(fmt::format("'{}' is no index: write numbers with commas, as 0,3,5", text));
    index.push_back(number);
  }
  const int64_t element = tensor_.model->element_of(index);
  if (element < 0)
    return usage_error(fmt::format("[{}] is not in a tensor {}", text, tensor_.model->shape().to_string()));
  select_element(element);
  return {};
}

void Viewer::refresh_range() {
  ++tensor_.version;
  tensor_.wants_worst = false;
  tensor_.is_range_due = false;
  if (!tensor_.model.has_value() || !tensor_.is_auto_range) return;
  tensor_.is_range_due = !tensor_.model->is_short(tensor_.mode);
  if (!tensor_.is_range_due) tensor_.range = tensor_.model->autofit(tensor_.mode);
}

void Viewer::set_range(ValueRange range) {
  if (!(range.high > range.low) || !std::isfinite(range.low) || !std::isfinite(range.high)) return;
  tensor_.range = range;
  tensor_.is_auto_range = false;
  ++tensor_.range_version;
}

void Viewer::worst_element() {
  if (!tensor_.model.has_value()) return;
  const ValueComparison* compared = document_->compared(row_);
  if (compared != nullptr && compared->metrics.has_value() && !compared->metrics->worst_index.empty()) {
    select_element(tensor_.model->element_of(compared->metrics->worst_index));
  } else if (const TensorModel counted = tensor_.counted(); !counted.is_short(tensor_.mode)) {
    tensor_.wants_worst = true;
  } else if (const auto worst = counted.worst(tensor_.mode, 1); !worst.empty()) {
    select_element(worst.front());
  }
}

}  // namespace parallax
