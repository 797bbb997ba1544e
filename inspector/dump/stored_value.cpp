// SPDX-License-Identifier: Apache-2.0
// Tensors, samples, tensors in NHWC order and nested values.
#include "inspector/dump/stored_value.h"

#include <fmt/format.h>

#include "inspector/dump/dump_reader.h"
#include "inspector/dump/payload.h"

namespace parallax::dump {
namespace {

// The row-major payload of a tensor of this type, from a channels-last one.
Result<StoredPayload> permuted_payload(const TypeInfo& type, const StoredPayload& payload) {
  const Shape shape = PX_TRY(captured_shape(type));
  const DType dtype = type.dtype;
  if (type.kind != TypeInfo::Kind::tensor || !can_be_channels_last(dtype, shape))
    return corrupt_file(fmt::format(
        "a payload of type {} cannot be channels last; it must be a tensor of rank 3 or more", to_string(type)));
  const Tensor stored = PX_TRY(read_tensor(dtype, shape, payload.bytes, payload.owner));
  const Tensor permuted = PX_TRY(read_row_major(Tensor::wrap(dtype, shape, stored.storage(), kChannelsLast)));
  return StoredPayload{{permuted.view().data, permuted.size_bytes()}, permuted.storage()};
}

}  // namespace

Result<Value> stored_value(const StoredForm& form, const StoredPayload& payload) {
  if (form.order == ElementOrder::channels_last) {
    const StoredPayload permuted = PX_TRY(permuted_payload(form.type, payload));
    return stored_value({form.type, form.level, ElementOrder::row_major, form.sample_count}, permuted);
  }
  if (form.type.kind != TypeInfo::Kind::tensor) return read_tree(payload.bytes, payload.owner);
  const auto shape =
      form.level == CaptureLevel::sample ? Shape::create({{form.sample_count}}) : captured_shape(form.type);
  if (!shape.ok()) return corrupt_file(shape.error().message);
  return Value(PX_TRY(read_tensor(form.type.dtype, *shape, payload.bytes, payload.owner)));
}

}  // namespace parallax::dump
