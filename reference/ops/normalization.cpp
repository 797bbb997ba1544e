// Normalisations: LayerNormalization, RMSNormalization, BatchNormalization, InstanceNormalization, GroupNormalization,
// MeanVarianceNormalization, LpNormalization, LRN. Means and variances are computed in two passes, in double.
#include <cmath>

#include "reference/ops/map.h"
#include "reference/ops/ops.h"

namespace parallax::reference {
namespace {

struct Moments {
  double mean = 0;
  double variance = 0;  // of the population: divided by the count
};

// Of count numbers read(0), read(1), ...
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

// An optional input broadcast to the shape of X; `otherwise` where it is not there.
Result<std::vector<double>> broadcast_or(const OpContext& op, size_t index, const Shape& shape, double otherwise) {
  std::vector<double> values(static_cast<size_t>(shape.element_count()), otherwise);
  if (!op.has_input(index)) return values;
  if (!broadcasts_to(op.input(index).shape(), shape)) {
    return execution_error(fmt::format("input {} of shape {} does not broadcast to {}", index,
                                       op.input(index).shape().to_string(), shape.to_string()));
  }
  BroadcastInput(op.input(index), shape).read<double>(0, values);
  return values;
}

Status expect_channels(const OpContext& op, size_t first, size_t last, int64_t channels) {
  for (size_t index = first; index <= last; ++index) {
    if (op.input(index).element_count() != channels) {
      return execution_error(fmt::format("input {} has shape {}, there are {} channels", index,
                                         op.input(index).shape().to_string(), channels));
    }
  }
  return {};
}

}  // namespace

// LayerNormalization-17 over the axes from `axis` on. The stash type only says in which type Mean and InvStdDev are
// given: all steps between are exact to double.
Status op_layer_normalization(OpContext& op) {
  const Tensor& x = op.input(0);
  const Shape& shape = x.shape();
  const size_t axis = PX_TRY(normalize_axis(op.int_attribute("axis"), shape.rank()));
  const double epsilon = op.float_attribute("epsilon");
  const int64_t rows = count_of(shape, 0, axis);
  const int64_t count = count_of(shape, axis, shape.rank());
  const Numbers<double> numbers(x);
  const std::vector<double> scale = PX_TRY(broadcast_or(op, 1, shape, 1.0));
  const std::vector<double> bias = PX_TRY(broadcast_or(op, 2, shape, 0.0));
  std::vector<double> results(scale.size());
  std::vector<double> means(static_cast<size_t>(rows));
  std::vector<double> inverse_deviations(means.size());
  parallel_for(rows, 4 * count, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const Moments moments = moments_of(count, [&](int64_t k) { return numbers[row * count + k]; });
      const double inverse = 1.0 / std::sqrt(moments.variance + epsilon);
      means[static_cast<size_t>(row)] = moments.mean;
      inverse_deviations[static_cast<size_t>(row)] = inverse;
      for (int64_t index = row * count; index < (row + 1) * count; ++index) {
        const auto at = static_cast<size_t>(index);
        results[at] = (numbers[index] - moments.mean) * inverse * scale[at] + bias[at];
      }
    }
  });
  std::vector<int64_t> dims(shape.begin(), shape.end());
  std::fill(dims.begin() + static_cast<ptrdiff_t>(axis), dims.end(), 1);
  const Shape reduced(dims);
  PX_TRY(op.set_output(0, x.dtype(), shape, std::span<const double>(results)));
  PX_TRY(op.set_output(1, stash_type_of(op), reduced, std::span<const double>(means)));
  return op.set_output(2, stash_type_of(op), reduced, std::span<const double>(inverse_deviations));
}

// x / sqrt(mean(x^2) + epsilon) * scale
Status op_rms_normalization(OpContext& op) {
  const Tensor& x = op.input(0);
  const Shape& shape = x.shape();
  const size_t axis = PX_TRY(normalize_axis(op.int_attribute("axis"), shape.rank()));
  const double epsilon = op.float_attribute("epsilon");
  const int64_t count = count_of(shape, axis, shape.rank());
  const Numbers<double> numbers(x);
  const std::vector<double> scale = PX_TRY(broadcast_or(op, 1, shape, 1.0));
  std::vector<double> results(scale.size());
  parallel_for(count_of(shape, 0, axis), 4 * count, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      double squares = 0;
      for (int64_t index = row * count; index < (row + 1) * count; ++index) squares += numbers[index] * numbers[index];
      const double root = std::sqrt(squares / static_cast<double>(count) + epsilon);
      for (int64_t index = row * count; index < (row + 1) * count; ++index) {
        results[static_cast<size_t>(index)] = numbers[index] / root * scale[static_cast<size_t>(index)];
      }
    }
  });
  // Y has the type of the scale (parameter V), which may be wider than that of X.
  return op.set_output(0, op.input(1).dtype(), shape, std::span<const double>(results));
}

// (x - mean) / sqrt(var + epsilon) * scale + B for each channel. In training the moments are those of the batch, and
// the running ones move: running * momentum + current * (1 - momentum), with the population's variance (since version
// 9).
Status op_batch_normalization(OpContext& op) {
  const Tensor& x = op.input(0);
  const Shape& shape = x.shape();
  const bool by_feature = op.since_version() < 9 && op.find_int("spatial").value_or(1) == 0;
  const bool training = op.since_version() >= 14 ? op.int_attribute("training_mode") != 0 : op.wants_output(1);
  if (op.since_version() < 9 && (by_feature || op.find_int("is_test").value_or(1) == 0)) {
    return unsupported("the training and per-feature forms of this early version");
  }
  if (training && op.since_version() < 14) return unsupported("the training form of this early version");
  if (shape.rank() < 1) return execution_error("X must have a batch axis");
  const int64_t channels = shape.rank() > 1 ? shape[1] : 1;
  const int64_t inner = shape.rank() > 2 ? count_of(shape, 2, shape.rank()) : 1;
  PX_TRY(expect_channels(op, 1, 4, channels));
  const double epsilon = op.float_attribute("epsilon");
  const double momentum = op.float_attribute("momentum");
  const Numbers<double> numbers(x), scale(op.input(1)), bias(op.input(2)), mean(op.input(3)), variance(op.input(4));
  std::vector<double> results(static_cast<size_t>(numbers.size()));
  std::vector<double> running_mean(static_cast<size_t>(channels));
  std::vector<double> running_variance(running_mean.size());
  parallel_for(channels, 4 * shape[0] * inner, [&](int64_t begin, int64_t end) {
    for (int64_t channel = begin; channel < end; ++channel) {
      const auto position = [&](int64_t k) { return (k / inner * channels + channel) * inner + k % inner; };
      Moments moments{mean[channel], variance[channel]};
      if (training) {
        moments = moments_of(shape[0] * inner, [&](int64_t k) { return numbers[position(k)]; });
        running_mean[static_cast<size_t>(channel)] = mean[channel] * momentum + moments.mean * (1 - momentum);
        running_variance[static_cast<size_t>(channel)] =
            variance[channel] * momentum + moments.variance * (1 - momentum);
      }
      const double deviation = std::sqrt(moments.variance + epsilon);
      for (int64_t k = 0; k < shape[0] * inner; ++k) {
        const int64_t at = position(k);
        results[static_cast<size_t>(at)] = (numbers[at] - moments.mean) / deviation * scale[channel] + bias[channel];
      }
    }
  });
  PX_TRY(op.set_output(0, x.dtype(), shape, std::span<const double>(results)));
  if (!training) return {};
  PX_TRY(op.set_output(1, op.input(3).dtype(), Shape{channels}, std::span<const double>(running_mean)));
  return op.set_output(2, op.input(4).dtype(), Shape{channels}, std::span<const double>(running_variance));
}

namespace {

// Groups of `group` channels of one sample are normalised together. `scale_of` and `bias_of` give the factors of a
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

}  // namespace

Status op_instance_normalization(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  if (shape.rank() < 3) return execution_error("the input must be [N, C, D1, ...]");
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
  if (shape.rank() < 2 || groups <= 0 || shape[1] % groups != 0) {
    return execution_error(fmt::format("X {} cannot be split into {} groups of channels", shape.to_string(), groups));
  }
  const int64_t group = shape[1] / groups;
  const int64_t divisor = op.since_version() < 21 ? group : 1;
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
  if (p != 1 && p != 2) return execution_error(fmt::format("p is {}; it must be 1 or 2", p));
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
  if (shape.rank() < 2) return execution_error("X must be [N, C, D1, ...]");
  const int64_t size = op.int_attribute("size");
  if (size <= 0) return execution_error("size must be positive");
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

}  // namespace parallax::reference
