// SPDX-License-Identifier: Apache-2.0
// Half precision: a model whose float32 tensors are float16 or bfloat16, but for what is asked to stay.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/io/export.h"
#include "inspector/model/ir.h"

namespace parallax::transform {

struct HalfRequest {
  DType to = DType::float16;      // or bfloat16
  std::vector<std::string> keep;  // nodes that stay in float32: names, paths ("loop.body[*]//add"), globs over either
  bool keep_io = false;           // inputs and outputs of the main graph stay float32
  // Large initializers get no elements yet: HalfConversion::deferred tells export_model how to write them. The model
  // cannot run before it is written and read again.
  bool defer_weights = false;
};

// A stored float32 tensor and the reason for its fate, a clause without its subject.
struct KeptWeight {
  std::string name;
  std::string reason;
};

struct HalfConversion {
  std::shared_ptr<Model> model;
  int64_t converted = 0;                              // nodes that read or give the narrow type
  int64_t kept = 0;                                   // nodes that could, and stay in float32
  std::vector<std::string> without_half;              // paths of nodes whose operator has no such type
  int64_t casts = 0, casts_before = 0;                // Cast nodes of all graphs and functions
  int64_t weight_bytes = 0, weight_bytes_before = 0;  // stored tensors of any type
  std::vector<KeptWeight> kept_weights;
  std::vector<KeptWeight>
      infinite_weights;  // whose elements beyond the range are infinite now, as a mask's lowest float
  DeferredTensors deferred;
};

// The rule for an entry of HalfRequest::keep, for messages.
inline constexpr std::string_view kNodesToKeep =
    "it must be a node's name, its path in a body, or a glob over these (parallax show MODEL lists the nodes)";

// Indices of the entries of HalfRequest::keep that name no node of the model.
std::vector<size_t> entries_without_node(const Model& model, const std::vector<std::string>& entries);

// float32 tensors become `to`: weights, Constants, values, types named by attributes, in bodies and functions too.
// Casts stand on edges between both types, at most one for each value; operators that only move elements take the side
// that needs the fewest casts of the smallest tensors. A weight that is read in both types is stored once, in float32.
// A weight that `to` cannot hold is not changed, and its readers stay in float32. Types that are neither float32 nor
// asked for stay as they are. Errors: usage (an entry of `keep` that names no node, another type), unsupported (an
// operator set without bfloat16), invalid_model.
Result<HalfConversion> to_half(const Model& model, const HalfRequest& request);

}  // namespace parallax::transform
