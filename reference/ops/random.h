// SPDX-License-Identifier: Apache-2.0
// Random numbers of the reference: one stated generator, so that a run can be repeated anywhere.
// The generator is MT19937 (Matsumoto and Nishimura, 1998) started by its init_genrand from 32 bits: std::mt19937.
// Uniform numbers are its genrand_res53; normal ones come from them by Marsaglia's polar method. numpy's RandomState
// does the same, so that numbers with a seed are those of onnx's own evaluator.
#pragma once

#include <cstdint>
#include <random>

#include "reference/ops/op_context.h"

namespace parallax::reference {

class RandomSource {
 public:
  // From the attribute `seed`, cut to a whole number modulo 2^32; where it is not given, from the path of the node, so
  // that every run draws the same. In a body or step the frames are mixed in: each iteration draws anew.
  static RandomSource of(const OpContext& op);
  explicit RandomSource(uint32_t seed) : engine_(seed) {}

  double uniform();  // [0, 1), a multiple of 2^-53
  double normal();   // mean 0, deviation 1

 private:
  std::mt19937 engine_;
  double second_normal_ = 0;
  bool has_second_ = false;
};

}  // namespace parallax::reference
