// SPDX-License-Identifier: Apache-2.0
// Matches rows by their elements and scores; looks choices up in the scores they were made from.
#include "inspector/workbench/reordered_outputs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "inspector/diff/localize/accumulated_rounding.h"
#include "inspector/exec/value_path.h"
#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

bool is_of_numbers(const Value& value) {
  return value.is_tensor() && value.tensor().dtype() != DType::string && !is_complex(value.tensor().dtype());
}

bool are_of_one_shape(const ExpectedOutput& output) {
  return is_of_numbers(*output.expected) && is_of_numbers(*output.actual) &&
         output.expected->tensor().shape() == output.actual->tensor().shape();
}

bool is_within(double expected, double actual, const Limit& limit) {
  return expected == actual || (std::isnan(expected) && std::isnan(actual)) ||
         std::abs(expected - actual) <= limit.atol + limit.rtol * std::abs(expected);
}

// The scores of rows: all but the last of their axes count batches.
struct Scores {
  const ExpectedOutput* output = nullptr;
  int64_t batches = 1, rows = 0;
  double tie = 0;  // scores whose difference is no larger are next to each other

  double of(int64_t batch, int64_t row) const {
    return element_as_double(output->expected->tensor(), batch * rows + row);
  }
};

// Two programs compute scores that differ as those of the output do; scores that are closer may be exchanged.
std::optional<Scores> scores_of(const ExpectedOutput& output) {
  constexpr double kRoom = 4, kFewestUlps = 8;
  const bool is_as_expected = output.comparison->verdict == Verdict::pass && are_of_one_shape(output) &&
                              is_floating(output.expected->tensor().dtype());
  if (!is_as_expected) return std::nullopt;
  const Tensor& tensor = output.expected->tensor();
  if (tensor.shape().rank() == 0 || tensor.element_count() < 2) return std::nullopt;
  Scores scores{.output = &output, .rows = tensor.shape()[tensor.shape().rank() - 1]};
  if (scores.rows < 2) return std::nullopt;
  scores.batches = tensor.element_count() / scores.rows;
  double largest = 0, farthest = 0;
  for (int64_t index = 0; index < tensor.element_count(); ++index) {
    const double expected = element_as_double(tensor, index);
    largest = std::max(largest, std::abs(expected));
    farthest = std::max(farthest, std::abs(expected - element_as_double(output.actual->tensor(), index)));
  }
  scores.tie = std::max(kRoom * farthest, kFewestUlps * float_limits(tensor.dtype()).epsilon * largest);
  return std::isfinite(scores.tie) ? std::optional(scores) : std::nullopt;
}

bool has_rows_of(const ExpectedOutput& output, const Scores& scores) {
  if (!are_of_one_shape(output)) return false;
  const Shape &shape = output.expected->tensor().shape(), &of_scores = scores.output->expected->tensor().shape();
  if (shape.rank() < of_scores.rank()) return false;
  return std::equal(of_scores.begin(), of_scores.end(), shape.begin());
}

bool is_row_of(const ExpectedOutput& output, const Scores& scores, int64_t batch, int64_t expected, int64_t actual) {
  const int64_t length = output.expected->tensor().element_count() / (scores.batches * scores.rows);
  const int64_t from_expected = (batch * scores.rows + expected) * length;
  const int64_t from_actual = (batch * scores.rows + actual) * length;
  for (int64_t index = 0; index < length; ++index) {
    const double wanted = element_as_double(output.expected->tensor(), from_expected + index);
    const double found = element_as_double(output.actual->tensor(), from_actual + index);
    if (!is_within(wanted, found, output.comparison->limit)) return false;
  }
  return true;
}

// The number of rows that stand for others, and the largest difference of their scores.
struct Moved {
  int64_t rows = 0;
  double gap = 0;
};

// Nothing where a row is none of those expected within a tie of its score.
std::optional<Moved> moved_rows(const std::vector<const ExpectedOutput*>& outputs, const Scores& scores) {
  Moved moved;
  const auto is_row = [&](int64_t batch, int64_t expected, int64_t actual) {
    return std::ranges::all_of(
        outputs, [&](const ExpectedOutput* output) { return is_row_of(*output, scores, batch, expected, actual); });
  };
  for (int64_t batch = 0; batch < scores.batches; ++batch) {
    std::vector<int64_t> left;
    for (int64_t row = 0; row < scores.rows; ++row)
      if (!is_row(batch, row, row)) left.push_back(row);
    std::vector<int64_t> free = left;
    for (const int64_t row : left) {
      const auto is_counterpart = [&](int64_t other) {
        return std::abs(scores.of(batch, row) - scores.of(batch, other)) <= scores.tie && is_row(batch, other, row);
      };
      const auto found = std::ranges::find_if(free, is_counterpart);
      if (found == free.end()) return std::nullopt;
      ++moved.rows;
      moved.gap = std::max(moved.gap, std::abs(scores.of(batch, row) - scores.of(batch, *found)));
      free.erase(found);
    }
  }
  return moved;
}

// Keeps one value of a run.
class OneValue final : public Observer {
 public:
  explicit OneValue(std::string path) : path_(std::move(path)) {}
  CaptureLevel wants(const ValueInfo& value_info) override {
    return value_info.scope + value_info.escaped_name == path_ ? CaptureLevel::all : CaptureLevel::none;
  }
  Status observe(const Observation& observation) override {
    if (observation.value.is_tensor()) value = Value(PX_TRY(observation.value.tensor().clone()));
    return {};
  }
  Value value;

 private:
  std::string path_;
};

const Node* producer_of(const Graph& graph, const std::string& path) {
  for (const ValueId output : graph.outputs) {
    const ValueDef& value = value_at(graph, output);
    if (escape_name(value.name) == path && value.producer != kNoNode)
      return &graph.nodes[static_cast<size_t>(value.producer)];
  }
  return nullptr;
}

}  // namespace

std::vector<ExpectedOutput> pair_expected(std::span<const NamedValue> expected, std::span<const NamedValue> actual,
                                          std::span<const ValueComparison> compared) {
  std::vector<ExpectedOutput> outputs;
  for (size_t index = 0; index < std::min(expected.size(), compared.size()); ++index) {
    const auto is_it = [&](const NamedValue& value) { return escape_name(value.name) == compared[index].path; };
    const auto found = std::ranges::find_if(actual, is_it);
    if (found != actual.end()) outputs.push_back({&compared[index], &expected[index].value, &found->value});
  }
  return outputs;
}

std::optional<Reordered> find_reordered(const std::vector<ExpectedOutput>& outputs) {
  for (const ExpectedOutput& output : outputs) {
    const auto scores = scores_of(output);
    if (!scores.has_value()) continue;
    std::vector<const ExpectedOutput*> rows;
    for (const ExpectedOutput& other : outputs) {
      const bool may_be_reordered =
          other.comparison->verdict == Verdict::diverged && other.comparison->limit.from != LimitSource::user;
      if (may_be_reordered && has_rows_of(other, *scores)) rows.push_back(&other);
    }
    const auto moved = rows.empty() ? std::nullopt : moved_rows(rows, *scores);
    if (!moved.has_value()) continue;
    Reordered found;
    for (const ExpectedOutput* row : rows) found.paths.push_back(row->comparison->path);
    found.evidence =
        fmt::format("{} of {} rows are the expected ones in another order; their scores '{}' differ by {:.3g}",
                    moved->rows, scores->batches * scores->rows, output.comparison->path, moved->gap);
    return found;
  }
  return std::nullopt;
}

std::optional<Acceptance> accepted_as_near_tie(const ExpectedOutput& output, const RunSide& side,
                                               const RunRequest& request, const ExecutorFactory& make_executor,
                                               const Comparison& measured) {
  constexpr double kBothSides = 2;
  const Graph& graph = side.model->graph;
  const Node* const node = producer_of(graph, output.comparison->path);
  if (node == nullptr || !diff::is_chooser(*node) || node->inputs.empty() || !are_of_one_shape(output) ||
      !is_integer(output.actual->tensor().dtype()))
    return std::nullopt;
  const std::string path = escape_name(value_at(graph, node->inputs.front()).name);
  const auto limited = std::ranges::find(measured.values, path, &ValueComparison::path);
  if (limited == measured.values.end() || !limited->metrics.has_value()) return std::nullopt;
  auto run = prepare_side(request, "reference", side.model, side.inputs, make_executor);
  OneValue scores(path);
  if (!run.ok() || !run->run(&scores).ok() || !scores.value.is_tensor()) return std::nullopt;
  const Tensor& held = scores.value.tensor();
  if (!is_floating(held.dtype())) return std::nullopt;
  const double gap = diff::score_gap(*node, held, output.expected->tensor(), output.actual->tensor())
                         .value_or(std::numeric_limits<double>::infinity());
  // In units in the last place, of a score as large as they are on the whole.
  const double unit = float_limits(held.dtype()).epsilon;
  const double largest = std::max(limited->metrics->rms_a, unit);
  const double allowed = kBothSides * (limited->limit.rtol + limited->limit.atol / largest) / unit;
  if (!(gap <= allowed)) return std::nullopt;
  return Acceptance{"near tie", fmt::format("the scores '{}' of what was chosen and what is expected differ by {:.3g} "
                                            "ULP, and rounding may change them by {:.3g}",
                                            path, gap, allowed)};
}

}  // namespace parallax
