// SPDX-License-Identifier: Apache-2.0
// Types and shapes of operators with bodies: If, Loop, Scan, SequenceMap.
#include <algorithm>
#include <array>

#include "inspector/model/shape_inference/rows.h"
#include "inspector/model/type_check.h"

namespace parallax {
namespace {

// After so many rounds a loop's state that still changes its shape is taken to be of unknown shape.
constexpr int kMostRounds = 4;

ValueFacts scalar_of(DType dtype) {
  ValueFacts facts;
  facts.type = TypeInfo::tensor(dtype);
  facts.shape = DimExpressions{};
  return facts;
}

// A value that stands for many: what is known of one element of a sequence of them.
ValueFacts without_contents(ValueFacts facts) {
  facts.contents.reset();
  facts.constant = nullptr;
  return facts;
}

bool is_known_type(const ValueFacts& facts) { return facts.type.kind != TypeInfo::Kind::unknown; }

// The shape that a body hands back may differ from the one it was given. Where one type is not known the other does for
// both; types that differ (an optional and its item, which Loop allows) leave it unknown.
ValueFacts joined(const ValueFacts& before, const ValueFacts& after) {
  ValueFacts result = common_facts(before, after);
  if (!is_known_type(before) || !is_known_type(after)) {
    result.type = without_dims(is_known_type(before) ? before.type : after.type);
  }
  return result;
}

bool same_facts(const ValueFacts& a, const ValueFacts& b) {
  if (a.type != b.type || a.shape.has_value() != b.shape.has_value()) return false;
  if (!a.shape) return true;
  return std::ranges::equal(*a.shape, *b.shape, [](const DimExpression& left, const DimExpression& right) {
    return same(left, right) || (!left.is_known() && !right.is_known());
  });
}

// One result of each iteration, stacked along a new first axis (or `axis`).
ValueFacts stacked(const ValueFacts& one, const DimExpression& count, int64_t axis = 0) {
  ValueFacts result = without_contents(one);
  if (!result.shape) return result;
  const auto location = normalized_axis(axis, result.shape->size() + 1);
  if (location) {
    result.shape->insert(result.shape->begin() + static_cast<std::ptrdiff_t>(*location), count);
  } else {
    result.shape.reset();
  }
  return result;
}

// "The return values in the then_branch and else_branch must be of the same data type": the specification of If.
void expect_one_type(NodeContext& context, size_t index, const ValueFacts& then_facts, const ValueFacts& else_facts) {
  if (types_agree(then_facts.type, else_facts.type)) return;
  context.bodies().report_conflict("output " + std::to_string(index) + " is " +
                                   to_string(without_dims(then_facts.type)) + " in then_branch, but " +
                                   to_string(without_dims(else_facts.type)) + " in else_branch");
}

void if_node(NodeContext& context) {
  const Graph* then_branch = context.graph("then_branch");
  const Graph* else_branch = context.graph("else_branch");
  if (then_branch == nullptr || else_branch == nullptr) return;
  const auto then_facts = context.bodies().infer_body(*then_branch, {});
  const auto else_facts = context.bodies().infer_body(*else_branch, {});
  const auto condition = context.scalar(0);
  const auto known = condition ? condition->number() : std::nullopt;
  for (size_t index = 0; index < context.output_count(); ++index) {
    if (index >= then_facts.size() || index >= else_facts.size()) return;
    expect_one_type(context, index, then_facts[index], else_facts[index]);
    if (known) {
      context.set_facts(index, without_contents(*known != 0 ? then_facts[index] : else_facts[index]));
    } else {
      context.set_facts(index, joined(then_facts[index], else_facts[index]));
    }
  }
}

// Runs the body until the facts of its state no longer change. `first` is where the state begins among the body's
// inputs and `skipped` how many outputs precede it. Returns the body's outputs; `inputs` ends as what holds in every
// iteration.
std::vector<ValueFacts> settle(NodeContext& context, const Graph& body, std::vector<ValueFacts>& inputs, size_t first,
                               size_t states, size_t skipped) {
  for (int round = 0;; ++round) {
    std::vector<ValueFacts> outputs = context.bodies().infer_body(body, inputs);
    bool settled = true;
    for (size_t index = 0; index < states && skipped + index < outputs.size(); ++index) {
      ValueFacts& state = inputs[first + index];
      ValueFacts widened = joined(state, outputs[skipped + index]);
      if (round + 1 >= kMostRounds) widened.shape.reset();
      settled = settled && same_facts(widened, state);
      state = std::move(widened);
    }
    if (settled || round >= kMostRounds) return outputs;
  }
}

// How often a Loop runs, where its condition can never end it early.
DimExpression trip_count(NodeContext& context, const std::vector<ValueFacts>& body_outputs) {
  const auto limit = context.scalar(0);
  const bool starts = !context.has_input(1) || (context.scalar(1) && context.scalar(1)->is_number(1));
  const auto& goes_on = body_outputs.front().contents;
  const bool never_stops = goes_on && goes_on->size() == 1 && goes_on->front().is_number(1);
  return limit && starts && never_stops && limit->is_nonnegative() ? *limit : DimExpression{};
}

void loop(NodeContext& context) {
  const Graph* body = context.graph("body");
  if (body == nullptr || body->outputs.empty()) return;
  const size_t states = context.input_count() > 2 ? context.input_count() - 2 : 0;
  std::vector<ValueFacts> inputs{scalar_of(DType::int64), scalar_of(DType::bool_)};
  inputs[1].contents = DimExpressions{1};  // the body is entered only while the condition holds
  for (size_t index = 0; index < states; ++index) inputs.push_back(without_contents(context.input(2 + index)));
  const auto outputs = settle(context, *body, inputs, 2, states, 1);
  if (outputs.empty()) return;
  const DimExpression count = trip_count(context, outputs);
  for (size_t index = 0; index < context.output_count() && index + 1 < outputs.size(); ++index) {
    context.set_facts(index, index < states ? inputs[2 + index] : stacked(outputs[index + 1], count));
  }
}

// One slice of a scanned input.
ValueFacts slice_along(const ValueFacts& facts, int64_t axis, DimExpression& length) {
  ValueFacts slice = without_contents(facts);
  const auto location = slice.shape ? normalized_axis(axis, slice.shape->size()) : std::nullopt;
  if (!location) {
    slice.shape.reset();
    return slice;
  }
  const DimExpression& dim = (*slice.shape)[*location];
  if (!length.number() && dim.is_known()) length = dim;
  slice.shape->erase(slice.shape->begin() + static_cast<std::ptrdiff_t>(*location));
  return slice;
}

int64_t axis_at(const std::optional<std::vector<int64_t>>& axes, size_t index) {
  return axes && index < axes->size() ? (*axes)[index] : 0;
}

// Version 8 had a batch axis and sequence lengths in front; only types are followed through it.
void scan(NodeContext& context) {
  constexpr int64_t kFirstWithoutBatch = 9;
  const bool batched = context.since_version() < kFirstWithoutBatch;
  const Graph* body = context.graph("body");
  const size_t first = batched ? 1 : 0;
  const int64_t scanned = context.integer_or("num_scan_inputs", 0);
  if (body == nullptr || context.input_count() < first || scanned < 0) return;
  const size_t all = context.input_count() - first;
  if (static_cast<uint64_t>(scanned) > all) return;
  const size_t states = all - static_cast<size_t>(scanned);
  std::vector<ValueFacts> inputs;
  DimExpression length;
  const auto input_axes = context.integers("scan_input_axes"), output_axes = context.integers("scan_output_axes");
  for (size_t index = 0; index < all; ++index) {
    const ValueFacts& given = context.input(first + index);
    const bool is_state = index < states;
    inputs.push_back(is_state ? without_contents(given)
                              : slice_along(given, axis_at(input_axes, index - states), length));
    if (batched) inputs.back().shape.reset();
  }
  const auto outputs = settle(context, *body, inputs, 0, states, 0);
  for (size_t index = 0; index < context.output_count() && index < outputs.size(); ++index) {
    ValueFacts facts =
        index < states ? inputs[index] : stacked(outputs[index], length, axis_at(output_axes, index - states));
    if (batched) facts.shape.reset();
    context.set_facts(index, std::move(facts));
  }
}

void sequence_map(NodeContext& context) {
  const Graph* body = context.graph("body");
  if (body == nullptr) return;
  std::vector<ValueFacts> inputs;
  for (size_t index = 0; index < context.input_count(); ++index) {
    const ValueFacts& given = context.input(index);
    const bool is_sequence = given.type.kind == TypeInfo::Kind::sequence;
    if (is_sequence && given.type.inner.empty()) return;
    inputs.push_back(is_sequence ? facts_of(given.type.inner.front()) : given);
  }
  const auto outputs = context.bodies().infer_body(*body, inputs);
  for (size_t index = 0; index < context.output_count() && index < outputs.size(); ++index) {
    if (!is_known_type(outputs[index])) continue;
    ValueFacts facts;
    facts.type = TypeInfo::sequence(type_info_of(outputs[index]));
    context.set_facts(index, facts);
  }
}

constexpr std::array kControlFlowRows = {
    ShapeRow{"If", if_node},
    ShapeRow{"Loop", loop},
    ShapeRow{"Scan", scan},
    ShapeRow{"SequenceMap", sequence_map},
};

}  // namespace

std::span<const ShapeRow> control_flow_rows() { return kControlFlowRows; }

}  // namespace parallax
