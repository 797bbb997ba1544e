// SPDX-License-Identifier: Apache-2.0
// The steps of `convert`, and its result as JSON and text.
#include "inspector/workbench/half_precision/convert.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/mapped_file.h"
#include "inspector/base/memory_budget.h"
#include "inspector/base/shown_text.h"
#include "inspector/base/text.h"
#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"
#include "inspector/render/report_json.h"
#include "inspector/workbench/inputs/inputs.h"
#include "inspector/workbench/run_side.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;

nlohmann::ordered_json weights_json(const std::vector<transform::KeptWeight>& weights) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const transform::KeptWeight& weight : weights)
    list.push_back({{"name", weight.name}, {"reason", weight.reason}});
  return list;
}

Result<HalfVerification> verify_conversion(const ConvertRequest& request, const std::shared_ptr<const Model>& model,
                                           const InputSet& inputs, const ExecutorFactory& make_executor) {
  const auto converted = PX_TRY(import_model(request.output));
  const auto executor = PX_TRY(make_executor("reference"));
  std::vector<std::string> notes;
  const auto narrow = PX_TRY(inputs_for_other(*model, inputs.values, *converted, notes));
  const auto original = PX_TRY(run_outputs(model, inputs.values, *executor, {}));
  const auto outputs = PX_TRY(run_outputs(converted, narrow, *executor, {}));
  return judge_outputs(compare_outputs(model->graph, original, outputs), request.tolerance);
}

bool has_nothing_to_convert(const transform::HalfConversion& conversion) {
  return conversion.converted == 0 && conversion.kept == 0 && conversion.without_half.empty() &&
         conversion.weight_bytes == conversion.weight_bytes_before;
}

// Adds the nodes of the file to those that the options name.
Status keep_nodes_of_file(const std::string& file, const std::vector<KeepLine>& lines, const Model& model,
                          std::vector<std::string>& keep) {
  std::vector<std::string> nodes;
  for (const KeepLine& line : lines) nodes.push_back(line.node);
  const std::vector<size_t> unknown = transform::entries_without_node(model, nodes);
  if (!unknown.empty())
    return usage_error(fmt::format("--keep-file '{}', line {}: '{}' matches no node; {}", file,
                                   lines[unknown.front()].line, nodes[unknown.front()], transform::kNodesToKeep));
  keep.insert(keep.end(), nodes.begin(), nodes.end());
  return {};
}

nlohmann::ordered_json distance_json(double value) {
  if (std::isfinite(value)) return value;
  return "inf";
}

}  // namespace

Result<DType> parse_half_type(const std::string& text) {
  if (text == "float16") return DType::float16;
  if (text == "bfloat16") return DType::bfloat16;
  return usage_error(fmt::format("--to is '{}'; it must be float16 or bfloat16", text));
}

Result<std::vector<KeepLine>> read_keep_file(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return io_error(fmt::format("--keep-file: there is no file '{}'", path));
  const std::string text = PX_TRY_CONTEXT("--keep-file", read_file(path));
  std::vector<KeepLine> entries;
  size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    constexpr std::string_view kBlanks = " \t\r";
    const size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) continue;
    line = line.substr(begin, line.find_last_not_of(kBlanks) - begin + 1);
    if (std::ranges::any_of(line, is_control))
      return usage_error(fmt::format(
          "--keep-file '{}' is no text: line {} holds control characters; it must hold one node on each line", path,
          number));
    entries.push_back({number, std::string(line)});
  }
  return entries;
}

Result<ConvertResult> convert_model(const ConvertRequest& request, const ExecutorFactory& make_executor) {
  transform::HalfRequest half = request.half;
  std::vector<KeepLine> lines;
  if (!request.keep_file.empty()) lines = PX_TRY(read_keep_file(request.keep_file));
  const auto model = request.model_in_memory != nullptr ? request.model_in_memory : PX_TRY(import_model(request.model));
  PX_TRY(keep_nodes_of_file(request.keep_file, lines, *model, half.keep));
  PX_TRY(admit_model(request.output));
  InputSet inputs;
  if (!request.verify.empty()) {
    InputRequest source;
    source.source = request.verify;
    source.source_option = "--verify";
    inputs = PX_TRY(make_inputs(*model, source));
    for (const std::string& note : inputs.notes) {
      if (request.message) request.message(note);
    }
  }
  half.defer_weights = true;
  ConvertResult result;
  result.to = half.to;
  result.output = request.output;
  result.conversion = PX_TRY(transform::to_half(*model, half));
  ExportOptions options;
  options.deferred = result.conversion.deferred;
  PX_TRY(export_model(*result.conversion.model, request.output, options));
  if (!request.verify.empty()) result.verification = PX_TRY(verify_conversion(request, model, inputs, make_executor));
  return result;
}

std::string convert_to_json(const ConvertResult& result) {
  const transform::HalfConversion& conversion = result.conversion;
  nlohmann::ordered_json json{{"to", name_of(result.to)}, {"output", result.output}};
  json["nodes"] = {
      {"converted", conversion.converted}, {"kept", conversion.kept}, {"without_half", conversion.without_half}};
  json["casts"] = conversion.casts;
  json["casts_before"] = conversion.casts_before;
  json["weights_bytes"] = {{"before", conversion.weight_bytes_before}, {"after", conversion.weight_bytes}};
  json["kept_weights"] = weights_json(conversion.kept_weights);
  json["infinite_weights"] = weights_json(conversion.infinite_weights);
  json["verification"] = nullptr;
  if (result.verification.has_value()) {
    nlohmann::ordered_json outputs = nlohmann::ordered_json::object();
    for (const OutputError& output : result.verification->per_output)
      outputs[output.name] = {{"rel_l2", distance_json(output.rel_l2)}};
    json["verification"] = {{"verdict", result.verification->passed ? "pass" : "diverged"}, {"per_output", outputs}};
  }
  return json_text(json);
}

std::string convert_to_text(const ConvertResult& result) {
  const transform::HalfConversion& conversion = result.conversion;
  std::string text =
      has_nothing_to_convert(conversion)
          ? fmt::format("{}: nothing to convert: no node reads or gives float32\n", result.output)
          : fmt::format("{}: {} nodes in {}, {} kept in float32, {} without {}\n", result.output, conversion.converted,
                        name_of(result.to), conversion.kept, conversion.without_half.size(), name_of(result.to));
  text += fmt::format("casts {} ({} before), weights {} ({} before)\n", conversion.casts, conversion.casts_before,
                      bytes_text(conversion.weight_bytes), bytes_text(conversion.weight_bytes_before));
  for (const transform::KeptWeight& weight : conversion.kept_weights)
    text += fmt::format("'{}' stays float32: it {}\n", printable(weight.name), weight.reason);
  for (const transform::KeptWeight& weight : conversion.infinite_weights)
    text += fmt::format("'{}' becomes infinite: it {}\n", printable(weight.name), weight.reason);
  if (!result.verification.has_value()) return text;
  for (const OutputError& output : result.verification->per_output)
    text += fmt::format("output '{}': relative error {:.3g}\n", printable(output.name), output.rel_l2);
  return text + (result.verification->passed ? "pass\n" : "DIVERGED\n");
}

}  // namespace parallax
