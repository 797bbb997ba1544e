// SPDX-License-Identifier: Apache-2.0
// The layout of a Value in a payload: raw elements for tensors, a coded tree and aligned contents for everything else.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/dump/fields.h"
#include "inspector/tensor/value.h"

namespace parallax::dump {

// The layout of a value on the host, ready to be written. The value must outlive it.
class PayloadLayout {
 public:
  explicit PayloadLayout(const Value& value);
  uint64_t size_bytes() const { return size_bytes_; }
  void write(std::byte* target) const;  // size_bytes() long

 private:
  struct Piece {
    const Tensor* tensor;
    uint64_t offset;
  };
  void add_node(const Value& value);
  void add_tensor(const Tensor& tensor);

  ByteWriter tree_;              // offsets relative to the first piece until write()
  std::vector<size_t> patches_;  // positions in tree_ that hold such offsets
  std::vector<Piece> pieces_;
  uint64_t pieces_begin_ = 0;
  uint64_t pieces_bytes_ = 0;
  uint64_t size_bytes_ = 0;
};

// Bytes of a tensor's content in a payload: its elements, or ends and characters of strings.
uint64_t stored_bytes(const Tensor& tensor);
void write_tensor(const Tensor& tensor, std::byte* target);

// The tensor whose content is `bytes`; a view kept alive by `owner` unless it holds strings. Errors: corrupt_file.
Result<Tensor> read_tensor(DType dtype, const Shape& shape, std::span<const std::byte> bytes,
                           const std::shared_ptr<const void>& owner);
// The value of a payload written through PayloadLayout. Errors: corrupt_file.
Result<Value> read_tree(std::span<const std::byte> payload, const std::shared_ptr<const void>& owner);

}  // namespace parallax::dump
