// SPDX-License-Identifier: Apache-2.0
// Arguments of jobs as text, as the command line reads them and scripts pass them, and the languages they are written
// in. Messages name an argument by its option on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/diff/tolerance/policy.h"
#include "inspector/workbench/run.h"

namespace parallax {

// --inputs, --input, --stub, --seed, --shape, --dim, --range
struct InputArguments {
  std::vector<std::string> sources, files, stubs, shapes, dims, ranges;
  uint64_t seed = 0;
  bool is_given() const;
  Result<InputRequest> request() const;         // of a job that takes one source
  Result<InputRequest> without_source() const;  // all but the sources
};

// --tf32, --accumulate, --rewrite, --observe-all, --fallback, --memory-limit, --time-limit, --keep-casts
struct ModeArguments {
  std::string tf32 = "off", accumulate = "default", rewrite = "default", fallback;
  std::string memory_limit, time_limit;
  bool observe_all = false, keep_casts = false;
  bool is_given() const;
  Status apply(RunRequest& request) const;
};

// --policy, --rtol, --atol, --per, --policy-file
struct PolicyArguments {
  std::string policy, file, rtol, atol;
  std::vector<std::string> per;
  bool is_given() const { return !policy.empty() || !file.empty() || !rtol.empty() || !atol.empty() || !per.empty(); }
  Result<Policy> make() const;
};

// Inputs, mode and policy into a request.
Status apply_arguments(const InputArguments& inputs, const ModeArguments& mode, const PolicyArguments& policy,
                       RunRequest& request);

// The options as text to follow `parallax run` in a script: each with a space before it; those that have their default
// are left out. A policy file is named absolutely.
std::string script_options(uint64_t seed, const ModeArguments& mode, const PolicyArguments& policy);

Result<RewriteChoice> parse_rewrite(const std::string& text);
Result<CaptureLevel> parse_capture(const std::string& text);
Status check_fallback(const std::string& fallback);                             // errors: usage
Result<int64_t> parse_bytes(std::string_view option, const std::string& text);  // "512M", "2GiB", "1000"
Result<int64_t> parse_integer(std::string_view option, std::string_view text);

// --with that is not empty: one name or two. Errors: usage.
Result<std::vector<std::string>> parse_executors(const std::string& text);
// --with of a verb that runs one executor; empty where the text is.
Result<std::string> parse_executor(std::string_view verb, const std::string& text);

// Options of a run that would change nothing are refused: whoever gives one expects something of it. Errors: usage.
Status check_effects(const RunRequest& request);

// A dump where a model is wanted: a usage error that names the verbs that read dumps.
Status refuse_dump(const std::string& model);

// "cnn/model.onnx" -> "model-part" for the kind "part": the folder a job writes where none is named.
std::string default_folder(const std::string& model, std::string_view kind);

}  // namespace parallax
