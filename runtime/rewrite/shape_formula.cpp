// SPDX-License-Identifier: Apache-2.0
// Concat, Slice, Gather, Shape and constants followed up to the value whose dimensions they are.
#include "runtime/rewrite/shape_formula.h"

#include <algorithm>
#include <optional>

#include "inspector/tensor/elements.h"

namespace parallax::runtime {
namespace {

constexpr int kDeepestFormula = 6;
using Terms = std::optional<std::vector<ShapeTerm>>;

Terms terms_of(const Fuser& fuser, ValueId value, ValueId source, int depth);

std::optional<std::vector<int64_t>> numbers_of(const Fuser& fuser, ValueId value) {
  const Tensor* tensor = fuser.edit().constant(value);
  if (tensor == nullptr || tensor->dtype() != DType::int64 || tensor->shape().rank() > 1) return std::nullopt;
  return to_int64s(tensor->view());
}

int64_t bounded(int64_t position, int64_t count) {
  return std::clamp<int64_t>(position < 0 ? position + count : position, 0, count);
}

Terms part(const std::vector<ShapeTerm>& terms, int64_t begin, int64_t end) {
  const auto count = static_cast<int64_t>(terms.size());
  begin = bounded(begin, count);
  end = std::max(begin, bounded(end, count));
  return std::vector<ShapeTerm>(terms.begin() + begin, terms.begin() + end);
}

Terms shape_terms(const Fuser& fuser, const Node& shape, ValueId source) {
  const auto dims = fuser.dims_of(source);
  if (fuser.input(shape, 0) != source || !dims.has_value()) return std::nullopt;
  std::vector<ShapeTerm> all;
  for (size_t axis = 0; axis < dims->size(); ++axis) all.push_back(ShapeTerm::dim(static_cast<int64_t>(axis)));
  return part(all, int_of(shape, "start", 0), int_of(shape, "end", static_cast<int64_t>(all.size())));
}

Terms slice_terms(const Fuser& fuser, const Node& slice, ValueId source, int depth) {
  const auto whole = terms_of(fuser, fuser.input(slice, 0), source, depth);
  const auto begins = numbers_of(fuser, fuser.input(slice, 1)), ends = numbers_of(fuser, fuser.input(slice, 2));
  if (!whole || !begins || !ends || begins->size() != 1 || ends->size() != 1) return std::nullopt;
  if (fuser.input(slice, 4) != kNoValue && numbers_of(fuser, fuser.input(slice, 4)) != std::vector<int64_t>{1})
    return std::nullopt;
  return part(*whole, (*begins)[0], (*ends)[0]);
}

Terms gather_terms(const Fuser& fuser, const Node& gather, ValueId source, int depth) {
  const auto whole = terms_of(fuser, fuser.input(gather, 0), source, depth);
  const auto locations = numbers_of(fuser, fuser.input(gather, 1));
  if (!whole || !locations || int_of(gather, "axis", 0) != 0) return std::nullopt;
  const auto count = static_cast<int64_t>(whole->size());
  std::vector<ShapeTerm> chosen;
  for (int64_t location : *locations) {
    if (location < -count || location >= count) return std::nullopt;
    chosen.push_back((*whole)[static_cast<size_t>(location < 0 ? location + count : location)]);
  }
  return chosen;
}

Terms concat_terms(const Fuser& fuser, const Node& concat, ValueId source, int depth) {
  std::vector<ShapeTerm> all;
  for (size_t index = 0; index < concat.inputs.size(); ++index) {
    const auto terms = terms_of(fuser, fuser.input(concat, index), source, depth);
    if (!terms) return std::nullopt;
    all.insert(all.end(), terms->begin(), terms->end());
  }
  return all;
}

Terms terms_of(const Fuser& fuser, ValueId value, ValueId source, int depth) {
  if (depth > kDeepestFormula) return std::nullopt;
  if (const auto numbers = numbers_of(fuser, value)) {
    std::vector<ShapeTerm> terms;
    for (int64_t number : *numbers) terms.push_back(ShapeTerm::number(number));
    return terms;
  }
  const size_t at = fuser.producer(value);
  if (fuser.at(at, "Shape") != nullptr) return shape_terms(fuser, *fuser.at(at), source);
  if (fuser.at(at, "Slice") != nullptr) return slice_terms(fuser, *fuser.at(at), source, depth + 1);
  if (fuser.at(at, "Gather") != nullptr) return gather_terms(fuser, *fuser.at(at), source, depth + 1);
  if (fuser.at(at, "Concat") != nullptr) return concat_terms(fuser, *fuser.at(at), source, depth + 1);
  for (const std::string_view view : {"Unsqueeze", "Squeeze"}) {  // one number, as a scalar or as a list of one
    if (fuser.at(at, view) != nullptr) return terms_of(fuser, fuser.input(*fuser.at(at), 0), source, depth + 1);
  }
  return std::nullopt;
}

// A number stands for an axis of the source that is known to be so long, and the other way round.
bool says_the_same(const ShapeTerm& found, const ShapeTerm& wanted, const std::vector<Dim>& dims) {
  if (found == wanted) return true;
  const auto is_axis_of = [&](const ShapeTerm& axis, const ShapeTerm& number) {
    if (axis.kind != ShapeTerm::Kind::axis || number.kind != ShapeTerm::Kind::number) return false;
    const Dim& dim = dims[static_cast<size_t>(axis.value)];
    return dim.is_known() && dim.value == number.value && dim.value > 0;
  };
  return is_axis_of(found, wanted) || is_axis_of(wanted, found);
}

}  // namespace

bool has_shape(const Fuser& fuser, const Node& reshape, ValueId source, const std::vector<ShapeTerm>& terms) {
  const auto dims = fuser.dims_of(source);
  const auto found = terms_of(fuser, fuser.input(reshape, 1), source, 0);
  if (!dims.has_value() || !found.has_value() || found->size() != terms.size()) return false;
  for (size_t i = 0; i < terms.size(); ++i) {
    const bool is_remaining = terms[i] == ShapeTerm::the_rest();  // every other entry is settled: so is this one
    if (!is_remaining && !says_the_same((*found)[i], terms[i], *dims)) return false;
  }
  return true;
}

}  // namespace parallax::runtime
