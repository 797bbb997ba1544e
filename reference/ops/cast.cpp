// Cast and CastLike: every element type to every other, as the tables of Cast (operator set 19 to 25) say.
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "inspector/tensor/elements.h"
#include "inspector/tensor/float_formats.h"
#include "reference/ops/map.h"
#include "reference/ops/ops.h"

namespace parallax::reference {
namespace {

struct CastRules {
  DType to;
  bool saturate = true;                   // to the float8 formats
  E8M0Rounding round = E8M0Rounding::up;  // to float8e8m0
};

std::string lower_case(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

bool is_small_float(DType dtype) { return is_floating(dtype) && bits_of(dtype) <= 8; }

// The value as `rules.to` has it, as a double.
double round_float(double value, const CastRules& rules) {
  if (!is_small_float(rules.to)) return round_to_dtype(rules.to, value);
  return small_float_to_double(rules.to, small_float_from_double(rules.to, value, rules.saturate, rules.round));
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

// Toward zero. Out of range, which the specification leaves open: int32 and wider give the least value (uint64 wraps),
// as the conversion instructions of processors do; narrower types wrap.
int64_t float_to_integer(double value, DType to) {
  if (to == DType::uint64 && value >= 9223372036854775808.0 && value < 18446744073709551616.0) {
    return static_cast<int64_t>(static_cast<uint64_t>(value));
  }
  const int64_t whole = truncate_to_int64(value);
  if (to != DType::int32) return whole;
  const bool fits = whole >= std::numeric_limits<int32_t>::min() && whole <= std::numeric_limits<int32_t>::max();
  return fits ? whole : std::numeric_limits<int32_t>::min();
}

// "3.14", "1e-5", "NaN", "INF", "-inf", with spaces around: what the specification of Cast from string allows.
Result<double> parse_number(std::string_view text) {
  const std::string owned(text);
  size_t used = 0;
  char* end = nullptr;
  const double value = std::strtod(owned.c_str(), &end);
  used = static_cast<size_t>(end - owned.c_str());
  while (used < owned.size() && owned[used] == ' ') ++used;
  if (owned.empty() || end == owned.c_str() || used != owned.size()) {
    return execution_error(fmt::format("'{}' is no number", text));
  }
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
    const double value = round_float(PX_TRY(parse_number(texts[index])), rules);
    store<double>(output, position, std::span<const double>(&value, 1));
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
            out[index] = round_float(in[index], rules);
          else
            out[index] = round_float(integer_to_double(in[index], rules.to), rules);
        }
        return store<double>(output, begin, out);
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
  const Tensor& input = op.input(0);
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
    return execution_error("attribute round_mode must be up, down or nearest");
  return rules;
}

}  // namespace

Status op_cast(OpContext& op) {
  if (op.since_version() < 6) {  // the type stood as text
    const auto named = dtype_from_name(lower_case(op.string_attribute("to")));
    if (!named.has_value()) return execution_error("attribute to names no element type");
    return cast(op, {*named});
  }
  const auto to = dtype_from_number(op.int_attribute("to"));
  if (!to.has_value()) return unsupported(fmt::format("a cast to element type number {}", op.int_attribute("to")));
  return cast(op, PX_TRY(rules_of(op, *to)));
}

// The second input lends its type. What it was declared as is lost in double precision, where all floats are one.
Status op_cast_like(OpContext& op) {
  if (op.keeps_casts() && op.carries_double() && is_floating(op.input(1).dtype())) {
    return unsupported("keeping casts in double precision: CastLike does not say its type");
  }
  return cast(op, PX_TRY(rules_of(op, op.input(1).dtype())));
}

}  // namespace parallax::reference
