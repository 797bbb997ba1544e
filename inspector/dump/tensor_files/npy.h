// SPDX-License-Identifier: Apache-2.0
// Tensor files of other tools: .npy, .npz, .safetensors and Polygraphy's JSON. Reading trusts nothing in them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/io/import.h"
#include "inspector/tensor/tensor.h"

namespace parallax {

// Errors: io; corrupt_file; unsupported for element types without a counterpart (objects, records, dates). Column-major
// and big-endian arrays are brought into our order; numpy's text becomes strings, and bfloat16 of ml_dtypes is read.
Result<Tensor> read_npy(const std::string& path);
Result<std::vector<NamedValue>> read_npz(const std::string& path);
Result<std::vector<NamedValue>> read_safetensors(const std::string& path);

// Parses a .npy file from bytes that `owner` keeps alive (payloads may be views of them). Messages do not name a file.
Result<Tensor> parse_npy(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner);
Result<std::vector<NamedValue>> parse_npz(std::span<const std::byte> bytes);
Result<std::vector<NamedValue>> parse_safetensors(std::span<const std::byte> bytes,
                                                  const std::shared_ptr<const void>& owner);

// Polygraphy's JSON: its inputs, one mapping for each iteration; or RunResults, the iterations of one runner. Errors:
// io; corrupt_file; unsupported (results of several runners, tensors of torch).
struct PolygraphyFile {
  bool is_results = false;
  std::vector<std::vector<NamedValue>> iterations;  // one or more
};
Result<PolygraphyFile> read_polygraphy(const std::string& path);
Result<PolygraphyFile> parse_polygraphy(std::string_view text);

// Empty when the file format can hold such a tensor, else why not.
std::string refusal_of_npy(const Tensor& tensor);
std::string refusal_of_safetensors(const Tensor& tensor);

// Errors: unsupported, with that sentence; io.
Status write_npy(const std::string& path, const Tensor& tensor);
Status write_npz(const std::string& path, std::span<const NamedValue> values);
Status write_safetensors(const std::string& path, std::span<const NamedValue> values);

}  // namespace parallax
