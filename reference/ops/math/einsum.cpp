// SPDX-License-Identifier: Apache-2.0
// Einsum, and the determinant.
#include <algorithm>
#include <cmath>
#include <map>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

// A term as letters, the ellipsis spelt out as the capital-free labels '0', '1', ... counted from the back.
Result<std::string> expand_term(const std::string& term, size_t rank) {
  const size_t dots = term.find("...");
  if (dots == std::string::npos) {
    if (term.size() != rank)
      return wrong_value("the rank of an operand", rank, "be {}, the number of letters in its term '{}'", term.size(),
                         term);
    return term;
  }
  const size_t letters = term.size() - 3;
  if (letters > rank || rank - letters > 10)
    return wrong_value("the rank of an operand", rank, "be {} to {}, as its term '{}' has an ellipsis", letters,
                       letters + 10, term);
  std::string labels;
  for (size_t count = rank - letters; count > 0; --count) labels += static_cast<char>('0' + count - 1);
  return term.substr(0, dots) + labels + term.substr(dots + 3);
}

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

// Without "->" the output holds the ellipsis, then every letter that occurs once, in alphabetical order.
Result<Equation> parse_equation(const OpContext& op) {
  std::string text = op.string_attribute("equation");
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  Equation equation;
  size_t begin = 0;
  std::string ellipsis;
  for (size_t index = 0; index < op.input_count(); ++index) {
    const size_t comma = std::min(left.find(',', begin), left.size());
    if (begin > left.size())
      return wrong_value("the number of terms in attribute 'equation'", index, "be {}, that of the operands",
                         op.input_count());
    equation.inputs.push_back(PX_TRY(expand_term(left.substr(begin, comma - begin), op.input(index).shape().rank())));
    begin = comma + 1;
    std::string digits;
    for (char label : equation.inputs.back()) {
      if (std::isdigit(static_cast<unsigned char>(label)) != 0) digits += label;
    }
    if (digits.size() > ellipsis.size()) ellipsis = digits;
  }
  if (begin <= left.size())
    return execution_error(
        fmt::format("attribute 'equation' has more terms than operands; it must have {}", op.input_count()));
  std::map<char, int> occurrences;
  for (const std::string& term : equation.inputs) {
    for (char label : term) ++occurrences[label];
  }
  if (arrow == std::string::npos) {
    equation.output = ellipsis;
    for (const auto& [label, count] : occurrences) {
      if (count == 1 && std::isdigit(static_cast<unsigned char>(label)) == 0) equation.output += label;
    }
    return equation;
  }
  equation.output = text.substr(arrow + 2);
  const size_t dots = equation.output.find("...");
  if (dots != std::string::npos) equation.output.replace(dots, 3, ellipsis);
  for (char label : equation.output) {
    if (!occurrences.contains(label))
      return execution_error(
          fmt::format("letter '{}' of the result is in no term; one of the operands' terms must have it", label));
  }
  return equation;
}

// All labels, those of the output first, with their dimensions; for each input the strides along them (0 where it lacks
// one or repeats along it; the sum of its strides where it has one twice: a diagonal).
struct LabelSpace {
  std::string labels;
  std::vector<int64_t> dims;
  std::vector<std::vector<int64_t>> strides;
};

Result<LabelSpace> plan_labels(const OpContext& op, const Equation& equation) {
  LabelSpace space;
  space.labels = equation.output;
  for (const std::string& term : equation.inputs) {
    for (char label : term) {
      if (space.labels.find(label) == std::string::npos) space.labels += label;
    }
  }
  if (space.labels.size() > Shape::kMaxRank)
    return unsupported(fmt::format("the equation has {} letters; at most {} have a function here", space.labels.size(),
                                   Shape::kMaxRank));
  space.dims.assign(space.labels.size(), 1);
  for (size_t index = 0; index < equation.inputs.size(); ++index) {
    const Shape& shape = op.input(index).shape();
    const std::vector<int64_t> own = strides_of(shape);
    space.strides.emplace_back(space.labels.size(), 0);
    for (size_t axis = 0; axis < shape.rank(); ++axis) {
      const size_t location = space.labels.find(equation.inputs[index][axis]);
      if (shape[axis] == 1) continue;
      if (space.dims[location] != 1 && space.dims[location] != shape[axis])
        return wrong_input(op, index, "have size {} along axis {}, as letter '{}' has elsewhere", space.dims[location],
                           axis, space.labels[location]);
      space.dims[location] = shape[axis];
      space.strides.back()[location] += own[axis];
    }
  }
  return space;
}

// result[output labels] = sum over the other labels of the product of the operands.
template <class T>
Status einsum(OpContext& op, const Equation& equation, const LabelSpace& space) {
  const size_t out_rank = equation.output.size();
  const std::span<const int64_t> dims(space.dims);
  const Shape shape = PX_TRY(Shape::create(dims.first(out_rank)));
  const Shape summed = PX_TRY(Shape::create(dims.subspan(out_rank)));
  std::vector<std::unique_ptr<Numbers<T>>> numbers;
  for (size_t index = 0; index < op.input_count(); ++index)
    numbers.push_back(std::make_unique<Numbers<T>>(op.input(index)));
  std::vector<T> results(static_cast<size_t>(shape.element_count()), T{0});
  parallel_for(shape.element_count(), summed.element_count() * 5, [&](int64_t begin, int64_t end) {
    for (int64_t location = begin; location < end; ++location) {
      std::vector<int64_t> bases;
      std::vector<Walk<1>> walks;
      for (const std::vector<int64_t>& strides : space.strides) {
        const std::span<const int64_t> all(strides);
        bases.push_back(Walk<1>(shape.dims(), {all.first(out_rank)}, location).offset());
        walks.emplace_back(summed.dims(), std::array{all.subspan(out_rank)});
      }
      T sum{0};
      for (int64_t count = 0; count < summed.element_count(); ++count) {
        T product{1};
        for (size_t index = 0; index < walks.size(); ++index) {
          product = wrapping_multiply(product, (*numbers[index])[bases[index] + walks[index].offset()]);
          walks[index].next();
        }
        sum = wrapping_add(sum, product);
      }
      results[static_cast<size_t>(location)] = sum;
    }
  });
  return op.set_output(0, op.input(0).dtype(), shape, std::span<const T>(results));
}

// By elimination with partial pivoting.
double determinant(std::vector<double> matrix, size_t size) {
  double result = 1;
  for (size_t column = 0; column < size; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < size; ++row) {
      if (std::fabs(matrix[row * size + column]) > std::fabs(matrix[pivot * size + column])) pivot = row;
    }
    if (matrix[pivot * size + column] == 0.0) return 0;
    if (pivot != column) {
      std::swap_ranges(matrix.begin() + static_cast<ptrdiff_t>(pivot * size),
                       matrix.begin() + static_cast<ptrdiff_t>((pivot + 1) * size),
                       matrix.begin() + static_cast<ptrdiff_t>(column * size));
      result = -result;
    }
    result *= matrix[column * size + column];
    for (size_t row = column + 1; row < size; ++row) {
      const double factor = matrix[row * size + column] / matrix[column * size + column];
      for (size_t k = column; k < size; ++k) matrix[row * size + k] -= factor * matrix[column * size + k];
    }
  }
  return result;
}

Status op_einsum(OpContext& op) {
  const Equation equation = PX_TRY(parse_equation(op));
  const LabelSpace space = PX_TRY(plan_labels(op, equation));
  return with_number_type(op.input(0).dtype(),
                          [&](auto number) { return einsum<decltype(number)>(op, equation, space); });
}

Status op_det(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const size_t rank = shape.rank();
  if (rank < 2 || shape[rank - 1] != shape[rank - 2])
    return wrong_input(op, 0, "have rank 2 or more and two last axes of equal size");
  const auto size = static_cast<size_t>(shape[rank - 1]);
  const Numbers<double> numbers(op.input(0));
  const Shape result(shape.dims().first(rank - 2));
  std::vector<double> results;
  for (int64_t index = 0; index < result.element_count(); ++index) {
    const double* begin = numbers.data() + static_cast<size_t>(index) * size * size;
    results.push_back(determinant({begin, begin + size * size}, size));
  }
  return op.set_output(0, op.input(0).dtype(), result, std::span<const double>(results));
}

constexpr OpRow kEinsumRows[] = {
    {"Det", kOnnx, 11, 22, op_det},
    {"Einsum", kOnnx, 12, 28, op_einsum},
};

}  // namespace

OpRows einsum_rows() { return kEinsumRows; }

}  // namespace parallax::reference
