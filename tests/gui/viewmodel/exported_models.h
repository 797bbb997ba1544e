// SPDX-License-Identifier: Apache-2.0
// Models with the graphs of well-known networks as exporters write them: operators, scopes, Constants and connections
// are theirs, weights have no elements worth mentioning.
#pragma once

#include <span>
#include <string>

namespace parallax::view_test {

struct ExportedModel {
  const char* name;
  std::string (*text)();  // of the model, as textproto
};

// ResNet-50 and MobileNetV3 as torch.export writes them (scopes in metadata), ViT and Llama likewise; an LSTM and a
// detector as TorchScript does (scopes in names, a Constant node for every number).
std::span<const ExportedModel> exported_models();

// The path of the model's file in the folder of this process.
std::string written(const ExportedModel& model);

}  // namespace parallax::view_test
