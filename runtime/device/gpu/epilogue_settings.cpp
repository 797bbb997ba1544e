// SPDX-License-Identifier: Apache-2.0
// The list of activations, and the words for those that were accepted.
#include "runtime/device/gpu/epilogue_settings.h"

#include <array>
#include <utility>

namespace parallax::runtime {
namespace {

constexpr std::array<std::pair<Epilogue, const char*>, 2> kActivations = {
    {{Epilogue::relu, "relu"}, {Epilogue::tanh_gelu, "tanh gelu"}}};

}  // namespace

std::span<const EpilogueKind> epilogue_kinds() {
  static const std::vector<EpilogueKind> kinds = [] {
    std::vector<EpilogueKind> all;
    for (const auto& [epilogue, name] : kActivations) {
      for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
        for (const bool has_bias : {false, true}) all.push_back({epilogue, dtype, has_bias});
      }
    }
    return all;
  }();
  return kinds;
}

std::string accepted_text(const KnownEpilogues& known) {
  std::string text;
  for (const auto& [epilogue, name] : kActivations) {
    std::string accepted;
    for (const EpilogueKind& kind : epilogue_kinds()) {
      const auto found = known.find(kind);
      if (kind.epilogue != epilogue || found == known.end() || !found->second) continue;
      accepted +=
          (accepted.empty() ? "" : ", ") + std::string(name_of(kind.dtype)) + (kind.has_bias ? " with a bias" : "");
    }
    text += (text.empty() ? "" : "; ") + std::string(name) + ": " + (accepted.empty() ? "none" : accepted);
  }
  return text;
}

}  // namespace parallax::runtime
