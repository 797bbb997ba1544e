// SPDX-License-Identifier: Apache-2.0
// Random operators: RandomNormal, RandomUniform (and Like), Bernoulli, Multinomial, Dropout. The specification leaves
// the generator open. This one is stated, so that a run can be repeated anywhere: MT19937 (Matsumoto and Nishimura,
// 1998) started by its init_genrand from 32 bits, std::mt19937. Uniform numbers are its genrand_res53; normal ones come
// from them by Marsaglia's polar method. numpy's RandomState does the same, so that numbers with a seed are those of
// onnx's own evaluator.
#include <algorithm>
#include <cmath>
#include <random>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

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

// FNV-1a, 32 bits.
uint32_t hash_of(std::string_view text) {
  uint32_t hash = 2166136261U;
  for (char character : text) hash = (hash ^ static_cast<unsigned char>(character)) * 16777619U;
  return hash;
}

RandomSource RandomSource::of(const OpContext& op) {
  const std::string frames = op.frames();
  const AttributeSchema* schema = op.node().schema->attribute("seed");
  std::optional<double> seed;
  if (schema != nullptr && schema->type == AttributeType::int_) {
    if (const auto given = op.find_int("seed")) seed = static_cast<double>(*given);
  } else {
    seed = op.find_float("seed");
  }
  if (!seed.has_value()) return RandomSource(hash_of(frames + op.node().display_name));
  const auto number = static_cast<uint32_t>(static_cast<uint64_t>(truncate_to_int64(*seed)));
  return RandomSource(frames.empty() ? number : number ^ hash_of(frames));
}

double RandomSource::uniform() {
  const auto high = static_cast<double>(engine_() >> 5U);
  const auto low = static_cast<double>(engine_() >> 6U);
  return (high * 0x1p26 + low) * 0x1p-53;
}

double RandomSource::normal() {
  if (has_second_) {
    has_second_ = false;
    return second_normal_;
  }
  double x = 0;
  double y = 0;
  double square = 0;
  do {
    x = 2 * uniform() - 1;
    y = 2 * uniform() - 1;
    square = x * x + y * y;
  } while (square >= 1 || square == 0);
  const double factor = std::sqrt(-2 * std::log(square) / square);
  second_normal_ = factor * x;
  has_second_ = true;
  return factor * y;
}

// The attribute dtype; where it is not given, `otherwise`.
Result<DType> type_asked(const OpContext& op, DType otherwise) {
  const auto number = op.find_int("dtype");
  if (!number.has_value()) return otherwise;
  const auto dtype = dtype_from_number(*number);
  if (!dtype.has_value()) return wrong_attribute("dtype", *number, "be the number of an element type");
  return *dtype;
}

Status expect_float(DType dtype) {
  if (is_floating(dtype)) return {};
  return wrong_attribute("dtype", name_of(dtype), "be a floating type");
}

// One drawn number for each element, in row-major order.
template <class Draw>
Status draw_floats(OpContext& op, DType dtype, const Shape& shape, const Draw& draw) {
  PX_TRY(expect_float(dtype));
  Tensor output = PX_TRY(op.allocate(dtype, shape));
  for (int64_t index = 0; index < shape.element_count(); ++index) {
    const double value = draw();
    store<double>(output, index, std::span<const double>(&value, 1));
  }
  return op.set_output(0, std::move(output));
}

Status draw_uniform(OpContext& op, DType dtype, const Shape& shape) {
  const double low = op.float_attribute("low");
  const double range = op.float_attribute("high") - low;
  RandomSource source = RandomSource::of(op);
  return draw_floats(op, dtype, shape, [&] { return low + range * source.uniform(); });
}

Status draw_normal(OpContext& op, DType dtype, const Shape& shape) {
  const double mean = op.float_attribute("mean");
  const double scale = op.float_attribute("scale");
  RandomSource source = RandomSource::of(op);
  return draw_floats(op, dtype, shape, [&] { return mean + scale * source.normal(); });
}

Result<Shape> shape_attribute(const OpContext& op) {
  const std::vector<int64_t> dims = op.find_ints("shape").value_or(std::vector<int64_t>{});
  return Shape::create(dims);
}

Status op_random_uniform(OpContext& op) {
  const Shape shape = PX_TRY(shape_attribute(op));
  return draw_uniform(op, PX_TRY(type_asked(op, DType::float32)), shape);
}

Status op_random_uniform_like(OpContext& op) {
  return draw_uniform(op, PX_TRY(type_asked(op, op.input(0).dtype())), op.input(0).shape());
}

Status op_random_normal(OpContext& op) {
  const Shape shape = PX_TRY(shape_attribute(op));
  return draw_normal(op, PX_TRY(type_asked(op, DType::float32)), shape);
}

Status op_random_normal_like(OpContext& op) {
  return draw_normal(op, PX_TRY(type_asked(op, op.input(0).dtype())), op.input(0).shape());
}

// 1 where a uniform number is below the probability, as the function body of the specification has it.
Status op_bernoulli(OpContext& op) {
  const Tensor& input = op.input(0);
  const DType dtype = PX_TRY(type_asked(op, input.dtype()));
  const Numbers<double> probabilities(input);
  RandomSource source = RandomSource::of(op);
  std::vector<int64_t> drawn;
  for (double probability : probabilities.span()) {
    if (!(probability >= 0 && probability <= 1))
      return wrong_value("an element of the input", probability, "be a probability in [0, 1]");
    drawn.push_back(source.uniform() < probability ? 1 : 0);
  }
  if (is_floating(dtype)) {
    return op.set_output(0, dtype, input.shape(),
                         std::span<const double>(std::vector<double>(drawn.begin(), drawn.end())));
  }
  if (!is_integer(dtype) && dtype != DType::bool_)
    return wrong_attribute("dtype", name_of(dtype), "be an integer, floating or bool type");
  return op.set_output(0, dtype, input.shape(), std::span<const int64_t>(drawn));
}

// Row by row, `sample_size` classes by the inverse of the cumulative distribution. The input holds unnormalized
// logarithms of the probabilities.
Status op_multinomial(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const int64_t samples = op.int_attribute("sample_size");
  const DType dtype = PX_TRY(type_asked(op, DType::int32));
  if (shape.rank() != 2 || shape[1] < 1) return wrong_input(op, 0, "be [batch,classes] with one class or more");
  if (dtype != DType::int32 && dtype != DType::int64)
    return wrong_attribute("dtype", name_of(dtype), "be int32 or int64");
  const std::array<int64_t, 2> dims{shape[0], samples};
  const Shape result = PX_TRY(Shape::create(dims));
  const Numbers<double> logarithms(op.input(0));
  RandomSource source = RandomSource::of(op);
  Tensor output = PX_TRY(op.allocate(dtype, result));
  for (int64_t row = 0; row < shape[0]; ++row) {
    const auto classes = logarithms.span().subspan(static_cast<size_t>(row * shape[1]), static_cast<size_t>(shape[1]));
    const double highest = *std::max_element(classes.begin(), classes.end());
    std::vector<double> cumulative;
    for (double logarithm : classes) {
      cumulative.push_back((cumulative.empty() ? 0.0 : cumulative.back()) + std::exp(logarithm - highest));
    }
    if (!std::isfinite(cumulative.back()))
      return wrong_value(fmt::format("the sum of probabilities of row {}", row), cumulative.back(),
                         "be finite: the row's greatest logarithm must be");
    for (int64_t sample = 0; sample < samples; ++sample) {
      const double location = source.uniform() * cumulative.back();
      const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), location);
      const int64_t chosen = std::min<int64_t>(found - cumulative.begin(), shape[1] - 1);
      store<int64_t>(output, row * samples + sample, std::span<const int64_t>(&chosen, 1));
    }
  }
  return op.set_output(0, std::move(output));
}

// The mask as the version has it: of type bool since version 10, before of the data's type.
Status set_mask(OpContext& op, const std::vector<int64_t>& kept) {
  if (!op.wants_output(1)) return {};
  const Tensor& data = op.input(0);
  if (op.since_version() >= 10) return op.set_output(1, DType::bool_, data.shape(), std::span<const int64_t>(kept));
  const std::vector<double> numbers(kept.begin(), kept.end());
  return op.set_output(1, data.dtype(), data.shape(), std::span<const double>(numbers));
}

Status keep_all(OpContext& op) {
  PX_TRY(op.set_output(0, op.input(0)));
  return set_mask(op, std::vector<int64_t>(static_cast<size_t>(op.input(0).element_count()), 1));
}

// output = scale * data * mask with scale = 1 / (1 - ratio); an element is kept where a uniform number is not below the
// ratio.
Status drop(OpContext& op, double ratio) {
  if (!(ratio >= 0 && ratio < 1)) return wrong_value("the ratio", ratio, "be in [0, 1)");
  if (ratio == 0) return keep_all(op);
  const Tensor& data = op.input(0);
  const Numbers<double> numbers(data);
  RandomSource source = RandomSource::of(op);
  std::vector<int64_t> kept;
  std::vector<double> results;
  for (double number : numbers.span()) {
    kept.push_back(source.uniform() >= ratio ? 1 : 0);
    results.push_back(kept.back() != 0 ? number / (1 - ratio) : 0.0);
  }
  PX_TRY(op.set_output(0, data.dtype(), data.shape(), std::span<const double>(results)));
  return set_mask(op, kept);
}

// Since version 12 the ratio and training_mode are inputs.
Status op_dropout(OpContext& op) {
  const bool training = op.has_input(2) && PX_TRY(op.int64_of_input(2)) != 0;
  if (!training) return keep_all(op);
  return drop(op, op.has_input(1) ? PX_TRY(op.double_of_input(1)) : 0.5);
}

// Versions 7 and 10 describe inference alone.
Status op_dropout_7(OpContext& op) { return keep_all(op); }

// Versions 1 and 6 drop unless is_test is set.
Status op_dropout_1(OpContext& op) {
  return op.int_attribute("is_test") != 0 ? keep_all(op) : drop(op, op.float_attribute("ratio"));
}

constexpr OpRow kRandomRows[] = {
    {"Bernoulli", kOnnx, 15, 22, op_bernoulli},
    {"Dropout", kOnnx, 1, 6, op_dropout_1},
    {"Dropout", kOnnx, 7, 10, op_dropout_7},
    {"Dropout", kOnnx, 12, 22, op_dropout},
    {"Multinomial", kOnnx, 7, 22, op_multinomial},
    {"RandomNormal", kOnnx, 1, 22, op_random_normal},
    {"RandomNormalLike", kOnnx, 1, 22, op_random_normal_like},
    {"RandomUniform", kOnnx, 1, 22, op_random_uniform},
    {"RandomUniformLike", kOnnx, 1, 22, op_random_uniform_like},
};

}  // namespace

OpRows random_rows() { return kRandomRows; }

}  // namespace parallax::reference
