// SPDX-License-Identifier: Apache-2.0
// Enters a diagnosis into a comparison: the one function that changes verdicts after values were compared.
#pragma once

#include "inspector/diff/diagnosis.h"

namespace parallax {

// Sets the causes, then concludes the comparison from these changes: an accepted value that diverged passes, with its
// acceptance, at its own limit and severity; an unmatched value that diverged is not compared; a rechecked value that
// passed has diverged, with the other comparison's severity and limit, and is no longer accepted.
void apply(const Diagnosis& diagnosis, Comparison& comparison);

// The comparison as `apply` leaves it, for a search that looks at the outcome of what it found.
Comparison applied(const Diagnosis& diagnosis, Comparison comparison);

// True where no value that diverged did so by a limit of the user: rounding never excuses that.
bool may_accept(const Comparison& comparison);

// Enters an acceptance into a diagnosis for every value that diverged.
void accept_diverged(const Comparison& comparison, const Acceptance& acceptance, Diagnosis& diagnosis);

}  // namespace parallax
