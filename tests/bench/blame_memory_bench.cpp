// SPDX-License-Identifier: Apache-2.0
// Memory of blame from two dumps: the most anonymous memory (mapped files left out) of a child process that compares
// two dumps and names the causes, for 2 layers and for 24 of the same size. Bounded by the largest node, the two are
// equal. Usage: blame_memory_bench
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inspector/executors/make_executor.h"
#include "inspector/model/io/export.h"
#include "inspector/workbench/blame.h"
#include "inspector/workbench/open.h"
#include "inspector/workbench/run.h"
#include "tests/bench/layered_model.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;

// The anonymous memory of this process in bytes, from /proc/self/status: the peak that the system keeps counts mapped
// files.
int64_t anonymous_bytes() {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return -1;
  std::array<char, 256> line{};
  long long kibibytes = -1;
  while (kibibytes < 0 && std::fgets(line.data(), line.size(), file) != nullptr)
    std::sscanf(line.data(), "RssAnon: %lld", &kibibytes);
  std::fclose(file);
  return kibibytes * 1024;
}

// The most that `work` takes, looked at all the time from a thread next to it, and its result.
std::pair<int64_t, Status> peak_of(const std::function<Status()>& work) {
  std::atomic<bool> is_done = false;
  int64_t peak = 0;
  std::thread watcher([&] {
    while (!is_done) peak = std::max(peak, anonymous_bytes());
  });
  Status status = work();
  is_done = true;
  watcher.join();
  return {peak, std::move(status)};
}

struct Setup {
  const char* program;
  std::string executor;
  bool is_one_model;  // of which B's run computes the first product wrongly; else B is another model
};

Status write_dump(const std::string& model, const Setup& setup, bool is_wrong, const std::string& folder) {
  RunRequest request;
  request.model = model;
  request.executors = {setup.executor};
  request.inputs.seed = 3;
  request.dump_directory = folder;
  if (is_wrong) request.options.overrides["product_0"] = PX_TRY(Tensor::zeros(DType::float32, Shape{kRows, kWidth}));
  PX_TRY(run_models(request, [](const std::string& name) { return make_executor(name); }));
  return {};
}

// Compares and blames; prints the peak. The one cause is the first layer.
int run_child(const std::string& a, const std::string& b) {
  std::string first;
  const auto [peak, status] = peak_of([&]() -> Status {
    OpenedComparison opened = PX_TRY(compare_files(a, b, {}));
    PX_TRY(blame_files(
        a, b, {}, [](const std::string& name) { return make_executor(name); }, opened.comparison));
    if (!opened.comparison.causes.empty()) first = opened.comparison.causes.front().node;
    return {};
  });
  if (!status.ok()) fmt::print(stderr, "{}\n", status.error().message);
  if (!status.ok() || first != "product_0_node") return 1;
  fmt::print("{}\n", peak);
  return 0;
}

Result<int64_t> measure_in(const std::string& folder, const Setup& setup, int layers) {
  ExportOptions options;
  options.external_threshold_bytes = 1024;
  const std::string a = folder + "/A", b = folder + "/B";
  const std::string dump = "/" + setup.executor + ".plx";
  for (const std::string& side : {a, b}) {
    fs::create_directories(side);
    const bool is_other = side == b && !setup.is_one_model;
    PX_TRY(export_model(layered_model(layers, is_other ? 1.5F : 1.0F), side + "/model.onnx", options));
    PX_TRY(write_dump(side + "/model.onnx", setup, side == b && setup.is_one_model, side));
  }
  const std::string command = fmt::format("'{0}' --child '{1}{3}' '{2}{3}'", setup.program, a, b, dump);
  std::FILE* child = ::popen(command.c_str(), "r");
  long long peak = -1;
  const bool has_figure = child != nullptr && std::fscanf(child, "%lld", &peak) == 1;
  const bool has_succeeded = child != nullptr && ::pclose(child) == 0;
  if (!has_figure || !has_succeeded) return io_error("the child process failed");
  return static_cast<int64_t>(peak);
}

Result<int64_t> measure(const Setup& setup, int layers) {
  const std::string folder = (fs::temp_directory_path() / fmt::format("parallax-blame-memory-{}", ::getpid())).string();
  auto peak = measure_in(folder, setup, layers);
  fs::remove_all(folder);
  return peak;
}

Status report(const Setup& setup) {
  const int64_t small = PX_TRY(measure(setup, 2)), large = PX_TRY(measure(setup, 24));
  constexpr double kMebibyte = 1 << 20;
  fmt::print("{}, {}: 2 layers {:.1f} MiB, 24 layers {:.1f} MiB, ratio {:.2f}\n", setup.executor,
             setup.is_one_model ? "one model" : "two models", static_cast<double>(small) / kMebibyte,
             static_cast<double>(large) / kMebibyte, static_cast<double>(large) / static_cast<double>(small));
  return {};
}

}  // namespace
}  // namespace parallax

int main(int argc, char** argv) {
  using namespace parallax;
  if (argc == 4 && std::string(argv[1]) == "--child") return run_child(argv[2], argv[3]);
  for (const std::string executor : {"reference", "cpu"}) {
    for (const bool is_one_model : {true, false}) {
      const Status status = report({argv[0], executor, is_one_model});
      if (status.ok()) continue;
      fmt::print(stderr, "{}\n", status.error().message);
      return 1;
    }
  }
  return 0;
}
