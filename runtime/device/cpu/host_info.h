// SPDX-License-Identifier: Apache-2.0
// The hardware and libraries of the host's queue: for settings and reports.
#pragma once

#include <string>

namespace parallax::runtime {

std::string processor_name();    // "AMD EPYC 9654 96-Core Processor", "unknown CPU"
std::string library_versions();  // "oneDNN 2.6.3, OpenBLAS 0.3.21"

}  // namespace parallax::runtime
