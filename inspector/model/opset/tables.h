// SPDX-License-Identifier: Apache-2.0
// The texts of the *.ops files next to this header, embedded at build time by embed.cmake.
#pragma once

#include <span>
#include <string_view>

namespace parallax {

std::span<const std::string_view> opset_tables();

}  // namespace parallax
