// SPDX-License-Identifier: Apache-2.0
// The elements of one value that two dumps have in common, where a side keeps a sample of its elements.
#pragma once

#include <optional>
#include <vector>

#include "inspector/diff/tolerance/value_compare.h"
#include "inspector/dump/dump_reader.h"

namespace parallax::diff {

// The shape of a captured tensor; rank 0 for values that are no tensor.
Shape shape_of(const TypeInfo& captured);
bool has_payload(const DumpEntry& entry);

// True where the statistics of both sides tell values apart: those of texts do so by projections alone.
bool can_tell_apart(const DumpEntry& a, const DumpEntry& b);

struct CommonElements {
  Value a, b;
  // Their indices in the whole value, row-major; nothing where they are all of it, in its own shape.
  std::optional<std::vector<int64_t>> locations;
};

// The common elements of two entries of one shape, whose payloads these are.
Result<CommonElements> common_elements(const DumpEntry& a, Value value_a, const DumpEntry& b, Value value_b);

// After the elements at `locations` have been judged: the index of the worst in the value; and differences that they do
// not show, but the statistics of all elements may.
void conclude_sample(const DumpEntry& a, const DumpEntry& b, const std::vector<int64_t>& locations,
                     const CompareContext& context, ValueComparison& result);

}  // namespace parallax::diff
