// SPDX-License-Identifier: Apache-2.0
// The operators of com.microsoft.nchwc, which onnxruntime's optimizer writes: each node becomes a call of a function
// that computes it with operators of ai.onnx.
#pragma once

#include <string_view>

#include "inspector/model/ir.h"

namespace parallax {

inline constexpr std::string_view kBlockedDomain = "com.microsoft.nchwc";

// Adds to the model a function for each of its nodes of com.microsoft.nchwc, which calls it by `overload`. A feature
// map [N, C, H, W] of that domain is stored as [N, C / block, H, W, block], C padded with zeros to whole blocks, and so
// is every value that the node gives. Nodes that are not as onnxruntime writes them stay without function, and thus
// unknown operators. The functions are not exported: a file gets the nodes as onnxruntime wrote them, and the block in
// the graph's metadata. Before resolve_operators.
void define_blocked_operators(Model& model);

// The channels of a block: 16 or 8, whichever the shapes in the model admit; where they admit both, the one that
// onnxruntime uses on this processor (16 with AVX-512 or on AArch64, else 8). onnxruntime's files do not store it; the
// metadata of the main graph may, under "parallax.channel_block".
int64_t channel_block_of(const Model& model);

}  // namespace parallax
