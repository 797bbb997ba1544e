// SPDX-License-Identifier: Apache-2.0
// Activations that the library of a GPU may apply to the sums of a product before it stores them. Nobody says what its
// ReLU makes of NaN, and which formula its GELU has: a queue asks its device, by a product of known sums, and leaves
// the activation to our own kernels where the answer is not theirs.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "inspector/tensor/tensor.h"

namespace parallax::runtime {

enum class Epilogue : uint8_t { none, relu, tanh_gelu };

struct EpilogueKind {
  Epilogue epilogue = Epilogue::none;
  DType dtype = DType::undefined;  // of the product's operands and result
  bool has_bias = false;
  bool keeps_sums = false;  // the activation's input, besides its results
  bool operator==(const EpilogueKind&) const = default;
  bool operator<(const EpilogueKind& other) const {
    return std::tie(epilogue, dtype, has_bias, keeps_sums) <
           std::tie(other.epilogue, other.dtype, other.has_bias, other.keeps_sums);
  }
};

// The probes' results so far, kept by a queue.
using KnownEpilogues = std::map<EpilogueKind, bool>;

// A product [rows, inner] x [inner, columns], and a bias of a row, of the type asked for. `sums` is what it comes to,
// bias included, exact in float; NaN, infinities, zero, large and small numbers of both signs are among them. -0 is
// not: sums begin at 0.
struct EpilogueProbe {
  static constexpr int64_t kRows = 16, kInner = 16, kColumns = 16;
  Tensor a, b, bias;
  std::vector<float> sums;
};
EpilogueProbe epilogue_probe(const EpilogueKind& kind);

// Our own activation of one sum, in float.
float activated(Epilogue epilogue, float sum);

// True where the library's results, a tensor of the kind's type on the host, are what our kernels would have stored:
// Relu to the bit, with NaN where there was NaN, Gelu within four units in the last place.
bool is_as_ours(const EpilogueKind& kind, const std::vector<float>& sums, const Tensor& results);

}  // namespace parallax::runtime
