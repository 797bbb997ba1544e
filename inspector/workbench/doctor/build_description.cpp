// SPDX-License-Identifier: Apache-2.0
// Macros of the compiler, and what CMake passes on about the build.
#include "inspector/workbench/doctor/build_description.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspector/base/cpu_features.h"

namespace parallax {
namespace {

#if defined(__clang__)
constexpr std::string_view kCompiler = "clang " __clang_version__;
#else
constexpr std::string_view kCompiler = "GCC " __VERSION__;
#endif

// The instructions that all code may use; kernels are compiled for each level of VectorLevel besides.
#if defined(__AVX512F__)
constexpr std::string_view kBaseline = "x86-64 with AVX-512";
#elif defined(__AVX2__)
constexpr std::string_view kBaseline = "x86-64 with AVX2";
#elif defined(__x86_64__)
constexpr std::string_view kBaseline = "x86-64; kernels also for AVX2 and AVX-512";
#else
constexpr std::string_view kBaseline = "the compiler's default; no kernels for others";
#endif

std::string build_type() {
  const std::string_view type = PARALLAX_BUILD_TYPE, sanitizers = PARALLAX_SANITIZERS;
  return fmt::format("{}{}{}", type.empty() ? "no build type" : type, sanitizers.empty() ? "" : ", sanitizers ",
                     sanitizers);
}

std::string features() {
  std::vector<std::string> present{"reference", "cpu"}, absent;
#ifdef PARALLAX_CUBLAS
  present.emplace_back("CUDA " PARALLAX_CUDA_VERSION " (architectures " PARALLAX_CUDA_ARCHITECTURES ")");
#else
  absent.emplace_back("CUDA");
#endif
#ifdef PARALLAX_CUDNN
  present.emplace_back("cuDNN " PARALLAX_CUDNN);
#else
  absent.emplace_back("cuDNN");
#endif
  (PARALLAX_HAS_GUI ? present : absent).emplace_back("parallax-gui");
  (PARALLAX_HAS_PYTHON ? present : absent).emplace_back("Python module");
  return fmt::format("{}{}{}", fmt::join(present, ", "), absent.empty() ? "" : "; without ", fmt::join(absent, ", "));
}

}  // namespace

std::string build_description(const std::string& program) {
  return fmt::format(
      "{} {}\n"
      "build:            {}, {}\n"
      "instruction sets: {}; {} on this machine\n"
      "features:         {}",
      program, PARALLAX_VERSION, kCompiler, build_type(), kBaseline, name_of(vector_level()), features());
}

}  // namespace parallax
