// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as Polygraphy's JSON of inputs or results.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/read_values.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = parallax::parse_polygraphy({reinterpret_cast<const char*>(data), size});
  if (!file.ok()) {
    PX_CHECK(!file.error().message.empty());
    return 0;
  }
  PX_CHECK(!file->iterations.empty());
  for (const auto& values : file->iterations) parallax::read_all(values);
  return 0;
}
