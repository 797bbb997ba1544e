// SPDX-License-Identifier: Apache-2.0
// Cast and CastLike: every element type to every other, as the tables of Cast (operator set 19 to 25) say; BitCast: the
// same bits as another type.
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "inspector/base/text.h"
#include "inspector/model/rule_errors.h"
#include "inspector/tensor/elements.h"
#include "inspector/tensor/float_formats.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

struct CastRules {
  DType to;
  bool saturate = true;                   // to the float8 formats
  E8M0Rounding round = E8M0Rounding::up;  // to float8e8m0
};

bool is_small_float(DType dtype) { return is_floating(dtype) && bits_of(dtype) <= 8; }

uint8_t small_float_bits(double value, const CastRules& rules) {
  return small_float_from_double(rules.to, value, rules.saturate, rules.round);
}

// The values as `rules.to` has them. Formats of 8 bits and less are written as their bits: storing a rounded value
// would round it once more, by the default rules.
void store_floats(Tensor& output, int64_t begin, std::span<double> values, const CastRules& rules) {
  const bool as_bits = is_small_float(output.dtype());
  for (size_t index = 0; as_bits && index < values.size(); ++index) {
    store_packed(output.mutable_data(), bits_of(rules.to), begin + static_cast<int64_t>(index),
                 small_float_bits(values[index], rules));
  }
  if (as_bits) return;
  for (double& value : values) {
    value = is_small_float(rules.to) ? small_float_to_double(rules.to, small_float_bits(value, rules))
                                     : round_to_dtype(rules.to, value);
  }
  store<double>(output, begin, std::span<const double>(values));
}

// An integer beyond 2^53 as a double whose last bit says whether anything was cut off, so that one further rounding to
// a narrower float is the rounding of the integer itself.
double sticky_double(uint64_t magnitude) {
  if (magnitude < (uint64_t{1} << 53U)) return static_cast<double>(magnitude);
  const uint64_t cut = (magnitude >> 11U) | static_cast<uint64_t>((magnitude & 2047U) != 0);
  return static_cast<double>(cut) * 2048.0;
}

template <class T>
double integer_to_double(T value, DType to) {
  if (to == DType::float64) return static_cast<double>(value);
  if constexpr (std::is_same_v<T, int64_t>) {
    if (value < 0) return -sticky_double(uint64_t{0} - static_cast<uint64_t>(value));
  }
  return sticky_double(static_cast<uint64_t>(value));
}

// Toward zero; types of less than a byte to nearest, ties to even (the documentation's pages on 4 and 2 bit integers).
// Out of range, which the specification leaves open, is what truncate_to_integer says.
int64_t float_to_integer(double value, DType to) {
  return truncate_to_integer(is_sub_byte(to) ? std::nearbyint(value) : value, to);
}

// "3.14", "1e-5", "NaN", "INF", "-inf", with spaces around: what the specification of Cast from string allows.
Result<double> parse_number(std::string_view text) {
  const std::string owned(text);
  size_t used = 0;
  char* end = nullptr;
  const double value = std::strtod(owned.c_str(), &end);
  used = static_cast<size_t>(end - owned.c_str());
  while (used < owned.size() && owned[used] == ' ') ++used;
  if (owned.empty() || end == owned.c_str() || used != owned.size())
    return wrong_value("an element", fmt::format("'{}'", text), "be a number");
  return value;
}

Status cast_from_strings(const Tensor& input, Tensor& output, const CastRules& rules) {
  const auto texts = input.as<std::string>();
  for (size_t index = 0; index < texts.size(); ++index) {
    const auto position = static_cast<int64_t>(index);
    if (!is_floating(output.dtype())) {
      int64_t whole = 0;
      const char* end = texts[index].data() + texts[index].size();
      const auto parsed = std::from_chars(texts[index].data(), end, whole);
      if (parsed.ec != std::errc{} || parsed.ptr != end) {
        whole = float_to_integer(PX_TRY(parse_number(texts[index])), output.dtype());
      }
      store<int64_t>(output, position, std::span<const int64_t>(&whole, 1));
      continue;
    }
    double value = PX_TRY(parse_number(texts[index]));
    store_floats(output, position, std::span<double>(&value, 1), rules);
  }
  return {};
}

Result<Tensor> cast_to_strings(OpContext& op, const Tensor& input) {
  Tensor output = PX_TRY(op.allocate(DType::string, input.shape()));
  const auto texts = output.mutable_as<std::string>();
  for (size_t index = 0; index < texts.size(); ++index)
    texts[index] = element_to_string(input, static_cast<int64_t>(index));
  return output;
}

Status cast_numbers(const Tensor& input, Tensor& output, const CastRules& rules) {
  const DType to = output.dtype();
  return with_number_type(input.dtype(), [&](auto number) -> Status {
    using T = decltype(number);
    for_blocks(input.element_count(), 3, [&](int64_t begin, int64_t end) {
      std::vector<T> in(static_cast<size_t>(end - begin));
      load<T>(input, begin, in);
      if (is_floating(to)) {
        std::vector<double> out(in.size());
        for (size_t index = 0; index < in.size(); ++index) {
          if constexpr (std::is_same_v<T, double>)
            out[index] = in[index];
          else
            out[index] = integer_to_double(in[index], rules.to);
        }
        return store_floats(output, begin, out, rules);
      }
      std::vector<int64_t> out(in.size());
      for (size_t index = 0; index < in.size(); ++index) {
        if (to == DType::bool_)
          out[index] = in[index] != T{0} ? 1 : 0;
        else if constexpr (std::is_same_v<T, double>)
          out[index] = float_to_integer(in[index], to);
        else
          out[index] = static_cast<int64_t>(in[index]);
      }
      store<int64_t>(output, begin, out);
    });
    return {};
  });
}

Status cast(OpContext& op, CastRules rules) {
  const bool to_integers = !is_floating(rules.to) && rules.to != DType::bool_ && rules.to != DType::string;
  const Tensor input = to_integers ? PX_TRY(op.as_declared(0)) : op.input(0);
  // In double precision a cast between floats leaves the value as it is, unless casts are to be kept.
  if (op.carries_double() && is_floating(rules.to) && !op.keeps_casts()) rules.to = DType::float64;
  const DType carried = op.carried(rules.to);
  if (input.dtype() == carried && rules.to == carried) return op.set_output(0, input);
  if (rules.to == DType::string) return op.set_output(0, PX_TRY(cast_to_strings(op, input)));
  Tensor output = PX_TRY(op.allocate(rules.to, input.shape()));
  if (input.dtype() == DType::string) {
    PX_TRY(cast_from_strings(input, output, rules));
  } else {
    PX_TRY(cast_numbers(input, output, rules));
  }
  return op.set_output(0, std::move(output));
}

Result<CastRules> rules_of(const OpContext& op, DType to) {
  CastRules rules{to};
  rules.saturate = op.find_int("saturate").value_or(1) != 0;
  const std::string mode = op.find_string("round_mode").value_or("up");
  if (mode == "down")
    rules.round = E8M0Rounding::down;
  else if (mode == "nearest")
    rules.round = E8M0Rounding::nearest;
  else if (mode != "up")
    return wrong_attribute("round_mode", mode, "be up, down or nearest");
  return rules;
}

Status op_cast(OpContext& op) {
  if (op.since_version() < 6) {  // the type stood as text
    const auto named = dtype_from_name(lower_case(op.string_attribute("to")));
    if (!named.has_value()) return wrong_attribute("to", op.string_attribute("to"), "be the name of an element type");
    return cast(op, {*named});
  }
  const auto to = dtype_from_number(op.int_attribute("to"));
  if (!to.has_value())
    return unsupported(
        fmt::format("attribute 'to' is {}; only numbers of element types have a function", op.int_attribute("to")));
  return cast(op, PX_TRY(rules_of(op, *to)));
}

// The second input lends its type. In double precision all floats are one: then it is the type the model declares.
Status op_cast_like(OpContext& op) {
  const DType carried = op.input(1).dtype();
  if (!op.carries_double() || !is_floating(carried)) return cast(op, PX_TRY(rules_of(op, carried)));
  const auto declared = op.declared_type(1);
  if (!declared.has_value() && op.keeps_casts())
    return unsupported("keeping casts in double precision: the model does not say the type of the second input");
  return cast(op, PX_TRY(rules_of(op, declared.value_or(carried))));
}

// BitCast-26: types of one width. Elements are held as the specification wants them read, little-endian. In double
// precision a float is first rounded to the type the model declares, whose bits are asked for.
Status op_bit_cast(OpContext& op) {
  const auto to = dtype_from_number(op.int_attribute("to"));
  if (!to.has_value() || *to == DType::string)
    return wrong_attribute("to", op.int_attribute("to"), "be the number of an element type of fixed width");
  if (op.carries_double() && op.input(0).dtype() == DType::float64 && !op.declared_type(0).has_value())
    return unsupported("bits of a float in double precision: the model does not say its type");
  const Tensor input = PX_TRY(op.as_declared(0));
  if (bits_of(input.dtype()) != bits_of(*to))
    return wrong_input(op, 0, "have {} bits an element, the width of {}", bits_of(*to), name_of(*to));
  const Tensor same_bits = Tensor::wrap(*to, input.shape(), input.storage());
  return op.set_output(0, PX_TRY(op.carry(same_bits)));
}

constexpr OpRow kCastRows[] = {
    {"BitCast", kOnnx, 26, 26, op_bit_cast},
    {"Cast", kOnnx, 1, 28, op_cast},
    {"CastLike", kOnnx, 15, 25, op_cast_like},
};

}  // namespace

OpRows cast_rows() { return kCastRows; }

}  // namespace parallax::reference
