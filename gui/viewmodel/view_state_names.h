// SPDX-License-Identifier: Apache-2.0
// The words that stand for choices in the view's JSON, in the order of their enums.
#pragma once

#include <array>
#include <string_view>

#include "gui/viewmodel/viewer.h"

namespace parallax {

constexpr std::array<std::string_view, 4> kPresets = {"all", "graph", "tensor", "table"};
constexpr std::array<std::string_view, 7> kTabs = {"alerts",    "table", "causes",     "marks",
                                                   "explained", "runs",  "differences"};
constexpr std::array<std::string_view, 4> kTensorTabs = {"worst", "values", "channels", "around"};

}  // namespace parallax
