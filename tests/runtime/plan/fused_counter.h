// SPDX-License-Identifier: Apache-2.0
// Counts the values that a run announces as fused.
#pragma once

#include "inspector/exec/observer.h"

namespace parallax {

struct FusedCounter final : Observer {
  CaptureLevel wants(const ValueInfo&) override { return CaptureLevel::none; }
  Status absent(const ValueInfo&, const Absence& absence) override {
    fused += absence.kind == Absence::Kind::fused ? 1 : 0;
    return {};
  }
  int fused = 0;
};

}  // namespace parallax
