// SPDX-License-Identifier: Apache-2.0
// From the payload of a Tensor record to its value: the one function that holds a payload against the record's type.
#pragma once

#include <memory>
#include <span>

#include "inspector/base/result.h"
#include "inspector/exec/observer.h"
#include "inspector/tensor/channels_last.h"
#include "inspector/tensor/value.h"

namespace parallax::dump {

// The bytes of a payload, and what keeps them.
struct StoredPayload {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

// The description of its payload in a Tensor record.
struct StoredForm {
  const TypeInfo& type;
  CaptureLevel level = CaptureLevel::all;  // sample or all
  ElementOrder order = ElementOrder::row_major;
  int64_t sample_count = -1;
};

// A view of the payload where that is possible. Errors: corrupt_file, where the payload does not fit the form.
Result<Value> stored_value(const StoredForm& form, const StoredPayload& payload);

}  // namespace parallax::dump
