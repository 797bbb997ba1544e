// SPDX-License-Identifier: Apache-2.0
// Memory of a side-by-side comparison without a dump: what it needs beyond the weights for 2, 24 and 96 layers, each in
// a child process of its own. A few values wait for the slower side, which 2 layers have no use for; after that it must
// not grow: fails where 96 layers take 24 MiB more than 24 (the values of 72 layers are 216 MiB). A ctest, too. Usage:
// stream_memory_bench [EXEC,EXEC]
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inspector/base/log.h"
#include "inspector/base/text.h"
#include "inspector/executors/make_executor.h"
#include "inspector/model/io/export.h"
#include "inspector/workbench/run.h"
#include "tests/bench/layered_model.h"

namespace parallax {
namespace {

int64_t peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

int run_child(const std::string& path, const std::vector<std::string>& executors) {
  RunRequest request;
  request.model = path;
  request.executors = executors;
  const auto result = run_models(request, [](const std::string& name) { return make_executor(name); });
  if (!result.ok()) {
    fmt::print(stderr, "{}\n", result.error().message);
    return 1;
  }
  fmt::print("{}\n", peak_bytes());
  return result->comparison->summary.compared > 0 ? 0 : 1;
}

struct Setup {
  const char* program;
  std::string executors;
  bool external;  // weights in a file next to the model
};

// Peak memory of a child that compares a model of so many layers, less its weights: once as they were read, and once
// more for each executor cpu, which packs them into the layout of its matrix products.
int64_t measure(const Setup& setup, int layers) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / fmt::format("parallax-layers-{}-{}", ::getpid(), layers);
  fs::create_directories(folder);
  const std::string path = (folder / "model.onnx").string();
  ExportOptions options;
  if (setup.external) options.external_threshold_bytes = 1024;
  if (!export_model(layered_model(layers), path, options).ok()) return -1;
  std::FILE* child = ::popen(fmt::format("'{}' --child '{}' {}", setup.program, path, setup.executors).c_str(), "r");
  long long peak = -1;
  const bool has_figure = child != nullptr && std::fscanf(child, "%lld", &peak) == 1;
  const bool succeeded = child != nullptr && ::pclose(child) == 0;
  fs::remove_all(folder);
  int64_t copies = 1;
  for (const std::string_view executor : split(setup.executors, ',')) copies += executor == "cpu" ? 1 : 0;
  const int64_t weights = static_cast<int64_t>(layers) * kWidth * kWidth * 4;
  return has_figure && succeeded ? peak - copies * weights : -1;
}

bool report(const Setup& setup) {
  constexpr double kMebibyte = 1 << 20;
  constexpr double kMostGrowth = 24;
  std::array<double, 3> peaks{};
  constexpr std::array kLayers = {2, 24, 96};
  for (size_t index = 0; index < kLayers.size(); ++index) {
    const int64_t bytes = measure(setup, kLayers[index]);
    if (bytes < 0) return false;
    peaks[index] = static_cast<double>(bytes) / kMebibyte;
  }
  fmt::print("{}, weights {}: beyond the weights: 2 layers {:.1f} MiB, 24 layers {:.1f} MiB, 96 layers {:.1f} MiB\n",
             setup.executors, setup.external ? "next to the model" : "inside the model", peaks[0], peaks[1], peaks[2]);
  return peaks[2] < peaks[1] + kMostGrowth;
}

}  // namespace
}  // namespace parallax

int main(int argc, char** argv) {
  using namespace parallax;
  if (argc >= 4 && std::string(argv[1]) == "--child") {
    const auto names = split(argv[3], ',');
    return run_child(argv[2], {names.begin(), names.end()});
  }
  const std::string executors = argc > 1 ? argv[1] : "reference,cpu";
  return report({argv[0], executors, true}) && report({argv[0], executors, false}) ? 0 : 1;
}
