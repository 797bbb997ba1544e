// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as an ONNX model, binary or text. Import refuses them, or gives a graph whose every
// reference holds.
#include <cstddef>
#include <cstdint>
#include <span>

#include "inspector/base/check.h"
#include "inspector/model/io/import.h"

namespace parallax {
namespace {

void walk(const Graph& graph);

void walk(const Attribute& attribute) {
  if (const auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) walk(**body);
  if (const auto* bodies = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
    for (const auto& body : *bodies) walk(*body);
  }
}

void check_values(const Graph& graph, const std::vector<ValueId>& values) {
  for (const ValueId value : values) {
    PX_CHECK(value == kNoValue || (value >= 0 && static_cast<size_t>(value) < graph.values.size()));
  }
}

void walk(const Graph& graph) {
  check_values(graph, graph.inputs);
  check_values(graph, graph.outputs);
  PX_CHECK(graph.initializers.size() == graph.initializer_values.size());
  for (const StoredTensor& initializer : graph.initializers) {
    uint8_t sum = 0;
    if (initializer.tensor.dtype() != DType::string) {
      for (const std::byte byte : initializer.tensor.view().bytes()) sum ^= std::to_integer<uint8_t>(byte);
    }
    [[maybe_unused]] static volatile uint8_t sink;
    sink = sum;
  }
  for (const Node& node : graph.nodes) {
    check_values(graph, node.inputs);
    check_values(graph, node.outputs);
    for (const Attribute& attribute : node.attributes) walk(attribute);
  }
}

void import_and_walk(std::span<const std::byte> bytes, ModelChecks checks) {
  ImportOptions options;
  options.checks = checks;
  const auto model = import_model(bytes, "", "fuzzed", options);
  if (!model.ok()) {
    PX_CHECK(!model.error().message.empty());
    return;
  }
  walk((*model)->graph);
  for (const auto& function : (*model)->functions) walk(function->body);
  const bool sound = check_model(**model).empty();
  PX_CHECK(sound || checks != ModelChecks::required);
}

}  // namespace
}  // namespace parallax

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  using parallax::ModelChecks;
  for (const ModelChecks checks : {ModelChecks::required, ModelChecks::recorded, ModelChecks::none})
    parallax::import_and_walk(bytes, checks);
  return 0;
}
