// Memory of a side-by-side comparison without a dump: what it needs beyond the weights for 2 layers and for 24, each in
// a child process of its own. Usage: stream_memory_bench [EXEC,EXEC]
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
#include "inspector/model/export.h"
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
  bool external;  // weights in a file beside the model
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
  const int64_t small = measure(setup, 2);
  const int64_t large = measure(setup, 24);
  if (small < 0 || large < 0) return false;
  fmt::print("{}, weights {}: beyond the weights: 2 layers {:.1f} MiB, 24 layers {:.1f} MiB, ratio {:.2f}\n",
             setup.executors, setup.external ? "beside the model" : "inside the model",
             static_cast<double>(small) / (1 << 20), static_cast<double>(large) / (1 << 20),
             static_cast<double>(large) / static_cast<double>(small));
  return true;
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
