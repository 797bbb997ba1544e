// The list of rules, and what they ask of the evidence.
#include "inspector/diff/why.h"

#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

constexpr double kBudgetMs = 400;  // for trying out explanations of one cause
constexpr double kNear = 1.5;      // severities: within rounding, with room for that of a second computation

// From what proves most to what only describes.
constexpr WhyRule kRules[] = {
    {"hand-over", why_handed_on},
    {"shape", why_shape},
    {"half precision overflow", why_overflow},
    {"not a number", why_not_finite},
    {"flushed to zero", why_flushed},
    {"subnormal inputs taken as zero", why_inputs_flushed},
    {"never written", why_unwritten},
    {"an input unchanged", why_is_an_input},
    {"stored in half precision", why_stored_narrow},
    {"attribute", why_attribute},
    {"operands", why_operands},
    {"operator", why_operator},
    {"unbiased variance", why_unbiased_variance},
    {"constant factor", why_scaled},
    {"constant offset", why_offset},
    {"moved elements", why_moved},
    {"stale input", why_stale_input},
    {"stale output", why_stale_output},
    {"computed in half precision", why_computed_narrow},
    {"accumulation", why_accumulation},
    {"region", why_region},
};

std::vector<double> doubles_of(const Value& value) {
  if (!value.is_tensor() || value.tensor().dtype() == DType::string || is_complex(value.tensor().dtype())) return {};
  std::vector<double> elements(static_cast<size_t>(value.tensor().element_count()));
  load_doubles(value.tensor(), 0, elements);
  return elements;
}

// How large the error is, where no rule knows its making.
std::string describe(const WhyEvidence& evidence) {
  const Distance distance =
      distance_between(evidence.expected(), evidence.actual(),
                       {evidence.judgement().limit.rtol, evidence.judgement().limit.atol, LimitSource::table});
  if (!distance.metrics.has_value()) return "its result has another type or shape than it should";
  const Metrics& metrics = *distance.metrics;
  if (std::isnan(metrics.max_abs)) {  // texts
    return fmt::format("its result holds other texts for a reason no rule knows: {} of {}, the first at [{}]",
                       metrics.mismatches, metrics.count, fmt::join(metrics.worst_index, ","));
  }
  return fmt::format(
      "its result is off for a reason no rule knows: {} of {} elements, relative error {:.2g}, worst at "
      "[{}]: {:.9g} instead of {:.9g}",
      metrics.mismatches, metrics.count, metrics.rel_l2, fmt::join(metrics.worst_index, ","), metrics.worst_b,
      metrics.worst_a);
}

std::string context_of(const WhyEvidence& evidence) {
  switch (evidence.alone()) {
    case Alone::right:
      return fmt::format(
          "wrong only in context (memory planning, aliasing, layout, fusion or a race; {}'s executor "
          "gets it right when it runs the node alone on the same inputs): ",
          evidence.letter());
    case Alone::varies:
      return "results vary between two runs of the same executor on the same inputs (uninitialised memory or a race): ";
    default:
      return {};
  }
}

std::string fused_with(const WhyEvidence& evidence) {
  std::vector<std::string> names;
  for (const FoundValue& input : evidence.inputs()) {
    for (const Node* node : input.computed_by)
      names.push_back(fmt::format("'{}' ({})", node->display_name, node->op_type));
  }
  if (names.empty()) return {};
  if (names.size() > 4) names.resize(4);
  return fmt::format("; judged together with {}, whose results do not exist on their own", fmt::join(names, ", "));
}

}  // namespace

std::span<const WhyRule> why_rules() { return kRules; }

WhyEvidence::WhyEvidence(const CapturedSide& side, const NodeInstance& instance, const NodeJudgement& judgement,
                         std::string_view letter, std::span<const std::string> earlier, Alone alone)
    : side_(side), instance_(instance), judgement_(judgement), letter_(letter), earlier_(earlier), alone_(alone) {
  const Value& expected = judgement.expected;
  const Value& actual = judgement.actual;
  if (!expected.is_tensor() || !actual.is_tensor() || !(expected.tensor().shape() == actual.tensor().shape())) return;
  expected_doubles_ = doubles_of(expected);
  actual_doubles_ = doubles_of(actual);
}

std::vector<Value> WhyEvidence::input_values() const {
  std::vector<Value> values;
  for (const FoundValue& input : inputs()) values.push_back(input.value);
  return values;
}

std::string WhyEvidence::input_name(size_t read) const {
  return instance_.place->graph->values[static_cast<size_t>(judgement_.computed.reads[read])].name;
}

Value WhyEvidence::captured(const std::string& path) const {
  auto value = side_.captured(path);
  return value.ok() ? value.take() : Value();
}

bool WhyEvidence::is_reproduced_by(const Value& candidate) const {
  if (candidate.is_absent()) return false;
  const Distance distance = distance_between(rounded_like(candidate, actual()), actual(), judgement_.limit);
  return distance.severity <= kNear && 2 * distance.severity < judgement_.introduced;
}

bool WhyEvidence::is_reproduced_by(std::span<const double> elements) const {
  if (!actual().is_tensor() || elements.size() != actual_doubles_.size()) return false;
  auto candidate = Tensor::allocate(DType::float64, actual().tensor().shape());
  if (!candidate.ok()) return false;
  std::copy(elements.begin(), elements.end(), candidate->mutable_as<double>().begin());
  return is_reproduced_by(candidate.take());
}

std::optional<Value> WhyEvidence::rerun(const Node& node, std::span<const Value> inputs) const {
  if (spent_ms_ > kBudgetMs) return std::nullopt;
  const auto start = std::chrono::steady_clock::now();
  auto outputs = side_.replay(instance_, node, inputs);
  spent_ms_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (!outputs.ok() || judgement_.output >= outputs->size()) return std::nullopt;
  return std::move((*outputs)[judgement_.output]);
}

std::string explain(const WhyEvidence& evidence) {
  std::string sentence;
  for (const WhyRule& rule : kRules) {
    auto answer = rule.explain(evidence);
    if (!answer.has_value()) continue;
    sentence = std::move(*answer);
    break;
  }
  if (sentence.empty()) sentence = describe(evidence);
  return context_of(evidence) + sentence + fused_with(evidence);
}

}  // namespace parallax::diff
