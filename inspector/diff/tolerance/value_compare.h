// SPDX-License-Identifier: Apache-2.0
// Compares one matched pair of values and judges it: the step that comparing dumps and comparing running executors
// share.
#pragma once

#include "inspector/diff/comparison.h"
#include "inspector/dump/statistics/statistics.h"
#include "inspector/exec/observer.h"
#include "inspector/tensor/value.h"

namespace parallax::diff {

struct CompareContext {
  Limit limit;                    // of floating elements; exact types have none
  bool is_constant_like = false;  // may be all equal without suspicion
  bool widen_floats = false;      // a side carried floats wider than declared: compare them as float64
  bool bounds_rms = false;        // one of two models is quantized: the root mean square has a limit, too
};

// Fills dtype, shape, verdict, severity, limit, reason and metrics. Sequences, optionals and maps compare element by
// element: the metrics are those of the worst. Both values are on the host.
void judge_values(const Value& a, const Value& b, const CompareContext& context, ValueComparison& result);

// Judges by statistics alone (of equal dtype and shape, checked by the caller): sums, extremes and signed projections
// within the change that elements at their limit make; counts of NaN and infinities equal. Metrics stay empty. Where
// the two count in different orders, which leaves no projections, values that agree are mistrusted.
void judge_statistics(const TensorStatistics& a, const TensorStatistics& b, bool is_exact,
                      const CompareContext& context, ValueComparison& result);

// Takes over verdict, severity and reason of another judgment of the same pair, where that one is worse and diverged.
void keep_worse(const ValueComparison& other, ValueComparison& result);

// True where elements of this type, those within sequences, optionals and maps among them, must be equal.
bool is_exact_type(const TypeInfo& type);

// True where every tensor of a value is on the host.
bool is_on_host(const Value& value);

void set_not_compared(ValueComparison& result, std::string reason);
// Because they are of these shapes.
void set_shapes_differ(ValueComparison& result, std::string a, std::string b);
// How the reason begins of what an executor has fused with others.
inline constexpr std::string_view kFusedInto = "fused into ";
// How it begins of what one side does not have.
inline constexpr std::string_view kAbsentIn = "absent in ";
std::string reason_of(const Absence& absence);

// The error that a value carries which is a copy of a compared one, such as a cache that is an input of the next step.
double inherited_error(const Metrics& of_copied);

// "[2,3]"; "?" where the rank is not known.
std::string shape_text(const TypeInfo& type);
// dtype and shape as the document shows them.
void describe_type(const TypeInfo& type, ValueComparison& result);

}  // namespace parallax::diff
