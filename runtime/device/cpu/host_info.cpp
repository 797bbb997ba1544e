// SPDX-License-Identifier: Apache-2.0
// Names and versions of processor and libraries.
#include "runtime/device/cpu/host_info.h"

#include <fstream>

#include <cblas-openblas.h>
#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

namespace parallax::runtime {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

std::string library_versions() {
  const dnnl_version_t* version = dnnl_version();
  std::string blas = openblas_get_config();
  const size_t first = blas.find(' ');
  const size_t second = first == std::string::npos ? first : blas.find(' ', first + 1);
  return fmt::format("oneDNN {}.{}.{}, {}", version->major, version->minor, version->patch, blas.substr(0, second));
}

}  // namespace parallax::runtime
