// SPDX-License-Identifier: Apache-2.0
// The origin of a value: whether it depends on the data of a run, and whether another runtime made it.
#pragma once

#include "inspector/diff/comparison.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/exec/executor_names.h"
#include "inspector/exec/observer.h"

namespace parallax::diff {

inline Origin origin_of(const ValueInfo& value_info) {
  const bool is_constant = value_info.role == ValueInfo::Role::initializer || value_info.follows_from_constants;
  const bool is_given = value_info.role == ValueInfo::Role::input && value_info.scope.empty();
  return is_constant ? Origin::constant : (is_given ? Origin::input : Origin::computed);
}

// True where another runtime made the values.
inline bool has_foreign_values(const DumpReader& dump) {
  return !dump.executions().empty() && is_foreign_executor(dump.executions().front().executor);
}

// True where all elements may be equal without a doubt: a value that no node computes, a constant, a fill, a mask. Of a
// ValueInfo or a DumpEntry.
template <class Described>
bool is_exempt_from_mistrust(const Described& value) {
  return value.is_constant_like || value.role != ValueInfo::Role::node_output;
}

}  // namespace parallax::diff
