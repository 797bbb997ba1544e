// SPDX-License-Identifier: Apache-2.0
// The data for comparing two different models besides pairs of values: the element types that count, and the
// differences of constants that are equivalent.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inspector/diff/compare/equivalent_constants.h"
#include "inspector/diff/comparison.h"
#include "inspector/diff/tolerance/quantization.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/exec/observer.h"

namespace parallax::diff {

// Half precision, where a main graph takes all its floats there before any computation, and casts its float results
// back; else undefined.
DType type_between_casts(const Graph& graph);

// A limit that holds for both.
Limit wider(const Limit& a, const Limit& b);

class ModelDifferences {
 public:
  // A value of either model; all of them are added before any other call.
  void add(bool is_a, const ValueInfo& value_info);

  // The type whose rounding counts for a value of B: a model in half or mixed precision may round like one; single
  // nodes in half within a model of floats may not.
  DType type_that_rounds(DType carried) const;

  // One of the two is in half precision or mixes it in, the other does not: a cast to half precision is no difference,
  // and rounds.
  bool are_of_two_types() const {
    return a_.is_in_half() != b_.is_in_half() || a_.rounds_to_half() != b_.rounds_to_half();
  }

  // One of the two is quantized, the other is not: the steps of its quantized values round.
  bool is_one_quantized() const { return a_.is_quantized() != b_.is_quantized(); }

  // `limit`, but no less than what storing a value in half precision does to it, where one side has it so and rounds to
  // it: constants and what is taken out of them carry no other error. A value that was stored in half and is cast to
  // more counts as half. So it is with floats where one model is in doubles and the other in floats. `dtype`: what the
  // value is carried in.
  struct Held {
    std::string_view path;
    DType dtype;
  };
  Limit with_storing(const Limit& limit, const Held& a, const Held& b) const;

  // A pair as the model that can hold less of it would hold both. `a` in half precision: what hides a score (-3.4e38,
  // -1e9) and is large in `b`, too, is taken as equal; what else overflows in half precision is a difference. Where one
  // model is of floats and the other quantized: floats a little beyond the quantized range are taken as equal to its
  // ends; `cut_off` is the root mean square of what this took away.
  struct Both {
    Value a, b;
    double cut_off = 0;
  };
  Both as_held_by_both(Both both, std::string_view path_a, std::string_view path_b) const;

  // Takes back the pairs of constants that are another way to write the same.
  void excuse_constants(std::vector<ValueComparison>& values) const { equivalent_constants_.excuse(values); }

 private:
  // `a` itself where it holds nothing that a half cannot.
  Value as_held_in_half(const Value& a, const Value& b) const;

  // One model is in doubles and holds the value so, the other is in floats and does, too.
  bool is_double_and_float(DType in_a, DType in_b) const;

  using Types = std::unordered_map<std::string, DType>;
  static DType type_in(const Types& narrowed, const Held& value);

  // In half precision: most of what is computed, or of the data where nothing is; or all that is between the casts of
  // its inputs and outputs, as of a model whose operators a converter left in float32. In doubles likewise, but for
  // casts.
  struct Precision {
    int64_t half = 0, wide = 0, twice = 0;                 // computed
    int64_t half_data = 0, wide_data = 0, twice_data = 0;  // given, constant, cast
    bool is_cast_to_half = false, is_between_casts_asked = false;
    QuantizationCount quantization;
    bool is_dynamic = false;  // quantizes while it runs
    bool is_quantized() const { return is_dynamic || quantization.is_quantized(); }
    bool is_in_half() const {
      const bool computes = half + wide > 0;
      return (computes ? half > wide : half_data > wide_data) || is_cast_to_half;
    }
    // In half precision, or in both, as autocast and lists of operators to keep make it.
    bool rounds_to_half() const { return is_in_half() || half >= thresholds::kFewestOfMixed; }
    bool is_in_double() const {
      const bool computes = half + wide + twice > 0;
      return computes ? twice > half + wide : twice_data > half_data + wide_data;
    }
  };
  Precision a_, b_;
  void add_quantized(bool is_a, const ValueInfo& value_info);

  std::unordered_map<const ValueDef*, DType> narrowest_;  // on the way to a value
  std::unordered_map<std::string, QuantizedRange> quantized_in_a_,
      quantized_in_b_;                   // by static path: what floats were taken from
  Types narrowed_in_a_, narrowed_in_b_;  // by static path: values that are wider than they were stored
  EquivalentConstants equivalent_constants_;
};

}  // namespace parallax::diff
