// SPDX-License-Identifier: Apache-2.0
// SessionCloning: what a session that can be copied without preparing its model again offers.
#pragma once

#include <memory>

#include "inspector/base/result.h"
#include "inspector/exec/executor.h"

namespace parallax {

class SessionCloning {
 public:
  virtual ~SessionCloning() = default;
  // A session of the same model and options that may run at the same time as this one: it shares what never changes
  // (the plan, folded constants, packed weights) and has memory of its own. Null where nothing can be shared: then the
  // executor prepares the model again. Not called during a run.
  virtual Result<std::unique_ptr<Session>> clone() const = 0;
};

}  // namespace parallax
