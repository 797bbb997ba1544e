// SPDX-License-Identifier: Apache-2.0
// Import of a model with 1 GB of external data: how long it takes and how much memory it touches. The weights are a
// file with a hole, so only what import reads of them could cost anything; a plain read of the same file is the
// measure.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "inspector/base/mapped_file.h"
#include "inspector/model/io/import.h"

namespace parallax {
namespace {

constexpr int kLayers = 64;
constexpr int64_t kWeightBytes = int64_t{1} << 24;  // 2048 x 2048 float32; times kLayers is 1 GB

std::string model_text() {
  std::string text = "ir_version: 10 opset_import { version: 20 } graph { name: 'chain' ";
  const std::string type =
      "type { tensor_type { elem_type: 1 shape { dim { dim_param: 'N' } dim { dim_value: 2048 } } } } }\n";
  text += "input { name: 'v0' " + type + "output { name: 'v" + std::to_string(kLayers) + "' " + type;
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string n = std::to_string(i);
    text += "initializer { name: 'w" + n +
            "' data_type: 1 dims: 2048 dims: 2048 data_location: EXTERNAL "
            "external_data { key: 'location' value: 'weights.data' } "
            "external_data { key: 'offset' value: '" +
            std::to_string(i * kWeightBytes) +
            "' } "
            "external_data { key: 'length' value: '" +
            std::to_string(kWeightBytes) + "' } }\n";
    text +=
        "node { input: 'v" + n + "' input: 'w" + n + "' output: 'v" + std::to_string(i + 1) + "' op_type: 'MatMul' }\n";
  }
  return text + "}";
}

double resident_mb() {
  long pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

double milliseconds_of(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Reads the whole file in blocks of 1 MB.
void read_through(const std::string& path) {
  std::vector<char> block(1 << 20);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  while (::read(file, block.data(), block.size()) > 0) {
  }
  ::close(file);
}

int run(const std::string& folder) {
  const std::string model_path = folder + "/model.textproto", weights_path = folder + "/weights.data";
  const Status written = write_file(model_path, model_text());
  if (!written.ok()) {
    fmt::print(stderr, "{}\n", written.error().message);
    return EXIT_FAILURE;
  }
  std::ofstream(weights_path).close();
  std::filesystem::resize_file(weights_path, kLayers * kWeightBytes);

  const double before_mb = resident_mb();
  std::vector<double> import_ms;
  std::shared_ptr<const Model> model;
  for (int repeat = 0; repeat < 7; ++repeat) {
    import_ms.push_back(milliseconds_of([&] {
      auto imported = import_model(model_path);
      if (imported.ok()) model = *imported;
    }));
    if (model == nullptr) return EXIT_FAILURE;
  }
  const double resident_growth_mb = resident_mb() - before_mb;
  const double read_ms = milliseconds_of([&] { read_through(weights_path); });
  const double weights_mb = static_cast<double>(kLayers * kWeightBytes) / 1e6;
  fmt::print("weights                     {:10.1f} MB external, {} tensors\n", weights_mb,
             model->graph.initializers.size());
  fmt::print("import, median of 7         {:10.2f} ms\n", median(import_ms));
  fmt::print("import / read of the data   {:10.4f}\n", median(import_ms) / read_ms);
  fmt::print("resident memory of import   {:10.1f} MB ({:.4f} of the weights)\n", resident_growth_mb,
             resident_growth_mb / weights_mb);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace parallax

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "parallax-import-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return EXIT_FAILURE;
  const int status = parallax::run(folder);
  std::filesystem::remove_all(folder);
  return status;
}
