// SPDX-License-Identifier: Apache-2.0
// The output of `tensor`: the list of a dump's values, or one value's elements, statistics and histogram.
#pragma once

#include <string>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/dump/dump_reader.h"

namespace parallax {

std::string value_list_to_text(const DumpReader& dump);
std::string value_list_to_json(const DumpReader& dump);

// Counts of finite elements in equal bins between the smallest and the largest of them.
struct ElementHistogram {
  double low = 0;
  double high = 0;
  std::vector<int64_t> counts;
};
ElementHistogram make_histogram(const TensorView& tensor, size_t bins = 20);

struct TensorViewOptions {
  std::string slice;
  bool statistics_only = false;
  bool histogram = false;
};

// The index of the value called `path`. Errors: usage, with near misses.
Result<int32_t> find_entry(const DumpReader& dump, const std::string& path);

// Text prints at most 1,000 elements and says how many it left out; JSON holds all, flat in row-major order, and the
// shape of what the slice selects. A value whose payload was not kept shows what is there: shape and statistics.
Result<std::string> tensor_to_text(const DumpReader& dump, int32_t entry, const TensorViewOptions& options);
Result<std::string> tensor_to_json(const DumpReader& dump, int32_t entry, const TensorViewOptions& options);

// The selected elements, for writing elsewhere. Errors: usage for values that are no tensor or were not kept whole.
Result<Tensor> selected_tensor(const DumpReader& dump, int32_t entry, const std::string& slice);

}  // namespace parallax
