// SPDX-License-Identifier: Apache-2.0
// Einsum and Det: contractions as products of matrices, or as strided sums, and the determinant by elimination.
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/rows/rows.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/ops/families.h"
#include "runtime/ops/indices.h"
#include "runtime/ops/row_folds.h"

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
    return wrong_value("the rank of an operand", rank, "be {} to {}, as its term '{}' has an ellipsis", term.size() - 3,
                       term.size() + 7, term);
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
      return wrong_value("the number of terms in attribute 'equation'", i + 1, "be {}, that of the operands",
                         op.input_count());
    left = comma == std::string::npos ? "" : left.substr(comma + 1);
  }
  if (!left.empty())
    return execution_error(
        fmt::format("attribute 'equation' has more terms than operands; it must have {}", op.input_count()));
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
    if (letters.size() != shape.rank())
      return wrong_input(op, static_cast<int64_t>(term), "have rank {}, the number of letters in its term '{}'",
                         letters.size(), letters);
    for (size_t axis = 0; axis < letters.size(); ++axis) {
      auto [location, is_new] = sizes.try_emplace(letters[axis], shape[axis]);
      if (is_new || location->second == shape[axis] || shape[axis] == 1) continue;
      if (location->second != 1)
        return wrong_input(op, static_cast<int64_t>(term), "have size {} along axis {}, as letter '{}' has elsewhere",
                           location->second, axis, letters[axis]);
      location->second = shape[axis];
    }
  }
  return sizes;
}

// The strides with which an operand of these letters is walked along `letters`; a repeated letter walks the diagonal,
// one that is not the operand's, or broadcast, stands still.
Ints strides_along(const Shape& shape, const std::string& own_letters, const std::string& letters) {
  const Ints own = row_major_strides(shape);
  Ints strides(static_cast<int64_t>(letters.size()));
  for (size_t axis = 0; axis < own_letters.size(); ++axis) {
    const size_t at = letters.find(own_letters[axis]);
    if (at != std::string::npos && shape[axis] != 1)
      strides[static_cast<int64_t>(at)] += own[static_cast<int64_t>(axis)];
  }
  return strides;
}

Ints sizes_of(const std::map<char, int64_t>& sizes, const std::string& letters) {
  Ints dims;
  for (char letter : letters) dims.push_back(sizes.at(letter));
  return dims;
}

// ---- Two operands as products of matrices ----

// Letters by what they are to a product: of both operands and the result, of one and the result, of both alone.
struct ProductLetters {
  std::string batch, rows, columns, summed;
};

// Nothing where a letter is summed within one operand.
std::optional<ProductLetters> product_letters(const Equation& equation, const std::map<char, int64_t>& sizes) {
  if (equation.terms.size() != 2) return std::nullopt;
  ProductLetters letters;
  for (const auto& [letter, size] : sizes) {
    const bool in_a = equation.terms[0].find(letter) != std::string::npos;
    const bool in_b = equation.terms[1].find(letter) != std::string::npos;
    const bool in_result = equation.result.find(letter) != std::string::npos;
    if (!in_result && !(in_a && in_b)) return std::nullopt;
    (!in_result ? letters.summed : in_a && in_b ? letters.batch : in_a ? letters.rows : letters.columns) += letter;
  }
  return letters;
}

// The operand packed along `letters`.
template <class C, class Device>
Result<const C*> packed_operand(OpContext<Device>& op, int64_t input, const std::string& own_letters,
                                const std::string& letters, const Ints& dims, const C* values) {
  const Ints strides = strides_along(op.input(input).shape(), own_letters, letters);
  if (strides == row_major_strides(dims)) return values;
  const MutableView packed = PX_TRY(op.scratch(storage_of<C>(), shape_of(dims)));
  copy_strided(op.queue(), sizeof(C), dims, {packed.data, row_major_strides(dims), 0},
               {reinterpret_cast<const std::byte*>(values), strides, 0});
  return reinterpret_cast<const C*>(packed.data);
}

template <class C, class Device>
Status multiply(OpContext<Device>& op, const Equation& equation, const ProductLetters& letters,
                const std::map<char, int64_t>& sizes, const MutableView& y) {
  const std::string a_letters = letters.batch + letters.rows + letters.summed;
  const std::string b_letters = letters.batch + letters.columns + letters.summed;
  const std::string y_letters = letters.batch + letters.rows + letters.columns;
  const auto a_values = PX_TRY(converted<C>(op.queue(), op.input(0).view(), op.is_constant(0)));
  const auto b_values = PX_TRY(converted<C>(op.queue(), op.input(1).view(), op.is_constant(1)));
  constexpr bool kIsInteger = std::is_integral_v<C>;  // whose product has no transposition
  const std::string b_order = kIsInteger ? letters.batch + letters.summed + letters.columns : b_letters;
  const C* a = PX_TRY(packed_operand(op, 0, equation.terms[0], a_letters, sizes_of(sizes, a_letters), a_values.get()));
  const C* b = PX_TRY(packed_operand(op, 1, equation.terms[1], b_order, sizes_of(sizes, b_order), b_values.get()));
  GemmProblem problem;
  problem.m = product(sizes_of(sizes, letters.rows));
  problem.n = product(sizes_of(sizes, letters.columns));
  problem.k = product(sizes_of(sizes, letters.summed));
  problem.transpose_b = !kIsInteger;
  const int64_t batch = product(sizes_of(sizes, letters.batch));
  problem.a_offsets = problem.b_offsets = Ints(batch);
  for (int64_t i = 0; i < batch; ++i) {
    problem.a_offsets[i] = i * problem.m * problem.k;
    problem.b_offsets[i] = i * problem.n * problem.k;
  }
  if (problem.k == 0) return fill(op.queue(), y, nullptr), Status{};
  const Ints dims = sizes_of(sizes, y_letters);
  const MutableView sums = PX_TRY(op.scratch(storage_of<C>(), shape_of(dims)));
  PX_TRY(gemm(op.queue(), problem, a, b, reinterpret_cast<C*>(sums.data)));
  MutableView rounded = sums;
  if (y.dtype != sums.dtype) {
    rounded = PX_TRY(op.scratch(y.dtype, sums.shape));
    map_as<C, C>(op.queue(), Same{}, rounded, std::array<TensorView, 1>{TensorView(sums)});
  }
  copy_strided(op.queue(), element_bytes(y.dtype), y.shape, {y.data, row_major_strides(y.shape), 0},
               {rounded.data, strides_along(sums.shape, y_letters, equation.result), 0});
  return {};
}

// ---- One operand: transposed, and summed along axes that are not in the result ----

template <class C, class Device>
Status reduce_operand(OpContext<Device>& op, const Equation& equation, const std::map<char, int64_t>& sizes,
                      const MutableView& y) {
  const Tensor& x = op.input(0);
  const std::string& own = equation.terms[0];
  std::string summed;
  for (char letter : own) {
    if ((equation.result + summed).find(letter) == std::string::npos) summed += letter;
  }
  if (summed.empty()) {
    const StridedSource from{x.view().data, strides_along(x.shape(), own, equation.result), 0};
    return copy_strided(op.queue(), element_bytes(y.dtype), y.shape, {y.data, row_major_strides(y.shape), 0}, from),
           Status{};
  }
  // As stored where the summed letters are adjacent and the others in the result's order, else with those last.
  const size_t at = own.find(summed);
  const bool is_in_order =
      at != std::string::npos && own.substr(0, at) + own.substr(at + summed.size()) == equation.result;
  const size_t before = is_in_order ? at : equation.result.size();
  const int64_t outer = product(sizes_of(sizes, equation.result.substr(0, before)));
  const RowLayout rows{outer, product(sizes_of(sizes, summed)),
                       product(sizes_of(sizes, equation.result.substr(before)))};
  TensorView in = x.view();
  if (!is_in_order) {
    const Ints dims = sizes_of(sizes, equation.result + summed);
    const MutableView packed = PX_TRY(op.scratch(x.dtype(), shape_of(dims)));
    copy_strided(op.queue(), element_bytes(x.dtype()), dims, {packed.data, row_major_strides(dims), 0},
                 {in.data, strides_along(x.shape(), own, equation.result + summed), 0});
    in = TensorView(packed);
  }
  return fold_rows<C>(op.queue(), FoldSum{}, rows, y, in), Status{};
}

// ---- Any number of operands ----

// The sum of the products at one element of the result. Operands are known by address.
template <class Device, class C>
struct Contraction {
  static constexpr int64_t kWork = 100;
  int operands;
  Elements<Device, const int64_t> addresses;    // [operands]
  Elements<Device, const int64_t> out_strides;  // [operands, kMaxRank]
  Elements<Device, const int64_t> sum_strides;
  Axes out_dims, sum_dims;
  int64_t sums;

  PX_HD C operator()(int64_t element) const {
    C sum = 0;
    for (int64_t term = 0; term < sums; ++term) {
      C factor = 1;
      for (int operand = 0; operand < operands; ++operand) {
        const int64_t offset =
            offset_of(element, operand, out_dims, out_strides) + offset_of(term, operand, sum_dims, sum_strides);
        factor *= Elements<Device, const C>{reinterpret_cast<const C*>(addresses[operand])}[offset];
      }
      sum += factor;
    }
    return sum;
  }

 private:
  PX_HD int64_t offset_of(int64_t index, int operand, const Axes& dims,
                          const Elements<Device, const int64_t>& strides) const {
    int64_t offset = 0;
    for (int axis = dims.count - 1; axis >= 0; --axis) {
      offset += index % dims[axis] * strides[operand * static_cast<int64_t>(Shape::kMaxRank) + axis];
      index /= dims[axis];
    }
    return offset;
  }
};

template <class C, class Device>
Status contract(OpContext<Device>& op, const Equation& equation, const std::map<char, int64_t>& sizes,
                const MutableView& y) {
  if (equation.terms.size() == 1) return reduce_operand<C>(op, equation, sizes, y);
  if (const auto letters = product_letters(equation, sizes)) return multiply<C>(op, equation, *letters, sizes, y);
  std::string summed;
  for (const auto& [letter, size] : sizes) {
    if (equation.result.find(letter) == std::string::npos) summed += letter;
  }
  if (summed.size() > Shape::kMaxRank)
    return wrong_value("the number of letters that 'equation' sums over", summed.size(), "be at most {}",
                       Shape::kMaxRank);
  const Ints sum_dims = sizes_of(sizes, summed);
  std::vector<std::shared_ptr<const C>> operands;
  Ints addresses, out_strides, sum_strides;
  for (int64_t i = 0; i < op.input_count(); ++i) {
    operands.push_back(PX_TRY(converted<C>(op.queue(), op.input(i).view(), op.is_constant(i))));
    addresses.push_back(reinterpret_cast<intptr_t>(operands.back().get()));
    const std::string& own = equation.terms[static_cast<size_t>(i)];
    const auto add = [&](Ints& all, const std::string& letters) {
      for (int64_t stride : strides_along(op.input(i).shape(), own, letters)) all.push_back(stride);
      while (all.size() < (i + 1) * static_cast<int64_t>(Shape::kMaxRank)) all.push_back(0);
    };
    add(out_strides, equation.result);
    add(sum_strides, summed);
  }
  const Contraction<Device, C> contraction{static_cast<int>(operands.size()),
                                           PX_TRY(op.table(std::move(addresses))),
                                           PX_TRY(op.table(std::move(out_strides))),
                                           PX_TRY(op.table(std::move(sum_strides))),
                                           Axes(Ints(y.shape)),
                                           Axes(sum_dims),
                                           product(sum_dims)};
  tabulate<C>(op.queue(), contraction, y);
  return {};
}

template <class Device>
Status einsum(OpContext<Device>& op) {
  const Equation equation = PX_TRY(parse_equation(op));
  const std::map<char, int64_t> sizes = PX_TRY(letter_sizes(op, equation));
  Ints dims;
  for (char letter : equation.result) {
    if (!sizes.contains(letter))
      return execution_error(
          fmt::format("letter '{}' of the result is in no term; one of the operands' terms must have it", letter));
    if (std::count(equation.result.begin(), equation.result.end(), letter) > 1)
      return execution_error(fmt::format("letter '{}' is in the result twice; it must be there once", letter));
    dims.push_back(sizes.at(letter));
  }
  const DType dtype = op.input(0).dtype();
  const MutableView y = PX_TRY(op.make_output(0, dtype, shape_of(dims)));
  if (dtype == DType::float64) return contract<double>(op, equation, sizes, y);
  if (is_floating(dtype)) return contract<float>(op, equation, sizes, y);
  return contract<int64_t>(op, equation, sizes, y);
}

// ---- Det: Gaussian elimination with partial pivoting, a matrix a thread, on a copy in double ----

template <class Device>
struct Determinant {
  static constexpr int64_t kWork = 1000;
  Elements<Device, double> matrices;
  int64_t n;

  PX_HD double operator()(int64_t matrix) const {
    double result = 1;
    for (int64_t column = 0; column < n; ++column) {
      int64_t pivot = column;
      for (int64_t row = column + 1; row < n; ++row) {
        if (std::fabs(at(matrix, row, column)) > std::fabs(at(matrix, pivot, column))) pivot = row;
      }
      const double value = at(matrix, pivot, column);
      if (value == 0.0) return 0.0;
      for (int64_t i = 0; pivot != column && i < n; ++i) {
        const double moved = at(matrix, pivot, i);
        at(matrix, pivot, i) = at(matrix, column, i);
        at(matrix, column, i) = moved;
      }
      result *= pivot == column ? value : -value;
      for (int64_t row = column + 1; row < n; ++row) {
        const double factor = at(matrix, row, column) / value;
        for (int64_t i = column; i < n; ++i) at(matrix, row, i) -= factor * at(matrix, column, i);
      }
    }
    return result;
  }

 private:
  PX_HD double& at(int64_t matrix, int64_t row, int64_t column) const {
    return matrices[(matrix * n + row) * n + column];
  }
};

template <class Device>
Status det(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  Ints dims(x.shape());
  if (dims.size() < 2 || dims.back() != dims[dims.size() - 2])
    return wrong_input(op, 0, "have rank 2 or more and two last axes of equal size");
  const int64_t n = dims.back();
  dims.erase(dims.size() - 1);
  dims.erase(dims.size() - 1);
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(dims)));
  const MutableView copy = PX_TRY(op.scratch(DType::float64, x.shape()));
  map_as<double, double>(op.queue(), Same{}, copy, std::array<TensorView, 1>{x.view()});
  tabulate<double>(op.queue(), Determinant<Device>{{reinterpret_cast<double*>(copy.data)}, n}, y);
  return {};
}

template <class Device>
constexpr KernelRow<Device> kEinsumRows[] = {
    {"Det", kFloats, det<Device>},
    {"Einsum", kReals, einsum<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> einsum_rows() {
  return kEinsumRows<CompiledDevice>;
}

}  // namespace parallax::runtime
