// SPDX-License-Identifier: Apache-2.0
// Sessions of the runtime's executors, whatever they run on.
#pragma once

#include <memory>
#include <string>

#include "inspector/exec/executor.h"
#include "runtime/plan/platform.h"

namespace parallax::runtime {

// Errors: as Executor::prepare.
Result<std::unique_ptr<Session>> make_session(std::shared_ptr<const Model> model, const RunOptions& options,
                                              std::unique_ptr<Platform> platform);

// The rewrite patterns that `options` ask for, for settings: "identity,dropout", "none".
std::string pattern_names(const RunOptions& options, bool on_host);

}  // namespace parallax::runtime
