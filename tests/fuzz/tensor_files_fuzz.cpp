// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a .npy, .npz or .safetensors file; the first bytes choose, as they do for people.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tests/fuzz/read_values.h"

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
