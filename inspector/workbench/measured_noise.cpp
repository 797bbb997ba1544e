// SPDX-License-Identifier: Apache-2.0
// Two runs of the reference, compared on arrival.
#include "inspector/workbench/measured_noise.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <unordered_map>

#include "inspector/diff/compare/stream_compare.h"

namespace parallax {
namespace {

constexpr double kMargin = 16;  // standard deviations, as the table's margin for float32

Result<RunSide> prepare(const ExecutorFactory& make_executor, const std::string& name, const RunSide& like) {
  RunSide side;
  side.executor = PX_TRY(make_executor(name));
  side.options.seed = like.options.seed;
  side.options.keep_casts = name == "reference:double";  // casts are part of the model, not of its noise
  side.inputs = like.inputs;
  side.model = like.model;
  side.session = PX_TRY(side.executor->prepare(side.model, side.options));
  side.info = describe_run(*side.executor, side.options, side.model);
  return side;
}

bool has_exceeded(const ValueComparison& value) {
  return value.verdict == Verdict::diverged || value.limit.from == LimitSource::noise;
}

void apply(const Metrics& noise, ValueComparison& value) {
  value.noise_rel_l2 = noise.rel_l2;
  if (value.limit.from == LimitSource::user || !value.metrics.has_value() || !std::isfinite(noise.rmse)) return;
  if (!(kMargin * noise.rmse > value.limit.atol) || value.limit.atol == 0) return;  // exact values stay so
  value.limit.atol = kMargin * noise.rmse;
  value.limit.from = LimitSource::noise;
  if (std::isfinite(value.severity))
    value.severity = std::min(value.severity, value.metrics->max_abs / value.limit.atol);
}

}  // namespace

Status measure_noise(const ExecutorFactory& make_executor, const RunSide& side, Comparison& comparison) {
  if (std::ranges::none_of(comparison.values, has_exceeded)) return {};
  RunSide rounded = PX_TRY(prepare(make_executor, "reference", side));
  RunSide exact = PX_TRY(prepare(make_executor, "reference:double", side));
  StreamComparer comparer(Policy{Tolerance{0, 0}, {}}, {});
  Status other_status;
  std::thread other([&] { other_status = rounded.run(&comparer.side_b()); });
  const Status status = exact.run(&comparer.side_a());
  other.join();
  if (!status.ok()) return Status(status.error());
  if (!other_status.ok()) return other_status;
  const Comparison noise = comparer.finish();
  std::unordered_map<std::string_view, const Metrics*> by_path;
  for (const ValueComparison& value : noise.values) {
    if (value.metrics.has_value()) by_path.emplace(value.path, &*value.metrics);
  }
  for (ValueComparison& value : comparison.values) {
    const auto found = by_path.find(value.path);
    if (has_exceeded(value) && found != by_path.end()) apply(*found->second, value);
  }
  return {};
}

}  // namespace parallax
