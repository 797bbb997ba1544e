// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml's dictionaries: CastMap, DictVectorizer, ZipMap.
#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/ml/shared.h"
#include "reference/ops/move.h"

namespace parallax::reference {
namespace {

// One element of a map's values as a tensor.
Result<Tensor> single(const Value& value) {
  if (value.is_tensor() && value.tensor().element_count() == 1) return value.tensor();
  return wrong_value("a value of the map", to_string(type_of(value)), "be one element");
}

template <class T>
Result<T> parse(const std::string& text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return wrong_value("a value of the map", fmt::format("'{}'", text), "be a number");
}

// The value in the type asked. Floats become integers toward zero; the text of a float is the shortest that reads back
// (the page leaves its form open; onnxruntime writes six decimals).
Result<Tensor> cast_single(const Tensor& value, DType to) {
  if (value.dtype() == to) return value;
  if (value.dtype() == DType::string) {
    const std::string& text = value.as<std::string>()[0];
    if (to == DType::int64) return Tensor::scalar<int64_t>(PX_TRY(parse<int64_t>(text)));
    return Tensor::scalar<float>(PX_TRY(parse<float>(text)));
  }
  const double number = element_as_double(value, 0);
  if (to == DType::int64) return Tensor::scalar<int64_t>(truncate_to_int64(number));
  if (to == DType::string) return Tensor::scalar<std::string>(fmt::format("{}", static_cast<float>(number)));
  return value;
}

Tensor zero_of(DType dtype) {
  if (dtype == DType::string) return Tensor::scalar<std::string>({});
  return Tensor::zeros(dtype, Shape{}).take();
}

// Output 0 as [1, items], an item left out being 0 or "".
Status set_row(OpContext& op, DType dtype, const std::vector<Tensor>& items) {
  Tensor output = PX_TRY(op.allocate(dtype, Shape{1, static_cast<int64_t>(items.size())}));
  for (size_t index = 0; index < items.size(); ++index) {
    const Tensor item = PX_TRY(op.carry(items[index].defined() ? items[index] : zero_of(dtype)));
    copy_run(item, 0, output, static_cast<int64_t>(index), 1);
  }
  return op.set_output(0, std::move(output));
}

Result<DType> target_of(const std::string& cast_to) {
  if (cast_to == "TO_FLOAT") return DType::float32;
  if (cast_to == "TO_INT64") return DType::int64;
  if (cast_to == "TO_STRING") return DType::string;
  return as_invalid_model(wrong_attribute("cast_to", cast_to, "be TO_FLOAT, TO_INT64 or TO_STRING"));
}

// ai.onnx.ml CastMap-1: the values by ascending key, or with map_form SPARSE each at its key's position.
Status op_ml_cast_map(OpContext& op) {
  const MapValue& map = op.value(0).map();
  const DType dtype = PX_TRY(target_of(op.string_attribute("cast_to")));
  const std::string form = op.string_attribute("map_form");
  if (form != "DENSE" && form != "SPARSE")
    return as_invalid_model(wrong_attribute("map_form", form, "be DENSE or SPARSE"));
  std::map<int64_t, Tensor> entries;
  const std::vector<int64_t> keys = to_int64s(map.keys);
  for (size_t index = 0; index < keys.size(); ++index) {
    const Tensor value = PX_TRY(single(map.values[index]));
    entries[keys[index]] = PX_TRY(cast_single(value, dtype));
  }
  std::vector<Tensor> items;
  if (form == "DENSE") {
    for (const auto& [key, item] : entries) items.push_back(item);
    return set_row(op, dtype, items);
  }
  constexpr int64_t kLongest = int64_t{1} << 28;
  const int64_t length = op.int_attribute("max_map");
  if (length <= 0 || length > kLongest)
    return as_invalid_model(wrong_attribute("max_map", length, "be in [1, {}]", kLongest));
  items.resize(static_cast<size_t>(length));
  for (const auto& [key, item] : entries) {
    if (key < 0 || key >= length) return wrong_value("a key of the map", key, "be in [0, {}), 'max_map'", length);
    items[static_cast<size_t>(key)] = item;
  }
  return set_row(op, dtype, items);
}

// ai.onnx.ml DictVectorizer-1. The page promises a 1-D tensor; both peers and the converters have [1, C]. A key outside
// the vocabulary, which the page forbids, is left out as the peers do.
Status op_ml_dict_vectorizer(OpContext& op) {
  const MapValue& map = op.value(0).map();
  const std::vector<std::string> texts = strings_or_empty(op, "string_vocabulary");
  const std::vector<int64_t> numbers = ints_or_empty(op, "int64_vocabulary");
  const bool by_text = map.keys.dtype() == DType::string;
  if (by_text ? texts.empty() : numbers.empty())
    return invalid_model(fmt::format("the keys are of type {} and have no vocabulary; attribute '{}' must be given",
                                     name_of(map.keys.dtype()), by_text ? "string_vocabulary" : "int64_vocabulary"));
  std::vector<Tensor> items(by_text ? texts.size() : numbers.size());
  const auto fill = [&](const auto& vocabulary, const auto& keys) -> Status {
    std::map<std::decay_t<decltype(keys[0])>, size_t> entries;
    for (size_t index = 0; index < map.values.size(); ++index) entries[keys[index]] = index;
    for (size_t index = 0; index < vocabulary.size(); ++index) {
      const auto entry = entries.find(vocabulary[index]);
      if (entry != entries.end()) items[index] = PX_TRY(single(map.values[entry->second]));
    }
    return {};
  };
  PX_TRY(by_text ? fill(texts, map.keys.as<std::string>()) : fill(numbers, to_int64s(map.keys)));
  const DType dtype = map.value_type.dtype;
  return set_row(op, dtype, items);
}

// ai.onnx.ml ZipMap-1: a sequence with one map from labels to scores for each row.
Status op_ml_zip_map(OpContext& op) {
  const Tensor& x = op.input(0);
  const Shape& shape = x.shape();
  const ClassLabels labels = PX_TRY(ClassLabels::create(op, "classlabels_int64s"));
  if (shape.rank() < 1 || shape.rank() > 2 || shape[shape.rank() - 1] != labels.size())
    return wrong_input(op, 0, "have rank 1 or 2 and a last axis of {}, the labels", labels.size());
  const Tensor keys =
      labels.strings.empty() ? Tensor::vector<int64_t>(labels.integers) : Tensor::vector<std::string>(labels.strings);
  const TypeInfo score = TypeInfo::tensor(x.dtype());
  SequenceValue maps{TypeInfo::map(keys.dtype(), score), {}};
  const int64_t rows = shape.rank() == 2 ? shape[0] : 1;
  for (int64_t row = 0; row < rows; ++row) {
    MapValue map{keys, score, {}};
    for (int64_t column = 0; column < labels.size(); ++column) {
      Tensor item = PX_TRY(op.allocate(x.dtype(), Shape{}));
      copy_run(x, row * labels.size() + column, item, 0, 1);
      map.values.emplace_back(std::move(item));
    }
    maps.items.emplace_back(std::move(map));
  }
  return op.set_output(0, Value(std::move(maps)));
}

constexpr OpRow kMlMapsRows[] = {
    {"CastMap", kMl, 1, 1, op_ml_cast_map},
    {"DictVectorizer", kMl, 1, 1, op_ml_dict_vectorizer},
    {"ZipMap", kMl, 1, 1, op_ml_zip_map},
};

}  // namespace

OpRows ml_maps_rows() { return kMlMapsRows; }

}  // namespace parallax::reference
