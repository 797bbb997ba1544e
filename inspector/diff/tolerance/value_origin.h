// SPDX-License-Identifier: Apache-2.0
// The origin of a value: whether it depends on the data of a run.
#pragma once

#include "inspector/diff/comparison.h"
#include "inspector/exec/observer.h"

namespace parallax::diff {

inline Origin origin_of(const ValueInfo& value_info) {
  const bool is_constant = value_info.role == ValueInfo::Role::initializer || value_info.follows_from_constants;
  const bool is_given = value_info.role == ValueInfo::Role::input && value_info.scope.empty();
  return is_constant ? Origin::constant : (is_given ? Origin::input : Origin::computed);
}

}  // namespace parallax::diff
