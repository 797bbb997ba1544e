// SPDX-License-Identifier: Apache-2.0
// Types and shapes of operators on sequences and optionals. The dimensions that all elements share are those of the
// inner type.
#include <array>

#include "inspector/model/shape_inference/rows.h"

namespace parallax {
namespace {

const TypeInfo* inner_type(const TypeInfo& type, TypeInfo::Kind kind) {
  return type.kind == kind && !type.inner.empty() ? &type.inner.front() : nullptr;
}

void set_element(NodeContext& context, const ValueFacts& element, TypeInfo (*container)(TypeInfo)) {
  if (element.type.kind == TypeInfo::Kind::unknown) return;
  ValueFacts facts;
  facts.type = container(type_info_of(element));
  context.set_facts(0, facts);
}

void sequence_construct(NodeContext& context) {
  if (context.input_count() == 0) return;
  ValueFacts element = context.input(0);
  for (size_t index = 1; index < context.input_count(); ++index) element = common_facts(element, context.input(index));
  set_element(context, element, &TypeInfo::sequence);
}

// Also of an optional's item; a tensor or sequence given to OptionalGetElement passes through.
void element_of_first(NodeContext& context) {
  const ValueFacts& container = context.input(0);
  const bool optional = context.node().op_type == "OptionalGetElement";
  const auto* inner = inner_type(container.type, optional ? TypeInfo::Kind::optional : TypeInfo::Kind::sequence);
  if (inner != nullptr) {
    context.set_facts(0, facts_of(*inner));
  } else if (optional && container.type.kind != TypeInfo::Kind::unknown) {
    context.set_facts(0, container);
  }
}

void sequence_insert(NodeContext& context) {
  const auto* inner = inner_type(context.input(0).type, TypeInfo::Kind::sequence);
  if (inner != nullptr) set_element(context, common_facts(facts_of(*inner), context.input(1)), &TypeInfo::sequence);
}

void like_first(NodeContext& context) {
  if (context.has_input(0) && context.input(0).type.kind != TypeInfo::Kind::unknown)
    context.set_facts(0, context.input(0));
}

void scalar_output(NodeContext& context) { context.set_shape(0, DimExpressions{}); }

void optional(NodeContext& context) {
  if (context.has_input(0)) set_element(context, context.input(0), &TypeInfo::optional);
}

// Without split sizes every part has length 1, and loses the axis where keepdims is 0.
void split_to_sequence(NodeContext& context) {
  ValueFacts element = context.input(0);
  element.contents.reset();
  element.constant = nullptr;
  const auto axis =
      element.shape ? normalized_axis(context.integer_or("axis", 0), element.shape->size()) : std::nullopt;
  if (!axis) {
    element.shape.reset();
  } else if (context.has_input(1)) {
    const auto sizes = context.numbers(1);
    const bool scalar = context.rank(1) == 0U;
    const auto whole = (*element.shape)[*axis].number();
    const bool even = sizes && scalar && whole && sizes->front() > 0 && *whole % sizes->front() == 0;
    (*element.shape)[*axis] = even ? DimExpression(sizes->front()) : DimExpression{};
  } else if (context.integer_or("keepdims", 1) != 0) {
    (*element.shape)[*axis] = 1;
  } else {
    element.shape->erase(element.shape->begin() + static_cast<std::ptrdiff_t>(*axis));
  }
  set_element(context, element, &TypeInfo::sequence);
}

void concat_from_sequence(NodeContext& context) {
  const auto* inner = inner_type(context.input(0).type, TypeInfo::Kind::sequence);
  if (inner == nullptr) return;
  ValueFacts facts = facts_of(*inner);
  const auto given = context.integer("axis");
  const bool new_axis = context.integer_or("new_axis", 0) != 0;
  if (facts.shape && given) {
    const auto axis = normalized_axis(*given, facts.shape->size() + (new_axis ? 1 : 0));
    if (!axis) {
      facts.shape.reset();
    } else if (new_axis) {
      facts.shape->insert(facts.shape->begin() + static_cast<std::ptrdiff_t>(*axis), DimExpression{});
    } else {
      (*facts.shape)[*axis] = {};
    }
  }
  context.set_facts(0, facts);
}

constexpr std::array kSequenceRows = {
    ShapeRow{"ConcatFromSequence", concat_from_sequence},
    ShapeRow{"Optional", optional},
    ShapeRow{"OptionalGetElement", element_of_first},
    ShapeRow{"OptionalHasElement", scalar_output},
    ShapeRow{"SequenceAt", element_of_first},
    ShapeRow{"SequenceConstruct", sequence_construct},
    ShapeRow{"SequenceErase", like_first},
    ShapeRow{"SequenceInsert", sequence_insert},
    ShapeRow{"SequenceLength", scalar_output},
    ShapeRow{"SplitToSequence", split_to_sequence},
};

}  // namespace

std::span<const ShapeRow> sequence_rows() { return kSequenceRows; }

}  // namespace parallax
