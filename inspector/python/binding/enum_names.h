// SPDX-License-Identifier: Apache-2.0
// Names of enumerators as Python gives and takes them.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspector/base/result.h"
#include "inspector/python/binding/errors.h"

namespace parallax::python {

inline constexpr std::array<const char*, 5> kLevels = {"none", "shape", "stats", "sample", "all"};
inline constexpr std::array<const char*, 3> kRoles = {"input", "initializer", "output"};

template <class Enum, size_t kCount>
const char* name_in(const std::array<const char*, kCount>& names, Enum value) {
  return names.at(static_cast<size_t>(value));
}

// Raises UsageError, which names the argument `what`, where no enumerator has the name.
template <class Enum, size_t kCount>
Enum named(const std::array<const char*, kCount>& names, const std::string& name, std::string_view what) {
  for (size_t index = 0; index < kCount; ++index) {
    if (name == names[index]) return static_cast<Enum>(index);
  }
  raise(usage_error(fmt::format("{} is '{}'; it must be one of {}", what, name, fmt::join(names, ", "))));
}

}  // namespace parallax::python
