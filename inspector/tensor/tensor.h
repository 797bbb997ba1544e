// SPDX-License-Identifier: Apache-2.0
// Tensor: dtype, shape and a shared, contiguous, row-major payload on a device. TensorView: the same without ownership.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "inspector/base/check.h"
#include "inspector/base/result.h"
#include "inspector/tensor/dtype.h"
#include "inspector/tensor/float_formats.h"
#include "inspector/tensor/shape.h"

namespace parallax {

// The device of a payload. Only host payloads may be read through TensorView::as.
struct Device {
  enum class Kind : uint8_t { host, cuda };
  Kind kind = Kind::host;
  int32_t index = 0;
  bool is_host() const { return kind == Kind::host; }
  bool operator==(const Device&) const = default;
};

// The DType of a C++ element type; DType::undefined for types that are none. Packed and 8-bit float types are read as
// uint8_t.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::float32;
  if constexpr (std::is_same_v<T, double>) return DType::float64;
  if constexpr (std::is_same_v<T, Float16>) return DType::float16;
  if constexpr (std::is_same_v<T, BFloat16>) return DType::bfloat16;
  if constexpr (std::is_same_v<T, bool>) return DType::bool_;
  if constexpr (std::is_same_v<T, int8_t>) return DType::int8;
  if constexpr (std::is_same_v<T, int16_t>) return DType::int16;
  if constexpr (std::is_same_v<T, int32_t>) return DType::int32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::int64;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::uint8;
  if constexpr (std::is_same_v<T, uint16_t>) return DType::uint16;
  if constexpr (std::is_same_v<T, uint32_t>) return DType::uint32;
  if constexpr (std::is_same_v<T, uint64_t>) return DType::uint64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return DType::complex64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return DType::complex128;
  if constexpr (std::is_same_v<T, std::string>) return DType::string;
  return DType::undefined;
}

// Sub-byte types: element i occupies bits [i*bits, (i+1)*bits) of the payload, low bits first; unused high bits are
// zero. String payloads are an array of std::string.
struct TensorView {
  DType dtype = DType::undefined;
  Shape shape;
  const std::byte* data = nullptr;  // null only when there are no bytes
  Device device;

  int64_t element_count() const { return shape.element_count(); }
  size_t size_bytes() const { return byte_size(dtype, element_count()); }
  std::span<const std::byte> bytes() const { return {data, size_bytes()}; }

  // The elements as T, which must be the C++ type of dtype; uint8_t also gives the raw bytes of packed and 8-bit
  // floats.
  template <class T>
  std::span<const T> as() const {
    PX_CHECK(device.is_host());
    if constexpr (std::is_same_v<T, uint8_t>) {
      PX_CHECK(dtype != DType::string && bits_of(dtype) <= 8);
      return {reinterpret_cast<const T*>(data), size_bytes()};
    } else {
      PX_CHECK(dtype_of<T>() == dtype);
      return {reinterpret_cast<const T*>(data), static_cast<size_t>(element_count())};
    }
  }
};

// Copies share the payload. A payload reached through mutable_data() must not be shared (the maker of a tensor fills
// it, then hands it on); foreign payloads (a mapped file, a protobuf) are read-only.
class Tensor {
 public:
  static constexpr size_t kAlignment = 64;

  Tensor() = default;  // no tensor: dtype undefined

  // Uninitialized payload on the host, 64-byte aligned (strings are constructed empty). Errors: out_of_memory.
  static Result<Tensor> allocate(DType dtype, const Shape& shape);
  static Result<Tensor> zeros(DType dtype, const Shape& shape);
  // Zeros that take no memory, read-only: in place of elements that are not at hand. Of a numeric type. Errors:
  // out_of_memory, without address space for them.
  static Result<Tensor> zero_pages(DType dtype, const Shape& shape);

  // A payload that `data` keeps alive: weights in a mapped file, device memory with its own deleter. Host payloads must
  // be aligned to the element size.
  static Tensor wrap(DType dtype, const Shape& shape, std::shared_ptr<const std::byte> data, Device device = {});

  // From values; out of memory is a PX_CHECK: for small tensors.
  template <class T>
  static Tensor from(const Shape& shape, std::span<const T> values) {
    PX_CHECK(static_cast<int64_t>(values.size()) == shape.element_count());
    Tensor tensor = allocate(dtype_of<T>(), shape).take();
    std::copy(values.begin(), values.end(), reinterpret_cast<T*>(tensor.data_.get()));
    return tensor;
  }
  template <class T>
  static Tensor scalar(T value) {
    return from<T>(Shape{}, std::span<const T>(&value, 1));
  }
  template <class T>
  static Tensor vector(std::span<const T> values) {
    return from<T>(Shape{static_cast<int64_t>(values.size())}, values);
  }

  bool defined() const { return view_.dtype != DType::undefined; }
  DType dtype() const { return view_.dtype; }
  const Shape& shape() const { return view_.shape; }
  Device device() const { return view_.device; }
  int64_t element_count() const { return view_.element_count(); }
  size_t size_bytes() const { return view_.size_bytes(); }
  const TensorView& view() const { return view_; }
  operator const TensorView&() const { return view_; }
  template <class T>
  std::span<const T> as() const {
    return view_.as<T>();
  }
  const std::shared_ptr<std::byte>& storage() const { return data_; }

  // For whoever fills a fresh tensor.
  std::byte* mutable_data() {
    PX_CHECK(!read_only_);
    return data_.get();
  }
  template <class T>
  std::span<T> mutable_as() {
    const auto constant = view_.as<T>();
    PX_CHECK(!read_only_);
    return {const_cast<T*>(constant.data()), constant.size()};
  }

  // A view of the same payload under another shape of equal element count.
  Tensor reshaped(const Shape& shape) const;
  // A deep copy on the host (the payload must be on the host).
  Result<Tensor> clone() const;

 private:
  TensorView view_;
  std::shared_ptr<std::byte> data_;
  bool read_only_ = false;
};

}  // namespace parallax
