// SPDX-License-Identifier: Apache-2.0
// Why a binary message could not be parsed, which protobuf itself does not say. Private to this folder.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace google::protobuf {
class Descriptor;
}

namespace parallax {

// One clause to stand after the file's name: "is cut off: graph.node.op_type at byte 812 is said to ...". For bytes
// that protobuf refused to read as `type` with nesting limited to `max_depth` messages.
std::string diagnose_wire(std::span<const std::byte> bytes, const google::protobuf::Descriptor& type, int max_depth);

}  // namespace parallax
