// SPDX-License-Identifier: Apache-2.0
// The *_data fields of TensorProto: which field holds which element type, and how. Private to this folder.
#pragma once

#include <memory>

#include "inspector/base/result.h"
#include "inspector/tensor/tensor.h"

namespace parallax {

namespace proto {
class TensorProto;
}

// Bytes that `owner` keeps alive as a tensor: viewed where they are aligned to the element size, else copied. Bits of
// no meaning after the last element of a packed type are zeroed in a copy. Errors: a size other than dtype and shape
// need, a bool that is neither 0 nor 1.
Result<Tensor> adopt_payload(DType dtype, const Shape& shape, std::span<const std::byte> bytes,
                             std::shared_ptr<const void> owner);

// The payload of the typed field that suits `dtype`, taken out of the message. Errors: wrong count, an entry out of
// range.
Result<Tensor> take_typed_payload(DType dtype, const Shape& shape, proto::TensorProto& message);
void put_typed_payload(const TensorView& tensor, proto::TensorProto& out);

// True when any *_data field but raw_data has entries.
bool has_typed_payload(const proto::TensorProto& message);

}  // namespace parallax
