// SPDX-License-Identifier: Apache-2.0
// .npy files in memory: the header, which is numpy's description of an array as a Python literal, and a whole file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/tensor/tensor.h"

namespace parallax::dump {

// numpy's element types that have a counterpart: "f4", "i8", ... without the byte order.
struct NpyType {
  std::string_view code;
  DType dtype;
};
std::span<const NpyType> npy_types();

struct NpyHeader {
  DType dtype = DType::undefined;
  char text_kind = 0;          // 'U' (UTF-32) or 'S' (bytes) for string
  uint64_t element_bytes = 0;  // in the file
  bool is_big_endian = false;
  bool is_column_major = false;
  std::vector<int64_t> dims;
  uint64_t data_offset = 0;
};

// Errors: corrupt_file, unsupported.
Result<NpyHeader> parse_npy_header(std::span<const std::byte> file);
// Magic, version 1 or 2, and a header padded to a multiple of 64.
std::string make_npy_header(std::string_view descr, std::span<const int64_t> dims);
// A whole file. Errors: unsupported.
struct NpyFile {
  std::string head;              // the header, and texts
  std::string_view tensor_data;  // elements of the tensor in memory order
};
Result<NpyFile> make_npy(const Tensor& tensor);

}  // namespace parallax::dump
