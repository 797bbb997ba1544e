// SPDX-License-Identifier: Apache-2.0
// TensorProto and SparseTensorProto, between message and IR. Private to this folder.
#pragma once

#include "inspector/base/result.h"
#include "inspector/model/io/external_data.h"
#include "inspector/model/ir.h"

namespace parallax {

namespace proto {
class TensorProto;
class SparseTensorProto;
}  // namespace proto

// Reads a tensor out of its message. A payload that is aligned and needs no conversion is not copied: the tensor takes
// it over from the message, or views the mapped file. Errors name no file and no tensor.
Result<StoredTensor> take_tensor(proto::TensorProto& message, ExternalData& external);
Result<SparseTensor> take_sparse_tensor(proto::SparseTensorProto& message, ExternalData& external);

// The destination of a tensor's payload.
class PayloadSink {
 public:
  struct Location {
    std::string location;
    uint64_t offset = 0;
  };
  virtual ~PayloadSink() = default;
  // The location of a payload that was written to an external file; nothing for one that stays in the message.
  virtual Result<std::optional<Location>> write(const StoredTensor& tensor) = 0;
  // The float32 tensor that `tensor` is to be converted from while it is written; null where it holds its own elements.
  virtual const Tensor* source_of(const StoredTensor& /*tensor*/) const { return nullptr; }
};

// `sink` null: everything inline.
Status put_tensor(const StoredTensor& tensor, PayloadSink* sink, proto::TensorProto& out);
Status put_sparse_tensor(const SparseTensor& tensor, PayloadSink* sink, proto::SparseTensorProto& out);

}  // namespace parallax
