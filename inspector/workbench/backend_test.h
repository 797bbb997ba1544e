// SPDX-License-Identifier: Apache-2.0
// ONNX backend-test folders: model.onnx with test_data_set_N next to it, as ONNX's own suites have them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "inspector/workbench/run.h"

namespace parallax {

enum class CaseStatus : uint8_t { passed, failed, unsupported, error };
std::string_view name_of(CaseStatus status);

struct CaseResult {
  std::string name;  // folder of the model, relative to the folder asked for
  CaseStatus status = CaseStatus::passed;
  std::string reason;                  // empty when passed
  std::vector<std::string> operators;  // distinct operators of the main graph
};

struct BackendTestRequest {
  std::vector<std::string> folders;  // searched to any depth
  std::string executor;
  std::string glob;  // over case names; empty: all
  RewriteChoice rewrite;
  std::string fallback;  // the executor of nodes that `executor` has no kernel for; empty: such a case is `unsupported`
  bool strict = false;   // our policy table instead of rtol 1e-3, atol 1e-7
  std::function<void(const CaseResult&, int64_t done, int64_t total)> on_case;
  CancelToken cancel;
};

struct BackendTestResult {
  std::vector<CaseResult> cases;
  int64_t count(CaseStatus status) const;
};

// Comparison as ONNX's backend test does it: dtype and shape equal, |a-b| <= atol + rtol |a| with rtol 1e-3
// (2^-6 for bfloat16), atol 1e-7. What follows from numbers drawn at random is `unsupported` where it differs in more
// than type and shape.
// Errors: usage (a folder without any case), io, cancelled. What goes wrong in a case is that case's result.
Result<BackendTestResult> run_backend_tests(const BackendTestRequest& request, const ExecutorFactory& make_executor);

}  // namespace parallax
