// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a .npy, .npz or .safetensors file; the first bytes choose, as they do for people.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "inspector/base/check.h"
#include "inspector/dump/tensor_files/npy.h"

namespace parallax {
namespace {

// Touches every byte that a tensor says it has.
void read_all(const Tensor& tensor) {
  if (tensor.dtype() == DType::string) {
    size_t size = 0;
    for (const std::string& text : tensor.as<std::string>()) size += text.size();
    PX_CHECK(size < (size_t{1} << 40));
    return;
  }
  unsigned sum = 0;
  for (const std::byte value : tensor.view().bytes()) sum += std::to_integer<unsigned>(value);
  volatile unsigned sink = sum;
  (void)sink;
}

void read_all(const Result<std::vector<NamedValue>>& values) {
  if (!values.ok()) {
    PX_CHECK(!values.error().message.empty());
    return;
  }
  for (const NamedValue& value : *values) read_all(value.value.tensor());
}

}  // namespace
}  // namespace parallax

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with("\x93NUMPY")) {
    const auto tensor = parallax::parse_npy(bytes, nullptr);
    if (tensor.ok()) parallax::read_all(*tensor);
  } else if (text.starts_with("PK")) {
    parallax::read_all(parallax::parse_npz(bytes));
  } else {
    parallax::read_all(parallax::parse_safetensors(bytes, nullptr));
  }
  return 0;
}
