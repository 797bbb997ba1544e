// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml's tables of categories: LabelEncoder, CategoryMapper, OneHotEncoder.
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/ml/shared.h"
#include "reference/ops/move.h"

namespace parallax::reference {
namespace {

// For each element of x its position among the keys, or `otherwise`. Of equal keys the last counts (the page of
// LabelEncoder-4); NaN equals NaN.
template <class Key>
std::vector<int64_t> positions_of(std::span<const Key> x, std::span<const Key> keys, int64_t otherwise) {
  const auto is_nan = [](const Key& key) {
    if constexpr (std::is_same_v<Key, double>) return std::isnan(key);
    return false;
  };
  std::map<Key, int64_t> locations;
  int64_t index_of_nan = otherwise;
  for (size_t index = 0; index < keys.size(); ++index) {
    (is_nan(keys[index]) ? index_of_nan : locations[keys[index]]) = static_cast<int64_t>(index);
  }
  std::vector<int64_t> positions;
  for (const Key& element : x) {
    const auto found = is_nan(element) ? locations.end() : locations.find(element);
    positions.push_back(is_nan(element) ? index_of_nan : found == locations.end() ? otherwise : found->second);
  }
  return positions;
}

// The index in `keys` of each element of x, for tensors of any element type; keys and x must both be strings, floats or
// integers.
Result<std::vector<int64_t>> positions_of(const Tensor& x, const Tensor& keys, int64_t otherwise) {
  if (x.dtype() == DType::string && keys.dtype() == DType::string) {
    return positions_of(x.as<std::string>(), keys.as<std::string>(), otherwise);
  }
  if (is_floating(x.dtype()) && is_floating(keys.dtype())) {
    return positions_of(Numbers<double>(x).span(), Numbers<double>(keys).span(), otherwise);
  }
  if (is_integer(x.dtype()) && is_integer(keys.dtype())) {
    return positions_of(Numbers<int64_t>(x).span(), Numbers<int64_t>(keys).span(), otherwise);
  }
  return wrong_value("the element type of the input", name_of(x.dtype()), "be that of the keys, {}",
                     name_of(keys.dtype()));
}

// Output 0: for each element of input 0 the value at its key's position, or `otherwise`, one element of the values'
// type.
Status map_elements(OpContext& op, const Tensor& keys, const Tensor& values, const Tensor& otherwise) {
  const Tensor& x = op.input(0);
  if (keys.element_count() != values.element_count())
    return invalid_model(fmt::format("there are {} keys and {} values; they must be equally many", keys.element_count(),
                                     values.element_count()));
  if (otherwise.element_count() != 1 || otherwise.dtype() != values.dtype())
    return invalid_model(fmt::format("the default is {}{}; it must be one {}", name_of(otherwise.dtype()),
                                     otherwise.shape().to_string(), name_of(values.dtype())));
  const std::vector<int64_t> positions = PX_TRY(positions_of(x, keys, kFill));
  const Tensor source = PX_TRY(op.carry(values));
  const Tensor fill = PX_TRY(op.carry(otherwise));
  Tensor output = PX_TRY(op.allocate(values.dtype(), x.shape()));
  gather_elements(
      source, output, [&](int64_t at) { return positions[static_cast<size_t>(at)]; }, &fill.view());
  return op.set_output(0, std::move(output));
}

Tensor strings(const std::vector<std::string>& list) { return Tensor::vector<std::string>(list); }
Tensor integers(const std::vector<int64_t>& list) { return Tensor::vector<int64_t>(list); }

// The one list that is given of `prefix`_strings, _int64s, _floats and _tensor.
Result<Tensor> one_list(const OpContext& op, const std::string& prefix) {
  std::vector<Tensor> found;
  if (const auto list = op.find_strings(prefix + "_strings")) found.push_back(strings(*list));
  if (const auto list = op.find_ints(prefix + "_int64s")) found.push_back(integers(*list));
  if (const auto list = op.find_floats(prefix + "_floats")) {
    found.push_back(Tensor::vector<float>(std::vector<float>(list->begin(), list->end())));
  }
  if (const Tensor* tensor = op.find_tensor(prefix + "_tensor")) found.push_back(*tensor);
  if (found.size() == 1) return found[0];
  return invalid_model(fmt::format("{} of the attributes '{}_*' are given; exactly one must be", found.size(), prefix));
}

// The output of an input that is not among the keys: default_tensor, else the attribute of the values' type; other
// types have -1, or -0.
Result<Tensor> default_of(const OpContext& op, DType dtype) {
  if (const Tensor* tensor = op.find_tensor("default_tensor")) return *tensor;
  if (dtype == DType::string) return strings({op.string_attribute("default_string")});
  if (dtype == DType::int64) return integers({op.int_attribute("default_int64")});
  Tensor tensor = PX_TRY(Tensor::allocate(dtype, Shape{1}));
  if (is_floating(dtype)) {
    const double value = dtype == DType::float32 ? op.float_attribute("default_float") : -0.0;
    store<double>(tensor, 0, std::span(&value, 1));
    return tensor;
  }
  if (!is_integer(dtype))
    return unsupported(
        fmt::format("the values are of type {}; only numbers and text have a function here", name_of(dtype)));
  const int64_t value = -1;
  store<int64_t>(tensor, 0, std::span(&value, 1));
  return tensor;
}

// Strings to integers, or back, by two lists of one length.
Status map_categories(OpContext& op, const std::vector<std::string>& texts, const std::vector<int64_t>& numbers) {
  const bool from_strings = op.input(0).dtype() == DType::string;
  return from_strings
             ? map_elements(op, strings(texts), integers(numbers), integers({op.int_attribute("default_int64")}))
             : map_elements(op, integers(numbers), strings(texts), strings({op.string_attribute("default_string")}));
}

// ai.onnx.ml LabelEncoder-1: strings to their positions in classes_strings, or positions to strings.
Status op_ml_label_encoder_1(OpContext& op) {
  const std::vector<std::string> classes = strings_or_empty(op, "classes_strings");
  std::vector<int64_t> positions;
  for (size_t index = 0; index < classes.size(); ++index) positions.push_back(static_cast<int64_t>(index));
  return map_categories(op, classes, positions);
}

// ai.onnx.ml LabelEncoder-2, -4. Version 2 does not say which of equal keys counts and compares NaN by its bits: read
// as version 4 has it.
Status op_ml_label_encoder(OpContext& op) {
  const Tensor keys = PX_TRY(one_list(op, "keys"));
  const Tensor values = PX_TRY(one_list(op, "values"));
  return map_elements(op, keys, values, PX_TRY(default_of(op, values.dtype())));
}

// ai.onnx.ml CategoryMapper-1. The direction follows from the input's type.
Status op_ml_category_mapper(OpContext& op) {
  return map_categories(op, strings_or_empty(op, "cats_strings"), ints_or_empty(op, "cats_int64s"));
}

// ai.onnx.ml OneHotEncoder-1: a new last axis with a 1 at the category's position. Floats are cast to integers first,
// as Cast does it: toward zero.
Status op_ml_one_hot_encoder(OpContext& op) {
  const Tensor& x = op.input(0);
  const std::vector<std::string> texts = strings_or_empty(op, "cats_strings");
  const std::vector<int64_t> numbers = ints_or_empty(op, "cats_int64s");
  if (texts.empty() == numbers.empty())
    return invalid_model(fmt::format(
        "{} of the attributes 'cats_int64s' and 'cats_strings' are given; exactly one must be", texts.empty() ? 0 : 2));
  std::vector<int64_t> positions;
  if (is_floating(x.dtype())) {
    std::vector<int64_t> cast;
    const Numbers<double> floats(x);
    for (double value : floats.span()) cast.push_back(truncate_to_int64(value));
    positions = PX_TRY(positions_of(integers(cast), texts.empty() ? integers(numbers) : strings(texts), kFill));
  } else {
    positions = PX_TRY(positions_of(x, texts.empty() ? integers(numbers) : strings(texts), kFill));
  }
  const auto count = static_cast<int64_t>(texts.size() + numbers.size());
  std::vector<int64_t> dims(x.shape().begin(), x.shape().end());
  dims.push_back(count);
  const Shape shape = PX_TRY(Shape::create(dims));
  std::vector<double> results(static_cast<size_t>(shape.element_count()), 0.0);
  for (size_t index = 0; index < positions.size(); ++index) {
    if (positions[index] != kFill) {
      results[index * static_cast<size_t>(count) + static_cast<size_t>(positions[index])] = 1.0;
    } else if (op.int_attribute("zeros") == 0)
      return wrong_value(fmt::format("element {} of the input", index),
                         element_to_string(x, static_cast<int64_t>(index)),
                         "be one of the {} categories, as attribute 'zeros' is 0", count);
  }
  return op.set_output(0, DType::float32, shape, std::span<const double>(results));
}

constexpr OpRow kMlEncodersRows[] = {
    {"CategoryMapper", kMl, 1, 1, op_ml_category_mapper},
    {"LabelEncoder", kMl, 1, 1, op_ml_label_encoder_1},
    {"LabelEncoder", kMl, 2, 4, op_ml_label_encoder},
    {"OneHotEncoder", kMl, 1, 1, op_ml_one_hot_encoder},
};

}  // namespace

OpRows ml_encoders_rows() { return kMlEncodersRows; }

}  // namespace parallax::reference
