// SPDX-License-Identifier: Apache-2.0
// Comparison, statistics and errors as JSON.
#include "inspector/render/report_json.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/shown_text.h"
#include "inspector/render/report_text.h"
#include "inspector/render/runs/different_models.h"

namespace parallax {
namespace {

using nlohmann::ordered_json;

ordered_json worst_json(const Metrics& metrics, Side side) {
  const bool is_a = side == Side::a;
  if (!metrics.worst_integers.has_value()) return number_json(is_a ? metrics.worst_a : metrics.worst_b);
  const int64_t worst = is_a ? metrics.worst_integers->a : metrics.worst_integers->b;
  return metrics.worst_integers->is_unsigned ? ordered_json(static_cast<uint64_t>(worst)) : ordered_json(worst);
}

ordered_json to_json(const Metrics& metrics) {
  return {{"elements", metrics.count},
          {"finite_pairs", metrics.finite_pairs},
          {"max_abs", number_json(metrics.max_abs)},
          {"max_rel", number_json(metrics.max_rel)},
          {"mean_abs", number_json(shown_average(metrics, metrics.mean_abs))},
          {"rmse", number_json(shown_average(metrics, metrics.rmse))},
          {"rel_l2", number_json(shown_average(metrics, metrics.rel_l2))},
          {"cosine", number_json(shown_average(metrics, metrics.cosine))},
          {"snr_db", number_json(shown_average(metrics, metrics.snr_db))},
          {"max_ulp", number_json(metrics.max_ulp)},
          {"mismatches", metrics.mismatches},
          {"nan_a", metrics.nan_a},
          {"nan_b", metrics.nan_b},
          {"inf_a", metrics.inf_a},
          {"inf_b", metrics.inf_b},
          {"worst_index", metrics.worst_index},
          {"worst_a", worst_json(metrics, Side::a)},
          {"worst_b", worst_json(metrics, Side::b)}};
}

ordered_json accepted_json(const std::optional<Acceptance>& accepted) {
  if (!accepted.has_value()) return nullptr;
  return {{"reason", accepted->reason}, {"evidence", accepted->evidence}};
}

ordered_json to_json(const ValueComparison& value) {
  ordered_json json{{"path", value.path},
                    {"a", text_or_null(value.a)},
                    {"b", text_or_null(value.b)},
                    {"matched_by", name_of(value.matched_by)},
                    {"node", text_or_null(value.node)},
                    {"op", text_or_null(value.op)},
                    {"dtype", value.dtype},
                    {"shape", value.shape},
                    {"verdict", name_of(value.verdict)}};
  const bool was_compared = value.verdict != Verdict::not_compared;
  json["severity"] = was_compared ? number_json(value.severity) : ordered_json(nullptr);
  json["limit"] = was_compared ? ordered_json{{"rtol", number_json(value.limit.rtol)},
                                              {"atol", number_json(value.limit.atol)},
                                              {"from", name_of(value.limit.from)}}
                               : ordered_json(nullptr);
  json["reason"] = text_or_null(value.reason);
  json["accepted"] = accepted_json(value.accepted);
  json["metrics"] = value.metrics.has_value() ? to_json(*value.metrics) : ordered_json(nullptr);
  json["noise"] = value.noise_rel_l2.has_value() ? ordered_json{{"rel_l2", number_json(*value.noise_rel_l2)}}
                                                 : ordered_json(nullptr);
  return json;
}

ordered_json to_json(const ComparedExecution& execution) { return execution_json(execution); }

ordered_json source_json(const Cause& cause) {
  if (!cause.has_source()) return nullptr;
  return {{"module", cause.source_module}, {"line", cause.source_line}, {"operator", cause.source_operator}};
}

ordered_json to_json(const Cause& cause) {
  ordered_json json{{"rank", cause.rank},
                    {"node", cause.node},
                    {"node_b", text_or_null(cause.node_b)},
                    {"op", cause.op},
                    {"path", cause.path},
                    {"introduced", number_json(cause.introduced)},
                    {"inherited", number_json(cause.inherited)},
                    {"side", name_of(cause.side)},
                    {"why", cause.why}};
  json["source"] = source_json(cause);
  if (!cause.group.empty()) json["group"] = cause.group;
  return json;
}

template <class Item>
ordered_json list_of(const std::vector<Item>& items) {
  ordered_json list = ordered_json::array();
  for (const Item& item : items) list.push_back(to_json(item));
  return list;
}

}  // namespace

std::string comparison_to_json(const Comparison& comparison, const Error* failure) {
  ordered_json json = comparison_json(comparison);
  if (failure != nullptr && !json.contains("error")) json["error"] = error_json(*failure);
  return json_text(json);
}

nlohmann::ordered_json comparison_json(const Comparison& comparison) {
  const ComparisonSummary& summary = comparison.summary;
  ordered_json json;
  if (const auto damage = damage_of(comparison); damage.has_value()) json["error"] = error_json(*damage);
  json["parallax"] = PARALLAX_VERSION;
  json["verdict"] = name_of(comparison.verdict);
  if (const std::string reason = reason_of(comparison); !reason.empty()) json["reason"] = reason;
  if (const std::string models = different_models(comparison); !models.empty()) json["different_models"] = models;
  json["executions"] = list_of(comparison.executions);
  json["summary"] = {{"values", summary.values},         {"compared", summary.compared},
                     {"passed", summary.passed},         {"diverged", summary.diverged},
                     {"mistrusted", summary.mistrusted}, {"not_compared", summary.not_compared}};
  json["first_divergence"] = nullptr;
  if (comparison.first_divergence.has_value()) {
    const FirstDivergence& first = *comparison.first_divergence;
    json["first_divergence"] = {
        {"path", first.path}, {"node", text_or_null(first.node)}, {"op", text_or_null(first.op)}};
  }
  json["causes"] = list_of(comparison.causes);
  json["values"] = list_of(comparison.values);
  if (comparison.has_expected) json["expected"] = expected_json(comparison.expected);
  return json;
}

std::string json_text(const nlohmann::ordered_json& json, int indent) {
  const std::string text = json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (size_t index = 0; index < text.size(); ++index) {
    const bool is_c1 = text[index] == '\xC2' && static_cast<unsigned char>(text[index + 1]) < 0xA0;
    if (is_c1 || text[index] == '\x7F') {
      index += is_c1 ? 1 : 0;
      safe += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[index]));
    } else {
      safe += text[index];
    }
  }
  return safe;
}

nlohmann::ordered_json execution_json(const ComparedExecution& execution) {
  ordered_json json{{"name", execution.name},
                    {"side", name_of(execution.side)},
                    {"device", execution.device},
                    {"settings", execution.settings},
                    {"model_sha256", execution.model_sha256},
                    {"wall_ms", number_json(execution.wall_ms)}};
  if (execution.capture.has_value()) {
    const CaptureCounts& counts = *execution.capture;
    json["capture"] = {{"copies", counts.copies},
                       {"bytes", counts.bytes},
                       {"bytes_in_pieces", counts.bytes_in_pieces},
                       {"waits", counts.waits},
                       {"waited_ms", number_json(counts.waited_ms)}};
  }
  return json;
}

nlohmann::ordered_json expected_json(const std::vector<ValueComparison>& values) { return list_of(values); }

std::string plain_operator(std::string_view versioned) {
  const size_t dash = versioned.rfind('-');
  const bool has_version = dash != std::string_view::npos && dash + 1 < versioned.size() &&
                           versioned.find_first_not_of("0123456789", dash + 1) == std::string_view::npos;
  if (!has_version) return std::string(versioned);
  const std::string_view name = versioned.substr(0, dash);
  return std::string(name.substr(name.rfind('.') + 1));  // npos + 1 is 0
}

nlohmann::ordered_json statistics_json(const TensorStatistics& statistics) {
  return {{"min", number_json(statistics.min)},
          {"max", number_json(statistics.max)},
          {"mean", number_json(statistics.mean)},
          {"std", number_json(statistics.std)},
          {"zeros", statistics.zeros},
          {"nan", statistics.nan},
          {"inf", statistics.positive_inf + statistics.negative_inf}};
}

ordered_json text_or_null(const std::string& text) { return text.empty() ? ordered_json(nullptr) : ordered_json(text); }

ordered_json number_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

nlohmann::ordered_json error_json(const Error& error) {
  return {{"code", exit_code(error.code)},
          {"message", one_safe_line(error.message)},
          {"node", text_or_null(error.node)},
          {"op", text_or_null(plain_operator(error.op))}};
}

std::string error_to_json(const Error& error) { return json_text({{"error", error_json(error)}}); }

}  // namespace parallax
