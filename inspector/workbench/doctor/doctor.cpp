// SPDX-License-Identifier: Apache-2.0
// Looks at processor, memory, GPU driver, and the programs called at run time.
#include "inspector/workbench/doctor/doctor.h"

#include <algorithm>
#include <fstream>
#include <thread>

#include <dlfcn.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/cpu_features.h"
#include "inspector/base/loading/late_library.h"
#include "inspector/base/memory_budget.h"
#include "inspector/base/shell.h"
#include "inspector/diff/metrics/metrics.h"
#include "inspector/model/opset/opset_registry.h"
#include "inspector/render/report_json.h"

namespace parallax {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown processor";
}

std::string instruction_sets() {
  std::string text;
  const auto add = [&](bool supported, const char* name) {
    if (supported) text += (text.empty() ? "" : " ") + std::string(name);
  };
  add(has_feature(CpuFeature::sse42), "sse4.2");
  add(vector_level() >= VectorLevel::avx2, "avx2");
  add(vector_level() >= VectorLevel::avx2, "fma");
  add(vector_level() >= VectorLevel::avx512, "avx512f");
  add(has_feature(CpuFeature::avx512_vnni), "avx512vnni");
  add(has_feature(CpuFeature::avx512_bf16), "avx512bf16");
  return text.empty() ? "portable code only" : text;
}

DoctorItem examine_processor() {
  return {"processor", true,
          fmt::format("{}, {} threads; {}; comparisons use {}", processor_name(), std::thread::hardware_concurrency(),
                      instruction_sets(), metrics_instruction_set()),
          ""};
}

DoctorItem examine_memory() {
  return {"memory", true, fmt::format("{:.1f} GiB", static_cast<double>(physical_memory_bytes()) / (1 << 30)), ""};
}

// The driver's own library says whether a GPU can be used at all; it is looked for, never linked.
DoctorItem examine_driver() {
  void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) {
    return {"nvidia driver", false, "no NVIDIA driver found (libcuda.so.1 is not there)",
            "install the NVIDIA driver to run on a GPU; cpu works without"};
  }
  using Init = int (*)(unsigned);
  using Version = int (*)(int*);
  const auto init = reinterpret_cast<Init>(::dlsym(driver, "cuInit"));
  const auto version = reinterpret_cast<Version>(::dlsym(driver, "cuDriverGetVersion"));
  int number = 0;
  const bool usable = init != nullptr && version != nullptr && init(0) == 0 && version(&number) == 0;
  DoctorItem item{"nvidia driver", usable, fmt::format("driver for CUDA {}.{}", number / 1000, number % 1000 / 10), ""};
  if (!usable)
    item = {"nvidia driver", false, "the NVIDIA driver is there, but finds no usable GPU", "check nvidia-smi"};
  ::dlclose(driver);
  return item;
}

// Convolutions and attention on a GPU are its library's, where it is there: looked for where the runtime does.
DoctorItem examine_cudnn() {
#ifdef PARALLAX_CUDNN
  const std::string name = "libcudnn.so." PARALLAX_CUDNN;
  void* library = open_late_library(name, PARALLAX_CUDNN_FOLDER, RTLD_LAZY | RTLD_LOCAL).handle;
  if (library == nullptr) {
    return {"cudnn", false, "cuDNN not found (" + name + "): convolutions and attention on a GPU by own kernels",
            "install cuDNN " PARALLAX_CUDNN ": https://developer.nvidia.com/cudnn"};
  }
  const auto version = reinterpret_cast<size_t (*)()>(::dlsym(library, "cudnnGetVersion"));
  const size_t number = version == nullptr ? 0 : version();  // of 9.19.0: 91900
  std::string lacking;
  for (const char* function : {"cudnnGetVersion", "cudnnBackendExecute"})  // the others come with the second
    if (lacking.empty() && ::dlsym(library, function) == nullptr) lacking = function;
  ::dlclose(library);
  if (!lacking.empty()) {
    return {"cudnn", false,
            fmt::format("{} is not usable: it has no function {}; convolutions and attention on a GPU by own kernels",
                        name, lacking),
            "remove it from LD_LIBRARY_PATH or install cuDNN " PARALLAX_CUDNN ": https://developer.nvidia.com/cudnn"};
  }
  return {"cudnn", true,
          fmt::format("cuDNN {}.{}.{}: convolutions; from 9.10.2 on attention in float16 and bfloat16", number / 10000,
                      number / 100 % 100, number % 100),
          ""};
#else
  return {"cudnn", false, "this build has no cuDNN: convolutions and attention on a GPU by own kernels",
          "build with CUDA and the headers of cuDNN 9"};
#endif
}

DoctorItem examine_graphviz() {
  if (!find_program("dot").empty()) return {"graphviz", true, "the program dot is on the PATH", ""};
  return {"graphviz", false, "the program dot is not on the PATH: no SVG or PNG pictures", "apt-get install graphviz"};
}

DoctorItem examine_registry() {
  const OpsetRegistry& registry = OpsetRegistry::standard();
  return {"operators", true,
          fmt::format("schemas of ai.onnx up to opset {}, ai.onnx.ml up to {}", registry.latest_opset("ai.onnx"),
                      registry.latest_opset("ai.onnx.ml")),
          ""};
}

}  // namespace

std::vector<DoctorItem> examine_machine() {
  return {{"parallax", true, PARALLAX_VERSION, ""},
          examine_processor(),
          examine_memory(),
          examine_registry(),
          examine_driver(),
          examine_cudnn(),
          examine_graphviz()};
}

std::string doctor_to_json(const std::vector<DoctorItem>& items, const std::vector<LateLibrary>& libraries) {
  nlohmann::ordered_json json;
  json["parallax"] = PARALLAX_VERSION;
  json["items"] = nlohmann::ordered_json::array();
  for (const DoctorItem& item : items) {
    json["items"].push_back({{"topic", item.topic},
                             {"available", item.available},
                             {"detail", item.detail},
                             {"advice", text_or_null(item.advice)}});
  }
  json["libraries"] = nlohmann::ordered_json::array();
  for (const LateLibrary& library : libraries) {
    json["libraries"].push_back({{"name", library.name},
                                 {"product", library.product},
                                 {"loaded_by", library.loaded_by},
                                 {"path", text_or_null(library.path)}});
  }
  return json_text(json);
}

std::string doctor_to_text(const std::vector<DoctorItem>& items, const std::vector<LateLibrary>& libraries) {
  std::string text;
  size_t width = 0;
  for (const DoctorItem& item : items) width = std::max(width, item.topic.size());
  for (const DoctorItem& item : items) {
    text += fmt::format("{} {:<{}} {}\n", item.available ? "ok     " : "missing", item.topic, width, item.detail);
    if (!item.advice.empty()) text += fmt::format("{:>{}}{}\n", "-> ", width + 9, item.advice);
  }
  text += "Libraries that are loaded when they are first needed, and their files:\n";
  for (const LateLibrary& library : libraries)
    text += fmt::format("  {:<38} {}\n", library.name, library.path.empty() ? "not found" : library.path);
  return text;
}

}  // namespace parallax
