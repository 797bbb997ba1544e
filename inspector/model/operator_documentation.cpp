// SPDX-License-Identifier: Apache-2.0
// Asks libonnx's schema registry (up to opset 17 in Debian 12) for an operator's text; without libonnx there is none.
#include "inspector/model/operator_documentation.h"

#ifdef PARALLAX_HAS_LIBONNX
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/defs/schema.h>
#pragma GCC diagnostic pop
#endif

namespace parallax {

std::string operator_documentation(const OpSchema& schema) {
#ifdef PARALLAX_HAS_LIBONNX
  const std::string domain(schema.domain == "ai.onnx" ? std::string_view() : schema.domain);
  const auto* known =
      onnx::OpSchemaRegistry::Schema(std::string(schema.name), static_cast<int>(schema.since_version), domain);
  if (known == nullptr || known->doc() == nullptr) return {};
  std::string text = known->doc();
  const size_t first = text.find_first_not_of('\n');
  const size_t last = text.find_last_not_of("\n ");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
#else
  static_cast<void>(schema);
  return {};
#endif
}

}  // namespace parallax
