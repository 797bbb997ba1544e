// SPDX-License-Identifier: Apache-2.0
// What two dumps hold of one value, where a side keeps a sample of its elements: those that both have.
#pragma once

#include <optional>
#include <vector>

#include "inspector/diff/tolerance/value_compare.h"
#include "inspector/dump/dump_reader.h"

namespace parallax::diff {

// Of a tensor that was captured; rank 0 for what is none.
Shape shape_of(const TypeInfo& captured);
bool has_payload(const DumpEntry& entry);

// Whether the statistics of both sides tell values apart: those of texts do so by projections alone.
bool can_tell_apart(const DumpEntry& a, const DumpEntry& b);

struct CommonElements {
  Value a, b;
  // Where they stand in the whole value, row-major; nothing where they are all of it, in its own shape.
  std::optional<std::vector<int64_t>> locations;
};

// Of two entries of one shape, whose payloads these are.
Result<CommonElements> common_elements(const DumpEntry& a, Value value_a, const DumpEntry& b, Value value_b);

// After the elements at `places` have been judged: where the worst stands in the value; and what they do not show, the
// statistics may, which are of all elements.
void conclude_sample(const DumpEntry& a, const DumpEntry& b, const std::vector<int64_t>& locations,
                     const CompareContext& context, ValueComparison& result);

}  // namespace parallax::diff
