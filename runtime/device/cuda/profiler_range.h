// SPDX-License-Identifier: Apache-2.0
// A named span of the host's time that NVIDIA's profilers show above the kernels launched in it. Nothing on other
// devices.
#pragma once

#include <string>

#include "runtime/device/devices.h"

namespace parallax::runtime {

template <class Device>
class ProfilerRange {
 public:
  explicit ProfilerRange(const std::string&) {}
};

template <>
class ProfilerRange<Cuda> {
 public:
  explicit ProfilerRange(const std::string& name);
  ~ProfilerRange();
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

}  // namespace parallax::runtime
