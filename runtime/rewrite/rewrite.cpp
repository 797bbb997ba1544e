// The edit's own operations and the list of patterns.
#include "runtime/rewrite/rewrite.h"

#include <algorithm>

#include "runtime/rewrite/patterns.h"

namespace parallax::runtime {
namespace {

constexpr Pattern kPatterns[] = {
    {"identity", true, "Identity is dropped; its readers read what it read", drop_identities},
    {"dropout", true, "Dropout in inference is dropped like Identity", drop_dropouts},
    {"constant-folding", true, "nodes that depend on weights alone are computed once, before the first run",
     fold_constants},
};

}  // namespace

ValueId GraphEdit::resolve(ValueId value) const {
  while (value != kNoValue && stands_for[static_cast<size_t>(value)] != value) {
    value = stands_for[static_cast<size_t>(value)];
  }
  return value;
}

void GraphEdit::alias(ValueId value, ValueId target) {
  target = resolve(target);
  stands_for[static_cast<size_t>(value)] = target;
  absences.push_back({value, ValueAbsence::Kind::aliased, source->values[static_cast<size_t>(target)].name});
}

void GraphEdit::fold(ValueId value, Value constant) {
  constants[static_cast<size_t>(value)] = std::move(constant);
  absences.push_back({value, ValueAbsence::Kind::folded, ""});
}

std::span<const Pattern> rewrite_patterns() { return kPatterns; }

const Pattern* find_pattern(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kPatterns), std::end(kPatterns), [&](const Pattern& each) { return each.name == name; });
  return found == std::end(kPatterns) ? nullptr : found;
}

GraphEdit begin_edit(const Graph& graph) {
  GraphEdit edit;
  edit.source = &graph;
  for (NodeId id : graph.order) edit.nodes.push_back({id, &graph.nodes[static_cast<size_t>(id)]});
  for (size_t value = 0; value < graph.values.size(); ++value) edit.stands_for.push_back(static_cast<ValueId>(value));
  edit.constants.resize(graph.values.size());
  edit.pinned.resize(graph.values.size(), false);
  for (size_t index = 0; index < graph.initializers.size(); ++index) {
    const ValueId value = graph.initializer_values[index];
    if (graph.values[static_cast<size_t>(value)].input_index >= 0) continue;  // a caller may give another
    edit.constants[static_cast<size_t>(value)] = graph.initializers[index].tensor;
  }
  for (ValueId output : graph.outputs) edit.pinned[static_cast<size_t>(output)] = true;
  return edit;
}

}  // namespace parallax::runtime
