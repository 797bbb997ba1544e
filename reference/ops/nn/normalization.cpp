// SPDX-License-Identifier: Apache-2.0
// Normalizations: LayerNormalization, RMSNormalization, BatchNormalization, InstanceNormalization, GroupNormalization,
// MeanVarianceNormalization, LpNormalization, LRN. Means and variances are computed in two passes, in double.
#include <array>
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

struct Moments {
  double mean = 0;
  double variance = 0;  // of the population: divided by the count
};

// The moments of the `count` numbers read(0), read(1), ...
template <class Read>
Moments moments_of(int64_t count, const Read& read) {
  Moments moments;
  for (int64_t k = 0; k < count; ++k) moments.mean += read(k);
  moments.mean /= static_cast<double>(count);
  for (int64_t k = 0; k < count; ++k) {
    const double distance = read(k) - moments.mean;
    moments.variance += distance * distance;
  }
  moments.variance /= static_cast<double>(count);
  return moments;
}

DType stash_type_of(const OpContext& op) {
  return op.find_int("stash_type").value_or(1) == 16 ? DType::bfloat16 : DType::float32;
}

// An optional input broadcast to the shape of X, `otherwise` where it is not there. Where it is the same for every row
// of the axes from `axis` on, as it mostly is, it is kept for one.
class Factors {
 public:
  static Result<Factors> create(const OpContext& op, size_t index, const Shape& shape, size_t axis, double otherwise) {
    Factors factors;
    factors.row_ = count_of(shape, axis, shape.rank());
    if (!op.has_input(index)) {
      factors.values_.assign(static_cast<size_t>(factors.row_), otherwise);
      return factors;
    }
    const Tensor& input = op.input(index);
    if (!broadcasts_to(input.shape(), shape))
      return wrong_input(op, index, "broadcast to the normalized axes, {}", shape.to_string());
    const Shape row = Shape(shape.dims().subspan(axis));
    factors.differs_ = !broadcasts_to(input.shape(), row);
    const Shape& kept = factors.differs_ ? shape : row;
    factors.values_.resize(static_cast<size_t>(kept.element_count()));
    BroadcastInput(input, kept).read<double>(0, factors.values_);
    return factors;
  }

  const double* of_row(int64_t row) const { return values_.data() + (differs_ ? row * row_ : 0); }

 private:
  int64_t row_ = 0;
  bool differs_ = false;
  std::vector<double> values_;
};

Status expect_channels(const OpContext& op, size_t first, size_t last, int64_t channels) {
  for (size_t index = first; index <= last; ++index) {
    if (op.input(index).element_count() != channels)
      return wrong_input(op, index, "have {} elements, one for each channel", channels);
  }
  return {};
}

// How the function body of LayerNormalization-17 normalizes a row: where the stash type is bfloat16, it casts X to it
// and rounds each of its steps.
struct NormalizedRow {
  double mean = 0, inverse_deviation = 0;
};

NormalizedRow normalize_in_bfloat16(std::vector<double>& numbers, double epsilon) {
  const auto rounded = [](double value) { return round_to_dtype(DType::bfloat16, value); };
  const auto count = static_cast<double>(numbers.size());
  double sum = 0, sum_of_squares = 0;
  for (double& number : numbers) {
    number = rounded(number);
    sum += number;
    sum_of_squares += rounded(number * number);
  }
  const double mean = rounded(sum / count);
  const double variance = rounded(rounded(sum_of_squares / count) - rounded(mean * mean));
  const double deviation = rounded(std::sqrt(rounded(variance + rounded(epsilon))));
  for (double& number : numbers) number = rounded(rounded(number - mean) / deviation);
  return {mean, rounded(1.0 / deviation)};
}

NormalizedRow normalize_exactly(std::vector<double>& numbers, double epsilon) {
  const auto count = static_cast<int64_t>(numbers.size());
  const Moments moments = moments_of(count, [&](int64_t k) { return numbers[static_cast<size_t>(k)]; });
  const double inverse = 1.0 / std::sqrt(moments.variance + epsilon);
  for (double& number : numbers) number = (number - moments.mean) * inverse;
  return {moments.mean, inverse};
}

// LayerNormalization-17 over the axes from `axis` on: all steps between are exact to double, but for those in bfloat16.
Status op_layer_normalization(OpContext& op) {
  const Tensor& x = op.input(0);
  const Shape& shape = x.shape();
  const size_t axis = PX_TRY(normalize_axis(op.int_attribute("axis"), shape.rank()));
  const double epsilon = op.float_attribute("epsilon");
  const int64_t rows = count_of(shape, 0, axis);
  const int64_t count = count_of(shape, axis, shape.rank());
  const Factors scales = PX_TRY(Factors::create(op, 1, shape, axis, 1.0));
  const Factors biases = PX_TRY(Factors::create(op, 2, shape, axis, 0.0));
  const DType stash = stash_type_of(op);
  const bool are_casts_kept = !op.carries_double() || op.keeps_casts();
  const auto normalize = stash == DType::bfloat16 && are_casts_kept ? normalize_in_bfloat16 : normalize_exactly;
  Tensor output = PX_TRY(op.allocate(x.dtype(), shape));
  std::vector<double> means(static_cast<size_t>(rows));
  std::vector<double> inverse_deviations(means.size());
  parallel_for(rows, 4 * count, [&](int64_t begin, int64_t end) {
    std::vector<double> numbers(static_cast<size_t>(count));
    for (int64_t row = begin; row < end; ++row) {
      load<double>(x, row * count, numbers);
      const NormalizedRow normalized = normalize(numbers, epsilon);
      means[static_cast<size_t>(row)] = normalized.mean;
      inverse_deviations[static_cast<size_t>(row)] = normalized.inverse_deviation;
      const double* scale = scales.of_row(row);
      const double* bias = biases.of_row(row);
      for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = numbers[k] * scale[k] + bias[k];
      store<double>(output, row * count, numbers);
    }
  });
  std::vector<int64_t> dims(shape.begin(), shape.end());
  std::fill(dims.begin() + static_cast<ptrdiff_t>(axis), dims.end(), 1);
  const Shape reduced = PX_TRY(Shape::create(dims));
  PX_TRY(op.set_output(0, std::move(output)));
  PX_TRY(op.set_output(1, stash, reduced, std::span<const double>(means)));
  return op.set_output(2, stash, reduced, std::span<const double>(inverse_deviations));
}

// x / sqrt(mean(x^2) + epsilon) * scale
Status op_rms_normalization(OpContext& op) {
  const Tensor& x = op.input(0);
  const Shape& shape = x.shape();
  const size_t axis = PX_TRY(normalize_axis(op.int_attribute("axis"), shape.rank()));
  const double epsilon = op.float_attribute("epsilon");
  const int64_t count = count_of(shape, axis, shape.rank());
  const Factors scales = PX_TRY(Factors::create(op, 1, shape, axis, 1.0));
  // Y has the type of the scale (parameter V), which may be wider than that of X.
  Tensor output = PX_TRY(op.allocate(op.input(1).dtype(), shape));
  parallel_for(count_of(shape, 0, axis), 4 * count, [&](int64_t begin, int64_t end) {
    std::vector<double> numbers(static_cast<size_t>(count));
    for (int64_t row = begin; row < end; ++row) {
      load<double>(x, row * count, numbers);
      double squares = 0;
      for (double number : numbers) squares += number * number;
      const double root = std::sqrt(squares / static_cast<double>(count) + epsilon);
      const double* scale = scales.of_row(row);
      for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = numbers[k] / root * scale[k];
      store<double>(output, row * count, numbers);
    }
  });
  return op.set_output(0, std::move(output));
}

// How one version normalizes: over the batch's own moments or the given ones, by channel or by element of a sample.
struct BatchPlan {
  bool training = false;
  bool by_element = false;  // attribute spatial = 0, until version 7
};

// Outputs 1 and 2 are the running moments, running * momentum + current * (1 - momentum); 3 and 4, which early versions
// have, those of the batch. The variance is the population's: version 14 says so, earlier ones nothing.
Status set_moments(OpContext& op, const Shape& shape, const std::vector<Moments>& batch) {
  const double momentum = op.float_attribute("momentum");
  const Numbers<double> mean(op.input(3));
  const Numbers<double> variance(op.input(4));
  std::vector<double> running_mean, running_variance, batch_mean, batch_variance;
  for (size_t channel = 0; channel < batch.size(); ++channel) {
    const auto at = static_cast<int64_t>(channel);
    batch_mean.push_back(batch[channel].mean);
    batch_variance.push_back(batch[channel].variance);
    running_mean.push_back(mean[at] * momentum + batch[channel].mean * (1 - momentum));
    running_variance.push_back(variance[at] * momentum + batch[channel].variance * (1 - momentum));
  }
  PX_TRY(op.set_output(1, op.input(3).dtype(), shape, std::span<const double>(running_mean)));
  PX_TRY(op.set_output(2, op.input(4).dtype(), shape, std::span<const double>(running_variance)));
  PX_TRY(op.set_output(3, op.input(3).dtype(), shape, std::span<const double>(batch_mean)));
  return op.set_output(4, op.input(4).dtype(), shape, std::span<const double>(batch_variance));
}

// The moments of one channel over all samples.
Moments channel_moments(const Tensor& x, int64_t channel, int64_t channels, int64_t inner) {
  const int64_t samples = x.shape()[0];
  std::vector<double> numbers(static_cast<size_t>(samples * inner));
  load_lines<double>(x, {.begin = channel * inner, .stride = channels * inner, .lines = samples, .width = inner},
                     numbers);
  return moments_of(samples * inner, [&](int64_t k) { return numbers[static_cast<size_t>(k)]; });
}

// (x - mean) / sqrt(var + epsilon) * scale + B, for each channel, or for each element of a sample. The quotient of
// scale and deviation is taken once a channel.
Status normalize_batch(OpContext& op, const BatchPlan& plan) {
  const Tensor& x = op.input(0);
  const Shape& shape = x.shape();
  if (shape.rank() < 1) return wrong_input(op, 0, "have rank 1 or more");
  const size_t first_inner = plan.by_element ? shape.rank() : std::min<size_t>(2, shape.rank());
  const int64_t channels = count_of(shape, 1, first_inner);
  const int64_t inner = count_of(shape, first_inner, shape.rank());
  PX_TRY(expect_channels(op, 1, 4, channels));
  const double epsilon = op.float_attribute("epsilon");
  const Numbers<double> scale(op.input(1)), bias(op.input(2)), mean(op.input(3)), variance(op.input(4));
  std::vector<Moments> moments(static_cast<size_t>(channels));
  std::vector<double> factor(moments.size());
  parallel_for(channels, plan.training ? 4 * shape[0] * inner : 1, [&](int64_t begin, int64_t end) {
    for (int64_t channel = begin; channel < end; ++channel) {
      Moments& own = moments[static_cast<size_t>(channel)];
      own = plan.training ? channel_moments(x, channel, channels, inner) : Moments{mean[channel], variance[channel]};
      factor[static_cast<size_t>(channel)] = scale[channel] / std::sqrt(own.variance + epsilon);
    }
  });
  Tensor output = PX_TRY(op.allocate(x.dtype(), shape));
  for_blocks(x.element_count(), 2, [&](int64_t begin, int64_t end) {
    // Stretches of one channel.
    for (int64_t at = begin; at < end;) {
      const int64_t channel = at / inner % channels;
      const int64_t next = std::min(end, (at / inner + 1) * inner);
      const double m = moments[static_cast<size_t>(channel)].mean, f = factor[static_cast<size_t>(channel)];
      const double b = bias[channel];
      map_block<double, double>(x, at, next, output, [=](double number) { return (number - m) * f + b; });
      at = next;
    }
  });
  PX_TRY(op.set_output(0, std::move(output)));
  return plan.training ? set_moments(op, op.input(3).shape(), moments) : Status{};
}

// Version 14 and 15.
Status op_batch_normalization(OpContext& op) {
  return normalize_batch(op, {.training = op.int_attribute("training_mode") != 0});
}

// Version 7 and 9: training is known by the outputs that are wanted.
Status op_batch_normalization_7(OpContext& op) {
  return normalize_batch(op, {.training = op.wants_output(1), .by_element = op.find_int("spatial").value_or(1) == 0});
}

// Version 1 and 6: training unless is_test is set.
Status op_batch_normalization_1(OpContext& op) {
  return normalize_batch(
      op, {.training = op.int_attribute("is_test") == 0, .by_element = op.int_attribute("spatial") == 0});
}

// Groups of `group` channels of one sample are normalized together. `scale_of` and `bias_of` give the factors of a
// channel.
template <class Factor>
Status normalize_groups(OpContext& op, int64_t group, const Factor& scale_of, const Factor& bias_of) {
  const Tensor& x = op.input(0);
  const Shape& shape = x.shape();
  const int64_t channels = shape[1];
  const int64_t inner = count_of(shape, 2, shape.rank());
  const int64_t count = group * inner;
  const double epsilon = op.float_attribute("epsilon");
  const Numbers<double> numbers(x);
  std::vector<double> results(static_cast<size_t>(numbers.size()));
  parallel_for(shape[0] * (channels / group), 4 * count, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t base = index * count;
      const Moments moments = moments_of(count, [&](int64_t k) { return numbers[base + k]; });
      const double deviation = std::sqrt(moments.variance + epsilon);
      for (int64_t at = base; at < base + count; ++at) {
        const int64_t channel = at / inner % channels;
        results[static_cast<size_t>(at)] =
            (numbers[at] - moments.mean) / deviation * scale_of(channel) + bias_of(channel);
      }
    }
  });
  return op.set_output(0, x.dtype(), shape, std::span<const double>(results));
}

Status op_instance_normalization(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  if (shape.rank() < 3) return wrong_input(op, 0, "have rank 3 or more: [N,C,D1,...]");
  PX_TRY(expect_channels(op, 1, 2, shape[1]));
  const Numbers<double> scale(op.input(1));
  const Numbers<double> bias(op.input(2));
  const std::function<double(int64_t)> scale_of = [&](int64_t channel) { return scale[channel]; };
  const std::function<double(int64_t)> bias_of = [&](int64_t channel) { return bias[channel]; };
  return normalize_groups(op, 1, scale_of, bias_of);
}

// Scale and bias are one for each group in version 18, one for each channel since 21.
Status op_group_normalization(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const int64_t groups = op.int_attribute("num_groups");
  if (shape.rank() < 2 || groups <= 0 || shape[1] % groups != 0)
    return wrong_input(op, 0, "have rank 2 or more and channels that split into {} groups, 1 or more", groups);
  const int64_t group = shape[1] / groups;
  const int64_t divisor = op.since_version() < 21 ? group : 1;
  if (group == 0) return op.set_output(0, op.input(0).dtype(), shape, std::span<const double>{});
  PX_TRY(expect_channels(op, 1, 2, shape[1] / divisor));
  const Numbers<double> scale(op.input(1));
  const Numbers<double> bias(op.input(2));
  const std::function<double(int64_t)> scale_of = [&](int64_t channel) { return scale[channel / divisor]; };
  const std::function<double(int64_t)> bias_of = [&](int64_t channel) { return bias[channel / divisor]; };
  return normalize_groups(op, group, scale_of, bias_of);
}

// (x - mean) / (sqrt(mean(x^2) - mean^2) + 1e-9), as the function body of MeanVarianceNormalization-13 writes it; the
// variance itself is computed in two passes.
Status op_mean_variance_normalization(OpContext& op) {
  constexpr double kEpsilon = 1e-9;
  const Tensor& x = op.input(0);
  const Shape& shape = x.shape();
  std::vector<bool> reduced(shape.rank(), false);
  const std::vector<int64_t> axes = op.find_ints("axes").value_or(std::vector<int64_t>{0, 2, 3});
  for (size_t axis : PX_TRY(normalize_axes(axes, shape.rank()))) reduced[axis] = true;
  std::vector<int64_t> kept_dims, kept_strides, dims, strides;
  const std::vector<int64_t> own = strides_of(shape);
  int64_t count = 1;
  int64_t outputs = 1;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    (reduced[axis] ? dims : kept_dims).push_back(shape[axis]);
    (reduced[axis] ? strides : kept_strides).push_back(own[axis]);
    (reduced[axis] ? count : outputs) *= shape[axis];
  }
  const Numbers<double> numbers(x);
  std::vector<double> results(static_cast<size_t>(numbers.size()));
  Walk<1> outer(kept_dims, {kept_strides});
  for (int64_t index = 0; index < outputs; ++index, outer.next()) {
    std::vector<int64_t> positions;
    Walk<1> walk(dims, {strides});
    for (int64_t k = 0; k < count; ++k, walk.next()) positions.push_back(outer.offset() + walk.offset());
    const Moments moments = moments_of(count, [&](int64_t k) { return numbers[positions[static_cast<size_t>(k)]]; });
    for (int64_t at : positions) {
      results[static_cast<size_t>(at)] = (numbers[at] - moments.mean) / (std::sqrt(moments.variance) + kEpsilon);
    }
  }
  return op.set_output(0, x.dtype(), shape, std::span<const double>(results));
}

// x / (sum |x|^p)^(1/p) along one axis. A row of zeros stays zeros, as stated since version 22.
Status op_lp_normalization(OpContext& op) {
  const Tensor& input = op.input(0);
  const Shape& shape = input.shape();
  const size_t axis = PX_TRY(normalize_axis(op.int_attribute("axis"), shape.rank()));
  const int64_t p = op.int_attribute("p");
  if (p != 1 && p != 2) return wrong_attribute("p", p, "be 1 or 2");
  const int64_t inner = count_of(shape, axis + 1, shape.rank());
  const Numbers<double> numbers(input);
  std::vector<double> results(static_cast<size_t>(numbers.size()));
  for (int64_t index = 0; index < count_of(shape, 0, axis) * inner; ++index) {
    const int64_t base = index / inner * shape[axis] * inner + index % inner;
    double norm = 0;
    for (int64_t k = 0; k < shape[axis]; ++k) {
      const double value = std::fabs(numbers[base + k * inner]);
      norm += p == 1 ? value : value * value;
    }
    if (p == 2) norm = std::sqrt(norm);
    for (int64_t k = 0; k < shape[axis]; ++k) {
      const int64_t at = base + k * inner;
      results[static_cast<size_t>(at)] = norm == 0.0 ? 0.0 : numbers[at] / norm;
    }
  }
  return op.set_output(0, input.dtype(), shape, std::span<const double>(results));
}

// x / (bias + alpha / size * square_sum)^beta; square_sum over the channels c - floor((size-1)/2) .. c +
// ceil((size-1)/2).
Status op_lrn(OpContext& op) {
  const Tensor& x = op.input(0);
  const Shape& shape = x.shape();
  if (shape.rank() < 2) return wrong_input(op, 0, "have rank 2 or more: [N,C,D1,...]");
  const int64_t size = op.int_attribute("size");
  if (size <= 0) return wrong_attribute("size", size, "be 1 or more");
  const double alpha = op.float_attribute("alpha");
  const double beta = op.float_attribute("beta");
  const double bias = op.float_attribute("bias");
  const int64_t channels = shape[1];
  const int64_t inner = count_of(shape, 2, shape.rank());
  const Numbers<double> numbers(x);
  std::vector<double> results(static_cast<size_t>(numbers.size()));
  for_blocks(numbers.size(), 2 * std::min(size, channels) + 20, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t channel = at / inner % channels;
      const int64_t first = std::max<int64_t>(0, channel - (size - 1) / 2);
      const int64_t last =
          size - 1 - (size - 1) / 2 >= channels - channel ? channels - 1 : channel + (size - 1) - (size - 1) / 2;
      double squares = 0;
      for (int64_t other = first; other <= last; ++other) {
        const double value = numbers[at + (other - channel) * inner];
        squares += value * value;
      }
      results[static_cast<size_t>(at)] =
          numbers[at] / std::pow(bias + alpha / static_cast<double>(size) * squares, beta);
    }
  });
  return op.set_output(0, x.dtype(), shape, std::span<const double>(results));
}

constexpr OpRow kNormalizationRows[] = {
    {"BatchNormalization", kOnnx, 1, 6, op_batch_normalization_1},
    {"BatchNormalization", kOnnx, 7, 9, op_batch_normalization_7},
    {"BatchNormalization", kOnnx, 14, 15, op_batch_normalization},
    {"GroupNormalization", kOnnx, 18, 21, op_group_normalization},
    {"InstanceNormalization", kOnnx, 1, 22, op_instance_normalization},
    {"LRN", kOnnx, 1, 13, op_lrn},
    {"LayerNormalization", kOnnx, 1, 17, op_layer_normalization},
    {"LpNormalization", kOnnx, 1, 22, op_lp_normalization},
    {"MeanVarianceNormalization", kOnnx, 9, 13, op_mean_variance_normalization},
    {"RMSNormalization", kOnnx, 23, 23, op_rms_normalization},
};

}  // namespace

OpRows normalization_rows() { return kNormalizationRows; }

}  // namespace parallax::reference
