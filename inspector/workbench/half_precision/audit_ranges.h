// SPDX-License-Identifier: Apache-2.0
// Ranges of float32 tensors as an audit needs them, taken while a model runs.
#pragma once

#include <cstdint>
#include <vector>

#include "inspector/exec/observer.h"

namespace parallax::audit {

// The range of all tensors that one value slot held in one run.
struct ValueRange {
  bool is_seen = false;
  int64_t count = 0, beyond = 0, below = 0, not_finite = 0;
  int64_t lowest = 0;                  // of `beyond`: at the lowest float32, as masks are
  float largest = 0;                   // magnitude of finite elements
  float smallest = 0;                  // magnitude of finite elements that are not 0; 0 where there are none
  bool has_integers = false;           // every finite element is one; only with kIntegers
  double row_norm = 0;                 // the largest l2 norm along the last axis; with kRows
  double column_norm = 0;              // along the last but one axis; with kColumns
  double row_sum = 0;                  // the largest sum of magnitudes along the last axis; with kRows
  double norm = 0, sum = 0;            // of all elements; with kRows or kColumns
  int64_t last_dim = 0, elements = 0;  // of one tensor
};

// The data of a slot that are wanted besides ranges.
enum Wanted : uint8_t { kNothingElse = 0, kIntegers = 1, kRows = 2, kColumns = 4 };

struct RangeLimits {
  float largest;   // the largest finite number of the narrow type
  float smallest;  // its smallest normal one
};
RangeLimits limits_of(DType to);

void add_tensor(const TensorView& tensor, const RangeLimits& limits, uint8_t wanted, ValueRange& range);

// Watches every float32 value that a node or the caller gives.
class RangeObserver final : public Observer {
 public:
  RangeObserver(RangeLimits limits, std::vector<uint8_t> wanted)
      : limits_(limits), wanted_(std::move(wanted)), ranges_(wanted_.size()) {}

  CaptureLevel wants(const ValueInfo& value_info) override;
  Status observe(const Observation& observation) override;

  // By slot id, of the runs since the last call.
  std::vector<ValueRange> take();

 private:
  RangeLimits limits_;
  std::vector<uint8_t> wanted_;
  std::vector<ValueRange> ranges_;
};

}  // namespace parallax::audit
