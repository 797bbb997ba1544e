// SPDX-License-Identifier: Apache-2.0
// NoiseModel: how much rounding two healthy executions may differ at a value. It carries an estimate of the error from
// each operator's inputs to its output by the noise table and the values' magnitudes. What was found at the inputs
// bounds what is carried on, so that estimates do not grow beyond all measure in deep graphs; a difference larger than
// was to be feared carries nothing more.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inspector/diff/comparison.h"
#include "inspector/diff/tolerance/magnitude.h"
#include "inspector/exec/observer.h"

namespace parallax::diff {

struct NoiseRow;

class NoiseModel {
 public:
  // Side A has a floating or complex value: `prefix` are the frames of its path ("" in the main graph), `value_info`
  // its value info, or null where no graph is known. Calls come in A's execution order. Returns a number for limit_of.
  int64_t add(const std::string& prefix, const std::string& escaped_name, const ValueInfo* value_info,
              const Magnitude& magnitude);

  // From here on a cast to less precision counts as a rounding: of two models in different types only one does it. One
  // and the same cast of equal numbers gives equal ones wherever it is done.
  void count_casts() { counts_casts_ = true; }

  // And the steps of quantized values are a rounding: of two models only one quantizes.
  void count_quantization() { counts_quantization_ = true; }

  // And what kernels of another runtime may do, and ours do not: round activations to int8 where a product's
  // accuracy_level is 4, and compute the coordinates of Resize in float32.
  void count_foreign_kernels() { counts_foreign_kernels_ = true; }

  // Data of the main graph that earlier runs have made, such as a decoder's caches: how much it may differ (standard
  // deviation, absolute).
  void expect_error(const std::string& path, double error) { expected_[path] = error; }

  // The type whose rounding counts, where a value that was added as float64 turns out to be held in another.
  void rounds_as(int64_t number, DType dtype);

  // The limit of a value that was added; to be asked when it is compared, after the values it was made of have been.
  Limit limit_of(int64_t number, const std::string& path);

  // The difference that was found: readers of the value inherit that, where it is less than was to be feared.
  void found_difference(const std::string& path, double rmse);

 private:
  // The data about an earlier value that later values need.
  struct State {
    Magnitude magnitude;
    double error = 0;                   // standard deviation, absolute: what this value may be off
    double carried = 0;                 // what its readers take over
    bool is_compared = false;           // `carried` follows what was found
    bool is_estimated = false;          // so is the magnitude
    bool is_zero = false;               // was never seen, and is made of zeros: nothing for its readers to carry
    DType coarsest = DType::undefined;  // type that has rounded on the way
    bool is_quantized = false;          // quantization steps have, which are coarser than any rounding
    double step_share = 0;  // the error of the coarsest of these, as a share of the value that it was made at
    double held_step = 0;   // of constants that are stored quantized, moved since or not
    double relative() const { return magnitude.rms > 0 ? carried / magnitude.rms : 0; }
  };
  // The source of a value's inputs: a value info ends with its session, perhaps before the last comparison.
  struct Source {
    std::string prefix;  // of the reader; frames are left one by one until the name is found
    std::string escaped_name;
    std::string in_body;  // static path in a body to look at first; may be empty
    size_t position = 0;
    // For a value that was not observed: true where it has rounded all the same, and has an unknown size; and the
    // coarsest type that it may have rounded to on its way.
    bool is_rounded = false;
    bool has_size = false;
    DType coarsest = DType::undefined;
  };
  enum class Kind : uint8_t { unknown, data, computed, passed_on };
  struct Added {
    std::string prefix;
    std::string escaped_name;
    Magnitude magnitude;
    Kind kind = Kind::unknown;
    const NoiseRow* row = nullptr;
    bool is_convolution = false;
    bool is_estimated = false;  // never seen: its size follows from what it is made of
    bool is_product = false;    // of its first two inputs, element by element
    bool interpolates = false;  // between neighbors by coordinates
    double int8_block = 0;      // elements of the activations that share a scale where they are rounded to int8
    std::vector<Source> sources;
    // For the output of a DequantizeLinear: the float that was quantized, and the quantization step, where these are
    // known.
    bool is_taken_from_quantized = false, is_of_held_quantized = false;
    std::optional<Source> before_quantization = std::nullopt;
    double step = 0, typical_step = 0, held_size = 0;
    std::optional<Source> scale = std::nullopt;  // computed: where the step is not known
    // For a product of values that are quantized while the model runs: the floats and the scale, and what is known of
    // the weights.
    struct Dynamic {
      Source floats, scale;
      double weight_rms = 0, weight_step = 0, terms = 0;
    };
    std::optional<Dynamic> dynamic = std::nullopt;
  };
  struct Inputs;

  void describe(const ValueInfo& value_info, Added& value);
  void describe_node(const Graph& graph, const Node& node, Added& value) const;
  void add_inputs(const std::string& prefix, const Graph& graph, const Node& node, Added& value) const;
  void add_unseen(const Added& reader, const Graph& graph, const Node& node, int depth);
  void add_body_output(const Graph& body, size_t position, const std::string& location, Added& value) const;
  void add_body_outputs(const Node& node, size_t output_index, Added& value) const;
  void add_what_enters(const Graph& body, Added& value) const;
  bool is_known(std::string prefix, const std::string& escaped_name) const;
  struct Resolving;
  std::optional<Resolving> take_added(int64_t number);
  int64_t next_unresolved(Resolving& reader) const;
  void resolve(int64_t number);
  void estimate(const Added& value);
  State state_of(const Added& value) const;
  Inputs inputs_of(const Added& value) const;
  std::optional<State> state_of_dynamic(const Added& value) const;
  void add_foreign_kernels(const Added& value, const Inputs& inputs, State& state) const;
  double most_of_quantization(const State& state) const;
  State state_of_quantized(State state, const Added& value, const Inputs& inputs) const;
  double error_of(const NoiseRow& row, const Inputs& inputs, const State& output, double epsilon) const;
  const State* find(std::string prefix, const std::string& escaped_name) const;

  std::unordered_map<std::string, double> expected_;     // errors of data, by path
  std::map<int64_t, Added> added_;                       // those whose error has not been estimated yet
  std::unordered_map<std::string, int64_t> unresolved_;  // the same by path
  int64_t next_number_ = 0;
  bool counts_casts_ = false;
  bool counts_quantization_ = false;
  bool counts_foreign_kernels_ = false;
  std::unordered_map<std::string, State> states_;  // by path
  std::unordered_map<std::string, State>
      in_bodies_;  // by static path: the largest relative error of any iteration so far
  std::unordered_map<std::string, const Graph*> graphs_;  // of the session that is running, by static prefix
};

}  // namespace parallax::diff
