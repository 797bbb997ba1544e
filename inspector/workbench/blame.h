// SPDX-License-Identifier: Apache-2.0
// Filling in the causes of a comparison: with the dumps and executors that are at hand, or by running both sides once
// more.
#pragma once

#include <string>

#include "inspector/diff/comparison.h"
#include "inspector/diff/tolerance/policy.h"
#include "inspector/workbench/open.h"
#include "inspector/workbench/run_side.h"

namespace parallax {

// Runs both sides once more, every value kept in a temporary folder that is removed afterwards, and blames what is seen
// there; causes go into `comparison`, which is that of the first run. Nothing where it passed. Where the second run
// does not repeat the first, that is the cause.
Status blame_sides(const RunRequest& request, const ExecutorFactory& make_executor, RunSide& a, RunSide& b,
                   Comparison& comparison);

// The causes of two dumps' differences. Executors are made again where they are available and have the dump's settings;
// the model is read again where it is at the dump's path, and is the same.
Status blame_files(const std::string& a, const std::string& b, const Policy& policy,
                   const ExecutorFactory& make_executor, Comparison& comparison, const CancelToken& cancel = {});

// Compares two dumps and looks for causes. Where only the search for causes meets a damaged value, what was compared is
// kept and the damage is reported in it. Errors: as of compare_files, cancelled.
Result<OpenedComparison> compare_and_blame_files(const std::string& a, const std::string& b, const Policy& policy,
                                                 const CompareOptions& options, const ExecutorFactory& make_executor);

}  // namespace parallax
