// Einsum and Det: general contractions as strided sums, and the determinant by elimination.
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "runtime/device/gemm.h"
#include "runtime/device/map.h"
#include "runtime/device/window.h"
#include "runtime/ops/families.h"

namespace parallax::runtime {
namespace {

// Letters of each operand and of the result; the dimensions an ellipsis stands for become the letters '0', '1', ...
// counted from the last one, so that they broadcast as numpy's do.
struct Equation {
  std::vector<std::string> terms;
  std::string result;
};

Result<std::string> expand_ellipsis(std::string term, int64_t rank) {
  const size_t at = term.find("...");
  if (at == std::string::npos) return term;
  const int64_t count = rank - static_cast<int64_t>(term.size()) + 3;
  if (count < 0 || count > 10)
    return execution_error("the ellipsis does not fit an operand of rank " + std::to_string(rank));
  std::string digits;
  for (int64_t i = count - 1; i >= 0; --i) digits += static_cast<char>('0' + i);
  return term.replace(at, 3, digits);
}

Result<Equation> parse_equation(const OpCall& op) {
  std::string text = op.text("equation");
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  Equation equation;
  std::string digits;  // the longest run that an ellipsis stood for
  for (int64_t i = 0; i < op.input_count(); ++i) {
    const size_t comma = left.find(',');
    std::string term = PX_TRY(expand_ellipsis(left.substr(0, comma), rank_of(op.input(i).shape())));
    std::string own;
    for (char letter : term) {
      if (letter >= '0' && letter <= '9') own += letter;
    }
    if (own.size() > digits.size()) digits = own;
    equation.terms.push_back(std::move(term));
    if (comma == std::string::npos && i + 1 < op.input_count())
      return execution_error("'equation' has fewer terms than operands");
    left = comma == std::string::npos ? "" : left.substr(comma + 1);
  }
  if (!left.empty()) return execution_error("'equation' has more terms than operands");
  if (arrow == std::string::npos) {  // implicit: the ellipsis, then the letters that occur once, in order
    std::map<char, int> counts;
    for (const std::string& term : equation.terms) {
      for (char letter : term) ++counts[letter];
    }
    equation.result = digits;
    for (const auto& [letter, count] : counts) {
      if (count == 1 && !(letter >= '0' && letter <= '9')) equation.result += letter;
    }
  } else {
    equation.result = text.substr(arrow + 2);
    const size_t at = equation.result.find("...");
    if (at != std::string::npos) equation.result.replace(at, 3, digits);
  }
  return equation;
}

Result<std::map<char, int64_t>> letter_sizes(const OpCall& op, const Equation& equation) {
  std::map<char, int64_t> sizes;
  for (size_t term = 0; term < equation.terms.size(); ++term) {
    const Shape& shape = op.input(static_cast<int64_t>(term)).shape();
    const std::string& letters = equation.terms[term];
    if (letters.size() != shape.rank()) return execution_error("a term does not fit its operand " + shape.to_string());
    for (size_t axis = 0; axis < letters.size(); ++axis) {
      auto [place, is_new] = sizes.try_emplace(letters[axis], shape[axis]);
      if (is_new || place->second == shape[axis] || shape[axis] == 1) continue;
      if (place->second != 1)
        return execution_error(fmt::format("'{}' stands for {} and {}", letters[axis], place->second, shape[axis]));
      place->second = shape[axis];
    }
  }
  return sizes;
}

// For each operand the stride of each letter of `letters`; repeated letters walk the diagonal.
std::vector<Ints> strides_for(const OpCall& op, const Equation& equation, const std::string& letters) {
  std::vector<Ints> result;
  for (size_t term = 0; term < equation.terms.size(); ++term) {
    const Shape& shape = op.input(static_cast<int64_t>(term)).shape();
    const Ints own = row_major_strides(shape);
    Ints strides(static_cast<int64_t>(letters.size()));
    for (size_t axis = 0; axis < equation.terms[term].size(); ++axis) {
      const size_t at = letters.find(equation.terms[term][axis]);
      if (at != std::string::npos && shape[axis] != 1)
        strides[static_cast<int64_t>(at)] += own[static_cast<int64_t>(axis)];
    }
    result.push_back(std::move(strides));
  }
  return result;
}

int64_t offset_of(const int64_t* position, const Ints& strides) {
  int64_t offset = 0;
  for (int64_t axis = 0; axis < strides.size(); ++axis) offset += position[axis] * strides[axis];
  return offset;
}

template <class C, class Device>
Status contract(OpContext<Device>& op, const Equation& equation, const std::map<char, int64_t>& sizes,
                const MutableView& y) {
  std::string summed;
  for (const auto& [letter, size] : sizes) {
    if (equation.result.find(letter) == std::string::npos) summed += letter;
  }
  Ints sum_dims;
  for (char letter : summed) sum_dims.push_back(sizes.at(letter));
  const Ints out_dims(y.shape);
  const auto out_strides = strides_for(op, equation, equation.result);
  const auto sum_strides = strides_for(op, equation, summed);
  std::vector<std::shared_ptr<const C>> operands;
  for (int64_t i = 0; i < op.input_count(); ++i) {
    operands.push_back(PX_TRY(converted<C>(op.queue(), op.input(i).view(), op.is_constant(i))));
  }
  if (sum_dims.size() > static_cast<int64_t>(Shape::kMaxRank) ||
      out_dims.size() > static_cast<int64_t>(Shape::kMaxRank)) {
    return execution_error("'equation' has too many letters");
  }
  const int64_t sums = product(sum_dims);
  parallel_for(y.element_count(), sums * 4, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      int64_t out_position[Shape::kMaxRank];
      int64_t sum_position[Shape::kMaxRank] = {};
      unravel(index, out_dims, out_position);
      C sum = 0;
      for (int64_t i = 0; i < sums; ++i, advance(sum_position, sum_dims)) {
        C factor = 1;
        for (size_t operand = 0; operand < operands.size(); ++operand) {
          factor *=
              operands[operand]
                  .get()[offset_of(out_position, out_strides[operand]) + offset_of(sum_position, sum_strides[operand])];
        }
        sum += factor;
      }
      store_block<C>(y.dtype, y.data, index, 1, &sum);
    }
  });
  return {};
}

template <class Device>
Status einsum(OpContext<Device>& op) {
  const Equation equation = PX_TRY(parse_equation(op));
  const std::map<char, int64_t> sizes = PX_TRY(letter_sizes(op, equation));
  Ints dims;
  for (char letter : equation.result) {
    if (!sizes.contains(letter)) return execution_error(fmt::format("'{}' of the result is in no operand", letter));
    dims.push_back(sizes.at(letter));
  }
  const DType dtype = op.input(0).dtype();
  const MutableView y = PX_TRY(op.make_output(0, dtype, shape_of(dims)));
  if (dtype == DType::float64) return contract<double>(op, equation, sizes, y);
  if (is_floating(dtype)) return contract<float>(op, equation, sizes, y);
  return contract<int64_t>(op, equation, sizes, y);
}

// Gaussian elimination with partial pivoting.
double determinant(std::vector<double> a, int64_t n) {
  double result = 1;
  for (int64_t column = 0; column < n; ++column) {
    int64_t pivot = column;
    for (int64_t row = column + 1; row < n; ++row) {
      if (std::fabs(a.data()[row * n + column]) > std::fabs(a.data()[pivot * n + column])) pivot = row;
    }
    const double value = a.data()[pivot * n + column];
    if (value == 0.0) return 0.0;
    if (pivot != column) {
      std::swap_ranges(a.data() + pivot * n, a.data() + (pivot + 1) * n, a.data() + column * n);
      result = -result;
    }
    result *= value;
    for (int64_t row = column + 1; row < n; ++row) {
      const double factor = a.data()[row * n + column] / value;
      for (int64_t i = column; i < n; ++i) a.data()[row * n + i] -= factor * a.data()[column * n + i];
    }
  }
  return result;
}

template <class Device>
Status det(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  Ints dims(x.shape());
  if (dims.size() < 2 || dims.back() != dims[dims.size() - 2])
    return execution_error("the input must hold square matrices");
  const int64_t n = dims.back();
  dims.erase(dims.size() - 1);
  dims.erase(dims.size() - 1);
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(dims)));
  for (int64_t i = 0; i < y.element_count(); ++i) {
    std::vector<double> matrix(static_cast<size_t>(n * n));
    load_block<double>(x.dtype(), x.view().data, i * n * n, 1, n * n, matrix.data());
    const double value = determinant(std::move(matrix), n);
    store_block<double>(y.dtype, y.data, i, 1, &value);
  }
  return {};
}

template <class Device>
constexpr KernelRow<Device> kRows[] = {
    {"Det", kFloats, det<Device>},
    {"Einsum", kReals, einsum<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> einsum_rows() {
  return kRows<CompiledDevice>;
}

}  // namespace parallax::runtime
