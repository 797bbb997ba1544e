// NoiseModel: how much rounding two healthy executions may differ at a value. It is shown side A's values in execution
// order, and carries an estimate of the error from each operator's inputs to its output by the noise table and the
// values' magnitudes.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "inspector/diff/comparison.h"
#include "inspector/dump/statistics.h"
#include "inspector/exec/observer.h"
#include "inspector/tensor/tensor.h"

namespace parallax::diff {

struct NoiseRow;

// What the model looks at in a tensor.
struct Magnitude {
  DType dtype = DType::undefined;  // the type whose rounding counts
  double rms = 0;                  // of ordinary elements
  double count = 0;
  double first_dim = 1;
  double last_dim = 1;
};
Magnitude magnitude_of(const TensorView& view);
Magnitude magnitude_of(const TypeInfo& type, const TensorStatistics& statistics);

class NoiseModel {
 public:
  // The limit of a floating or complex value: `prefix` are the frames of its path ("" in the main graph), `site` its
  // place, or null where no graph is known. Other types have none.
  Limit limit_of(const std::string& prefix, const std::string& escaped_name, const ValueSite* site,
                 const Magnitude& magnitude);

 private:
  // What later values need to know of an earlier one.
  struct State {
    Magnitude magnitude;
    double error = 0;    // standard deviation, absolute: what this value may be off
    double carried = 0;  // what its readers take over
    DType coarsest = DType::undefined;  // type that has rounded on the way
    double relative() const { return magnitude.rms > 0 ? carried / magnitude.rms : 0; }
  };

  struct Inputs;

  State state_of(const std::string& prefix, const ValueSite* site, const Magnitude& magnitude) const;
  double error_of(const NoiseRow& row, const Inputs& inputs, const State& output, double epsilon) const;
  double relative_of_bodies(const std::string& prefix, const ValueSite& site) const;
  Inputs inputs_of(const std::string& prefix, const ValueSite& site) const;
  const State* find(std::string prefix, const std::string& escaped_name) const;

  std::unordered_map<std::string, State> states_;  // by path
  std::unordered_map<std::string, double> in_bodies_;  // largest relative error so far, by static path
  double largest_relative_ = 0;                        // of all values so far: for what enters a body
  DType coarsest_ = DType::undefined;
};

}  // namespace parallax::diff
