// SPDX-License-Identifier: Apache-2.0
// The table of opcodes: the rows of all files, looked up by name and type.
#include <algorithm>

#include "tests/runtime/ptx/instruction.h"

namespace parallax::ptx {
namespace {

bool suits(Family family, Type type) {
  switch (family) {
    case Family::f32:
      return type == Type::f32;
    case Family::f64:
      return type == Type::f64;
    case Family::integer:
      return type != Type::f32 && type != Type::f64 && type != Type::f16 && type != Type::bf16;
    default:
      return true;
  }
}

const std::multimap<std::string_view, const OpcodeRow*>& table() {
  static const auto all = [] {
    std::multimap<std::string_view, const OpcodeRow*> rows;
    for (const auto list :
         {float_rows(), integer_rows(), bit_rows(), conversion_rows(), memory_rows(), control_rows(), warp_rows()}) {
      for (const OpcodeRow& row : list) rows.emplace(row.name, &row);
    }
    return rows;
  }();
  return all;
}

}  // namespace

const OpcodeRow* find_opcode(std::string_view name, Type type) {
  const auto [begin, end] = table().equal_range(name);
  const auto found = std::find_if(begin, end, [&](const auto& row) { return suits(row.second->family, type); });
  return found == end ? nullptr : found->second;
}

}  // namespace parallax::ptx
