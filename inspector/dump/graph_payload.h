// SPDX-License-Identifier: Apache-2.0
// A model without its weights, as the payload of a Graph record.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"

namespace parallax::dump {

// A tensor that was left out: its index among the model's tensors (graph_payload.cpp gives the order), and its type.
using LeftOut = std::vector<std::pair<uint32_t, TypeInfo>>;

struct GraphPayload {
  std::string bytes;
  LeftOut left_out;
};

Result<GraphPayload> encode_graph(const Model& model);
// `description` stands for the path in messages. Errors: corrupt_file.
Result<std::shared_ptr<const Model>> decode_graph_payload(std::span<const std::byte> bytes, const LeftOut& left_out,
                                                          const std::string& description);

}  // namespace parallax::dump
