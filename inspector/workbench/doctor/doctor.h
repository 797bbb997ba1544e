// SPDX-License-Identifier: Apache-2.0
// The features of this machine for Parallax, those that are missing, and how to get them.
#pragma once

#include <string>
#include <vector>

#include "inspector/workbench/doctor/late_libraries.h"

namespace parallax {

struct DoctorItem {
  std::string topic;  // "processor", "cuda", "graphviz", ...
  bool available = true;
  std::string detail;  // what there is, or what is missing
  std::string advice;  // how to get it; empty where nothing is missing
};

std::vector<DoctorItem> examine_machine();
std::string doctor_to_json(const std::vector<DoctorItem>& items, const std::vector<LateLibrary>& libraries);
std::string doctor_to_text(const std::vector<DoctorItem>& items, const std::vector<LateLibrary>& libraries);

}  // namespace parallax
