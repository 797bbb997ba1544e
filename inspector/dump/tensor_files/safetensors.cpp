// SPDX-License-Identifier: Apache-2.0
// .safetensors files: u64 size of a JSON header, the header, and the payloads, which must cover the rest without gap or
// overlap.
#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/base/mapped_file.h"
#include "inspector/base/memory_budget.h"
#include "inspector/dump/tensor_files/npy.h"

namespace parallax {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the format's own library

struct NamedType {
  std::string_view name;
  DType dtype;
};
constexpr std::array<NamedType, 20> kTypes = {{
    {"BOOL", DType::bool_},
    {"U8", DType::uint8},
    {"I8", DType::int8},
    {"U16", DType::uint16},
    {"I16", DType::int16},
    {"U32", DType::uint32},
    {"I32", DType::int32},
    {"U64", DType::uint64},
    {"I64", DType::int64},
    {"F16", DType::float16},
    {"BF16", DType::bfloat16},
    {"F32", DType::float32},
    {"F64", DType::float64},
    {"C64", DType::complex64},
    {"F8_E4M3", DType::float8e4m3fn},
    {"F8_E5M2", DType::float8e5m2},
    {"F8_E4M3FNUZ", DType::float8e4m3fnuz},
    {"F8_E5M2FNUZ", DType::float8e5m2fnuz},
    {"F8_E8M0", DType::float8e8m0},
    {"F4", DType::float4e2m1},
}};

struct Extent {
  uint64_t begin;
  uint64_t end;
};

Result<Extent> read_extent(const Json& tensor, uint64_t available) {
  const auto offsets = tensor.find("data_offsets");
  const bool is_pair = offsets != tensor.end() && offsets->is_array() && offsets->size() == 2 &&
                       (*offsets)[0].is_number_unsigned() && (*offsets)[1].is_number_unsigned();
  if (!is_pair) return corrupt_file("'data_offsets' is no pair of numbers; it must be [begin, end]");
  const Extent extent{(*offsets)[0].get<uint64_t>(), (*offsets)[1].get<uint64_t>()};
  if (extent.begin > extent.end || extent.end > available)
    return corrupt_file(
        fmt::format("its offsets {} to {} are outside of the file; they must ascend and end at {} at most",
                    extent.begin, extent.end, available));
  return extent;
}

Result<Shape> read_shape(const Json& tensor) {
  const auto found = tensor.find("shape");
  if (found == tensor.end() || !found->is_array())
    return corrupt_file("'shape' is no list; it must be a list of sizes");
  std::vector<int64_t> dims;
  for (const Json& dim : *found) {
    if (!dim.is_number_unsigned() || dim.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
      return corrupt_file("'shape' holds no size; each entry must be a whole number of 0 or more");
    dims.push_back(dim.get<int64_t>());
  }
  auto shape = Shape::create(dims);
  if (!shape.ok()) return corrupt_file(shape.error().message);
  return shape;
}

Result<DType> read_dtype(const Json& tensor) {
  const auto found = tensor.find("dtype");
  if (found == tensor.end() || !found->is_string())
    return corrupt_file("'dtype' is no text; it must name an element type, as \"F32\"");
  const auto& name = found->get_ref<const std::string&>();
  for (const NamedType& type : kTypes) {
    if (type.name == name) return type.dtype;
  }
  return unsupported("its element type '" + name.substr(0, 40) + "' is not known; save it as a type that ONNX has");
}

Result<Tensor> make_tensor(DType dtype, const Shape& shape, std::span<const std::byte> bytes,
                           const std::shared_ptr<const void>& owner) {
  if (bytes.size() != byte_size(dtype, shape.element_count()))
    return corrupt_file(fmt::format("{} bytes do not make {}{}, which needs {}", bytes.size(), name_of(dtype),
                                    shape.to_string(), byte_size(dtype, shape.element_count())));
  if (dtype == DType::bool_ &&
      std::ranges::any_of(bytes, [](std::byte element) { return std::to_integer<int>(element) > 1; })) {
    return corrupt_file("a bool element is neither 0 nor 1; it must be one of them");
  }
  const auto alignment = static_cast<size_t>(std::max(bits_of(dtype) / 8, 1));
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0) {
    return Tensor::wrap(dtype, shape, std::shared_ptr<const std::byte>(owner, bytes.data()));
  }
  Tensor tensor = PX_TRY(Tensor::allocate(dtype, shape));
  std::memcpy(tensor.mutable_data(), bytes.data(), bytes.size());
  return tensor;
}

Status check_cover(std::vector<Extent> extents, uint64_t available) {
  std::ranges::sort(
      extents, [](const Extent& a, const Extent& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
  uint64_t position = 0;
  for (const Extent& extent : extents) {
    if (extent.begin < position)
      return corrupt_file(
          fmt::format("two tensors share bytes {} to {}; each must have its own", extent.begin, position));
    if (extent.begin > position)
      return corrupt_file(fmt::format(
          "bytes {} to {} belong to no tensor; tensors must follow one another without gaps", position, extent.begin));
    position = extent.end;
  }
  if (position != available)
    return corrupt_file(
        fmt::format("bytes {} to {} belong to no tensor; the last one must end with the file", position, available));
  return {};
}

std::string_view name_in_file(DType dtype) {
  for (const NamedType& type : kTypes) {
    if (type.dtype == dtype) return type.name;
  }
  return {};
}

}  // namespace

Result<std::vector<NamedValue>> parse_safetensors(std::span<const std::byte> bytes,
                                                  const std::shared_ptr<const void>& owner) {
  uint64_t header_bytes = 0;
  if (bytes.size() < sizeof header_bytes)
    return corrupt_file(fmt::format("it is too short for a .safetensors file: {} bytes, at least {} are needed",
                                    bytes.size(), sizeof header_bytes));
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  if (header_bytes > kMaxHeaderBytes || header_bytes > bytes.size() - sizeof header_bytes) {
    return corrupt_file("it is no .safetensors file: its header would be longer than the file or than 100 MB");
  }
  const auto text = bytes.subspan(sizeof header_bytes, static_cast<size_t>(header_bytes));
  const auto data = bytes.subspan(sizeof header_bytes + static_cast<size_t>(header_bytes));
  const auto* begin = reinterpret_cast<const char*>(text.data());
  const Json header = Json::parse(begin, begin + text.size(), nullptr, false);
  if (!header.is_object()) return corrupt_file("its header is no JSON object; it must describe each tensor by name");
  std::vector<NamedValue> values;
  std::vector<Extent> extents;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    const std::string context = "tensor '" + name + "'";
    if (!tensor.is_object())
      return corrupt_file(context + " is not described by an object; it must have dtype, shape and data_offsets");
    const DType dtype = PX_TRY_CONTEXT(context, read_dtype(tensor));
    const Shape shape = PX_TRY_CONTEXT(context, read_shape(tensor));
    const Extent extent = PX_TRY_CONTEXT(context, read_extent(tensor, data.size()));
    const auto payload =
        data.subspan(static_cast<size_t>(extent.begin), static_cast<size_t>(extent.end - extent.begin));
    Tensor made = PX_TRY_CONTEXT(context, make_tensor(dtype, shape, payload, owner));
    values.push_back({name, std::move(made)});
    extents.push_back(extent);
  }
  PX_TRY(check_cover(std::move(extents), data.size()));
  return values;
}

Result<std::vector<NamedValue>> read_safetensors(const std::string& path) {
  const auto file = PX_TRY(MappedFile::open(path));
  const auto size = static_cast<int64_t>(file->bytes().size());
  const auto owner = PX_TRY(MemoryBudget::reserved_with(file, size, "'" + path + "'"));  // what is read stays in memory
  return PX_TRY_CONTEXT("'" + path + "'", parse_safetensors(file->bytes(), owner));
}

std::string refusal_of_safetensors(const Tensor& tensor) {
  if (!name_in_file(tensor.dtype()).empty()) return {};
  return fmt::format(".safetensors has no element type for {}; .onnx and test_data_set hold it",
                     name_of(tensor.dtype()));
}

Status write_safetensors(const std::string& path, std::span<const NamedValue> values) {
  const std::string context = "'" + path + "'";
  // Wide elements first: then every payload is aligned to its element.
  std::vector<const NamedValue*> ordered;
  for (const NamedValue& value : values) {
    if (!value.value.is_tensor())
      return unsupported(context + ": value '" + value.name + "' is no tensor; only tensors can be written");
    const std::string refusal = refusal_of_safetensors(value.value.tensor());
    if (!refusal.empty()) return unsupported(context + ": value '" + value.name + "': " + refusal);
    ordered.push_back(&value);
  }
  std::ranges::stable_sort(ordered, std::greater(),
                           [](const NamedValue* value) { return bits_of(value->value.tensor().dtype()); });
  Json header = Json::object();
  std::vector<std::string_view> pieces(2);  // size and text of the header come first
  uint64_t end = 0;
  for (const NamedValue* value : ordered) {
    const Tensor& tensor = value->value.tensor();
    const uint64_t begin = end;
    end += tensor.size_bytes();
    pieces.emplace_back(reinterpret_cast<const char*>(tensor.view().data), tensor.size_bytes());
    if (header.contains(value->name))
      return usage_error(context + ": two values are named '" + value->name + "'; each name must be there once");
    header[value->name] = {
        {"dtype", name_in_file(tensor.dtype())}, {"shape", tensor.shape().dims()}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t header_bytes = text.size();
  pieces[0] = {reinterpret_cast<const char*>(&header_bytes), sizeof header_bytes};
  pieces[1] = text;
  return write_file(path, pieces);
}

}  // namespace parallax
