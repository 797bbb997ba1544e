// SPDX-License-Identifier: Apache-2.0
// Values whose tensors are on a device, brought into host memory.
#pragma once

#include <functional>

#include "inspector/base/result.h"
#include "inspector/tensor/value.h"

namespace parallax::dump {

using DeviceCopy = std::function<Status(const TensorView& source, void* stream, std::byte* target)>;

// The value itself where all of it is on the host already. Errors: unsupported without a copy function; those of the
// copy.
Result<Value> on_host(const Value& value, void* stream, const DeviceCopy& copy_from_device);

}  // namespace parallax::dump
