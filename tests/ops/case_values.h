// SPDX-License-Identifier: Apache-2.0
// Values and types of cases, as JSON has them: {"type": "float32[2,3]", "values": [...]}.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "inspector/base/result.h"
#include "inspector/tensor/value.h"

namespace parallax::tests {

using Json = nlohmann::ordered_json;

// As to_string(TypeInfo) prints it: "float32[2,3]", "seq(float32)", "optional(seq(int64))", "map(string,float32)". A
// dimension may be a name or "?"; without brackets the rank is unknown.
Result<TypeInfo> parse_type(const std::string& text);

// Tensors: "values" are the elements in row-major order: numbers, "nan", "inf", "-inf", strings, booleans, pairs for
// complex numbers. Sequences and optionals: "items" are values. Maps: "keys" and "items". null is no value.
Result<Value> value_from_json(const Json& json);

}  // namespace parallax::tests
