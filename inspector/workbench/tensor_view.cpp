// SPDX-License-Identifier: Apache-2.0
// Text and JSON of captured values.
#include "inspector/workbench/tensor_view.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/shown_text.h"
#include "inspector/base/text.h"
#include "inspector/diff/tolerance/paths.h"
#include "inspector/exec/branches.h"
#include "inspector/exec/value_path.h"
#include "inspector/render/compact_numbers.h"
#include "inspector/render/report_json.h"
#include "inspector/tensor/elements.h"
#include "inspector/workbench/extremes.h"
#include "inspector/workbench/open.h"
#include "inspector/workbench/slice.h"

namespace parallax {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kMaxPrinted = 1000;

std::string level_name(CaptureLevel level) {
  constexpr std::string_view kNames[] = {"none", "shape", "stats", "sample", "all"};
  return std::string(kNames[static_cast<size_t>(level)]);
}

std::string absence_text(const Absence& absence) {
  switch (absence.kind) {
    case Absence::Kind::fused:
      return "fused into " + absence.into;
    case Absence::Kind::folded:
      return "folded";
    case Absence::Kind::aliased:
      return "alias of " + absence.into;
    case Absence::Kind::removed:
      return "removed";
  }
  return "absent";
}

std::vector<int64_t> dims_of(const TypeInfo& type) {
  std::vector<int64_t> dims;
  for (const Dim& dim : type.dims.value_or(std::vector<Dim>{})) dims.push_back(dim.value);
  return dims;
}

ordered_json element_json(const TensorView& tensor, int64_t index) {
  switch (info_of(tensor.dtype).kind) {
    case DTypeKind::boolean:
      return element_as_int64(tensor, index) != 0;
    case DTypeKind::signed_integer:
      return element_as_int64(tensor, index);
    case DTypeKind::unsigned_integer:
      return static_cast<uint64_t>(element_as_int64(tensor, index));
    case DTypeKind::string:
      return tensor.as<std::string>()[static_cast<size_t>(index)];
    case DTypeKind::complex: {
      const auto value = element_as_complex(tensor, index);
      return ordered_json::array({value.real(), value.imag()});
    }
    default:
      break;
  }
  const double value = element_as_double(tensor, index);
  if (std::isfinite(value)) {
    // The shortest digits of a float, not those of the double it widens to.
    return tensor.dtype == DType::float64 ? ordered_json(value) : ordered_json::parse(element_to_string(tensor, index));
  }
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

ordered_json histogram_json(const TensorView& tensor) {
  const ElementHistogram histogram = make_histogram(tensor);
  return {{"low", histogram.low}, {"high", histogram.high}, {"counts", histogram.counts}};
}

ordered_json tensor_document(const TensorView& tensor, const TensorViewOptions& options) {
  ordered_json json{{"dtype", name_of(tensor.dtype)},
                    {"shape", std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end())}};
  json["stats"] = nullptr;
  if (tensor.dtype != DType::string) {
    const TensorStatistics statistics = compute_statistics(tensor);
    json["stats"] = exact_statistics_json(integer_extremes(tensor, statistics), statistics);
  }
  if (options.histogram) json["histogram"] = histogram_json(tensor);
  if (options.statistics_only) return json;
  json["values"] = ordered_json::array();
  for (int64_t index = 0; index < tensor.element_count(); ++index)
    json["values"].push_back(element_json(tensor, index));
  return json;
}

// `all`: the elements, where they are at hand.
std::string statistics_text(const TensorStatistics& stats, DType dtype, const TensorView* all = nullptr) {
  if (stats.count == 0) return "empty: it has no elements\n";
  const auto integers = all == nullptr ? std::nullopt : integer_extremes(*all, stats);
  const auto [min, max] = extremes_text(integers, stats, dtype, 7);
  std::string text =
      fmt::format("min {}  max {}  mean {:.7g}  std {:.7g}  zeros {}", min, max, stats.mean, stats.std, stats.zeros);
  if (stats.nan > 0) text += fmt::format("  NaN {}", stats.nan);
  if (stats.positive_inf + stats.negative_inf > 0)
    text += fmt::format("  +inf {}  -inf {}", stats.positive_inf, stats.negative_inf);
  return text + "\n";
}

std::string histogram_text(const TensorView& tensor) {
  constexpr int64_t kWidth = 50;
  const ElementHistogram histogram = make_histogram(tensor);
  const int64_t most =
      histogram.counts.empty() ? 0 : *std::max_element(histogram.counts.begin(), histogram.counts.end());
  std::string text;
  const auto bins = static_cast<double>(std::max<size_t>(1, histogram.counts.size()));
  const double step = histogram.high / bins - histogram.low / bins;
  for (size_t bin = 0; bin < histogram.counts.size(); ++bin) {
    const int64_t count = histogram.counts[bin];
    const auto length = static_cast<size_t>(most == 0 ? 0 : (count * kWidth + most - 1) / most);
    text += fmt::format("{:>12.5g} | {:<50} {}\n", histogram.low + step * static_cast<double>(bin),
                        std::string(length, '#'), count);
  }
  return text;
}

// Rows along the last axis, with a line "[1,2,:]" before each when there is more than one axis before it.
std::string elements_text(const TensorView& tensor) {
  const int64_t count = tensor.element_count();
  const size_t rank = tensor.shape.rank();
  const int64_t row = rank == 0 ? 1 : std::max<int64_t>(1, tensor.shape[rank - 1]);
  std::string text;
  for (int64_t index = 0; index < std::min(count, kMaxPrinted); ++index) {
    if (rank > 1 && index % row == 0) {
      std::string location = ":";
      int64_t rest = index / row;
      for (size_t axis = rank - 1; axis-- > 0; rest /= tensor.shape[axis])
        location = fmt::format("{},{}", rest % tensor.shape[axis], location);
      text += fmt::format("{}[{}]", index == 0 ? "" : "\n", location);
    }
    text += fmt::format("{}{}", rank > 1 || index > 0 ? " " : "", element_to_string(tensor, index));
  }
  text += "\n";
  if (count > kMaxPrinted)
    text += fmt::format("... {} more elements: choose some with --slice, or write all with -o F.npy\n",
                        count - kMaxPrinted);
  return text;
}

constexpr const char* kTextsHaveNone = "strings have no minimum, maximum or mean\n";

std::string tensor_text(const TensorView& tensor, const TensorViewOptions& options) {
  std::string text;
  if (tensor.dtype != DType::string) text = statistics_text(compute_statistics(tensor), tensor.dtype, &tensor);
  if (tensor.dtype == DType::string && options.statistics_only) text = kTextsHaveNone;
  if (options.histogram) text += histogram_text(tensor);
  return options.statistics_only ? text : text + elements_text(tensor);
}

bool has_payload(const DumpEntry& entry) { return !entry.absence.has_value() && entry.level >= CaptureLevel::sample; }

// Why there are no elements of a value, and what to do for them.
std::string without_elements(const DumpEntry& entry) {
  if (entry.absence.has_value()) {
    return fmt::format("it was {}, and has no elements of its own: a run with --observe-all has them",
                       entry.absence->kind == Absence::Kind::aliased ? "an " + absence_text(*entry.absence)
                                                                     : absence_text(*entry.absence));
  }
  return fmt::format("the dump holds only its {}: a run with '--dump DIR --capture all' keeps its elements",
                     entry.level == CaptureLevel::stats ? "type, shape and statistics" : "type and shape");
}

void collect_tensors(const Value& value, std::vector<Tensor>& tensors) {
  if (value.is_tensor()) tensors.push_back(value.tensor());
  if (value.is_sequence()) {
    for (const Value& item : value.sequence().items) collect_tensors(item, tensors);
  }
  if (value.is_optional()) {
    for (const Value& item : value.optional().item) collect_tensors(item, tensors);
  }
  if (value.is_map()) {
    tensors.push_back(value.map().keys);
    for (const Value& item : value.map().values) collect_tensors(item, tensors);
  }
}

// The content of a value in the dump; a sample of all elements in its own shape, since it is the tensor.
struct LoadedValue {
  Value value;
  bool is_part = false;  // a sample of some elements, of rank 1
};

Result<LoadedValue> load_value(const DumpReader& dump, int32_t index) {
  const DumpEntry& entry = dump.entries()[static_cast<size_t>(index)];
  LoadedValue loaded{PX_TRY(dump.load(index))};
  if (entry.level != CaptureLevel::sample || !loaded.value.is_tensor()) return loaded;
  const Shape shape = PX_TRY(Shape::create(dims_of(entry.type)));
  loaded.is_part = shape.element_count() != loaded.value.tensor().element_count();
  if (!loaded.is_part) loaded.value = Value(loaded.value.tensor().reshaped(shape));
  return loaded;
}

// The statistics that a dump keeps of a value, where its elements have any.
std::optional<TensorStatistics> kept_statistics(const DumpEntry& entry) {
  return entry.type.dtype == DType::string ? std::nullopt : entry.statistics;
}

ordered_json kept_statistics_json(const DumpEntry& entry) {
  const auto kept = kept_statistics(entry);
  return kept.has_value() ? statistics_json(*kept) : ordered_json(nullptr);
}

Status check_histogram(const DumpEntry& entry, const std::vector<Tensor>& tensors, const TensorViewOptions& options) {
  const auto is_text = [](const Tensor& tensor) { return tensor.dtype() == DType::string; };
  if (!options.histogram || std::ranges::none_of(tensors, is_text)) return {};
  return usage_error(
      fmt::format("--histogram counts numbers, and '{}' of type {} holds strings", entry.path, to_string(entry.type)));
}

// The tensors that make up a value, sliced when it is one tensor.
Result<std::vector<Tensor>> slice_tensors(const DumpEntry& entry, const LoadedValue& loaded, const std::string& slice) {
  const Value& value = loaded.value;
  if (slice.empty()) {
    std::vector<Tensor> tensors;
    collect_tensors(value, tensors);
    return tensors;
  }
  if (!value.is_tensor())
    return usage_error(fmt::format("--slice: '{}' is {}, not one tensor", entry.path, to_string(type_of(value))));
  if (loaded.is_part) {
    return usage_error(
        fmt::format("--slice: of '{}', which is {}, a sample of {} elements was kept, not those of the slice: leave "
                    "--slice out, or capture the value whole",
                    entry.path, to_string(entry.type), value.tensor().element_count()));
  }
  const auto slices = PX_TRY(parse_slice(slice, value.tensor().shape()));
  return std::vector<Tensor>{PX_TRY(take_slice(value.tensor(), slices))};
}

// Complex numbers as twice as many real ones, as their statistics take them.
std::vector<double> real_numbers(const TensorView& tensor) {
  const bool is_pair = is_complex(tensor.dtype);
  const auto count = static_cast<size_t>(tensor.element_count());
  std::vector<double> numbers(is_pair ? 2 * count : count);
  if (!is_pair) load_doubles(tensor, 0, numbers);
  for (size_t index = 0; is_pair && index < count; ++index) {
    const auto value = element_as_complex(tensor, static_cast<int64_t>(index));
    numbers[2 * index] = value.real();
    numbers[2 * index + 1] = value.imag();
  }
  return numbers;
}

}  // namespace

ElementHistogram make_histogram(const TensorView& tensor, size_t bins) {
  ElementHistogram histogram;
  if (tensor.dtype == DType::string) return histogram;
  std::vector<double> values = real_numbers(tensor);
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return histogram;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  histogram.low = *low;
  histogram.high = *high;
  histogram.counts.assign(bins, 0);
  // Half by half, where the whole range is beyond the numbers.
  const double unit = std::isfinite(histogram.high - histogram.low) ? 1 : 0.5;
  const double begin = histogram.low * unit, range = histogram.high * unit - begin;
  for (const double value : values) {
    const double part = range > 0 ? (value * unit - begin) / range : 0;
    const auto bin = static_cast<size_t>(part * static_cast<double>(bins));
    ++histogram.counts[std::min(bins - 1, bin)];
  }
  return histogram;
}

std::string value_list_to_text(const DumpReader& dump) {
  std::string text;
  for (const DumpEntry& entry : dump.entries()) {
    const std::string what = entry.absence.has_value() ? absence_text(*entry.absence)
                                                       : to_string(entry.type) + "  " + level_name(entry.level);
    text += printable(fmt::format("{}  {}{}", entry.path, what,
                                  entry.op.empty() ? "" : fmt::format("  ({} {})", entry.op, entry.node))) +
            "\n";
  }
  for (const std::string& remark : run_remarks(dump)) text += printable(remark) + "\n";
  return text;
}

std::string value_list_to_json(const DumpReader& dump) {
  ordered_json json{{"dump", dump.path()}, {"complete", runs_ended(dump)}};
  json["values"] = ordered_json::array();
  for (const DumpEntry& entry : dump.entries()) {
    ordered_json row{{"path", entry.path}, {"name", entry.name}, {"node", entry.node}, {"op", entry.op}};
    row["dtype"] = dtype_text(entry.type);
    row["shape"] = dims_of(entry.type);
    row["level"] = level_name(entry.level);
    row["absent"] = entry.absence.has_value() ? ordered_json(absence_text(*entry.absence)) : ordered_json(nullptr);
    json["values"].push_back(std::move(row));
  }
  return json_text(json);
}

namespace {

// A value that a plan lacks is announced once for all iterations: the absence answers for each that was run.
int32_t find_absence(const DumpReader& dump, const std::string& path) {
  const std::string static_path = diff::static_path(path);
  const int32_t found = static_path == path ? -1 : dump.find(static_path);
  if (found < 0 || !dump.entries()[static_cast<size_t>(found)].absence.has_value()) return -1;
  const std::string_view frames = diff::prefix_of(path), all = diff::prefix_of(static_path);
  bool any_seen = false;
  for (const DumpEntry& entry : dump.entries()) {
    if (entry.absence.has_value()) continue;
    if (entry.path.starts_with(frames)) return found;
    any_seen = any_seen || diff::static_path(entry.path).starts_with(all);
  }
  return any_seen ? -1 : found;
}

}  // namespace

Result<int32_t> find_entry(const DumpReader& dump, const std::string& path) {
  for (const std::string& text : {path, escape_name(path)}) {  // a path, or a name without escapes
    for (size_t execution = 0; execution < std::max<size_t>(1, dump.executions().size()); ++execution) {
      const int32_t found = dump.find(text, static_cast<int32_t>(execution));
      if (found >= 0) return found;
    }
  }
  if (const int32_t absent = find_absence(dump, path); absent >= 0) return absent;
  const auto runs_in = [&](const std::string& frames) {
    return std::ranges::any_of(dump.entries(), [&](const DumpEntry& entry) { return entry.path.starts_with(frames); });
  };
  if (const auto branch = branch_not_taken(path, runs_in); branch.has_value())
    return usage_error(fmt::format("dump '{}' holds no value '{}': branch '{}' was not taken in this run", dump.path(),
                                   path, *branch));
  std::string similar;
  int count = 0;
  for (const DumpEntry& entry : dump.entries()) {
    if (count >= 3 || entry.path.find(path) == std::string::npos) continue;
    similar += (count++ == 0 ? "; did you mean '" : "', '") + entry.path;
  }
  if (!similar.empty()) {
    similar += "'?";
  } else {
    std::vector<std::string> known;
    for (const DumpEntry& entry : dump.entries()) known.push_back(entry.path);
    similar = did_you_mean(path, known);
  }
  if (similar.empty()) similar = fmt::format(" (parallax tensor '{}' lists them)", dump.path());
  const char* const cut = dump.is_complete() ? "" : "; it breaks off, and what came later is lost";
  return usage_error(fmt::format("'{}' holds no value '{}'{}{}", dump.path(), path, cut, similar));
}

namespace {

// A tensor of which a sample was kept: its own statistics, then the elements there are.
std::string sample_text(const TensorStatistics& statistics, const TensorView& sample, int64_t element_count,
                        const TensorViewOptions& options) {
  std::string text = statistics_text(statistics, sample.dtype);
  text += fmt::format("a sample was kept, {} of its {} elements, evenly spread{}\n", sample.element_count(),
                      element_count, options.histogram ? "; the histogram is of the sample:" : ":");
  if (options.histogram) text += histogram_text(sample);
  return options.statistics_only ? text : text + elements_text(sample);
}

}  // namespace

Result<std::string> tensor_to_text(const DumpReader& dump, int32_t index, const TensorViewOptions& options) {
  const DumpEntry& entry = dump.entries()[static_cast<size_t>(index)];
  std::string text =
      printable(fmt::format("{}: {}", entry.path,
                            entry.absence.has_value() ? absence_text(*entry.absence) : to_string(entry.type))) +
      "\n";
  if (!has_payload(entry)) {
    if (const auto kept = kept_statistics(entry); kept.has_value()) text += statistics_text(*kept, entry.type.dtype);
    return text + without_elements(entry) + "\n";
  }
  const LoadedValue loaded = PX_TRY(load_value(dump, index));
  if (loaded.is_part && kept_statistics(entry).has_value() && options.slice.empty())
    return text + sample_text(*entry.statistics, loaded.value.tensor(), entry.statistics->count, options);
  const auto tensors = PX_TRY(slice_tensors(entry, loaded, options.slice));
  PX_TRY(check_histogram(entry, tensors, options));
  for (const Tensor& tensor : tensors) {
    if (entry.type.kind != TypeInfo::Kind::tensor || !options.slice.empty()) {
      text += fmt::format("{}{}\n", name_of(tensor.dtype()), tensor.shape().to_string());
    }
    text += tensor_text(tensor, options);
  }
  return text;
}

Result<std::string> tensor_to_json(const DumpReader& dump, int32_t index, const TensorViewOptions& options) {
  const DumpEntry& entry = dump.entries()[static_cast<size_t>(index)];
  ordered_json json{{"path", entry.path}};
  if (!has_payload(entry)) {
    json["dtype"] = dtype_text(entry.type);
    json["shape"] = dims_of(entry.type);
    json["stats"] = kept_statistics_json(entry);
    json["values"] = nullptr;
    json["reason"] = entry.absence.has_value() ? absence_text(*entry.absence) : "not captured";
    return json_text(json);
  }
  const LoadedValue loaded = PX_TRY(load_value(dump, index));
  const auto tensors = PX_TRY(slice_tensors(entry, loaded, options.slice));
  PX_TRY(check_histogram(entry, tensors, options));
  if (entry.type.kind == TypeInfo::Kind::tensor && tensors.size() == 1) {
    json.update(tensor_document(tensors.front(), options));
    if (loaded.is_part) {
      json["level"] = "sample";  // `values` are some of the tensor's elements, and the histogram counts these
      json["shape"] = dims_of(entry.type);
      json["stats"] = kept_statistics_json(entry);
    }
  } else {
    json["dtype"] = to_string(entry.type);
    json["shape"] = nullptr;
    json["items"] = ordered_json::array();
    for (const Tensor& tensor : tensors) json["items"].push_back(tensor_document(tensor, options));
  }
  return json_text(json);
}

Result<Tensor> selected_tensor(const DumpReader& dump, int32_t index, const std::string& slice) {
  const DumpEntry& entry = dump.entries()[static_cast<size_t>(index)];
  const auto refused = [&](const std::string& why) {
    return usage_error(fmt::format("value '{}': {}", entry.path, why));
  };
  if (!has_payload(entry)) return refused(without_elements(entry));
  if (entry.type.kind != TypeInfo::Kind::tensor)
    return refused(fmt::format("it is {}, and a file .npy holds one tensor", to_string(entry.type)));
  const LoadedValue loaded = PX_TRY(load_value(dump, index));
  if (loaded.is_part) {
    return refused(
        fmt::format("the dump holds a sample of {} of its {} elements: a run with a larger --capture-limit, or "
                    "--capture all, keeps it whole",
                    loaded.value.tensor().element_count(), Shape::create(dims_of(entry.type)).take().element_count()));
  }
  return PX_TRY(slice_tensors(entry, loaded, slice)).front();
}

}  // namespace parallax
