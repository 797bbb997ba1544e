// SPDX-License-Identifier: Apache-2.0
// Decoding and encoding of typed payloads, by the table in the format's description of TensorProto.
#include "inspector/model/io/tensor_payload.h"

#include <algorithm>
#include <limits>

#include "inspector/base/memory_budget.h"
#include "inspector/model/onnx.pb.h"
#include "inspector/tensor/string_texts.h"

namespace parallax {
namespace {

using google::protobuf::RepeatedField;

Error wrong_size(std::string_view unit, size_t found, size_t needed, DType dtype, const Shape& shape) {
  return invalid_model("holds " + std::to_string(found) + " " + std::string(unit) + " where " +
                       std::string(name_of(dtype)) + shape.to_string() + " needs " + std::to_string(needed));
}

bool has_stray_bits(DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  const int64_t used = shape.element_count() * bits_of(dtype) % 8;
  return used != 0 && (static_cast<unsigned>(bytes.back()) >> used) != 0;
}

Status check_bools(std::span<const std::byte> bytes) {
  const auto wrong = std::ranges::find_if(bytes, [](std::byte byte) { return byte > std::byte{1}; });
  if (wrong == bytes.end()) return {};
  return invalid_model("holds a bool of value " + std::to_string(static_cast<int>(*wrong)) + " at element " +
                       std::to_string(wrong - bytes.begin()) + ", neither 0 nor 1");
}

Result<Tensor> copy_payload(DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  Tensor tensor = PX_TRY(Tensor::allocate(dtype, shape));
  std::ranges::copy(bytes, tensor.mutable_data());
  if (!bytes.empty() && has_stray_bits(dtype, shape, bytes)) {
    const int64_t used = shape.element_count() * bits_of(dtype) % 8;
    tensor.mutable_data()[bytes.size() - 1] &= static_cast<std::byte>((1 << used) - 1);
  }
  return tensor;
}

// A typed field whose entries are the elements, or their parts, in memory order.
template <class Entry>
Result<Tensor> take_field(DType dtype, const Shape& shape, RepeatedField<Entry>& field) {
  const size_t needed = byte_size(dtype, shape.element_count()) / sizeof(Entry);
  const auto found = static_cast<size_t>(field.size());
  if (found != needed) return wrong_size("entries", found, needed, dtype, shape);
  const auto owner = std::make_shared<RepeatedField<Entry>>(std::move(field));
  field.Clear();
  const auto* data = reinterpret_cast<const std::byte*>(owner->data());
  return adopt_payload(dtype, shape, {data, found * sizeof(Entry)}, owner);
}

// True for numbers whose low bits are the element: those of the element's type, and those that a writer took for a
// signed or unsigned one of as many bits (a byte of packed int4 as -115).
template <class Element, class Entry>
bool fits_bits(Entry entry) {
  return std::in_range<std::make_signed_t<Element>>(entry) || std::in_range<std::make_unsigned_t<Element>>(entry);
}

// A typed field whose entries are wider than the elements (or than the bytes of a packed type): each must fit. Of a
// bool any number but 0 is true.
template <class Element, class Entry>
Result<Tensor> narrow_field(DType dtype, const Shape& shape, RepeatedField<Entry>& field) {
  const size_t needed = byte_size(dtype, shape.element_count()) / sizeof(Element);
  if (static_cast<size_t>(field.size()) != needed) {
    return wrong_size("entries", static_cast<size_t>(field.size()), needed, dtype, shape);
  }
  Tensor tensor = PX_TRY(Tensor::allocate(dtype, shape));
  auto* out = reinterpret_cast<Element*>(tensor.mutable_data());
  for (int i = 0; i < field.size(); ++i) {
    const Entry entry = dtype == DType::bool_ ? Entry{field.Get(i) != 0} : field.Get(i);
    if (!fits_bits<Element>(entry)) {
      return invalid_model("holds " + std::to_string(entry) + " at entry " + std::to_string(i) + ", which is no " +
                           std::string(name_of(dtype)));
    }
    out[i] = static_cast<Element>(entry);
  }
  field.Clear();
  if (dtype == DType::bool_) PX_TRY(check_bools(tensor.view().bytes()));
  const auto bytes = tensor.view().bytes();
  if (!bytes.empty() && has_stray_bits(dtype, shape, bytes)) return copy_payload(dtype, shape, bytes);
  return tensor;
}

Result<Tensor> take_strings(const Shape& shape, proto::TensorProto& message) {
  const int64_t found = message.string_data_size();
  if (found != shape.element_count()) {
    return wrong_size("strings", static_cast<size_t>(found), static_cast<size_t>(shape.element_count()), DType::string,
                      shape);
  }
  Tensor tensor = PX_TRY(Tensor::allocate(DType::string, shape));
  std::ranges::move(*message.mutable_string_data(), tensor.mutable_as<std::string>().begin());
  message.clear_string_data();
  return with_texts_charged(std::move(tensor));
}

template <class Element, class Entry>
void put_field(const TensorView& tensor, RepeatedField<Entry>& field) {
  const size_t count = tensor.size_bytes() / sizeof(Element);
  const auto* elements = reinterpret_cast<const Element*>(tensor.data);
  field.Reserve(static_cast<int>(count));
  for (size_t i = 0; i < count; ++i) field.Add(static_cast<Entry>(elements[i]));
}

}  // namespace

Result<Tensor> adopt_payload(DType dtype, const Shape& shape, std::span<const std::byte> bytes,
                             std::shared_ptr<const void> owner) {
  const size_t needed = byte_size(dtype, shape.element_count());
  if (bytes.size() != needed) return wrong_size("bytes", bytes.size(), needed, dtype, shape);
  if (dtype == DType::bool_) PX_TRY(check_bools(bytes));
  const auto alignment = static_cast<size_t>(std::max(bits_of(dtype) / 8, 1));
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0;
  if (!aligned || bytes.empty() || has_stray_bits(dtype, shape, bytes)) return copy_payload(dtype, shape, bytes);
  owner = PX_TRY(MemoryBudget::reserved_with(std::move(owner), static_cast<int64_t>(bytes.size()), "its data"));
  return Tensor::wrap(dtype, shape, std::shared_ptr<const std::byte>(std::move(owner), bytes.data()));
}

Result<Tensor> take_typed_payload(DType dtype, const Shape& shape, proto::TensorProto& message) {
  switch (dtype) {
    case DType::float32:
    case DType::complex64:
      return take_field(dtype, shape, *message.mutable_float_data());
    case DType::float64:
    case DType::complex128:
      return take_field(dtype, shape, *message.mutable_double_data());
    case DType::int64:
      return take_field(dtype, shape, *message.mutable_int64_data());
    case DType::uint64:
      return take_field(dtype, shape, *message.mutable_uint64_data());
    case DType::uint32:
      return narrow_field<uint32_t>(dtype, shape, *message.mutable_uint64_data());
    case DType::int32:
      return take_field(dtype, shape, *message.mutable_int32_data());
    case DType::int8:
      return narrow_field<int8_t>(dtype, shape, *message.mutable_int32_data());
    case DType::int16:
      return narrow_field<int16_t>(dtype, shape, *message.mutable_int32_data());
    case DType::uint16:
    case DType::float16:
    case DType::bfloat16:
      return narrow_field<uint16_t>(dtype, shape, *message.mutable_int32_data());
    case DType::string:
      return take_strings(shape, message);
    default:  // bool, uint8, and bytes of 8-bit floats and packed types
      return narrow_field<uint8_t>(dtype, shape, *message.mutable_int32_data());
  }
}

void put_typed_payload(const TensorView& tensor, proto::TensorProto& out) {
  switch (tensor.dtype) {
    case DType::float32:
    case DType::complex64:
      put_field<float>(tensor, *out.mutable_float_data());
      break;
    case DType::float64:
    case DType::complex128:
      put_field<double>(tensor, *out.mutable_double_data());
      break;
    case DType::int64:
      put_field<int64_t>(tensor, *out.mutable_int64_data());
      break;
    case DType::uint64:
      put_field<uint64_t>(tensor, *out.mutable_uint64_data());
      break;
    case DType::uint32:
      put_field<uint32_t>(tensor, *out.mutable_uint64_data());
      break;
    case DType::int32:
      put_field<int32_t>(tensor, *out.mutable_int32_data());
      break;
    case DType::int8:
      put_field<int8_t>(tensor, *out.mutable_int32_data());
      break;
    case DType::int16:
      put_field<int16_t>(tensor, *out.mutable_int32_data());
      break;
    case DType::uint16:
    case DType::float16:
    case DType::bfloat16:
      put_field<uint16_t>(tensor, *out.mutable_int32_data());
      break;
    case DType::string:
      for (const std::string& text : tensor.as<std::string>()) out.add_string_data(text);
      break;
    default:
      put_field<uint8_t>(tensor, *out.mutable_int32_data());
  }
}

bool has_typed_payload(const proto::TensorProto& message) {
  return message.float_data_size() + message.int32_data_size() + message.string_data_size() +
             message.int64_data_size() + message.double_data_size() + message.uint64_data_size() >
         0;
}

}  // namespace parallax
