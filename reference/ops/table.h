// SPDX-License-Identifier: Apache-2.0
// The table of operators: which function of the reference stands for which versions of which operator. A version
// without a row is unsupported until someone has read what it changed.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "reference/ops/op_context.h"

namespace parallax::reference {

struct OpRow {
  std::string_view op;
  std::string_view domain;  // "ai.onnx" in its long form
  int64_t first_version;    // since-versions of the schema, both inclusive
  int64_t last_version;
  OpFunction function;
};

using OpRows = std::span<const OpRow>;

OpRows op_rows();

// The row for a node whose schema is known, or null.
const OpRow* find_row(const Node& node);

}  // namespace parallax::reference
