// SPDX-License-Identifier: Apache-2.0
// Merge: a decoder's first step and its later steps as one model, an If on a condition, with every weight stored once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"

namespace parallax::transform {

// Two weights are one where their content is equal: type, shape and bytes.
struct WeightCounts {
  int64_t shared = 0;  // read by both branches
  int64_t only_first = 0;
  int64_t only_second = 0;
  int64_t first_bytes = 0;  // of each model as it was
  int64_t second_bytes = 0;
  int64_t merged_bytes = 0;
};

struct RenamedItem {
  std::string kind;   // "weight", "value", "function"
  std::string model;  // path of the model that used the old name
  std::string from, to;
};

struct MergedDecoders {
  std::shared_ptr<Model> model;
  std::string condition;
  WeightCounts weights;
  std::vector<std::string> passed_through;  // outputs that `later` lacks: they are its past, unchanged
  std::vector<RenamedItem> renamed;
};

// The model whose input `condition` (bool [1]) chooses: true runs `later`, which reads a cache, false runs `first`,
// which makes it. Inputs are those of `later`, then those that `first` alone has, then the condition; a name stands for
// one input. An input that one branch alone reads is not looked at by the other, and no dimension but its first is tied
// to those of inputs that both read: a cache of length 0 fits. Outputs are those of `first`. Names of `later` stay;
// where the two use a name for different things, the branch of `first` gets another one.
//
// Errors: usage, where the condition is the name of an input, and where `later` reads no cache that `first` does not
// read: the models are swapped, or one is given twice. Unsupported, where the operator sets differ, a shared input or
// output differs in type, `later` has an output that `first` lacks, or an output that `later` lacks has no past among
// its inputs.
Result<MergedDecoders> merge_decoders(const Model& first, const Model& later, const std::string& condition);

}  // namespace parallax::transform
