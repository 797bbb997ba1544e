// SPDX-License-Identifier: Apache-2.0
// Operators that draw random numbers: RandomNormal, RandomUniform (and Like), Bernoulli, Multinomial, Dropout in
// training. The specification leaves the generator open; this is numpy's RandomState: MT19937 (Matsumoto and Nishimura,
// 1998) from a 32-bit seed, uniform numbers of 53 bits, normal ones by Marsaglia's polar method. Each number follows
// from the one before, so that the host draws for every device.
#include <cmath>
#include <optional>
#include <random>
#include <string_view>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/ops/families.h"
#include "runtime/ops/random_dropout.h"

namespace parallax::runtime {
namespace {

using Context = OpContext<CompiledDevice>;

// The seed is the attribute's, cut to a whole number modulo 2^32, and in a body or step mixed with the frames it runs
// in; without the attribute, FNV-1a (32 bits) of the node's path. OpCall::seed() is that hash of the frames.
constexpr uint64_t kEmptyHash = 2166136261U;

uint32_t seed_of(const OpCall& op) {
  const auto frames = static_cast<uint32_t>(op.seed());
  std::optional<double> given = op.find_real("seed");
  if (const auto whole = op.find_integer("seed"); !given.has_value() && whole.has_value())
    given = static_cast<double>(*whole);
  if (!given.has_value()) {
    uint32_t hash = frames;
    for (char character : op.node().display_name) hash = (hash ^ static_cast<unsigned char>(character)) * 16777619U;
    return hash;
  }
  const double whole = std::trunc(*given);
  if (!(std::fabs(whole) < 9.2e18)) return whole > 0 ? UINT32_MAX : 0;
  const auto number = static_cast<uint32_t>(static_cast<uint64_t>(static_cast<int64_t>(whole)));
  return op.seed() == kEmptyHash ? number : number ^ frames;
}

class RandomNumbers {
 public:
  explicit RandomNumbers(uint32_t seed) : engine_(seed) {}

  double uniform() {  // [0, 1)
    const auto high = static_cast<double>(engine_() >> 5U);
    const auto low = static_cast<double>(engine_() >> 6U);
    return (high * 0x1p26 + low) * 0x1p-53;
  }

  double normal() {
    if (spare_.has_value()) {
      const double number = *spare_;
      spare_.reset();
      return number;
    }
    double x = 0, y = 0, square = 0;
    do {
      x = 2 * uniform() - 1;
      y = 2 * uniform() - 1;
      square = x * x + y * y;
    } while (square >= 1 || square == 0);
    const double factor = std::sqrt(-2 * std::log(square) / square);
    spare_ = factor * x;
    return factor * y;
  }

 private:
  std::mt19937 engine_;
  std::optional<double> spare_;
};

Result<DType> dtype_asked(const OpCall& op, DType otherwise) {
  const auto number = op.find_integer("dtype");
  if (!number.has_value()) return otherwise;
  const auto dtype = dtype_from_number(*number);
  if (!dtype.has_value()) return wrong_attribute("dtype", *number, "be the number of an element type");
  return *dtype;
}

// An output in the host's memory.
Result<MutableView> drawn_output(Context& op, int64_t index, DType dtype, const Shape& shape) {
  if constexpr (GpuDevice<CompiledDevice>) {
    Tensor tensor = PX_TRY(Tensor::allocate(dtype, shape));
    const MutableView view = writable(tensor);
    op.set_output(index, std::move(tensor));
    return view;
  } else {
    return op.make_output(index, dtype, shape);
  }
}

// The primitive: element i of `out` is the i-th number drawn.
template <class Draw>
void random(const MutableView& out, const Draw& draw) {
  for (int64_t i = 0; i < out.element_count(); ++i) {
    const double number = draw(i);
    store_block<double>(out.dtype, out.data, i, 1, &number);
  }
}

template <class Draw>
Status draw_floats(Context& op, DType dtype, const Shape& shape, const Draw& draw) {
  if ((dtype_bit(dtype) & kFloats) == 0) return wrong_attribute("dtype", name_of(dtype), "be a floating type");
  random(PX_TRY(drawn_output(op, 0, dtype, shape)), draw);
  return {};
}

Status uniform(Context& op, DType dtype, const Shape& shape) {
  const double low = op.real("low");
  const double range = op.real("high") - low;
  RandomNumbers numbers(seed_of(op));
  return draw_floats(op, dtype, shape, [&](int64_t) { return low + range * numbers.uniform(); });
}

Status normal(Context& op, DType dtype, const Shape& shape) {
  const double mean = op.real("mean");
  const double scale = op.real("scale");
  RandomNumbers numbers(seed_of(op));
  return draw_floats(op, dtype, shape, [&](int64_t) { return mean + scale * numbers.normal(); });
}

template <Status (*kDraw)(Context&, DType, const Shape&)>
Status of_shape(Context& op) {
  const Shape shape = PX_TRY(shape_of(op.find_integers("shape").value_or(Ints{})));
  return kDraw(op, PX_TRY(dtype_asked(op, DType::float32)), shape);
}

template <Status (*kDraw)(Context&, DType, const Shape&)>
Status like(Context& op) {
  return kDraw(op, PX_TRY(dtype_asked(op, op.input(0).dtype())), op.input(0).shape());
}

// 1 where a uniform number is below the probability.
Status bernoulli(Context& op) {
  const Tensor x = PX_TRY(op.on_host(op.input(0)));
  const DType dtype = PX_TRY(dtype_asked(op, x.dtype()));
  for (int64_t i = 0; i < x.element_count(); ++i) {
    const double probability = load_element<double>(x.dtype(), x.view().data, i);
    if (!(probability >= 0 && probability <= 1))
      return wrong_value(fmt::format("element {} of the input", i), probability, "be a probability in [0, 1]");
  }
  if ((dtype_bit(dtype) & (kReals | kBool)) == 0)
    return wrong_attribute("dtype", name_of(dtype), "be an integer, floating or bool type");
  const MutableView y = PX_TRY(drawn_output(op, 0, dtype, x.shape()));
  RandomNumbers numbers(seed_of(op));
  for (int64_t i = 0; i < x.element_count(); ++i) {
    const int64_t drawn = numbers.uniform() < load_element<double>(x.dtype(), x.view().data, i) ? 1 : 0;
    store_block<int64_t>(dtype, y.data, i, 1, &drawn);
  }
  return {};
}

// Row by row, `sample_size` classes by the inverse of the cumulative distribution; the input holds unnormalized
// logarithms of the probabilities.
Status multinomial(Context& op) {
  const Tensor x = PX_TRY(op.on_host(op.input(0)));
  const int64_t samples = op.integer("sample_size");
  const DType dtype = PX_TRY(dtype_asked(op, DType::int32));
  if (x.shape().rank() != 2 || x.shape()[1] < 1) return wrong_input(op, 0, "be [batch,classes] with one class or more");
  if (dtype != DType::int32 && dtype != DType::int64)
    return wrong_attribute("dtype", name_of(dtype), "be int32 or int64");
  const int64_t classes = x.shape()[1];
  const Shape shape = PX_TRY(shape_of(Ints{x.shape()[0], samples}));
  const MutableView y = PX_TRY(drawn_output(op, 0, dtype, shape));
  RandomNumbers numbers(seed_of(op));
  std::vector<double> cumulative(static_cast<size_t>(classes));
  for (int64_t row = 0; row < x.shape()[0]; ++row) {
    load_block<double>(x.dtype(), x.view().data, row * classes, 1, classes, cumulative.data());
    const double highest = *std::max_element(cumulative.begin(), cumulative.end());
    double sum = 0;
    for (double& value : cumulative) value = sum += std::exp(value - highest);
    if (!std::isfinite(sum))
      return wrong_value(fmt::format("the sum of probabilities of row {}", row), sum,
                         "be finite: the row's greatest logarithm must be");
    for (int64_t sample = 0; sample < samples; ++sample) {
      const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), numbers.uniform() * sum);
      const int64_t chosen = std::min<int64_t>(found - cumulative.begin(), classes - 1);
      store_block<int64_t>(dtype, y.data, row * samples + sample, 1, &chosen);
    }
  }
  return {};
}

// output = data / (1 - ratio) where a uniform number is not below the ratio, else 0. The mask says which.
Status training_dropout(Context& op, double ratio) {
  if (!(ratio >= 0 && ratio < 1)) return wrong_value("the ratio", ratio, "be in [0, 1)");
  const Tensor x = PX_TRY(op.on_host(op.input(0)));
  const MutableView y = PX_TRY(drawn_output(op, 0, x.dtype(), x.shape()));
  MutableView mask;
  if (op.wants_output(1)) {
    mask = PX_TRY(drawn_output(op, 1, op.since_version() >= 10 ? DType::bool_ : x.dtype(), x.shape()));
  }
  RandomNumbers numbers(seed_of(op));
  for (int64_t i = 0; i < x.element_count(); ++i) {
    const int64_t kept = numbers.uniform() >= ratio ? 1 : 0;
    const double value = kept != 0 ? load_element<double>(x.dtype(), x.view().data, i) / (1 - ratio) : 0.0;
    store_block<double>(x.dtype(), y.data, i, 1, &value);
    if (mask.data != nullptr) store_block<int64_t>(mask.dtype, mask.data, i, 1, &kept);
  }
  return {};
}

constexpr KernelRow<CompiledDevice> kRandomRows[] = {
    {"Bernoulli", kFloats, bernoulli},
    {"Multinomial", kFloats, multinomial},
    {"RandomNormal", kAnything, of_shape<normal>},
    {"RandomNormalLike", kAnyTensor, like<normal>},
    {"RandomUniform", kAnything, of_shape<uniform>},
    {"RandomUniformLike", kAnyTensor, like<uniform>},
};

}  // namespace

Status random_dropout(OpContext<CompiledDevice>& op, double ratio) { return training_dropout(op, ratio); }

template <>
Rows<CompiledDevice> random_rows() {
  return kRandomRows;
}

}  // namespace parallax::runtime
