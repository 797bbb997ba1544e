// SPDX-License-Identifier: Apache-2.0
// ComparisonHandle: what Python's _core.Comparison holds.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "inspector/diff/comparison.h"
#include "inspector/model/ir.h"
#include "inspector/python/binding/binding.h"

namespace parallax::python {

struct ComparisonHandle {
  std::shared_ptr<const Comparison> comparison;
  std::shared_ptr<const Model> model;  // the one that pictures show, side A's; may be null
  std::vector<std::string> read;       // files that reports must not be written over
  std::vector<std::string> notes;      // what was chosen for generated inputs, and what a run took
  std::vector<std::string> warnings;   // globs that match nothing, dumps that are unfinished
};

}  // namespace parallax::python
