// SPDX-License-Identifier: Apache-2.0
// ReportedTimes: what a session whose work is done by another program offers: the time that program measured, without
// the way of the values to it and back.
#pragma once

#include <optional>

#include "inspector/exec/executor.h"

namespace parallax {

class ReportedTimes {
 public:
  virtual ~ReportedTimes() = default;
  // The time of the last run; nothing where the program did not say.
  virtual std::optional<double> run_ms() const = 0;
};

// Nothing for a session that is timed from outside.
inline std::optional<double> reported_run_ms(const Session& session) {
  const auto* reported = dynamic_cast<const ReportedTimes*>(&session);
  return reported == nullptr ? std::nullopt : reported->run_ms();
}

}  // namespace parallax
