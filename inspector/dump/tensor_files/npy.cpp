// SPDX-License-Identifier: Apache-2.0
// .npy files: elements into our order and back.
#include "inspector/dump/tensor_files/npy.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "inspector/base/checked_math.h"
#include "inspector/base/mapped_file.h"
#include "inspector/base/memory_budget.h"
#include "inspector/dump/tensor_files/npy_header.h"
#include "inspector/dump/tensor_files/utf32.h"
#include "inspector/tensor/string_texts.h"

namespace parallax {
namespace {

using dump::NpyHeader;

// For each element of a row-major tensor, in order, the index of the same element in a column-major array.
template <class Body>
void for_each_column_major(const Shape& shape, Body body) {
  std::vector<int64_t> strides(shape.rank());
  int64_t stride = 1;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  std::vector<int64_t> index(shape.rank(), 0);
  int64_t source = 0;
  for (int64_t element = 0; element < shape.element_count(); ++element) {
    body(static_cast<size_t>(element), static_cast<size_t>(source));
    for (size_t axis = shape.rank(); axis-- > 0;) {
      source += strides[axis];
      if (++index[axis] < shape[axis]) break;
      source -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

void copy_swapped(std::byte* target, const std::byte* source, size_t size, bool is_swapped) {
  if (is_swapped) {
    std::reverse_copy(source, source + size, target);
  } else {
    std::memcpy(target, source, size);
  }
}

Result<Tensor> read_text(const NpyHeader& header, const Shape& shape, const std::byte* data) {
  Tensor tensor = PX_TRY(Tensor::allocate(DType::string, shape));
  const auto strings = tensor.mutable_as<std::string>();
  Status status;
  const auto read = [&](size_t element, size_t source) {
    const std::span bytes(data + source * header.element_bytes, static_cast<size_t>(header.element_bytes));
    if (header.text_kind == 'U') {
      auto text = dump::utf8_from_utf32(bytes, header.is_big_endian);
      if (text.ok()) strings[element] = text.take();
      if (!text.ok() && status.ok()) status = text.error();
      return;
    }
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    strings[element] = text.substr(0, text.find_last_not_of('\0') + 1);
  };
  if (header.is_column_major) {
    for_each_column_major(shape, read);
  } else {
    for (size_t element = 0; element < strings.size(); ++element) read(element, element);
  }
  PX_TRY(std::move(status));
  return with_texts_charged(std::move(tensor));
}

// Copies and reorders; the parts of a complex number are swapped one by one.
Result<Tensor> read_reordered(const NpyHeader& header, const Shape& shape, const std::byte* data) {
  Tensor tensor = PX_TRY(Tensor::allocate(header.dtype, shape));
  const size_t size = header.element_bytes;
  const size_t parts = is_complex(header.dtype) ? 2 : 1;
  const size_t part_bytes = size / parts;
  std::byte* target = tensor.mutable_data();
  const auto copy = [&](size_t element, size_t source) {
    for (size_t part = 0; part < parts; ++part) {
      copy_swapped(target + element * size + part * part_bytes, data + source * size + part * part_bytes, part_bytes,
                   header.is_big_endian);
    }
  };
  if (header.is_column_major) {
    for_each_column_major(shape, copy);
  } else {
    for (size_t element = 0; element < static_cast<size_t>(shape.element_count()); ++element) copy(element, element);
  }
  return tensor;
}

std::string_view npy_code(DType dtype) {
  for (const dump::NpyType& type : dump::npy_types()) {
    if (type.dtype == dtype) return type.code;
  }
  return {};
}

Result<std::string> npy_of_strings(const Tensor& tensor) {
  std::vector<std::u32string> texts;
  size_t longest = 1;
  for (const std::string& text : tensor.as<std::string>()) {
    texts.push_back(PX_TRY(dump::utf32_from_utf8(text)));
    longest = std::max(longest, texts.back().size());
  }
  std::string file = dump::make_npy_header(fmt::format("<U{}", longest), tensor.shape().dims());
  for (std::u32string& text : texts) {
    text.resize(longest, U'\0');
    file.append(reinterpret_cast<const char*>(text.data()), longest * sizeof(char32_t));
  }
  return file;
}

}  // namespace

namespace dump {

Result<NpyFile> make_npy(const Tensor& tensor) {
  const std::string refusal = refusal_of_npy(tensor);
  if (!refusal.empty()) return unsupported(refusal);
  if (tensor.dtype() == DType::string) return NpyFile{PX_TRY(npy_of_strings(tensor)), {}};
  const std::string_view code = npy_code(tensor.dtype());
  NpyFile file;
  file.head =
      make_npy_header(fmt::format("{}{}", bits_of(tensor.dtype()) == 8 ? '|' : '<', code), tensor.shape().dims());
  file.tensor_data = {reinterpret_cast<const char*>(tensor.view().data), tensor.size_bytes()};
  return file;
}

}  // namespace dump

Result<Tensor> parse_npy(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner) {
  const NpyHeader header = PX_TRY(dump::parse_npy_header(bytes));
  const auto shape = Shape::create(header.dims);
  if (!shape.ok()) return corrupt_file(shape.error().message);
  const auto size = checked_mul(shape->element_count(), static_cast<int64_t>(header.element_bytes));
  const uint64_t available = bytes.size() - header.data_offset;
  if (!size.has_value() || static_cast<uint64_t>(*size) > available) {
    return corrupt_file(
        fmt::format("its shape {} needs more than the {} bytes that follow its header", shape->to_string(), available));
  }
  const std::byte* data = bytes.data() + header.data_offset;
  if (header.dtype == DType::string) {
    // Elements of no bytes would let a small file ask for any number of strings.
    if (header.element_bytes == 0 && shape->element_count() > static_cast<int64_t>(bytes.size()))
      return corrupt_file("its texts have no size; they must have one character or more");
    return read_text(header, *shape, data);
  }
  const bool is_bool = header.dtype == DType::bool_;
  if (is_bool && std::any_of(data, data + *size, [](std::byte element) { return std::to_integer<int>(element) > 1; })) {
    return corrupt_file("a bool element is neither 0 nor 1; it must be one of them");
  }
  const bool is_aligned = reinterpret_cast<uintptr_t>(data) % header.element_bytes == 0;
  if (header.is_column_major || header.is_big_endian || !is_aligned) return read_reordered(header, *shape, data);
  return Tensor::wrap(header.dtype, *shape, std::shared_ptr<const std::byte>(owner, data));
}

Result<Tensor> read_npy(const std::string& path) {
  const auto file = PX_TRY(MappedFile::open(path));
  const auto size = static_cast<int64_t>(file->bytes().size());
  const auto owner = PX_TRY(MemoryBudget::reserved_with(file, size, "'" + path + "'"));  // what is read stays in memory
  return PX_TRY_CONTEXT("'" + path + "'", parse_npy(file->bytes(), owner));
}

std::string refusal_of_npy(const Tensor& tensor) {
  if (tensor.dtype() == DType::string) {
    for (const std::string& text : tensor.as<std::string>()) {
      const auto codes = dump::utf32_from_utf8(text);
      if (!codes.ok()) return codes.error().message;
    }
    return {};
  }
  if (!npy_code(tensor.dtype()).empty()) return {};
  return fmt::format("numpy has no element type for {}; .safetensors, .onnx and test_data_set hold it",
                     name_of(tensor.dtype()));
}

Status write_npy(const std::string& path, const Tensor& tensor) {
  const dump::NpyFile file = PX_TRY_CONTEXT("'" + path + "'", dump::make_npy(tensor));
  const std::string_view pieces[] = {file.head, file.tensor_data};
  return write_file(path, pieces);
}

}  // namespace parallax
