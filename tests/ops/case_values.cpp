// SPDX-License-Identifier: Apache-2.0
// Reads values of cases from JSON.
#include "tests/ops/case_values.h"

#include <charconv>
#include <complex>
#include <limits>

#include <fmt/format.h>

#include "inspector/tensor/elements.h"
#include "inspector/tensor/float_formats.h"

namespace parallax::tests {
namespace {

// Types are nested in parentheses; the reader stands at one character.
class TypeReader {
 public:
  explicit TypeReader(std::string_view text) : text_(text) {}

  Result<TypeInfo> read_all() {
    TypeInfo type = PX_TRY(read());
    if (!text_.empty()) return usage_error(fmt::format("'{}' after a type", text_));
    return type;
  }

 private:
  Result<TypeInfo> read() {
    const std::string_view word = take_while([](char c) { return c != '(' && c != '[' && c != ',' && c != ')'; });
    if (accept('(')) return read_container(word);
    const auto dtype = dtype_from_name(word);
    if (!dtype.has_value()) return usage_error(fmt::format("no element type '{}'", word));
    TypeInfo type = TypeInfo::tensor(*dtype);
    if (accept('[')) type.dims = PX_TRY(read_dims());
    return type;
  }

  Result<TypeInfo> read_container(std::string_view word) {
    TypeInfo type = PX_TRY(read());
    if (word == "map") {
      if (!accept(',')) return usage_error("a map's type needs two arguments");
      type = TypeInfo::map(type.dtype, PX_TRY(read()));
    } else if (word == "seq") {
      type = TypeInfo::sequence(type);
    } else if (word == "optional") {
      type = TypeInfo::optional(type);
    } else {
      return usage_error(fmt::format("no type '{}'", word));
    }
    if (!accept(')')) return usage_error("a type's ')' is missing");
    return type;
  }

  Result<std::vector<Dim>> read_dims() {
    std::vector<Dim> dims;
    while (!accept(']')) {
      const std::string_view word = take_while([](char c) { return c != ',' && c != ']'; });
      if (word.empty()) return usage_error("a dimension is missing");
      Dim& dim = dims.emplace_back();
      const auto parsed = std::from_chars(word.data(), word.data() + word.size(), dim.value);
      if (parsed.ptr != word.data() + word.size()) dim = {-1, word == "?" ? "" : std::string(word)};
      accept(',');
    }
    return dims;
  }

  template <class Accepts>
  std::string_view take_while(Accepts accepts) {
    size_t count = 0;
    while (count < text_.size() && accepts(text_[count])) ++count;
    const std::string_view taken = text_.substr(0, count);
    text_.remove_prefix(count);
    return taken;
  }

  bool accept(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }

  std::string_view text_;
};

double number_from_json(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const std::string& word = json.get_ref<const std::string&>();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  PX_CHECK(word == "inf" || word == "-inf");
  return word == "inf" ? infinity : -infinity;
}

int64_t integer_from_json(const Json& json) {
  if (json.is_boolean()) return json.get<bool>() ? 1 : 0;
  return json.is_number_unsigned() ? static_cast<int64_t>(json.get<uint64_t>()) : json.get<int64_t>();
}

void store_complex(Tensor& tensor, const std::vector<std::complex<double>>& values) {
  for (size_t index = 0; index < values.size(); ++index) {
    if (tensor.dtype() == DType::complex128) {
      tensor.mutable_as<std::complex<double>>()[index] = values[index];
    } else {
      tensor.mutable_as<std::complex<float>>()[index] = std::complex<float>(values[index]);
    }
  }
}

void store_elements(Tensor& tensor, const Json& values) {
  const DType dtype = tensor.dtype();
  if (dtype == DType::string) {
    for (size_t index = 0; index < values.size(); ++index)
      tensor.mutable_as<std::string>()[index] = values[index].get<std::string>();
  } else if (dtype == DType::uint64) {
    for (size_t index = 0; index < values.size(); ++index)
      tensor.mutable_as<uint64_t>()[index] = values[index].get<uint64_t>();
  } else if (is_complex(dtype)) {
    std::vector<std::complex<double>> numbers;
    for (const Json& pair : values) numbers.emplace_back(number_from_json(pair.at(0)), number_from_json(pair.at(1)));
    store_complex(tensor, numbers);
  } else if (is_floating(dtype)) {
    std::vector<double> numbers;
    for (const Json& value : values) numbers.push_back(number_from_json(value));
    store_doubles(tensor, 0, numbers);
    if (dtype == DType::float8e5m2) {  // whose infinities a case means as it says them
      for (size_t index = 0; index < numbers.size(); ++index)
        tensor.mutable_data()[index] = static_cast<std::byte>(small_float_from_double(dtype, numbers[index], false));
    }
  } else {
    std::vector<int64_t> numbers;
    for (const Json& value : values) numbers.push_back(integer_from_json(value));
    store_int64s(tensor, 0, numbers);
  }
}

Result<Value> tensor_from_json(const TypeInfo& type, const Json& values) {
  if (!type.dims.has_value()) return usage_error("a tensor needs its dimensions");
  std::vector<int64_t> dims;
  for (const Dim& dim : *type.dims) dims.push_back(dim.value);
  const Shape shape = PX_TRY(Shape::create(dims));
  Tensor tensor = PX_TRY(Tensor::allocate(type.dtype, shape));
  if (values.size() != static_cast<size_t>(tensor.element_count()))
    return usage_error(fmt::format("{} with {} values", to_string(type), values.size()));
  store_elements(tensor, values);
  return Value(std::move(tensor));
}

Result<std::vector<Value>> values_from_json(const Json& items) {
  std::vector<Value> values;
  for (const Json& item : items) values.push_back(PX_TRY(value_from_json(item)));
  return values;
}

}  // namespace

Result<TypeInfo> parse_type(const std::string& text) {
  return add_context(TypeReader(text).read_all(), fmt::format("type '{}'", text));
}

Result<Value> value_from_json(const Json& json) {
  if (json.is_null()) return Value();
  const TypeInfo type = PX_TRY(parse_type(json.at("type").get<std::string>()));
  if (type.kind == TypeInfo::Kind::tensor) return tensor_from_json(type, json.at("values"));
  std::vector<Value> items = PX_TRY(values_from_json(json.at("items")));
  if (type.kind == TypeInfo::Kind::sequence) return Value(SequenceValue{type.inner.front(), std::move(items)});
  if (type.kind == TypeInfo::Kind::optional) return Value(OptionalValue{type.inner.front(), std::move(items)});
  const Value keys = PX_TRY(value_from_json(json.at("keys")));
  return Value(MapValue{keys.tensor(), type.inner.front(), std::move(items)});
}

}  // namespace parallax::tests
